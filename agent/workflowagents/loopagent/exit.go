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

// handleEvent handles an event of a step. It decides about the event's request to leave the loop, records what
// the event changes, and yields it. It keeps back the mark of the step's end until the outcome is known.
func (r *run) handleEvent(ev *session.Event) bool {
	if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Address == r.current.address {
		r.current.endMark = ev // see yieldEndMark
		return true
	}
	switch x := ev.Actions.Exit; {
	case ev.Actions.AsksToLeave() && ev.Seq != 0: // the event is in the log and must not change
		r.decideExit(new(*ev))
	case ev.Actions.AsksToLeave():
		r.decideExit(ev)
	case x == nil:
	case r.isInnermostLoop(ev.Address): // a request that was refused before any loop got it
		r.exits.refused = new(*x)
		if _, r.exits.refused.By = r.requester(r.loop.Address, ev.Address); ev.Seq == 0 {
			ev.Actions.Exit = r.exits.refused
		}
	case r.exits.accepted != nil && r.exits.accepted.By == x.By:
		r.exits.accepted = nil // an inner loop withdraws the request, because the attempt has failed
	}
	r.noteChangedKeys(ev)
	r.noteSample(ev)
	r.noteWrites(ev)
	if !r.phase.finalizing && !r.tally.Rejudge { // otherwise the event belongs to no iteration
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
		x = new(*asked) // a copy, because the step may keep its own and send it again
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

// requester returns the step that an address is in, or nil for the loop's own address. by is the name of the
// innermost agent at the address that is in the tree of the step. If an agent runs another one as a tool, or
// without listing it as a sub-agent, a request of the other one counts as a request of the first.
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

// refusal returns the reason for which the agent at an address may not leave the loop; "" if it may.
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

// firstInTree returns the name of the one of two agents that comes first in a tree; "" if neither is in it.
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

// waitsForPerson reports whether an event asks to leave the loop because a person has to answer first; see package
// tool. Such a request needs no permission, because the loop cannot continue without the answer.
func waitsForPerson(ev *session.Event) bool {
	x := ev.Actions.Exit
	return x != nil && x.Status == session.ExitBlocked && len(ev.LongRunningToolIDs) > 0
}

// appliesToLoop reports whether a request applies to this loop, because no inner loop has handled it, or
// because its scope reaches this loop. It ignores x.HandledBy if that is not a loop, or if the event does not come
// from inside that loop, because then the step has invented the handler or repeats an earlier request.
func (r *run) appliesToLoop(ev *session.Event, x *session.Exit) bool {
	by := x.HandledBy
	nearer := len(by) > len(r.loop.IterationAddress) && by.Under(r.loop.IterationAddress) && ev.Address.Under(by)
	if step, _ := r.requester(r.loop.Address, by); nearer && step != nil {
		a := agent.Find(step, by.Agent()) // nil for a loop that another agent runs without listing it
		nearer = a == nil || agent.TypeOf(a) == agent.TypeLoop
	}
	return !nearer || x.Scope == session.ScopeAll || x.Scope != "" && r.loop.IsInside(x.Scope)
}

// exitOf converts a request to leave into the type of package loop.
func exitOf(x *session.Exit) *loop.Exit {
	return &loop.Exit{
		By: x.By, Reason: x.Reason, Status: x.Status, Scope: x.Scope, Score: x.Score, Escalated: x.Plain,
	}
}

// exitCalls lists the forms in which models write a call of the tool exit_loop as text.
var exitCalls = []string{"exit_loop(", "exit_loop (", "exitLoop("}

// mentionsExitCall reports whether a model of this loop has written a call of exit_loop as text, instead of
// calling the tool. It ignores the text of programs and people.
func (r *run) mentionsExitCall(output *session.Event) bool {
	if output == nil || !r.asksModels || strings.Contains(strings.TrimPrefix(string(output.Address), string(r.current.address)),
		"[") { // the text comes from an inner loop
		return false
	}
	text := output.Text()
	if strings.IndexByte(text, '(') < 0 || // a fast check, which is nearly always true
		!slices.ContainsFunc(exitCalls, func(call string) bool { return strings.Contains(text, call) }) {
		return false
	}
	author := r.FindSubAgent(output.Author)
	return author != nil && agent.TypeOf(author) == agent.TypeLLM
}
