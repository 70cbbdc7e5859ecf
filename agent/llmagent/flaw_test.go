// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// garbled is a call with arguments that break off.
func garbled(name string) scripted.Answer {
	return scripted.Answer{Calls: []scripted.Call{{Name: name, Raw: `{"reason": "it is done}`}}}
}

// C33: what is no answer fails the agent, is in the log, and replaces nothing.
func TestResponseThatIsNoAnswerFails(t *testing.T) {
	blocked := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		yield(&model.LLMResponse{ErrorCode: "PROHIBITED_CONTENT", ErrorMessage: "the prompt was blocked"}, nil)
	})
	for _, tt := range []struct {
		name   string
		answer scripted.Answer // or the zero value: blocked
		code   string
		want   string
	}{
		{"refused", scripted.Answer{Refusal: "I will not"}, "REFUSAL", "the model gave no answer: REFUSAL: I will not"},
		{"half of it, for safety", scripted.Answer{Text: "half", Finish: "SAFETY"}, "SAFETY", "the model gave no answer: SAFETY: the model stopped with SAFETY"},
		{"blocked, without content", scripted.Answer{}, "PROHIBITED_CONTENT", "the model gave no answer: PROHIBITED_CONTENT: the prompt was blocked"},
		{"cut off", scripted.Answer{Text: "half a docu", Finish: "MAX_TOKENS"}, "MAX_TOKENS", "the answer was cut off at MAX_TOKENS; raise max_output_tokens"},
		{"cut off in a thought", scripted.Answer{Thought: "hm", Finish: "MAX_TOKENS"}, "MAX_TOKENS", "the answer was cut off at MAX_TOKENS; raise max_output_tokens"},
		{"cut off in a call", scripted.Answer{Finish: "MAX_TOKENS", Calls: garbled("look").Calls}, "MAX_TOKENS", "the answer was cut off at MAX_TOKENS; raise max_output_tokens"},
		{"a call, for safety", scripted.Answer{Finish: "SAFETY", Calls: calls("look").Calls}, "SAFETY", "the model gave no answer: SAFETY: the model stopped with SAFETY"},
	} {
		for _, schema := range []*genai.Schema{nil, review} {
			t.Run(tt.name, func(t *testing.T) {
				m := model.LLM(blocked)
				if tt.answer.Finish+tt.answer.Refusal != "" {
					m = script(t, tt.answer)
				}
				cfg := llmagent.Config{Name: "a", Model: m, OutputKey: "doc", OutputSchema: schema}
				th := newThread(t, newAgent(t, cfg))
				evs, err := th.ask(t.Context(), "go", runner.WithStateDelta(map[string]any{"doc": "whole"}))
				e, ok := errors.AsType[*llmagent.AnswerError](err)
				if !ok || e.Code != tt.code || e.Error() != tt.want {
					t.Fatalf("got %v, want %s", err, tt.want)
				}
				if len(evs) != 1 || th.session().Events().Len() != 2 {
					t.Errorf("%d events, %d in the log: want the response", len(evs), th.session().Events().Len())
				}
				if th.state("doc") != "whole" {
					t.Errorf("kept %v", th.state("doc"))
				}
			})
		}
	}
}

// As in ADK, a model that has only thought is asked again; here as often as Retry
// allows, and then it is an error.
func TestTurnOfThoughtsOnly(t *testing.T) {
	hm := scripted.Answer{Thought: "hm"}
	for _, tt := range []struct {
		name    string
		answers []scripted.Answer
		retry   llmagent.RequestRetry
		want    []string
		err     string
	}{
		{"once", []scripted.Answer{hm, says("yes")}, llmagent.RequestRetry{}, []string{"a: hm", "a: yes"}, ""},
		{"before a call", []scripted.Answer{hm, hm, calls("look"), hm, says("yes")}, llmagent.RequestRetry{},
			[]string{"a: hm", "a: hm", "a: call look", "a: answer look map[text:x]", "a: hm", "a: yes"}, ""},
		{"for ever", []scripted.Answer{hm, hm, hm, hm}, llmagent.RequestRetry{}, []string{"a: hm", "a: hm", "a: hm"}, "THOUGHTS_ONLY"},
		{"without another try", []scripted.Answer{hm, hm}, llmagent.RequestRetry{Attempts: 1}, []string{"a: hm"}, "THOUGHTS_ONLY"},
		{"and space", []scripted.Answer{{Thought: "hm", Text: " "}}, llmagent.RequestRetry{}, []string{"a: hm |  "}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			th := newThread(t, newAgent(t, llmagent.Config{
				Name: "a", Model: script(t, tt.answers...), RequestRetry: tt.retry, Tools: []tool.Tool{answering(t, "look", "x")},
			}))
			evs, err := th.ask(t.Context(), "go")
			if diff := cmp.Diff(tt.want, lines(evs)); diff != "" {
				t.Error(diff)
			}
			e, _ := errors.AsType[*llmagent.AnswerError](err)
			if (err != nil) != (tt.err != "") || tt.err != "" && (e == nil || e.Code != tt.err) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}

// A call that arrived whole before the bound is made.
func TestWholeCallAtTheBoundOfTokensIsMade(t *testing.T) {
	m := script(t, scripted.Answer{Finish: "MAX_TOKENS", Calls: calls("look").Calls}, says("done"))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, Tools: []tool.Tool{answering(t, "look", "x")}}))
	if diff := cmp.Diff([]string{"a: call look", "a: answer look map[text:x]", "a: done"}, th.must("go")); diff != "" {
		t.Error(diff)
	}
}

// A callback makes do with what is no answer, or says so by ending the loop.
func TestCallbackReplacesWhatIsNoAnswer(t *testing.T) {
	refused := scripted.Answer{Refusal: "I will not"}
	cfg := llmagent.Config{Name: "a", Model: script(t, refused), OutputKey: "doc", AfterModelCallbacks: []llmagent.AfterModelCallback{
		func(_ agent.CallbackContext, resp *model.LLMResponse, _ error) (*model.LLMResponse, error) {
			if resp.ErrorCode == "" {
				t.Error("the callback did not get the refusal")
			}
			return response("instead"), nil
		},
	}}
	th := newThread(t, newAgent(t, cfg))
	if diff := cmp.Diff([]string{"a: instead"}, th.must("go")); diff != "" || th.state("doc") != "instead" {
		t.Error(diff, th.state("doc"))
	}

	cfg.Model = script(t, refused)
	cfg.AfterModelCallbacks = []llmagent.AfterModelCallback{func(ctx agent.CallbackContext, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
		ctx.Actions().Escalate = true
		return nil, nil
	}}
	th = newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, newAgent(t, cfg)))
	if _, err := th.ask(t.Context(), "go"); err != nil {
		t.Errorf("the callback ended the loop, but %v", err)
	}
}

// Where the budget bounds an answer, that it is cut off is the budget's end.
func TestAnswerCutOffByTheBudget(t *testing.T) {
	m := script(t, scripted.Answer{Text: "half", Finish: "MAX_TOKENS", Usage: &scripted.Usage{Prompt: 100, Output: 400}})
	s := newSpender(t, budget.Limits{Tokens: 600}, newAgent(t, llmagent.Config{Name: "a", Model: m, OutputKey: "doc"}))
	err := s.spend()
	if e, ok := errors.AsType[*llmagent.AnswerError](err); !ok || !strings.Contains(e.Message, "the budget left ") {
		t.Errorf("got %v", err)
	}
	if e, ok := errors.AsType[*budget.ExceededError](err); !ok || e.What != "tokens" {
		t.Errorf("got %v", err)
	}
	if used := s.budget.Used(); used.Calls != 1 || s.state("doc") != nil {
		t.Errorf("used %+v, kept %v", used, s.state("doc"))
	}
}

// A call that nobody can read is told to the model, over each wire and streamed
// or not, with what it has sent.
func TestCallThatNobodyCanRead(t *testing.T) {
	for name, wire := range wires {
		for _, mode := range []agent.StreamingMode{agent.StreamingModeNone, agent.StreamingModeSSE} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				llm, srv := wire(t, scripted.Script{Answers: []scripted.Answer{garbled("exit_loop"), calls("exit_loop")}}, nil)
				a := newAgent(t, llmagent.Config{Name: "a", Model: llm, OutputKey: "doc", Tools: []tool.Tool{exitTool(t)}})
				th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, a))
				th.cfg.StreamingMode = mode
				evs, err := th.ask(t.Context(), "go")
				if err != nil {
					t.Fatal(err)
				}
				asked := srv.Requests()
				if len(asked) != 2 {
					t.Fatalf("%d requests, want 2: %q", len(asked), lines(evs))
				}
				told := words(asked[1].Contents[len(asked[1].Contents)-1])
				shown := name == "gemini" || strings.Contains(told, `"exit_loop"`) && strings.Contains(told, "it is done}") // genai drops the message
				if !strings.Contains(told, "could not be read") || !shown {
					t.Errorf("told %q", told)
				}
				if !exited(evs) {
					t.Errorf("the loop was not left: %q", lines(evs))
				}
			})
		}
	}
}

func exited(evs []*session.Event) bool {
	for _, ev := range evs {
		if ev.Actions.Exit != nil {
			return true
		}
	}
	return false
}

// It is told twice running at most, each counts as a call of the model, and calls
// beside it that can be read are made.
func TestCallThatNobodyCanReadAgainAndAgain(t *testing.T) {
	bad := garbled("look")
	both := scripted.Answer{Calls: []scripted.Call{{Name: "look"}, bad.Calls[0]}}
	for _, tt := range []struct {
		name    string
		answers []scripted.Answer
		calls   int
		want    string // or "": done
	}{
		{"twice", []scripted.Answer{bad, bad, says("done")}, 0, ""},
		{"thrice", []scripted.Answer{bad, bad, bad, says("done")}, 0, "MALFORMED_FUNCTION_CALL"},
		{"not running", []scripted.Answer{bad, bad, calls("look"), bad, bad, says("done")}, 0, ""},
		{"beside others", []scripted.Answer{both, says("done")}, 0, ""},
		{"with no call left", []scripted.Answer{bad, says("done")}, 1, "limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t, tt.answers...))
			th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{answering(t, "look", "x")}}))
			th.cfg.MaxLLMCalls = tt.calls
			evs, err := th.ask(t.Context(), "go")
			if tt.want != "" {
				if tt.calls > 0 && errors.Is(err, agent.ErrTooManyModelCalls) {
					return
				}
				if e, ok := errors.AsType[*llmagent.AnswerError](err); !ok || e.Code != tt.want || len(rec.requests) != 3 {
					t.Errorf("after %d requests: %v", len(rec.requests), err)
				}
				return
			}
			if err != nil || evs[len(evs)-1].Text() != "done" {
				t.Fatalf("got %q, %v", lines(evs), err)
			}
			heard := rec.heard(1)
			if !strings.Contains(heard[len(heard)-1], "could not be read") {
				t.Errorf("heard %q", heard)
			}
			if tt.name == "beside others" && !strings.Contains(strings.Join(heard, "\n"), "answer look map[text:x]") {
				t.Errorf("heard %q", heard)
			}
			last := rec.heard(len(rec.requests) - 1)
			if tt.name == "not running" && strings.Count(strings.Join(last, "\n"), "could not be read") != 1 {
				t.Errorf("told more than once: %q", last)
			}
		})
	}
}

// F10, LOOP 23, LOOP 34: an answer that only calls what cannot be called is an
// attempt of the turn, as a failed request is, so that the most that a turn asks is
// known beforehand.
func TestCallsInVain(t *testing.T) {
	unknown, wrong := calls("look"), scripted.Answer{Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"status": "done"}}}}
	some := calls("look", "count")
	busy := scripted.Answer{Error: &scripted.Failure{Status: 503, Message: "busy"}}
	for _, tt := range []struct {
		name     string
		attempts int
		answers  []scripted.Answer
		requests int
		want     string // or "": done
	}{
		{"told twice", 0, []scripted.Answer{unknown, wrong, says("done")}, 3, ""},
		{"thrice", 0, []scripted.Answer{unknown, unknown, unknown, says("done")}, 3, `there is no tool "look"; the tools are: count, exit_loop`},
		{"wrong arguments", 0, []scripted.Answer{unknown, unknown, wrong, says("done")}, 3, "invalid arguments for exit_loop: status"},
		{"unreadable", 0, []scripted.Answer{unknown, garbled("look"), unknown, says("done")}, 3, `there is no tool "look"`},
		{"one attempt", 1, []scripted.Answer{unknown, says("done")}, 1, `there is no tool "look"`},
		{"beside one that can be made", 1, []scripted.Answer{some, some, says("done")}, 3, ""},
		{"not running", 2, []scripted.Answer{unknown, calls("count"), unknown, says("done")}, 4, ""},
		{"with failed requests", 3, []scripted.Answer{unknown, busy, says("done")}, 3, ""},
		{"with too many failed requests", 2, []scripted.Answer{unknown, busy, says("done")}, 2, "attempt 2 of 2"},
		{"after failed requests", 2, []scripted.Answer{busy, unknown, says("done")}, 2, `there is no tool "look"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t, tt.answers...))
			th := newThread(t, newAgent(t, llmagent.Config{
				Name: "a", Model: rec, Tools: []tool.Tool{exitTool(t), answering(t, "count", "x")},
				RequestRetry: llmagent.RequestRetry{Attempts: tt.attempts, Backoff: time.Nanosecond},
			}))
			evs, err := th.ask(t.Context(), "go")
			if len(rec.requests) != tt.requests {
				t.Errorf("%d requests, want %d", len(rec.requests), tt.requests)
			}
			switch {
			case tt.want == "" && (err != nil || evs[len(evs)-1].Text() != "done"):
				t.Errorf("got %q, %v", lines(evs), err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got error %v, want %s", err, tt.want)
			}
		})
	}
}

// LOOP 30: a resumed run knows how often the model was told.
func TestCallsInVainAreCountedWhenResumed(t *testing.T) {
	for cut := 1; cut <= 6; cut++ {
		requests := 0
		process := func(svc session.Service) *runner.Runner {
			rec := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
				requests++
				yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "look"}}}}}, nil)
			})
			r, err := runner.New(runner.Config{AppName: "app", Agent: newAgent(t, llmagent.Config{Name: "a", Model: rec}), SessionService: svc, Durable: true})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		svc, id, seen := session.InMemoryService(), "", 0
		if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); err != nil {
			t.Fatal(err)
		}
		for ev, err := range process(svc).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			if id, seen = ev.InvocationID, seen+1; seen == cut {
				break
			}
		}
		var failed error
		for _, failed = range process(svc).Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
		}
		if e, ok := errors.AsType[*llmagent.AnswerError](failed); !ok || e.Code != "UNEXPECTED_TOOL_CALL" {
			t.Errorf("cut behind %d events: %v", cut, failed)
		}
		if requests > 4 || requests < 3 { // the one under way may be sent again
			t.Errorf("cut behind %d events: %d requests", cut, requests)
		}
	}
}
