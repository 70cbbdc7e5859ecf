// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"context"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// answer runs the calls of a turn and yields the results: the tools' answers, then the agent's
// final answer if a tool recorded one, then a question to a person. It reports whether another turn
// follows.
//
// A request to leave the loop and a question take precedence over a transfer, because they leave
// the next step to the loop or to the person.
//
// Begun has the IDs of calls that must not be repeated and that, by a mark in the log,
// have begun without an answer. With nil, the agent reads the marks from the log.
func (r *run) answer(req *model.LLMRequest, calls []*genai.FunctionCall, about confirmations, begun []string) bool {
	once, known, more := r.dispatch(req, calls, begun)
	if !more {
		return false
	}
	ev, pending := r.answered(req, calls)
	if ev == nil {
		ev, pending = r.callTools(req, calls, about, known)
	}
	cut := drive.InterruptedCalls(ev)
	if cut != nil && len(cut) == len(calls) && ev.Seq == 0 { // no call has an answer
		return r.fail(context.Cause(r.ctx))
	}
	a := &ev.Actions
	var asked *session.Event
	waits := len(a.RequestedToolConfirmations) > 0 && drive.At(r.ctx).CanAsk()
	if !waits {
		asked = r.question(calls, a.RequestedToolConfirmations)
	}
	if ev.Seq == 0 {
		if asked != nil || waits || a.AsksToLeave() {
			a.TransferToAgent = ""
		}
		if len(ev.Content.Parts) == 0 { // all answers come later
			ev.Content = nil
		}
	}
	if !r.act(ev) {
		return false
	}
	rest := true
	if cut != nil {
		if rest = r.cutOff(req, ev, calls, about, once); r.ctx.Err() != nil {
			return false
		}
	}
	if err := r.inVain(ev); err != nil {
		if a.Exit == nil { // a refused request to leave is no error, because the loop continues
			r.yield(nil, err)
		}
		return false
	}
	final, err := r.structured(req, a.AsksToLeave())
	if err != nil {
		return r.fail(err)
	}
	if final != nil && !r.say(final) || asked != nil && !r.say(asked) {
		return false
	}
	if waits && !a.AsksToLeave() {
		return r.confirm(calls, a.RequestedToolConfirmations) && final == nil && !pending && rest
	}
	if a.TransferToAgent != "" {
		r.next, _ = r.successor(a.TransferToAgent) // callIn has checked that the agent exists
	}
	return rest && r.next == nil && final == nil && asked == nil && !pending && !ends(a)
}

// act yields an event, unless the event is empty.
func (r *run) act(ev *session.Event) bool {
	a := &ev.Actions
	if ev.Content == nil && ev.UsageMetadata == nil && len(a.StateDelta) == 0 && len(a.ArtifactDelta) == 0 &&
		len(a.RequestedToolConfirmations) == 0 && a.TransferToAgent == "" && a.Exit == nil && !ends(a) {
		return true
	}
	return r.yield(ev, nil)
}

// ends reports whether actions end the agent's turn. A request to leave the loop always does, even
// if it does not skip the summary (LOOP 4).
func ends(a *session.EventActions) bool {
	return a.AsksToLeave() || a.SkipSummarization
}
