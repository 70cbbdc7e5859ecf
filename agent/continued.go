// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// Reopen lets a loop go on that has stopped: that of an address. The events with
// which the replay was made end with its last iteration.
func (r *Replay) Reopen(at session.Address) {
	r.reopened = at
}

// Continued reports whether the loop of ctx, which had stopped, goes on at this
// point of a run that is resumed: it yields a [session.MarkLoopContinued] then,
// and looks no more at what had stopped it.
func Continued(ctx InvocationContext) bool {
	inv := invocationOf(ctx)
	if inv == nil || inv.record == nil {
		return false
	}
	r := inv.run.Replay
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := inv.record.unread(); next != nil {
		return next.Address == inv.address && next.Mark != nil && next.Mark.Kind == session.MarkLoopContinued
	}
	if r.reopened != inv.address {
		return false
	}
	r.reopened = ""
	return true
}

// isPlan reports whether an event says by which plan a loop goes on.
func isPlan(ev *session.Event) bool {
	return ev.Mark != nil && (ev.Mark.Kind == session.MarkLoopStarted || ev.Mark.Kind == session.MarkLoopContinued)
}

// StoppedLoop finds the loop that ended a run: the root, or the last one of the
// sequence that is the root. Events are those of the run that count, in their
// order; n is how many of them come before what the loop did when it stopped. It
// fails if there is no such loop, or if what came after it must not be done twice.
func StoppedLoop(events []*session.Event, tree *Tree) (at session.Address, n int, err error) {
	ends := make(map[session.Address]int) // of loops, by address
	plans := make(map[session.Address]*session.Mark)
	var root session.Address
	for i, ev := range events {
		if ev.Address == "" {
			continue
		}
		if root == "" {
			root = ev.Address
		}
		if ev.Mark != nil && ev.Mark.Kind == session.MarkLoopStopped {
			ends[ev.Address] = i
		}
		if isPlan(ev) {
			plans[ev.Address] = ev.Mark
		}
	}
	if at = lastLoop(tree, root, ends); at == "" {
		return "", 0, fmt.Errorf("the run of %q did not end with a loop: only a loop, or the last one in a sequence, can go on with other limits", root.Agent())
	}
	if l, ok := tree.Find(at.Agent()).(interface {
		GoesOn(stopped, plan *session.Mark) error
	}); ok && plans[at] != nil {
		if err := l.GoesOn(events[ends[at]].Mark, plans[at]); err != nil {
			return "", 0, err
		}
	}
	for n = ends[at]; n > 0 && inFinal(events[n-1], at); n-- {
	}
	for _, ev := range events[n:] {
		if ev.Mark == nil || ev.Address == at || ev.Mark.Kind != session.MarkStepStarted && ev.Mark.Kind != session.MarkDispatched {
			continue
		}
		a, ok := tree.Find(ev.Address.Agent()).(interface{ Effect() Effect })
		if ev.Mark.Kind == session.MarkDispatched || ok && a.Effect() == AtMostOnce {
			return "", 0, fmt.Errorf("%s was done after %s, and must not be done twice: fork the run before it, or start a new one", ev.Address, at)
		}
	}
	return at, n, nil
}

// lastLoop goes down the last steps of sequences.
func lastLoop(tree *Tree, at session.Address, ends map[session.Address]int) session.Address {
	a := tree.Find(at.Agent())
	if a == nil {
		return ""
	}
	switch TypeOf(a) {
	case TypeLoop:
		if _, ok := ends[at]; ok {
			return at
		}
	case TypeSequential:
		for _, sub := range slices.Backward(a.SubAgents()) {
			if found := lastLoop(tree, at+"/"+session.Address(sub.Name()), ends); found != "" {
				return found
			}
		}
	}
	return ""
}

// inFinal reports whether an event may be of the finalizer of a loop, below it and
// in no iteration: one about the whole run may be anywhere.
func inFinal(ev *session.Event, loop session.Address) bool {
	return ev.Address == "" || strings.HasPrefix(string(ev.Address), string(loop)+"/")
}
