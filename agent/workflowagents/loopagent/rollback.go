// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"maps"
	"reflect"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/deep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// rollBack restores the state that the plan asks for, by an event of the loop.
func (r *run) rollBack(d *loop.Decision) bool {
	to := r.accepted
	if d.To == 0 {
		to = r.initial
	}
	if d.Ended.Number == 0 { // a limit has stopped the loop in the middle of it
		r.loop.Rejected = &drive.Rejected{Iteration: d.Iteration, Reason: "a limit cut the iteration short",
			State: r.snap(r.loop.Address).state}
	}
	ev := &session.Event{}
	ev.Actions.StateDelta = r.back(r.loop.Address, to.state)
	r.written.left = to.left
	ok := true
	switch {
	case r.marks:
		ok = r.mark(mark.KindRolledBack, mark.RolledBack{Iteration: d.Iteration, To: d.To,
			Reason: r.loop.Rejected.Reason}, ev)
	case ev.Actions.StateDelta != nil:
		ok = r.yield(ev, nil)
	}
	if ok {
		r.plan.Add(&r.tally, loop.Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true})
	}
	return ok
}

// retries reports whether a step may be run more than once where it fails.
func (r *run) retries(step int) bool {
	s := r.plan.Steps[step].Retry
	return s != nil && s.Attempts > 1
}

// undo reverts a failed attempt of a step before the next one: its changes of the state, and its
// request to leave.
func (r *run) undo(d *loop.Decision, asked *session.Exit) bool {
	at := r.address(d)
	r.forget(at) // the loops in it
	r.loop.History.Undo(at)
	ev := &session.Event{
		InvocationID: r.ctx.InvocationID(), Branch: r.ctx.Branch(), Author: at.Agent(),
		// The step's address: iteration: keys belong to the iteration.
		Address: at, Iteration: r.loop.Iteration, Attempt: d.Attempt,
	}
	ev.Actions.StateDelta = r.back(at, r.before.state)
	r.written.left = r.before.left
	if asked != nil {
		undone := *asked // loops further out may have heard it
		undone.Refused, undone.HandledBy = "the attempt failed and is made again", ""
		ev.Actions.Exit = &undone
	}
	return ev.Actions.StateDelta == nil && ev.Actions.Exit == nil || r.yield(r.me.Again(ev), nil)
}

// state returns the state that a step at an address sees. The caller owns the map, but not its
// values.
func (r *run) state(at session.Address) map[string]any {
	return maps.Collect(r.me.StateAt(at).All())
}

// snapshot is a state to go back to, with the keys in it that are left over.
type snapshot struct {
	state map[string]any
	left  map[string]bool
}

// snap takes a snapshot. It copies lists and objects, because some steps change them in place.
func (r *run) snap(at session.Address) snapshot {
	return snapshot{deep.Copy(r.state(at)), r.written.left}
}

// forget ends the iteration: keys of the iterations at and below an address.
func (r *run) forget(at session.Address) {
	r.me.EndIteration(at)
}

// touch notes the keys that the loop has changed, if other branches may change keys at the same
// time.
func (r *run) touch(ev *session.Event) {
	if r.touched == nil {
		return
	}
	for k := range ev.Actions.StateDelta {
		r.touched[k] = true
	}
	temp, _ := ev.CustomMetadata[drive.MetadataTemp].(map[string]any) // stores leave them out of the delta
	for k := range temp {
		r.touched[k] = true
	}
}

// back returns the state delta that restores the state at an address. It leaves out keys that
// sessions share and, in a parallel branch, keys that no event of the loop has changed.
func (r *run) back(at session.Address, was map[string]any) map[string]any {
	var delta map[string]any
	set := func(key string, v any) {
		if strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser) {
			return
		}
		if r.touched != nil && !r.touched[key] {
			return
		}
		if delta == nil {
			delta = make(map[string]any)
		}
		delta[key] = v
	}
	now := r.state(at)
	for k := range now {
		if _, ok := was[k]; !ok {
			set(k, nil)
		}
	}
	for k, v := range was {
		if got, ok := now[k]; !ok || !reflect.DeepEqual(got, v) {
			set(k, deep.Copy(v))
		}
	}
	return delta
}
