// SPDX-License-Identifier: Apache-2.0

package sequentialagent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/agenttest"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

type yield = func(*session.Event, error) bool

func custom(t *testing.T, name string, run func(agent.InvocationContext, yield), subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, SubAgents: subs, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { run(ctx, yield) }
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func speaker(t *testing.T, name string, words ...string) agent.Agent {
	t.Helper()
	return custom(t, name, func(_ agent.InvocationContext, yield yield) {
		for _, word := range words {
			if !yield(says(word), nil) {
				return
			}
		}
	})
}

func says(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

func sequence(t *testing.T, name string, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// play runs an agent in a runner and returns what was said, and the error.
func play(t *testing.T, ctx context.Context, a agent.Agent) ([]string, error) {
	t.Helper()
	r, err := runner.NewInMemory("app", a)
	if err != nil {
		t.Fatal(err)
	}
	said := []string{}
	for ev, err := range r.Run(ctx, "ana", "s1", nil, agent.RunConfig{}) {
		if err != nil {
			return said, err
		}
		said = append(said, ev.Author+": "+ev.Text())
	}
	return said, nil
}

// A12, A29, B1, E1, E2, E3
func TestAgent(t *testing.T) {
	for name, newAgent := range map[string]func(*testing.T) agent.Agent{
		"of one": func(t *testing.T) agent.Agent { return sequence(t, "s", speaker(t, "a", "one")) },
		"of three": func(t *testing.T) agent.Agent {
			return sequence(t, "s", speaker(t, "a", "one"), speaker(t, "b"), speaker(t, "c", "two", "three"))
		},
		"nested": func(t *testing.T) agent.Agent {
			return sequence(t, "s", sequence(t, "i", speaker(t, "a", "one"), speaker(t, "b", "two")), speaker(t, "c", "three"))
		},
	} {
		t.Run(name, func(t *testing.T) { agenttest.TestAgent(t, newAgent) })
	}
}

// A9, A10
func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  agent.Config
		want string
	}{
		{"a Run of one's own", agent.Config{Name: "s", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] { return nil }}, "SequentialAgent doesn't allow custom Run implementations"},
		{"no name", agent.Config{}, "agent has no name; give it one"},
		{"a sub-agent that is nil", agent.Config{Name: "s", SubAgents: []agent.Agent{nil}}, `agent "s": sub-agent 1 is nil; remove it`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := sequentialagent.New(sequentialagent.Config{AgentConfig: tt.cfg}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// A11
func TestTypeAndConfigAreKept(t *testing.T) {
	a := sequence(t, "s", speaker(t, "a"))
	if got := agent.TypeOf(a); got != agent.TypeSequential {
		t.Errorf("got type %q", got)
	}
	if cfg := a.(*sequentialagent.Agent).Config(); cfg.AgentConfig.Name != "s" || len(cfg.AgentConfig.SubAgents) != 1 {
		t.Errorf("got config %+v", cfg)
	}
	if a.FindAgent("s") != a {
		t.Error("the agent does not find itself")
	}
}

// A14, B8
func TestSubAgentsRunOnceInOrder(t *testing.T) {
	a := sequence(t, "s", speaker(t, "c", "1"), speaker(t, "a", "2", "3"), speaker(t, "b"), speaker(t, "d", "4"))
	said, err := play(t, t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"c: 1", "a: 2", "a: 3", "d: 4"}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// D8, D9
func TestLaterSubAgentsSeeEarlierState(t *testing.T) {
	writer := custom(t, "writer", func(_ agent.InvocationContext, yield yield) {
		ev := says("done")
		ev.Actions.StateDelta = map[string]any{"draft": "Once", "temp:note": "secret"}
		yield(ev, nil)
	})
	reader := custom(t, "reader", func(ctx agent.InvocationContext, yield yield) {
		draft, err := ctx.Session().State().Get("draft")
		note, err2 := ctx.Session().State().Get("temp:note")
		if err := errors.Join(err, err2); err != nil {
			yield(nil, err)
			return
		}
		yield(says(draft.(string)+" "+note.(string)), nil)
	})
	said, err := play(t, t.Context(), sequence(t, "s", writer, reader))
	if err != nil || len(said) != 2 || said[1] != "reader: Once secret" {
		t.Errorf("got %q, %v", said, err)
	}
}

// G2, T18: unlike ADK, where the next sub-agent runs.
func TestFirstErrorEndsIt(t *testing.T) {
	boom := errors.New("boom")
	failing := custom(t, "failing", func(_ agent.InvocationContext, yield yield) {
		_ = yield(says("trying"), nil) && yield(nil, boom)
	})
	ran := false
	next := custom(t, "next", func(agent.InvocationContext, yield) { ran = true })
	said, err := play(t, t.Context(), sequence(t, "s", speaker(t, "a", "one"), sequence(t, "i", failing), next))
	if diff := cmp.Diff([]string{"a: one", "failing: trying"}, said); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if step, ok := err.(*agent.StepError); !ok || step.Address != "s/i/failing" || !errors.Is(err, boom) {
		t.Errorf("got error %v", err)
	}
	if ran {
		t.Error("the next sub-agent ran")
	}
}

// T20
func TestCanceledBetweenSubAgents(t *testing.T) {
	boom := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	canceler := custom(t, "canceler", func(agent.InvocationContext, yield) { cancel(boom) })
	ran := false
	next := custom(t, "next", func(agent.InvocationContext, yield) { ran = true })
	if _, err := play(t, ctx, sequence(t, "s", canceler, next)); err != boom || ran {
		t.Errorf("got error %v; next ran: %t", err, ran)
	}
}

// G9, T20: wherever a durable run is canceled, what began has its end.
func TestCanceledStepsHaveTheirEndInTheLog(t *testing.T) {
	errEnough := errors.New("enough")
	for n := 1; n <= 4; n++ { // three begin, and one says something
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		ictx := drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Marks: true, Session: session.NewView(session.ViewConfig{})})
		open := map[session.Address]bool{}
		events, errs := 0, []error{}
		for ev, err := range sequence(t, "s", sequence(t, "i", speaker(t, "leaf", "one", "two")), speaker(t, "next", "never")).Run(ictx) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			switch {
			case ev.Mark == nil:
			case ev.Mark.Kind == mark.KindStepStarted:
				open[ev.Address] = true
			case ev.Mark.Kind == mark.KindStepFinished:
				delete(open, ev.Address)
			}
			if events++; events == n {
				cancel(errEnough)
			}
		}
		if len(open) > 0 {
			t.Errorf("canceled at event %d: steps without an end: %v", n, open)
		}
		if len(errs) != 1 || errs[0] != errEnough {
			t.Errorf("canceled at event %d: got errors %v", n, errs)
		}
	}
}

// T3, C20, T32: what an exit does to a sequence depends on who handled it.
func TestExit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		settle  func(*session.Exit) // what loops around do with the request
		bare    bool                // no Exit at all, only Escalate
		goesOn  bool
		already session.Address // handled by a loop inside, before it came here
	}{
		{name: "only Escalate, and no loop around", bare: true, goesOn: true},
		{name: "not handled by anybody", settle: func(*session.Exit) {}, goesOn: true},
		{name: "handled by the loop around", settle: func(x *session.Exit) { x.HandledBy = "outer" }},
		{name: "handled by a loop inside", already: "outer[1]/s/a/inner", settle: func(*session.Exit) {}, goesOn: true},
		{name: "handled inside and outside", already: "outer[1]/s/a/inner", settle: func(x *session.Exit) { x.HandledBy = "outer" }},
		{name: "handled by another loop", settle: func(x *session.Exit) { x.HandledBy = "out" }, goesOn: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			drained := false
			leaver := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
				ev := says("enough")
				ev.Actions.Escalate = true
				if !tt.bare {
					ev.Actions.Exit = &session.Exit{By: "a", HandledBy: tt.already}
				}
				drained = yield(ev, nil) && yield(says("one last thing"), nil)
			})
			ran := false
			next := custom(t, "next", func(agent.InvocationContext, yield) { ran = true })
			l := &drive.Loop{Name: "outer", Address: "outer", IterationAddress: "outer[1]", Iteration: 1}
			ctx := drive.NewInvocation(t.Context(), drive.Invocation{Session: session.NewView(session.ViewConfig{})})
			step := drive.NewStep(ctx, drive.StepConfig{Agent: sequence(t, "s", leaver, next), Loop: l})
			res := step.Run(func(ev *session.Event) bool {
				if x := ev.Actions.Exit; x != nil {
					tt.settle(x)
				}
				return true
			})
			if res.Err != nil || !drained {
				t.Errorf("got error %v; drained: %t", res.Err, drained)
			}
			if ran != tt.goesOn {
				t.Errorf("the next sub-agent ran: %t, want %t", ran, tt.goesOn)
			}
		})
	}
}

func TestNothingInIt(t *testing.T) {
	said, err := play(t, t.Context(), sequence(t, "s"))
	if len(said) != 0 || err != nil {
		t.Errorf("got %q, %v", said, err)
	}
}
