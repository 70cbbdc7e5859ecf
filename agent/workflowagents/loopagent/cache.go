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
// same as before, the step does not run, and the loop yields the step's earlier events again, with
// "cached": true in their metadata. A failure and a request to leave are not reused. Changes that the
// step made without an event are not repeated.
type Cache struct {
	// Key computes the key from the step's inputs; lookup finds a name as [drive.Place.Lookup] does.
	// Required. An error, or an empty key, runs the step.
	Key func(lookup func(name string) (any, bool)) (string, error)
	// TTL limits the time for which a result is reused; 0 means until the loop ends.
	TTL time.Duration
}

// maxCachedResults is the largest number of results that are kept for one step. At the next result, all of them are dropped.
const maxCachedResults = 256

type cache struct {
	byStep  []map[string]cachedStep // the results by step and key
	key     string                  // the key of the current step; "" if its result is not kept
	pending []*session.Event        // the events of the current step
}

// cachedStep has the events of a step at an address.
type cachedStep struct {
	events  []*session.Event
	address session.Address
	time    time.Time
}

func newCache() *cache { return new(cache) }

// fromCache yields a step's earlier events again, if the cache has them for the same key. It reports whether it does.
func (r *run) fromCache(d *loop.Decision) (*drive.StepResult, bool) {
	c := r.steps.cache
	policy := r.setCacheKey(d)
	if c.key == "" || d.Step >= len(c.byStep) {
		return nil, false
	}
	was, ok := c.byStep[d.Step][c.key]
	if !ok || policy.TTL > 0 && time.Since(was.time) >= policy.TTL {
		return nil, false
	}
	c.key = "" // the result is already in the cache
	return new(r.yieldCached(d, was)), true
}

// setCacheKey computes the key of a step that is about to run, and returns the step's cache policy. The key is empty if
// the step has no cache or its result must not be kept.
func (r *run) setCacheKey(d *loop.Decision) Cache {
	c := r.steps.cache
	c.key, c.pending = "", nil
	policy, ok := r.cfg.Caches[r.plan.Steps[d.Step].Name]
	if !ok || d.Sample > 0 { // each sample must be a new answer
		return policy
	}
	if key, err := policy.Key(r.lookup(d)); err == nil {
		c.key = key
		if l := r.loop.Leg; l != nil && l.Settings != (drive.Settings{}) { // other settings can give another answer
			c.key = strings.Join([]string{l.Model, l.Thinking, l.Instructions, key}, "\x00")
		}
		if text := r.loop.HintText(r.plan.Steps[d.Step].Name); text != "" {
			c.key = text + "\x00" + c.key
		}
	}
	return policy
}

// yieldCached yields the earlier events again. In a durable run it puts marks around them, as if the
// step had run.
func (r *run) yieldCached(d *loop.Decision, was cachedStep) (res drive.StepResult) {
	at := r.address(d)
	if !r.mode.durable {
		return r.yieldCopies(was, at)
	}
	if r.steps.onEvent(r.markFor(at, mark.KindStepStarted, nil)) {
		res = r.yieldCopies(was, at)
	} else {
		res.ConsumerLeft = r.ctx.Err() == nil
	}
	if res.ConsumerLeft {
		return res
	}
	var finished mark.StepFinished
	if err := context.Cause(r.ctx); err != nil {
		finished.Error = err.Error()
	}
	res.ConsumerLeft = !r.steps.onEvent(r.markFor(at, mark.KindStepFinished, finished)) && r.ctx.Err() == nil
	return res
}

// yieldCopies yields copies of the cached events for the address at. It stops when the consumer stops.
func (r *run) yieldCopies(was cachedStep, at session.Address) (res drive.StepResult) {
	for _, ev := range was.events {
		again := r.copyFor(ev, was.address, at)
		if !r.steps.onEvent(again) {
			res.ConsumerLeft = r.ctx.Err() == nil
			return res
		}
		res.Observe(again)
	}
	return res
}

// lookup returns a function that looks up names as the step does.
func (r *run) lookup(d *loop.Decision) func(string) (any, bool) {
	return r.place.LookupAt(r.loop, r.address(d))
}

// copyFor returns a copy of an event for another address.
func (r *run) copyFor(ev *session.Event, from, at session.Address) *session.Event {
	again := *ev
	again.Seq, again.ID, again.Timestamp = 0, "", time.Time{}
	again.Address = at + ev.Address[len(from):]
	if ev.Address == from {
		again.Attempt = 1
	}
	if ev.Iteration != 0 && !strings.Contains(string(ev.Address[len(from):]), "[") { // not an iteration of an inner loop
		again.Iteration = r.loop.Iteration
	}
	again.UsageMetadata = nil // the copy has used no model
	drive.Annotate(&again, "cached", true)
	if temp, _ := again.CustomMetadata[drive.MetadataTemp].(map[string]any); temp != nil { // stores remove temp: keys from the delta
		delete(again.CustomMetadata, drive.MetadataTemp)
		again.Actions.StateDelta = maps.Clone(again.Actions.StateDelta)
		if again.Actions.StateDelta == nil {
			again.Actions.StateDelta = make(map[string]any, len(temp))
		}
		maps.Copy(again.Actions.StateDelta, temp)
	}
	return &again
}

// markFor returns an event with a mark for a step that does not run.
func (r *run) markFor(at session.Address, kind mark.Kind, data any) *session.Event {
	m, _ := mark.New(kind, data) // no error, because the data can be encoded
	ev := &session.Event{
		InvocationID: r.ctx.InvocationID(), Branch: r.ctx.Branch(), Author: at.Agent(),
		Address: at, Iteration: r.loop.Iteration, Attempt: 1, Mark: m,
	}
	if kind == mark.KindStepStarted {
		ev.CustomMetadata = map[string]any{mark.MetadataNotRun: true}
	}
	return ev
}

// storeInCache keeps the events of a step if they may be reused. when is the time at which the step ended.
func (r *run) storeInCache(d *loop.Decision, res *drive.StepResult, when time.Time) {
	c := r.steps.cache
	if c.key == "" || res.Err != nil || res.ConsumerLeft || r.exits.accepted != nil || r.exits.refused != nil {
		return
	}
	if c.byStep == nil {
		c.byStep = make([]map[string]cachedStep, len(r.plan.Steps))
	}
	if c.byStep[d.Step] == nil || len(c.byStep[d.Step]) >= maxCachedResults {
		c.byStep[d.Step] = make(map[string]cachedStep)
	}
	c.byStep[d.Step][c.key] = cachedStep{c.pending, r.address(d), when}
	c.key, c.pending = "", nil
}
