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
// Begun are those of the calls that were made, in an earlier part of the run, without
// an answer, and that must not be made twice.
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
	if cut != nil && len(cut) == len(calls) && ev.Seq == 0 { // nothing has an answer
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
		if a.Exit == nil { // a request to leave that is refused fails nobody: the loop goes on
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
		r.next, _ = r.successor(a.TransferToAgent) // callTool has looked
	}
	return rest && r.next == nil && final == nil && asked == nil && !pending && !ends(a)
}

// act yields an event if it says or does something.
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
