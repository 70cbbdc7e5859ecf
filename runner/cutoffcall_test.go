// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// deaths is a process that dies: its log takes nothing more. Then it is started again.
type deaths struct {
	dead  bool
	kills map[string]bool // where it is still to die
	asked int             // requests that reached the model
}

func (d *deaths) at(place string) {
	if d.kills[place] {
		d.dead = true
		delete(d.kills, place)
	}
}

// store returns a store, and what a dead process sees of it.
func (d *deaths) store(t *testing.T) (store, dies session.Service) {
	store = crashed(t, nil, nil, 0)
	return store, &failing{Service: store, onAppend: func(*session.Event) error {
		if d.dead {
			return errors.New("killed")
		}
		return nil
	}}
}

// paid is a model that costs something. Its answers are a tool call, a refusal, an answer that breaks off, an answer of a
// callback, a tool call, and the text "done". A request that was cut off is made again.
type paid struct {
	*deaths
	turns []string
}

func (*paid) Name() string { return "paid" }

func (p *paid) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		p.asked++
		turn := "text"
		if len(p.turns) > 0 {
			turn = p.turns[0]
		}
		if p.at(fmt.Sprint("request ", p.asked)); p.dead {
			yield(nil, errors.New("killed"))
			return
		}
		p.turns = p.turns[min(1, len(p.turns)):]
		resp := &model.LLMResponse{
			Content:       genai.NewContentFromText("done", genai.RoleModel),
			UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 100, CandidatesTokenCount: 50},
		}
		switch turn {
		case "busy":
			yield(nil, &model.APIError{Status: 503, Retryable: true})
		case "broken":
			yield(nil, &model.APIError{Status: 200, Retryable: true})
		case "tool":
			resp.Content.Parts[0] = &genai.Part{FunctionCall: &genai.FunctionCall{ID: fmt.Sprint("c", p.asked), Name: "look", Args: map[string]any{"request": "x"}}}
			fallthrough
		default:
			yield(resp, nil)
		}
	}
}

// booked returns what the end of the root's step says that it has used.
func booked(t *testing.T, store session.Service) (u budget.Usage) {
	t.Helper()
	for ev := range get(t, store).(*session.View).Log().All() {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished && ev.Address.Parent() == "" {
			var fin mark.StepFinished
			if err := ev.Mark.Decode(&fin); err != nil {
				t.Fatal(err)
			}
			u = budget.Usage{}
			if err := json.Unmarshal(fin.Usage, &u); err != nil {
				t.Fatal(err)
			}
		}
	}
	return u
}

// LOOP 23: wherever a process is killed, each request that reached the model counts once: those under way, those that
// were sent again, those in place of which a callback answered. A request that had not left does not count.
func TestRequestsThatWereCutOffCount(t *testing.T) {
	turns := []string{"tool", "busy", "broken", "tool", "busy", "broken", "broken", "tool", "text"}
	for _, kills := range [][]string{
		{}, {"request 1"}, {"request 2"}, {"request 3"}, {"request 4"}, {"request 5"}, {"request 6"}, {"request 7"}, {"request 8"},
		{"request 9"}, {"callback 1"}, {"callback 2"}, {"callback 3"}, {"request 1", "request 2", "request 3"}, {"request 4", "request 5", "request 8"},
		{"callback 1", "request 1", "callback 3", "request 3", "request 6", "request 7"},
	} {
		t.Run(fmt.Sprint(kills), func(t *testing.T) {
			d := &deaths{kills: make(map[string]bool)}
			for _, k := range kills {
				d.kills[k] = true
			}
			llm, callbacks := &paid{deaths: d, turns: slices.Clone(turns)}, 0
			start := func() agent.Agent {
				look, err := functiontool.New(functiontool.Config{Name: "look"}, func(tool.Context, map[string]any) (map[string]any, error) {
					return map[string]any{"seen": "nothing"}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				a, err := llmagent.New(llmagent.Config{Name: "a", Model: llm, Tools: []tool.Tool{look},
					RequestRetry: llmagent.RequestRetry{Backoff: time.Millisecond},
					BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
						callbacks++
						if d.at(fmt.Sprint("callback ", callbacks)); d.dead {
							return nil, errors.New("killed")
						}
						return nil, nil
					}},
					OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
						return &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
							{FunctionCall: &genai.FunctionCall{Name: "look", Args: map[string]any{}}}}}}, nil
					}},
				})
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			u := booked(t, survive(t, d, start))
			unanswered := strings.Count(fmt.Sprint(kills), "request") + strings.Count(fmt.Sprint(turns), "broken")
			if least := int64(150*4 + 64*unanswered); u.Calls != int64(d.asked) || u.Tokens() < least || u.Tokens() > least+1000 || !u.Estimated {
				t.Errorf("%d requests reached the model; booked %+v, want about %d tokens", d.asked, u, least)
			}
		})
	}
}

// LOOP 23: the requests of an agent that is a tool count too, though the log has none of its events: those that were cut
// off, those whose answers the killed process had, and those of calls that had ended before.
func TestRequestsOfAgentsInToolsCount(t *testing.T) {
	for first := 1; first <= 7; first++ {
		for second := first; second <= 9; second += 2 {
			t.Run(fmt.Sprint(first, " ", second), func(t *testing.T) {
				d := &deaths{kills: map[string]bool{fmt.Sprint("request ", first): true, fmt.Sprint("request ", second): true}}
				outer := &paid{deaths: d, turns: []string{"tool", "tool", "text"}}
				start := func() agent.Agent {
					look, err := functiontool.New(functiontool.Config{Name: "look"}, func(tool.Context, map[string]any) (map[string]any, error) {
						return map[string]any{"seen": "nothing"}, nil
					})
					if err != nil {
						t.Fatal(err)
					}
					inner, err := llmagent.New(llmagent.Config{Name: "look", Tools: []tool.Tool{look}, Model: &insideTool{deaths: d}})
					if err != nil {
						t.Fatal(err)
					}
					a, err := llmagent.New(llmagent.Config{Name: "a", Model: outer, Tools: []tool.Tool{agenttool.New(inner, nil)}})
					if err != nil {
						t.Fatal(err)
					}
					return a
				}
				if u := booked(t, survive(t, d, start)); u.Calls != int64(d.asked) || u.Tokens() < 64*u.Calls {
					t.Errorf("%d requests reached the models; booked %+v", d.asked, u)
				}
			})
		}
	}
}

// insideTool is a model that calls a tool and then answers, in each call of its agent.
type insideTool struct{ *deaths }

func (*insideTool) Name() string { return "inside" }

func (m *insideTool) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	p := &paid{deaths: m.deaths}
	if len(req.Contents) == 1 {
		p.turns = []string{"tool"}
	}
	return p.GenerateContent(ctx, req, stream)
}

// survive runs and resumes until the run has ended.
func survive(t *testing.T, d *deaths, start func() agent.Agent) session.Service {
	t.Helper()
	store := crashed(t, nil, nil, 0)
	dies := &failing{Service: store, onAppend: func(*session.Event) error {
		if d.dead {
			return errors.New("killed")
		}
		return nil
	}}
	for range 20 {
		d.dead = false
		r := newRunner(t, durable(start(), dies))
		run := ask(t.Context(), r, "go")
		if log := slices.Collect(get(t, store).Events().All()); len(log) > 0 {
			run = r.Resume(t.Context(), "ana", "s1", log[0].InvocationID, agent.RunConfig{})
		}
		var err error
		for _, err = range run {
		}
		if !d.dead {
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
	}
	t.Fatal("it does not come to its end")
	return nil
}

// LOOP 23: a run that is killed at each request makes no more of them than its budget of calls has.
func TestKillsDoNotExceedTheBudget(t *testing.T) {
	d := &deaths{kills: make(map[string]bool)}
	for n := range 20 {
		d.kills[fmt.Sprint("request ", n)] = true
	}
	store, dies := d.store(t)
	start := func() session.Service { d.dead = false; return dies }
	a, err := llmagent.New(llmagent.Config{Name: "a", Model: &paid{deaths: d}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := agent.RunConfig{Budget: &budget.Limits{Calls: 3}}
	for range newRunner(t, durable(a, start())).Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg) {
	}
	log := slices.Collect(get(t, store).Events().All())
	exceeded := false
	for range 6 {
		for _, err := range newRunner(t, durable(a, start())).Resume(t.Context(), "ana", "s1", log[0].InvocationID, cfg) {
			exceeded = exceeded || errors.Is(err, budget.ErrExceeded)
		}
	}
	if d.asked != 3 || !exceeded {
		t.Errorf("%d requests; the budget was exceeded: %v", d.asked, exceeded)
	}
}

// The mark of a request is stored together with the start of its step: a loop of steps that ask a model commits as
// often as one whose steps do something else.
func TestRequestsTakeNoCommit(t *testing.T) {
	const iterations = 50
	inBubble(t, "loop", func(t *testing.T) {
		c := newCommits()
		var steps []agent.Agent
		for _, name := range []string{"a", "b"} {
			a, err := llmagent.New(llmagent.Config{Name: name, Model: &paid{deaths: new(deaths)}})
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, a)
		}
		if err := runAll(t, c, cycle(t, loopagent.Config{MaxIterations: iterations}, "loop", steps...)); err != nil {
			t.Fatal(err)
		}
		requests := 0
		for ev := range get(t, c).(*session.View).Log().All() {
			if ev.Mark != nil && ev.Mark.Kind == mark.KindRequested {
				requests++
			}
		}
		if requests != 2*iterations || c.n > 4*iterations+6 {
			t.Errorf("%d commits with %d marks of requests, for %d iterations", c.n, requests, iterations)
		}
	})
}
