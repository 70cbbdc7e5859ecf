// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// LOOP 30: a change of state that no event has appended is not in the
// state of any other step, however the step that made it ended.
func TestWhatIsNotInTheLogIsNotInTheState(t *testing.T) {
	set := func(ctx agent.Context) error {
		if err := ctx.State().Set("late", "set"); err != nil {
			return err
		}
		for what, state := range map[string]session.ReadonlyState{
			"its state": ctx.State(), "StateOf": drive.At(ctx).State(), "its session": ctx.Session().State(), "ReadonlyState": ctx.ReadonlyState(),
		} {
			if v, err := state.Get("late"); v != "set" {
				t.Errorf("the call that has set the key sees %v, %v in %s", v, err, what)
			}
			n := 0
			for k, v := range state.All() {
				if k == "late" && v == "set" {
					n++
				}
			}
			if n != 1 {
				t.Errorf("the call that has set the key sees it %d times in all of %s", n, what)
			}
		}
		return errBroken
	}
	before := func(ctx agent.Context) (*genai.Content, error) { return nil, set(ctx) }
	for name, a := range map[string]func() (agent.Agent, error){
		"before an agent": func() (agent.Agent, error) {
			return agent.New(agent.Config{Name: "a", BeforeAgentCallbacks: []agent.BeforeAgentCallback{before}, Run: silence})
		},
		"after an agent": func() (agent.Agent, error) {
			return agent.New(agent.Config{Name: "a", AfterAgentCallbacks: []agent.AfterAgentCallback{before}, Run: silence})
		},
		"before a model": func() (agent.Agent, error) {
			return llmagent.New(llmagent.Config{Name: "a", Model: &mute{}, BeforeModelCallbacks: []llmagent.BeforeModelCallback{
				func(ctx agent.CallbackContext, _ *model.LLMRequest) (*model.LLMResponse, error) { return nil, set(ctx) },
			}})
		},
		"before an iteration": func() (agent.Agent, error) {
			return loopagent.New(loopagent.Config{
				AgentConfig: agent.Config{Name: "a", SubAgents: []agent.Agent{speaker(t, "in")}}, MaxIterations: 1,
				BeforeIteration: []loopagent.BeforeIterationCallback{func(ctx agent.Context, _ int) error { return set(ctx) }},
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			failing, err := a()
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			looks := custom(t, "looks", func(ctx agent.InvocationContext, _ yield) {
				seen++
				if v, err := drive.At(ctx).State().Get("late"); !errors.Is(err, session.ErrStateKeyNotExist) {
					t.Errorf("the next step sees %v, %v", v, err)
				}
			})
			svc := session.InMemoryService()
			root, err := loopagent.New(loopagent.Config{
				AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{failing, looks}}, MaxIterations: 1, Rules: loop.Plan{OnError: loop.SkipStep},
			})
			if err != nil {
				t.Fatal(err)
			}
			p := &process{TB: t, world: new(world), store: svc, Runner: newRunner(t, durable(root, svc))}
			if err := p.first(); err != nil || seen != 1 {
				t.Fatalf("got error %v, and the next step ran %d times", err, seen)
			}
			p.checkFold(nil)
		})
	}
}

func silence(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(func(*session.Event, error) bool) {}
}

// mute is a model that nobody may ask.
type mute struct{}

func (*mute) Name() string { return "mute" }

// Provider says that it asks nobody: of a step that was cut off before it could fail, no call counts.
func (*mute) Provider() string { return "scripted" }

func (*mute) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { yield(nil, errors.New("asked")) }
}

// LOOP 29: a key that is set on the session itself would be in no event, and
// missing in the stored session. It is refused, and the error says what to do.
func TestStateOfARunIsItsLog(t *testing.T) {
	for _, durable := range []bool{false, true} {
		refused := make(map[string]string)
		a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) {
			for _, key := range []string{"k", "temp:k", "iteration:k"} {
				if err := ctx.Session().State().Set(key, "v"); errors.Is(err, session.ErrNotLogged) {
					refused[key] = err.Error()
				} else if err != nil {
					t.Errorf("durable %v: %v", durable, err)
				}
			}
		})
		r := newRunner(t, runner.Config{Agent: a, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: durable})
		if _, err := collect(t, ask(t.Context(), r, "go")); err != nil {
			t.Fatal(err)
		}
		const todo = "the state of a run changes by events: set the key with ctx.State() in a callback or a tool, " +
			"or in the Actions.StateDelta of an event that the agent yields"
		want := map[string]string{"k": `state key "k": ` + todo, "iteration:k": `state key "iteration:k": ` + todo}
		if diff := cmp.Diff(want, refused); diff != "" {
			t.Errorf("durable %v: which keys are refused (-want +got):\n%s", durable, diff)
		}
	}
}
