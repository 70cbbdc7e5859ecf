// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"maps"
	"reflect"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/deep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// rollBack restores the state that the plan asks for, by an event of the loop.
func (r *run) rollBack(d *loop.Decision) bool {
	to := r.stateOf(d.To)
	if d.Ended.Number == 0 { // a limit has stopped the loop in the middle of an iteration
		r.loop.Rejected = &drive.RejectedIteration{Iteration: d.Iteration, Reason: "a limit cut the iteration short",
			State: r.snapshot(r.loop.Address).state}
	}
	ev := &session.Event{}
	ev.Actions.StateDelta = r.restoreDelta(r.loop.Address, to.state)
	r.writes.stale = to.stale
	ok := true
	switch {
	case r.mode.durable:
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

// restores reports whether the loop may go back to an earlier state.
func (r *run) restores() bool {
	return r.plan.OnRegression == loop.RollbackOnWorse || len(r.plan.OnPlateau) > 0
}

// stateOf returns the saved state after an iteration, which was the best one of the loop or of a leg. For 0 it returns
// the state at the loop's start.
func (r *run) stateOf(iteration int) savedState {
	switch {
	case iteration == 0:
		return r.snapshots.initial
	case iteration != r.tally.BestIteration:
		return r.snapshots.legBest
	}
	return r.snapshots.accepted
}

// beginLeg restores the state from which a leg begins, by an event of the loop, and gives its agents their settings.
func (r *run) beginLeg(d *loop.Decision) bool {
	to := r.stateOf(d.To)
	ev := &session.Event{}
	ev.Actions.StateDelta = r.restoreDelta(r.loop.Address, to.state)
	r.writes.stale = to.stale
	r.loop.Leg, r.loop.Since = r.legs[d.Leg-1], 0
	if r.plan.Leg(d.Leg).Fresh { // the steps of this leg know nothing of earlier iterations, except the best one
		r.loop.Prev, r.loop.Rejected, r.loop.Score, r.loop.History = nil, nil, nil, nil
		r.loop.Since, r.questions.legBest = d.Iteration+1, r.questions.start
	}
	ok := true
	switch {
	case r.mode.durable:
		ok = r.mark(mark.KindLegStarted, mark.LegStarted{Leg: d.Leg, Iteration: d.Iteration, To: d.To,
			Does: r.plan.Leg(d.Leg).String(), Reason: d.Why}, ev)
	case ev.Actions.StateDelta != nil:
		ok = r.yield(ev, nil)
	}
	if ok {
		r.plan.Add(&r.tally, loop.Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true, Leg: d.Leg})
	}
	return ok
}

// retries reports whether a step may run again after it has failed.
func (r *run) retries(step int) bool {
	s := r.plan.Steps[step].Retry
	return s != nil && s.Attempts > 1
}

// undoAttempt undoes the changes of the state of a failed attempt, and withdraws its request to leave (asked), before
// the next attempt.
func (r *run) undoAttempt(d *loop.Decision, asked *session.Exit) bool {
	at := r.address(d)
	r.clearIterationKeys(at) // the keys of loops inside the step
	r.loop.History.Undo(at)
	ev := &session.Event{
		InvocationID: r.ctx.InvocationID(), Branch: r.ctx.Branch(), Author: at.Agent(),
		// The event has the step's address, because keys with the prefix iteration: belong to the iteration.
		Address: at, Iteration: r.loop.Iteration, Attempt: d.Attempt,
	}
	ev.Actions.StateDelta = r.restoreDelta(at, r.snapshots.beforeStep.state)
	r.writes.stale = r.snapshots.beforeStep.stale
	if asked != nil {
		undone := *asked // outer loops may have read the request already
		undone.Refused, undone.HandledBy = "the attempt failed and is made again", ""
		ev.Actions.Exit = &undone
	}
	return ev.Actions.StateDelta == nil && ev.Actions.Exit == nil || r.yield(r.place.Match(ev), nil)
}

// state returns the state that a step at an address sees. The caller owns the map, but not its
// values.
func (r *run) state(at session.Address) map[string]any {
	return maps.Collect(r.place.StateAt(at).All())
}

// savedState is a state that the loop can restore. stale are its keys that are left over; see findStaleKeys.
type savedState struct {
	state map[string]any
	stale map[string]bool
}

// snapshot takes a snapshot. It copies lists and objects, because some steps change them in place.
func (r *run) snapshot(at session.Address) savedState {
	return savedState{deep.Copy(r.state(at)), r.writes.stale}
}

// clearIterationKeys removes the keys with the prefix iteration: of the iterations at and below an address.
func (r *run) clearIterationKeys(at session.Address) {
	r.place.EndIteration(at)
}

// noteChangedKeys records the keys that an event changes, if other branches may change keys at the same
// time. restoreDelta then restores only these keys.
func (r *run) noteChangedKeys(ev *session.Event) {
	if r.snapshots.changedKeys == nil {
		return
	}
	for k := range ev.Actions.StateDelta {
		r.snapshots.changedKeys[k] = true
	}
	temp, _ := ev.CustomMetadata[drive.MetadataTemp].(map[string]any) // stores remove temp: keys from the delta
	for k := range temp {
		r.snapshots.changedKeys[k] = true
	}
}

// restoreDelta returns the state delta that restores the state at an address. It leaves out keys that
// sessions share and, in a parallel branch, keys that no event of the loop has changed.
func (r *run) restoreDelta(at session.Address, was map[string]any) map[string]any {
	var delta map[string]any
	set := func(key string, v any) {
		if strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser) {
			return
		}
		if r.snapshots.changedKeys != nil && !r.snapshots.changedKeys[key] {
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
