// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// handleEvent takes an event of a step, settles a request to leave that it carries,
// and hands it on.
func (r *run) handleEvent(ev *session.Event) bool {
	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Address == r.current.address {
		r.current.endMark = ev // see yieldEndMark
		return true
	}
	switch x := ev.Actions.Exit; {
	case ev.Actions.AsksToLeave() && ev.Seq != 0: // it is in the log, and as it is
		r.decideExit(new(*ev))
	case ev.Actions.AsksToLeave():
		r.decideExit(ev)
	case x == nil:
	case r.isInnermostLoop(ev.Address): // refused before anybody else could hear it
		r.exits.refused = new(*x)
		if _, r.exits.refused.By = r.requester(r.loop.Address, ev.Address); ev.Seq == 0 {
			ev.Actions.Exit = r.exits.refused
		}
	case r.exits.accepted != nil && r.exits.accepted.By == x.By:
		r.exits.accepted = nil // a loop within takes it back: the attempt has failed
	}
	r.noteChangedKeys(ev)
	r.noteSample(ev)
	r.noteWrites(ev)
	if !r.phase.finalizing && !r.tally.Rejudge { // it is in no iteration
		r.loop.History.Add(ev)
	}
	if r.current.fingerprint != nil {
		r.current.fingerprint.add(ev)
	}
	if c := r.steps.cache; c != nil && c.key != "" && !ev.Partial && ev.Mark == nil {
		c.pending = append(c.pending, ev)
	}
	return r.yield(ev, nil)
}

// decideExit decides about a request to leave, before the event is stored.
func (r *run) decideExit(ev *session.Event) {
	x := &session.Exit{Plain: true}
	if asked := ev.Actions.Exit; asked != nil {
		x = new(*asked) // the step may keep its own, and say it again
	}
	ev.Actions.Exit, ev.Actions.Escalate = x, true
	if !r.appliesToLoop(ev, x) {
		return
	}
	_, x.By = r.requester(r.loop.Address, ev.Address)
	if r.phase.finalizing || !waitsForPerson(ev) {
		x.Refused = r.refusal(r.loop.Address, ev.Address)
	}
	if x.Refused != "" {
		r.exits.refused = x
		ev.Actions.Escalate = false
		return
	}
	if r.exits.accepted == nil || outranks(r.cfg.AgentConfig.SubAgents, x, r.exits.accepted) {
		r.exits.accepted, r.exits.waits = x, waitsForPerson(ev)
	}
	if !r.cfg.Propagate {
		x.HandledBy = r.loop.Address
	}
}

// requester returns the step that an address is in, or nil for the loop's own address, and the
// innermost agent there that the loop knows. An agent that another agent runs as a tool, or without
// listing it, asks in that other agent's name.
func (a *Agent) requester(loop, at session.Address) (step agent.Agent, by string) {
	top := at
	for p := at.Parent(); p != loop && p != ""; p = p.Parent() {
		top = p
	}
	for _, sub := range a.cfg.AgentConfig.SubAgents {
		if sub.Name() == top.Agent() {
			step = sub
		}
	}
	if step == nil {
		return nil, at.Agent()
	}
	for ; len(at) > len(top); at = at.Parent() {
		if agent.Find(step, at.Agent()) != nil {
			return step, at.Agent()
		}
	}
	return step, step.Name()
}

// refusal says why the agent at an address may not leave the loop; "" if it may.
func (a *Agent) refusal(loop, at session.Address) string {
	step, by := a.requester(loop, at)
	switch {
	case step != nil && a.finalizes(step):
		return fmt.Sprintf("%s is the finalizer: the loop has stopped already", by)
	case !a.plan.MayExit(by):
		return fmt.Sprintf("%s may not end the loop %s: it does not have can_exit_loop: true", by, a.Name())
	}
	return ""
}

// finalizes reports whether a step is the one that runs after the loop.
func (a *Agent) finalizes(step agent.Agent) bool {
	f := a.plan.Finalizer()
	return f >= 0 && a.plan.Steps[f].Name == step.Name()
}

// outranks reports whether a request replaces an earlier one of the same step. A request with
// status impossible or blocked wins over done; then the first agent in the tree wins, so that the
// speed of parallel agents does not matter. Of two requests by one agent the earlier one wins.
func outranks(steps []agent.Agent, x, other *session.Exit) bool {
	if a, b := weight(x), weight(other); a != b {
		return a > b
	}
	if x.By == other.By {
		return false
	}
	for _, sub := range steps {
		if first := firstInTree(sub, x.By, other.By); first != "" {
			return first == x.By
		}
	}
	return false
}

func weight(x *session.Exit) int {
	return slices.Index([]string{session.ExitBlocked, session.ExitImpossible}, x.Status)
}

// firstInTree is which of two agents comes first in a tree; "" if neither is in it.
func firstInTree(a agent.Agent, x, y string) string {
	if n := a.Name(); n == x || n == y {
		return n
	}
	for _, sub := range a.SubAgents() {
		if first := firstInTree(sub, x, y); first != "" {
			return first
		}
	}
	return ""
}

// isInnermostLoop reports whether no loop inside this one is nearer to an address.
func (r *run) isInnermostLoop(at session.Address) bool {
	step, _ := r.requester(r.loop.Address, at)
	for at = at.Parent(); step != nil && at != r.loop.Address && at != ""; at = at.Parent() {
		if a := agent.Find(step, at.Agent()); a != nil && agent.TypeOf(a) == agent.TypeLoop {
			return false
		}
	}
	return step != nil
}

// waitsForPerson reports whether an event leaves the loop because a person has to answer first; see package
// tool. Such an exit needs no permission, because the loop cannot continue.
func waitsForPerson(ev *session.Event) bool {
	x := ev.Actions.Exit
	return x != nil && x.Status == session.ExitBlocked && len(ev.LongRunningToolIDs) > 0
}

// appliesToLoop reports whether a request is about this loop, because no inner loop handled it, or
// because it propagates this far. It ignores a handler that is no loop or that the event does not
// come from, because the step has invented the handler, or repeats an earlier request.
func (r *run) appliesToLoop(ev *session.Event, x *session.Exit) bool {
	by := x.HandledBy
	nearer := len(by) > len(r.loop.IterationAddress) && by.Under(r.loop.IterationAddress) && ev.Address.Under(by)
	if step, _ := r.requester(r.loop.Address, by); nearer && step != nil {
		a := agent.Find(step, by.Agent()) // nil for one that another runs without listing it
		nearer = a == nil || agent.TypeOf(a) == agent.TypeLoop
	}
	return !nearer || x.Scope == session.ScopeAll || x.Scope != "" && r.loop.IsInside(x.Scope)
}

// exitOf is a request in the words of package loop.
func exitOf(x *session.Exit) *loop.Exit {
	return &loop.Exit{
		By: x.By, Reason: x.Reason, Status: x.Status, Scope: x.Scope, Score: x.Score, Escalated: x.Plain,
	}
}

// exitCalls are calls of the tool, written in words.
var exitCalls = []string{"exit_loop(", "exit_loop (", "exitLoop("}

// mentionsExitCall reports whether a model of this loop has written a call of exit_loop as text, in place
// of making it. Texts of programs and people do not count.
func (r *run) mentionsExitCall(said *session.Event) bool {
	if said == nil || !r.asksModels || strings.Contains(strings.TrimPrefix(string(said.Address), string(r.current.address)),
		"[") { // in a loop within
		return false
	}
	text := said.Text()
	if strings.IndexByte(text, '(') < 0 || // as it nearly always is
		!slices.ContainsFunc(exitCalls, func(call string) bool { return strings.Contains(text, call) }) {
		return false
	}
	who := r.FindSubAgent(said.Author)
	return who != nil && agent.TypeOf(who) == agent.TypeLLM
}
