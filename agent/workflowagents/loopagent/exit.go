// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"fmt"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// event takes an event of a step, settles a request to leave that it carries,
// and hands it on.
func (r *run) event(ev *session.Event) bool {
	if ev.Mark != nil && ev.Mark.Kind == session.MarkStepFinished && ev.Address == r.here {
		r.over = ev // see record
		return true
	}
	if ev.Actions.Escalate && ev.Seq != 0 { // it is in the log, and as it is
		r.settle(new(*ev))
	} else if ev.Actions.Escalate {
		r.settle(ev)
	} else if x := ev.Actions.Exit; x != nil && x.Refused != "" && r.exit != nil && r.exit.By == x.By {
		r.exit = nil // a loop within takes it back: the attempt has failed
	}
	r.touch(ev)
	if !r.finalizing { // it is in no iteration
		r.loop.History.Add(ev)
	}
	if r.prints != nil {
		r.prints.add(ev)
	}
	if c := r.cache; c != nil && c.key != "" && !ev.Partial && ev.Mark == nil {
		c.pending = append(c.pending, ev)
	}
	return r.yield(ev, nil)
}

// settle decides about a request to leave, before the event is stored.
func (r *run) settle(ev *session.Event) {
	x := &session.Exit{Plain: true}
	if asked := ev.Actions.Exit; asked != nil {
		x = new(*asked) // the step may keep its own, and say it again
	}
	ev.Actions.Exit = x
	if x.By == "" {
		x.By = ev.Address.Agent()
	}
	switch {
	case x.Refused != "" || !r.concerns(x):
		return
	case r.finalizing:
		x.Refused = fmt.Sprintf("%s is the finalizer: the loop has stopped already", x.By)
	case !waits(ev) && !r.plan.MayExit(x.By):
		x.Refused = fmt.Sprintf("%s may not end the loop %s; list it among those that can exit", x.By, r.loop.Name)
	default:
		if r.exit == nil {
			r.exit, r.waits = x, waits(ev)
		}
		if !r.cfg.Propagate {
			x.HandledBy = r.loop.Address
		}
		return
	}
	r.refused = x
	ev.Actions.Escalate = false
}

// waits reports whether an event leaves the loop because a person has to answer
// first; see package tool. That takes no permission: the loop cannot go on.
func waits(ev *session.Event) bool {
	x := ev.Actions.Exit
	return x != nil && x.Status == session.ExitBlocked && len(ev.LongRunningToolIDs) > 0
}

// concerns reports whether a request is about this loop: no loop inside this
// one took it, or it reaches this far. A handler that is not inside is left over
// from an earlier time that the step said the same.
func (r *run) concerns(x *session.Exit) bool {
	nearer := len(x.HandledBy) > len(r.loop.Pass) && x.HandledBy.Under(r.loop.Pass)
	return !nearer || x.Scope == session.ScopeAll || x.Scope != "" && r.loop.Within(x.Scope)
}

// exitOf is a request in the words of package loop.
func exitOf(x *session.Exit) *loop.Exit {
	return &loop.Exit{
		By: x.By, Reason: x.Reason, Status: x.Status, Scope: x.Scope, Score: x.Score, Escalated: x.Plain,
	}
}
