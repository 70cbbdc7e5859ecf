// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"log/slog"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// eventOf is what is told of a step. Its ID is made of that of a call, the point,
// and numbers where a call comes to the point more than once.
func eventOf(ctx agent.InvocationContext, point hook.Point, call string, numbers ...int) hook.Event {
	ev := hook.Event{ID: call + "-" + string(point), Type: point}
	for _, n := range numbers {
		ev.ID += fmt.Sprintf("-%d", n)
	}
	s := ctx.Session()
	ev.Data = hook.Data{
		App: s.AppName(), Session: s.ID(), Run: ctx.InvocationID(), Agent: ctx.Agent().Name(), Address: string(agent.AddressOf(ctx)),
	}
	if l := agent.LoopOf(ctx); l != nil {
		ev.Data.Iteration, ev.Data.MaxIterations = l.Iteration, int(l.MaxIterations)
		ev.Data.Score, ev.Data.BestScore = l.Score, l.BestScore
	}
	return ev
}

func modelEvent(ctx agent.Context, point hook.Point, name string) hook.Event {
	n := turnOf(ctx)
	ev := eventOf(ctx, point, agent.CallID(ctx), n)
	ev.Data.Model = &hook.Model{Name: name, Turn: n}
	return ev
}

// answered says what came of a call of a model.
func answered(d *hook.Data, resp *model.LLMResponse, failed error) {
	if failed != nil {
		d.Error = failed.Error()
	}
	if resp == nil {
		return
	}
	if resp.ErrorCode != "" {
		d.Error = resp.ErrorCode + ": " + resp.ErrorMessage
	}
	d.Model.FinishReason = string(resp.FinishReason)
	if u := resp.UsageMetadata; u != nil {
		d.Model.InputTokens, d.Model.OutputTokens = int(u.PromptTokenCount), int(u.CandidatesTokenCount)
	}
}

// turnOf counts the calls of the model in one run of an agent, by what the session
// has of it: it is the same when the run is resumed.
func turnOf(ctx agent.Context) int {
	n, here := 1, agent.AddressOf(ctx)
	evs := ctx.Session().Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		begins := ev.Mark != nil && ev.Mark.Kind == session.MarkStepStarted && ev.Address == here
		if begins || ev.InvocationID != ctx.InvocationID() {
			break
		}
		if ev.Address == here && ev.Mark == nil && !ev.Partial && ev.Content != nil && ev.Content.Role == "model" {
			n++
		}
	}
	return n
}

func toolEvent(ctx agent.Context, point hook.Point, t tool.Tool, args map[string]any) hook.Event {
	ev := eventOf(ctx, point, agent.ToolCallID(ctx, ctx.FunctionCallID()))
	ev.Data.Tool = &hook.Tool{Name: t.Name(), CallID: ctx.FunctionCallID(), Args: args}
	return ev
}

// stopOf is why the loop of a step has stopped, if the log says so.
func stopOf(ctx agent.Context) string {
	here := agent.AddressOf(ctx)
	evs := ctx.Session().Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		if ev.InvocationID != ctx.InvocationID() || ev.Address != here {
			break
		}
		var rec loop.StopRecord
		if ev.Mark != nil && ev.Mark.Kind == session.MarkLoopStopped && ev.Mark.Decode(&rec) == nil {
			return string(rec.Reason)
		}
	}
	return ""
}

// failed tells of a callback whose failure changes nothing any more.
func (b *builder) failed(err error) {
	if b.cfg.CallbackFailed != nil {
		b.cfg.CallbackFailed(err)
		return
	}
	slog.Warn("a callback failed", "error", err)
}
