// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// Package drive looks for these interfaces in an agent.
var (
	_ drive.Describer   = (*Agent)(nil)
	_ drive.Recaller    = (*Agent)(nil)
	_ drive.UsageReader = (*Agent)(nil)
	_ drive.Settable    = (*Agent)(nil)
)

// Traits describes the agent to its caller. In a resumed run the agent does not repeat its turns: it continues after
// the last answer of the model or of tools that is in the log. Tools whose answers are not in the log are called again.
// The agent reads the history if its model gets a digest of earlier iterations.
func (a *Agent) Traits(bool) drive.Traits {
	return drive.Traits{
		Continues:         true,
		RequestsFirst:     a.requestsFirst(),
		ReadsHistory:      a.policy().Policy == ContextDigest,
		TransfersToParent: !a.cfg.DisallowTransferToParent,
	}
}

// Recall passes an earlier answer to a model that counts its answers, such as a scripted model.
func (a *Agent) Recall(ev *session.Event) {
	m, ok := a.answeredBy(ev).(interface {
		Recall(agent string, said *genai.Content)
	})
	if ok && ev.Author == a.Name() && ev.Content != nil && ev.Content.Role == genai.RoleModel && ev.Mark == nil &&
		ev.LongRunningToolIDs == nil {
		m.Recall(a.Name(), ev.Content)
	}
}

// turnAgain replays a turn whose answer is in the log. It calls neither the model nor the callbacks
// around it, because the logged answer includes their changes.
func (r *run) turnAgain(last *session.Event) bool {
	if last.Content == nil && last.ErrorCode == "" && !last.Interrupted { // the model gave no answer; see turn
		r.yield(last, nil)
		return false
	}
	if err := r.countAgain(last); err != nil {
		return r.fail(err)
	}
	r.prompt, r.correction = "", "" // the logged request already had these texts
	for {
		r.judge(last)
		if !r.yield(last, nil) {
			return false
		}
		next := drive.At(r.ctx).Recorded()
		if next == nil || next.CustomMetadata[metadataFurther] != true {
			break
		}
		last = next
	}
	if r.ctx.Ended() {
		return false
	}
	var req *model.LLMRequest
	if calls := callsOf(last.Content); len(calls) > 0 && (!r.hasAnswer() || takesAnswer(calls) ||
		drive.InterruptedCalls(drive.At(r.ctx).Recorded()) != nil) {
		var err error
		if req, _, err = r.request(agent.NewCallbackContext(r.ctx, nil), r.history); err != nil {
			return r.fail(err)
		}
	}
	if req == nil {
		req = new(model.LLMRequest)
	}
	return r.follow(req, last)
}

// hasAnswer reports whether the next event in the log is an answer and no mark, such as the mark
// before calls.
func (r *run) hasAnswer() bool {
	next := drive.At(r.ctx).Recorded()
	return next != nil && next.Mark == nil
}

// metadataFurther is the key in the CustomMetadata of complete events after the first one of their turn.
const metadataFurther = "refrain:further"

func takesAnswer(calls []*genai.FunctionCall) bool {
	return slices.ContainsFunc(calls, func(c *genai.FunctionCall) bool { return c.Name == answerName })
}

// countAgain counts the calls and the usage of a logged answer, as they were counted when it was made.
func (r *run) countAgain(ev *session.Event) error {
	var used budget.Usage
	if drive.Answers(ev) {
		used = r.used(ev, r.ctx.RunConfig().Prices)
	}
	r.tried = r.vain + max(1, int(used.Calls))
	for range used.Calls {
		if err := drive.At(r.ctx).CountModelCall(); err != nil {
			return err
		}
	}
	drive.At(r.ctx).Budget().Book(used)
	return nil
}

// requestsFirst reports whether the agent sends its first request without calling code of the program before it, such as
// callbacks, toolsets and instruction providers.
func (a *Agent) requestsFirst() bool {
	cfg := &a.cfg
	return a.pays() && len(cfg.BeforeModelCallbacks)+len(cfg.OnModelCalls)+len(cfg.Toolsets) == 0 &&
		cfg.InstructionProvider == nil && cfg.GlobalInstructionProvider == nil &&
		!slices.ContainsFunc(cfg.Tools, func(t tool.Tool) bool { _, ok := t.(tool.RequestProcessor); return ok })
}

// InterruptedUsage returns zero, because the log has the usage of each turn.
func (a *Agent) InterruptedUsage() budget.Usage { return budget.Usage{} }

// Used returns the usage of a logged answer; zero for any other event.
func (a *Agent) Used(ev *session.Event, prices budget.Prices) budget.Usage {
	if ev.Author != a.Name() || ev.Content == nil || ev.Content.Role != genai.RoleModel || ev.Mark != nil ||
		ev.LongRunningToolIDs != nil {
		return budget.Usage{}
	}
	return a.used(ev, prices)
}

func (a *Agent) used(ev *session.Event, prices budget.Prices) budget.Usage {
	calls := int64(1)
	if tries, ok := ev.CustomMetadata[MetadataRetry].(map[string]any); ok {
		if n, ok := tries["attempts"].(float64); ok {
			calls = int64(n)
		}
	}
	used := model.Used(ev.UsageMetadata)
	used.Calls = calls
	if used.Tokens() == 0 && ev.Content != nil {
		used.OutputTokens, used.Estimated = perThree(partsBytes(ev.Content.Parts)), true
	}
	name := ""
	if m := a.answeredBy(ev); m != nil {
		name = m.Name()
	}
	return prices.Priced(name, used)
}

// answered returns the event in the log that answers the calls of a turn; nil if there is none. Pending reports whether
// some answers come later. If a call gave the final answer, answered records that answer again.
func (r *run) answered(req *model.LLMRequest, calls []*genai.FunctionCall) (ev *session.Event, pending bool) {
	if !r.hasAnswer() {
		return nil, false
	}
	ev = drive.At(r.ctx).Recorded()
	var ids []string
	if ev.Content != nil {
		ids = responseIDs(ev.Content)
	}
	cut := drive.InterruptedCalls(ev)
	for _, c := range calls {
		pending = pending || !slices.Contains(ids, c.ID) && !slices.Contains(cut, c.ID)
		if t, ok := req.Tools[c.Name].(*answerTool); ok {
			_, _ = t.Run(nil, c.Args) // t stores the problems of the answer
		}
	}
	return ev, pending
}

// say yields an event or, in a replay, the event that the log has in its place.
func (r *run) say(ev *session.Event) bool {
	if known := drive.At(r.ctx).Recorded(); known != nil {
		ev = known
	}
	return r.yield(ev, nil)
}
