// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// report is a value as a Go program has it.
type report struct {
	Title string `json:"title"`
	ID    uint64 `json:"id"`
	Took  time.Duration
}

func goValues() map[string]any {
	return map[string]any{
		"int": 3, "id": int64(math.MaxInt64), "huge": uint64(math.MaxUint64), "next": 1<<53 + 1, "whole": 1e17, "part": 0.5,
		"report": &report{"t", math.MaxUint64, time.Second}, "bytes": []byte("data"), "took": 90 * time.Second,
		"at": time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "typed": map[string][]int{"a": {1, 1<<53 + 1}}, "none": []string(nil), "torn": "a\xff",
		"temp:id": int64(math.MaxInt64), "user:id": int64(math.MaxInt64), "app:id": int64(math.MaxInt64 - 1), "iteration:id": int64(math.MaxInt64),
	}
}

// LOOP 29, G3, G5, G8: a Go program reads the same values, of the same types, in the run
// that has set them and in one that is resumed. Expressions, templates and conditions see
// all digits of integers.
func TestGoValuesAreTheSameAfterAResume(t *testing.T) {
	typed := func(state session.ReadonlyState) string {
		all := maps.Collect(state.All())
		var lines []string
		for _, k := range slices.Sorted(maps.Keys(all)) {
			lines = append(lines, fmt.Sprintf("%s %T %v", k, all[k], all[k]))
		}
		return strings.Join(lines, "\n")
	}
	reads := func(name string) agent.Agent {
		return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
			yield(says(typed(drive.At(ctx).State())), nil)
		})
	}
	root := func() agent.Agent {
		setter := custom(t, "setter", func(ctx agent.InvocationContext, yield yield) {
			ev := says("set")
			if ev.Actions.StateDelta = goValues(); drive.At(ctx).Loop().Iteration > 1 {
				ev.Actions.StateDelta["int"] = "now a text" // so that there is something to undo
			}
			ev.Actions.StateDelta["score"] = 10 - drive.At(ctx).Loop().Iteration
			yield(ev, nil)
		})
		must := func(a agent.Agent, err error) agent.Agent {
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		return must(loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{
				setter, reads("reads"),
				must(taskagent.NewText(taskagent.TextConfig{
					Config: taskagent.Config{Name: "text"}, Text: `{{id}} {{huge}} {{next}} {{whole}} {{report.id}} {{took}} {{temp:id}}`,
				})),
				must(taskagent.NewExpression(taskagent.ExpressionConfig{
					Config: taskagent.Config{Name: "sum", OutputKey: "sum"},
					Value:  `[state.id - 1, state.next + state.int2, json('{"n": 9007199254740993}').n, string(state.huge), state.typed.a[1]]`,
					Set:    map[string]string{"int2": "1"},
				})),
			}},
			MaxIterations: 3,
			Rules: loop.Plan{
				OnRegression: loop.RollbackOnWorse, Score: &loop.Score{Key: "score"},
				StopWhen: &loop.Condition{Expr: `iteration == 3 && state.id == 9223372036854775807 && state["app:id"] == 9223372036854775806 && state["temp:id"] == state.id`},
			},
			BeforeIteration: []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error {
				return errors.Join(ctx.State().Set("int2", n), ctx.State().Set("begun", time.Duration(n)))
			}},
		}))
	}
	store := crashed(t, goValues(), nil, 0)
	p := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
	want := p.outcome(p.first())
	log := p.log()
	if got := want.Stops["refine"]; len(got) != 1 || got[0].Reason != loop.ReasonCondition {
		t.Fatalf("stopped by %+v %s", got, want.Err)
	}
	said := want.Said["refine[1]/text"]
	if text := "9223372036854775807 18446744073709551615 9007199254740993 100000000000000000 18446744073709551615 90000000000 9223372036854775807"; len(said) != 1 || said[0] != text {
		t.Errorf("the template says %q, want %q", said, text)
	}
	sum := []any{int64(math.MaxInt64 - 1), int64(1<<53 + 4), int64(1<<53 + 1), "18446744073709551615", int64(1<<53 + 1)}
	if diff := cmp.Diff(any(sum), want.State["sum"]); diff != "" {
		t.Errorf("the expression (-want +got):\n%s", diff)
	}
	for k := 1; k < len(log); k++ {
		store := crashed(t, goValues(), log, k)
		again := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
		_, err := again.again(p.id)
		if diff := cmp.Diff(want, again.outcome(err), times); diff != "" {
			t.Fatalf("cut off after %d events (-whole +resumed):\n%s\n%s", k, diff, lines(brief(again.log())))
		}
		again.checkFold(goValues())
	}
}

// LOOP 29, 20: a value that JSON cannot hold is the error of the step that has set it, at
// once, under that step's on_error; the loop goes on, with its finalizer and its stop
// record, and can be resumed wherever it is cut off.
func TestWhatJSONCannotHoldIsTheErrorOfItsStep(t *testing.T) {
	type way struct {
		step func(v any) (agent.Agent, error)
		// before says that the step does not begin: a callback around it has failed.
		says string
	}
	direct := func(ctx agent.Context, v any) { ctx.Actions().StateDelta = map[string]any{"bad": v} }
	llm := func(run func(ctx tool.Context, v any) error) func(any) (agent.Agent, error) {
		return func(v any) (agent.Agent, error) {
			f, err := functiontool.New(functiontool.Config{Name: "note", Description: "Notes."}, func(ctx tool.Context, _ struct {
				Text string `json:"text"`
			}) (string, error) {
				return "noted", run(ctx, v)
			})
			if err != nil {
				return nil, err
			}
			return llmagent.New(llmagent.Config{Name: "step", Model: &chatty{forest: &forest{world: new(world)}, calls: 1, tools: []tool.Tool{f}},
				Tools: []tool.Tool{f}})
		}
	}
	for name, w := range map[string]way{
		"an event": {step: func(v any) (agent.Agent, error) {
			return custom(t, "step", func(_ agent.InvocationContext, yield yield) { yield(sets("bad", v), nil) }), nil
		}},
		"an event with others": {step: func(v any) (agent.Agent, error) {
			return custom(t, "step", func(_ agent.InvocationContext, yield yield) {
				if yield(says("before"), nil) && yield(sets("bad", map[string]any{"deep": []any{1, v}}), nil) {
					t.Error("the step goes on")
				}
			}), nil
		}},
		"a child's event": {step: func(v any) (agent.Agent, error) {
			child := custom(t, "child", func(_ agent.InvocationContext, yield yield) { yield(says("hello"), nil) })
			return agent.New(agent.Config{Name: "step", SubAgents: []agent.Agent{child}, Run: seq(func(ctx agent.InvocationContext, yield yield) {
				for ev, err := range drive.Run(ctx, child) {
					if ev != nil && ev.Mark == nil {
						ev.Actions.StateDelta = map[string]any{"bad": v}
					}
					if !yield(ev, err) {
						return
					}
				}
			})})
		}},
		"State.Set in a callback": {step: func(v any) (agent.Agent, error) {
			return agent.New(agent.Config{Name: "step", Run: silence, BeforeAgentCallbacks: []agent.BeforeAgentCallback{
				func(ctx agent.Context) (*genai.Content, error) { return nil, ctx.State().Set("bad", v) },
			}})
		}},
		"Actions of a callback": {step: func(v any) (agent.Agent, error) {
			return agent.New(agent.Config{Name: "step", Run: silence, AfterAgentCallbacks: []agent.AfterAgentCallback{
				func(ctx agent.Context) (*genai.Content, error) { direct(ctx, v); return nil, nil },
			}})
		}},
		"State.Set before a model": {step: func(v any) (agent.Agent, error) {
			return llmagent.New(llmagent.Config{Name: "step", Model: &mute{}, BeforeModelCallbacks: []llmagent.BeforeModelCallback{
				func(ctx agent.CallbackContext, _ *model.LLMRequest) (*model.LLMResponse, error) {
					return nil, ctx.State().Set("bad", v)
				},
			}})
		}},
		"Actions of a tool": {step: llm(func(ctx tool.Context, v any) error { direct(ctx, v); return nil })},
		"an inner loop": {step: func(v any) (agent.Agent, error) {
			return loopagent.New(loopagent.Config{
				AgentConfig: agent.Config{Name: "step", SubAgents: []agent.Agent{custom(t, "inner", func(_ agent.InvocationContext, yield yield) { yield(sets("bad", v), nil) })}}, MaxIterations: 2,
			})
		}, says: `agent "inner" (refine[1]/step[1]/inner)`},
		"an iteration callback of an inner loop": {step: func(v any) (agent.Agent, error) {
			return loopagent.New(loopagent.Config{
				AgentConfig: agent.Config{Name: "step", SubAgents: []agent.Agent{speaker(t, "inner", "a")}}, MaxIterations: 2,
				AfterIteration: []loopagent.AfterIterationCallback{func(ctx agent.Context, _ loop.IterationRecord) error { direct(ctx, v); return nil }},
			})
		}},
	} {
		for _, v := range []any{math.NaN(), math.Inf(1), func() {}} {
			t.Run(fmt.Sprintf("%s, %T %v", name, v, v != nil), func(t *testing.T) {
				root := func() agent.Agent {
					bad, err := w.step(v)
					if err != nil {
						t.Fatal(err)
					}
					r, err := loopagent.New(loopagent.Config{
						AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{speaker(t, "first", "a"), bad, speaker(t, "last", "z"), speaker(t, "end", "over")}},
						MaxIterations: 2, Rules: loop.Plan{OnError: loop.SkipStep, Steps: []loop.Step{{Name: "end", Finalizer: true}}},
					})
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				store := crashed(t, nil, nil, 0)
				p := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
				want := p.outcome(p.first())
				log := p.log()
				stops := want.Stops["refine"]
				if want.Err != "" || len(stops) != 1 || stops[0].Reason != loop.ReasonMaxIterations || len(want.Said["refine/end"]) != 1 ||
					len(want.Said["refine[2]/last"]) != 1 {
					t.Fatalf("error %s; stops %+v\n%s", want.Err, stops, lines(brief(log)))
				}
				if _, there := want.State["bad"]; there {
					t.Errorf("the state has %v", want.State["bad"])
				}
				failed := false
				for _, ev := range log {
					if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished || ev.Address != "refine[1]/step" {
						continue
					}
					fin := decode[mark.StepFinished](t, ev.Mark)
					if failed = fin.Error != ""; !strings.Contains(fin.Error, `state key "bad": `) ||
						!strings.Contains(fin.Error, session.ErrNotJSON.Error()) || !strings.Contains(fin.Error, w.says) {
						t.Errorf("the step's error is %q", fin.Error)
					}
				}
				if !failed {
					t.Errorf("the step has not failed\n%s", lines(brief(log)))
				}
				for k := 1; k < len(log); k++ {
					store := crashed(t, nil, log, k)
					again := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
					_, err := again.again(p.id)
					if diff := cmp.Diff(want, again.outcome(err), times); diff != "" {
						t.Fatalf("cut off after %d events (-whole +resumed):\n%s\n%s", k, diff, lines(brief(again.log())))
					}
				}
			})
		}
	}
}

// LOOP 29: a root loop whose iteration callback sets one stops with a record that says so.
func TestIterationCallbackThatSetsNaNStopsItsLoop(t *testing.T) {
	root, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{speaker(t, "a", "x")}}, MaxIterations: 2,
		BeforeIteration: []loopagent.BeforeIterationCallback{func(ctx agent.Context, n int) error {
			ctx.Actions().StateDelta = map[string]any{"bad": math.NaN()}
			return nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	store := crashed(t, nil, nil, 0)
	p := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root, store))}
	err = p.first()
	stops := p.outcome(err).Stops["refine"]
	if !errors.Is(err, session.ErrNotJSON) || len(stops) != 1 || stops[0].Reason != loop.ReasonError ||
		!strings.Contains(stops[0].Detail, `state key "bad": NaN`) {
		t.Errorf("got error %v and stops %+v", err, stops)
	}
}

// What a run is given is looked at before it begins.
func TestRunIsNotGivenWhatJSONCannotHold(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, durable(speaker(t, "a", "x"), svc))
	_, err := collect(t, ask(t.Context(), r, "go", runner.WithStateDelta(map[string]any{"bad": math.NaN()})))
	if !errors.Is(err, session.ErrNotJSON) || !strings.Contains(err.Error(), `state key "bad": NaN`) || len(stored(t, svc)) != 0 {
		t.Errorf("got error %v, and the log has %q", err, stored(t, svc))
	}
	if _, err := collect(t, ask(t.Context(), r, "go")); err != nil {
		t.Error(err)
	}
}

// seq is what an agent's Run returns for a function that yields.
func seq(run func(agent.InvocationContext, yield)) func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { run(ctx, yield) }
	}
}

// LOOP 29: the same holds for all that a program can put into an event: no store keeps
// what has no JSON, and the log of a run has no hash with it in it.
func TestEventThatJSONCannotHoldIsTheErrorOfItsStep(t *testing.T) {
	bad := func(fill func(*session.Event)) *session.Event {
		ev := says("x")
		fill(ev)
		return ev
	}
	nan := math.NaN()
	for want, ev := range map[string]*session.Event{
		"score of the exit": bad(func(ev *session.Event) { ev.Actions.Exit = &session.Exit{Score: &nan} }),
		"custom metadata":   bad(func(ev *session.Event) { ev.CustomMetadata = map[string]any{"a": make(chan int)} }),
		"answer of f": bad(func(ev *session.Event) {
			ev.Content.Parts = append(ev.Content.Parts, genai.NewPartFromFunctionResponse("f", map[string]any{"a": nan}))
		}),
		"call of f": bad(func(ev *session.Event) {
			ev.Content.Parts = append(ev.Content.Parts, genai.NewPartFromFunctionCall("f", map[string]any{"a": nan}))
		}),
		`payload of the confirmation "c"`: bad(func(ev *session.Event) {
			ev.Actions.RequestedToolConfirmations = map[string]toolconfirmation.ToolConfirmation{"c": {Payload: nan}}
		}),
		"average log probability": bad(func(ev *session.Event) { ev.AvgLogprobs = math.Inf(-1) }),
	} {
		var rec *loop.StopRecord
		root, err := loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{
				custom(t, "step", func(_ agent.InvocationContext, yield yield) {
					if yield(ev, nil) {
						t.Errorf("%s: the step goes on", want)
					}
				}), speaker(t, "next", "fine"),
			}},
			MaxIterations: 2, Rules: loop.Plan{OnError: loop.SkipStep},
			OnStop: func(_ agent.InvocationContext, r *loop.StopRecord) { rec = r },
		})
		if err != nil {
			t.Fatal(err)
		}
		svc := session.InMemoryService()
		if _, err := collect(t, ask(t.Context(), newRunner(t, durable(root, svc)), "go")); err != nil {
			t.Errorf("%s: the run fails: %v", want, err)
		}
		if rec == nil || rec.Reason != loop.ReasonMaxIterations || rec.Failures != 2 || rec.Result.Iteration != 2 {
			t.Errorf("%s: stopped by %+v", want, rec)
		}
		said := false
		for ev := range get(t, svc).Events().All() {
			said = said || ev.Mark != nil && strings.Contains(string(ev.Mark.Data), `refine[1]/step): `+strings.ReplaceAll(want, `"`, `\"`)+": json: unsupported")
		}
		if !said {
			t.Errorf("%s: the log does not say so", want)
		}
	}
}
