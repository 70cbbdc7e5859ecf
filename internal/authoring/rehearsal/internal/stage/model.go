// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
)

// defaultModel is the model of agents that name none.
const defaultModel = "rehearsal/stand-in"

// actor plays every model of one name. Its answer depends on the agent that asks, and on the place
// in the run.
type actor struct {
	*play
	name string
}

// Name returns the name of the model that the actor plays, as prices go by name.
func (a *actor) Name() string { return a.name }

// Provider says that it asks nobody, as for a scripted model: a resumed run counts no usage of a request that was cut off.
func (a *actor) Provider() string { return "scripted" }

// GenerateContent answers like a scripted model with one answer.
func (a *actor) GenerateContent(ctx context.Context, req *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		m, err := scripted.New(scripted.Script{Name: a.name, Answers: []scripted.Answer{a.answer(ctx, req)}})
		if err != nil {
			yield(nil, err)
			return
		}
		m.GenerateContent(ctx, req, stream)(yield)
	}
}

// The tools that models call to give an answer with a schema.
const answerTool, insideKey = "set_model_response", "response"

func (a *actor) answer(ctx context.Context, req *model.LLMRequest) scripted.Answer {
	inv, ok := ctx.(agent.InvocationContext)
	if !ok {
		return scripted.Answer{Text: "Words of a model."}
	}
	def, at := a.Agents[inv.Agent().Name()], placeOf(inv)
	if def == nil {
		return scripted.Answer{Text: "Words of " + inv.Agent().Name() + "."}
	}
	if l := a.LoopAround(def); l != nil && a.Finalizes(def, l) {
		a.Hearing.note(def.Name, req)
	}
	usage := &scripted.Usage{Prompt: PromptTokens, Output: OutputTokens}
	if a.Usage != nil {
		if u := a.Usage(at); u != nil {
			usage = u
		}
	}
	if a.Fail != nil {
		if f := a.Fail(def, at); f != nil {
			return scripted.Answer{Error: f}
		}
	}
	if own, ok := study.Scripted(a.script, def, at.Iteration()); ok && len(own.Calls) > 0 && !a.Never {
		own.Usage = usage
		return a.called(own, at)
	}
	l := a.line(def, at)
	out := scripted.Answer{Text: l.Words, Usage: usage}
	switch tools := req.Tools; {
	case l.Leave && tools[exitlooptool.Name] != nil:
		out.Text, out.Calls = "", []scripted.Call{exit(exitlooptool.Name)}
	case l.Leave && tools[exitlooptool.Alias] != nil:
		out.Text, out.Calls = "", []scripted.Call{exit(exitlooptool.Alias)}
	case tools[answerTool] != nil:
		var v any
		if json.Unmarshal([]byte(l.Words), &v) == nil {
			args, ok := v.(map[string]any)
			if !ok {
				args = map[string]any{insideKey: v}
			}
			out.Text, out.Calls = "", []scripted.Call{{Name: answerTool, Args: args}}
		}
	}
	return a.called(out, at)
}

// The usage of a request, unless the scene gives another.
const PromptTokens, OutputTokens = 1000, 300

func exit(name string) scripted.Call {
	return scripted.Call{Name: name, Args: map[string]any{"reason": "the rehearsal ends it here"}}
}

// called gives the calls of an answer IDs that are unique to their place.
func (a *actor) called(ans scripted.Answer, at study.Place) scripted.Answer {
	calls := make([]scripted.Call, len(ans.Calls))
	for i, c := range ans.Calls {
		if c.ID == "" {
			c.ID = "call " + string(at.Addr) + " " + study.Decimal(float64(i+1))
		}
		calls[i] = c
	}
	ans.Calls = calls
	return ans
}
