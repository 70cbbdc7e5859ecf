// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Cache reuses the result of a deterministic step within one run of the loop. If the key is the
// same as before, the step does not run: its earlier events are yielded again, with "cached":
// true in their metadata. A failure and a request to leave are not reused. Changes that the
// step made without an event are not repeated.
type Cache struct {
	// Key computes the key from the step's inputs; lookup finds a name as [drive.Place.Lookup] does.
	// Required. An error, or an empty key, runs the step.
	Key func(lookup func(name string) (any, bool)) (string, error)
	// TTL limits the time for which a result is reused; 0 means until the loop ends.
	TTL time.Duration
}

// maxCached bounds how many outcomes of one step are kept.
const maxCached = 256

type cache struct {
	kept    []map[string]outcome // by step
	key     string               // of the step under way
	pending []*session.Event     // what it has said
}

// outcome has the events of a step at an address.
type outcome struct {
	events []*session.Event
	at     session.Address
	when   time.Time
}

func newCache() *cache { return new(cache) }

// cached says a step's earlier events again, if it has any for the same key.
func (r *run) cached(d *loop.Decision) (*drive.StepResult, bool) {
	c := r.cache
	policy := r.keyOf(d)
	if c.key == "" || d.Step >= len(c.kept) {
		return nil, false
	}
	was, ok := c.kept[d.Step][c.key]
	if !ok || policy.TTL > 0 && time.Since(was.when) >= policy.TTL {
		return nil, false
	}
	c.key = "" // it is kept already
	return new(r.replay(d, was)), true
}

// keyOf makes the key of a step that is about to run, if it has a cache; empty if
// its outcome is not to be kept.
func (r *run) keyOf(d *loop.Decision) *Cache {
	c := r.cache
	c.key, c.pending = "", nil
	policy := r.cfg.Steps[r.plan.Steps[d.Step].Name].Cache
	if policy == nil || d.Sample > 0 { // the same again would be no sample
		return nil
	}
	if key, err := policy.Key(r.lookup(d)); err == nil {
		c.key = key
	}
	return policy
}

// replay yields the earlier events again. In a durable run it puts marks around them, as if the
// step had run.
func (r *run) replay(d *loop.Decision, was outcome) (res drive.StepResult) {
	at := r.address(d)
	if !r.marks {
		return r.sayAgain(was, at)
	}
	if r.onEv(r.markOf(at, mark.KindStepStarted, nil)) {
		res = r.sayAgain(was, at)
	} else {
		res.Left = r.ctx.Err() == nil
	}
	if res.Left {
		return res
	}
	var finished mark.StepFinished
	if err := context.Cause(r.ctx); err != nil {
		finished.Error = err.Error()
	}
	res.Left = !r.onEv(r.markOf(at, mark.KindStepFinished, finished)) && r.ctx.Err() == nil
	return res
}

func (r *run) sayAgain(was outcome, at session.Address) (res drive.StepResult) {
	for _, ev := range was.events {
		again := r.again(ev, was.at, at)
		if !r.onEv(again) {
			res.Left = r.ctx.Err() == nil
			return res
		}
		res.Hear(again)
	}
	return res
}

// lookup finds names as the step would.
func (r *run) lookup(d *loop.Decision) func(string) (any, bool) {
	return r.me.LookupAt(r.loop, r.address(d))
}

// again returns a copy of an event for another address.
func (r *run) again(ev *session.Event, from, at session.Address) *session.Event {
	again := *ev
	again.Seq, again.ID, again.Timestamp = 0, "", time.Time{}
	again.Address = at + ev.Address[len(from):]
	if ev.Address == from {
		again.Attempt = 1
	}
	if ev.Iteration != 0 && !strings.Contains(string(ev.Address[len(from):]), "[") { // else it is that of a loop in it
		again.Iteration = r.loop.Iteration
	}
	again.UsageMetadata = nil // nothing was used this time
	drive.Annotate(&again, "cached", true)
	if temp, _ := again.CustomMetadata[drive.MetadataTemp].(map[string]any); temp != nil { // stores leave them out of the delta
		delete(again.CustomMetadata, drive.MetadataTemp)
		again.Actions.StateDelta = maps.Clone(again.Actions.StateDelta)
		if again.Actions.StateDelta == nil {
			again.Actions.StateDelta = make(map[string]any, len(temp))
		}
		maps.Copy(again.Actions.StateDelta, temp)
	}
	return &again
}

// markOf is a mark of a step that is not run.
func (r *run) markOf(at session.Address, kind mark.Kind, data any) *session.Event {
	m, _ := mark.New(kind, data) // plain data: there is no error
	ev := &session.Event{
		InvocationID: r.ctx.InvocationID(), Branch: r.ctx.Branch(), Author: at.Agent(),
		Address: at, Iteration: r.loop.Iteration, Attempt: 1, Mark: m,
	}
	if kind == mark.KindStepStarted {
		ev.CustomMetadata = map[string]any{mark.MetadataNotRun: true}
	}
	return ev
}

// keep remembers the events of a step if they may be reused.
func (r *run) keep(d *loop.Decision, res *drive.StepResult, when time.Time) {
	c := r.cache
	if c.key == "" || res.Err != nil || res.Left || r.exit != nil || r.refused != nil {
		return
	}
	if c.kept == nil {
		c.kept = make([]map[string]outcome, len(r.plan.Steps))
	}
	if c.kept[d.Step] == nil || len(c.kept[d.Step]) >= maxCached {
		c.kept[d.Step] = make(map[string]outcome)
	}
	c.kept[d.Step][c.key] = outcome{c.pending, r.address(d), when}
	c.key, c.pending = "", nil
}
