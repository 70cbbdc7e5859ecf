// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
)

// review is the shape of a critic's answer.
var review = &genai.Schema{
	Type: genai.TypeObject, Required: []string{"score"}, PropertyOrdering: []string{"why", "score"},
	Properties: map[string]*genai.Schema{
		"score": {Type: genai.TypeInteger, Minimum: new(1.0), Maximum: new(10.0)},
		"why":   {Type: genai.TypeString},
	},
}

const (
	good     = `{"why":"short","score":7}`
	feedback = "Your answer does not fit its schema: %s. Give the whole answer again."
)

// D2, D18: an answer of a shape is asked for by the schema, checked, and kept as
// text.
func TestAnswerOfAShape(t *testing.T) {
	rec := record(script(t, says(good)))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, OutputSchema: review, OutputKey: "review"}))
	if diff := cmp.Diff([]string{"a: " + good}, th.must("go")); diff != "" {
		t.Error(diff)
	}
	if c := rec.requests[0].Config; c.ResponseSchema != review || c.ResponseMIMEType != "application/json" || len(c.Tools) > 0 {
		t.Errorf("asked with %+v", c)
	}
	if th.state("review") != good {
		t.Errorf("kept %v", th.state("review"))
	}
}

// D18: an answer that does not fit is not kept, and asked for once more; that
// counts as a call of the model.
func TestAnswerThatDoesNotFit(t *testing.T) {
	for _, tt := range []struct{ answer, problem string }{
		{`{"score":"high","why":3}`, `score: expected an integer of at least 1 and at most 10, got the string "high"; why: expected a string, got the number 3`},
		{`{"why":"short"}`, `score: is missing, expected an integer of at least 1 and at most 10`},
		{`{"score":11}`, `score: expected an integer of at least 1 and at most 10, got the number 11`},
		{`[7]`, `expected an object, got an array`},
		{`Seven.`, `it is not JSON alone, without fences or words around it (invalid character 'S' looking for beginning of value)`},
		{"```json\n" + good + "\n```", "it is not JSON alone, without fences or words around it (invalid character '`' looking for beginning of value)"},
		{good + " I hope this helps!", `it is not JSON alone, without fences or words around it (invalid character 'I' looking for beginning of value)`},
		{good + good, `it is not JSON alone, without fences or words around it (there is more after the value)`},
		{" ", `it is empty`},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			cfg := llmagent.Config{Name: "a", OutputSchema: review, OutputKey: "review"}
			rec := record(script(t, says(tt.answer), says(good)))
			cfg.Model = rec
			th := newThread(t, newAgent(t, cfg))
			evs, err := th.ask(t.Context(), "go")
			if diff := cmp.Diff([]string{"a: " + tt.answer, "a: " + good}, lines(evs)); diff != "" || err != nil {
				t.Fatal(diff, err)
			}
			if len(evs[0].Actions.StateDelta) > 0 || th.state("review") != good {
				t.Errorf("kept %v, then %v", evs[0].Actions.StateDelta, th.state("review"))
			}
			heard := rec.heard(1)
			if got, want := heard[len(heard)-1], "user: "+fmt.Sprintf(feedback, tt.problem); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
			for ev := range th.session().Events().All() {
				if strings.Contains(ev.Text(), "does not fit") {
					t.Error("what the model is told is in the log, where others see it")
				}
			}

			cfg.Model = script(t, says(tt.answer), says(good))
			th = newThread(t, newAgent(t, cfg))
			th.cfg.MaxLLMCalls = 1
			if _, err := th.ask(t.Context(), "go"); !errors.Is(err, agent.ErrTooManyModelCalls) {
				t.Errorf("with one call: %v", err)
			}

			cfg.Model = script(t, says("no"), says(tt.answer), says(good))
			th = newThread(t, newAgent(t, cfg))
			_, err = th.ask(t.Context(), "go")
			wrong, ok := errors.AsType[*llmagent.OutputError](err)
			step, isStep := errors.AsType[*agent.StepError](err)
			if !ok || wrong.Answer != tt.answer || strings.Join(wrong.Problems, "; ") != tt.problem || !isStep || step.Address != "a" || th.state("review") != nil {
				t.Errorf("twice: %v", err)
			}
		})
	}
}

// What is no answer is not checked: words beside a stop call, and an answer by
// way of the tool if that does not fit. The exit wins, the first time and the
// second.
func TestWhatIsNoAnswerNeedNotFit(t *testing.T) {
	exit := scripted.Call{Name: "exit_loop"}
	wrong := scripted.Call{Name: "set_model_response", Args: map[string]any{"score": 70}}
	for _, answers := range [][]scripted.Answer{
		{{Text: "that is it", Calls: []scripted.Call{exit}}},
		{{Calls: []scripted.Call{wrong, exit}}},
		{{Calls: []scripted.Call{wrong}}, {Calls: []scripted.Call{exit, wrong}}},
	} {
		cfg := llmagent.Config{Name: "a", Model: script(t, answers...), OutputSchema: review, OutputKey: "review", Tools: []tool.Tool{exitTool(t)}}
		th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 1}, newAgent(t, cfg)))
		evs, err := th.ask(t.Context(), "go")
		if err != nil || !exited(evs) || th.state("review") != nil {
			t.Errorf("got %q, %v, kept %v", lines(evs), err, th.state("review"))
		}
	}
}

func final(args map[string]any) scripted.Answer { return call("set_model_response", args) }

// D18: with tools the answer is the arguments of one more; it is said as text
// then, by the agent, and kept.
func TestOutputSchemaWithTools(t *testing.T) {
	rec := record(script(t, calls("look"), final(map[string]any{"why": "short", "score": 7})))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, OutputSchema: review, OutputKey: "review",
		Tools: []tool.Tool{answering(t, "look", "x")}}))
	evs, err := th.ask(t.Context(), "go")
	const answer = `{"score":7,"why":"short"}`
	want := []string{"a: call look", "a: answer look map[text:x]", "a: call set_model_response", "a: answer set_model_response map[]", "a: " + answer}
	if diff := cmp.Diff(want, lines(evs)); diff != "" || err != nil {
		t.Fatal(diff, err)
	}
	if th.state("review") != answer || !evs[4].IsFinalResponse() || evs[4].Content.Role != genai.RoleModel {
		t.Errorf("kept %v, said %+v", th.state("review"), evs[4])
	}
	c := rec.requests[0].Config
	if c.ResponseSchema != nil || c.ResponseMIMEType != "" || len(c.Tools[0].FunctionDeclarations) != 2 {
		t.Errorf("asked with %+v", c)
	}
	if d := c.Tools[0].FunctionDeclarations[1]; d.Name != "set_model_response" || d.Parameters != review {
		t.Errorf("declared %+v", d)
	}
	if !strings.HasSuffix(rec.system(0), "When you are done, call set_model_response: its arguments are your final answer. Do not give the answer as text.") {
		t.Errorf("told %q", rec.system(0))
	}
}

// Wrong arguments are told to the model, which has one more try, as with an
// answer in text.
func TestOutputSchemaWithToolsThatDoesNotFit(t *testing.T) {
	right, wrong := final(map[string]any{"score": 7}), final(map[string]any{"score": 70})
	const problem = `score: expected an integer of at least 1 and at most 10, got the number 70`
	for _, tt := range []struct {
		name    string
		answers []scripted.Answer
		last    string // or "": an error
	}{
		{"right", []scripted.Answer{right}, `{"score":7}`},
		{"with a null", []scripted.Answer{final(map[string]any{"score": 7, "why": nil})}, `{"score":7}`},
		{"in words that fit", []scripted.Answer{says(good)}, good},
		{"wrong, right", []scripted.Answer{wrong, right}, `{"score":7}`},
		{"wrong, in words that fit", []scripted.Answer{wrong, says(good)}, good},
		{"words, right", []scripted.Answer{says("seven"), right}, `{"score":7}`},
		{"wrong, a look, right", []scripted.Answer{wrong, calls("look"), right}, `{"score":7}`},
		{"wrong twice", []scripted.Answer{wrong, wrong, right}, ""},
		{"words, wrong", []scripted.Answer{says("seven"), wrong, right}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newThread(t, newAgent(t, llmagent.Config{
				Name: "a", Model: script(t, tt.answers...), OutputSchema: review, OutputKey: "review", Tools: []tool.Tool{answering(t, "look", "x")},
			}))
			evs, err := th.ask(t.Context(), "go")
			if tt.last == "" {
				if e, ok := errors.AsType[*llmagent.OutputError](err); !ok || e.Problems[0] != problem || th.state("review") != nil {
					t.Errorf("got %v", err)
				}
				if last := lines(evs)[len(evs)-1]; last != "a: answer set_model_response map[error:invalid arguments for set_model_response: "+problem+"]" {
					t.Errorf("last was %q", last)
				}
				return
			}
			if err != nil || evs[len(evs)-1].Text() != tt.last || th.state("review") != tt.last {
				t.Errorf("got %q, %v, kept %v", lines(evs), err, th.state("review"))
			}
		})
	}
}

// An answer that is no object is an argument of its own.
func TestOutputSchemaOfAList(t *testing.T) {
	list := &genai.Schema{Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeString}}
	rec := record(script(t, final(map[string]any{"response": []any{"a", "b"}})))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, OutputSchema: list, OutputKey: "list", Tools: []tool.Tool{answering(t, "look", "x")}}))
	th.must("go")
	if th.state("list") != `["a","b"]` || rec.requests[0].Config.Tools[0].FunctionDeclarations[1].Parameters.Properties["response"] != list {
		t.Errorf("kept %v", th.state("list"))
	}
}

// An answer by way of the tool counts although the same turn ends the loop: it
// was given, and words beside a stop call were not.
func TestOutputSchemaAndExit(t *testing.T) {
	turn := final(map[string]any{"score": 9})
	turn.Calls = append(turn.Calls, scripted.Call{Name: "exit_loop"})
	cfg := llmagent.Config{Name: "a", Model: script(t, turn), OutputSchema: review, OutputKey: "review", Tools: []tool.Tool{exitTool(t)}}
	th := newThread(t, newLoop(t, loopagent.Config{}, newAgent(t, cfg)))
	evs, err := th.ask(t.Context(), "go")
	if err != nil || len(evs) != 3 || evs[1].Actions.Exit == nil || th.state("review") != `{"score":9}` {
		t.Errorf("got %q, %v, kept %v", lines(evs), err, th.state("review"))
	}
}

// A piece of a stream is no answer yet.
func TestOutputSchemaInAStream(t *testing.T) {
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", OutputSchema: review, OutputKey: "review",
		Model: script(t, scripted.Answer{Chunks: []string{`{"sco`, `re":7}`}})}))
	th.cfg.StreamingMode = agent.StreamingModeSSE
	if _, err := th.ask(t.Context(), "go"); err != nil || th.state("review") != `{"score":7}` {
		t.Errorf("%v, kept %v", err, th.state("review"))
	}
}
