// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// deafModel is a model that does not heed its context.
type deafModel struct{}

func (deafModel) Name() string { return "deaf" }

func (deafModel) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		time.Sleep(time.Hour)
		yield(&model.LLMResponse{Content: genai.NewContentFromText("late", genai.RoleModel)}, nil)
	}
}

// deaf needs an hour and does not heed its context. Then it says and writes what it likes.
func deaf(t *testing.T, name string) agent.Agent {
	return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
		time.Sleep(time.Hour)
		if err := ctx.Session().State().Set("late", 1); !errors.Is(err, errStop) {
			t.Errorf("a late write: %v", err)
		}
		if yield(sets("late", 1), nil) {
			t.Error("a late event was heard")
		}
	})
}

// deafTrees are trees in which something does not heed its context, by where.
func deafTrees(t *testing.T) map[string]agent.Agent {
	hour := func(agent.Context) (*genai.Content, error) {
		time.Sleep(time.Hour)
		return nil, nil
	}
	with := func(change func(*agent.Config)) agent.Agent {
		cfg := agent.Config{Name: "own", Run: body(func(_ agent.InvocationContext, yield yield) { yield(says("own"), nil) })}
		change(&cfg)
		a, err := agent.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	asks, err := llmagent.New(llmagent.Config{Name: "asks", Model: deafModel{}})
	if err != nil {
		t.Fatal(err)
	}
	stops := func() agent.Agent {
		l, err := loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "loop", SubAgents: []agent.Agent{custom(t, "waits", func(ctx agent.InvocationContext, _ yield) { <-ctx.Done() })}},
			OnStop:      func(agent.InvocationContext, *loop.StopRecord) { time.Sleep(time.Hour) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return map[string]agent.Agent{
		"a plain loop":           loopOf(t, "loop", 2, deaf(t, "deaf")),
		"a plain loop in a loop": loopOf(t, "outer", 2, loopOf(t, "loop", 2, deaf(t, "deaf"))),
		"a sequence":             sequence(t, "line", speaker(t, "first", "one"), deaf(t, "deaf")),
		"branches":               branches(t, sequence(t, "line", deaf(t, "deaf")), speaker(t, "other", "one")),
		"an agent of one's own":  deaf(t, "deaf"),
		"a model":                asks,
		"a callback before":      with(func(c *agent.Config) { c.BeforeAgentCallbacks = []agent.BeforeAgentCallback{hour} }),
		"a callback behind":      with(func(c *agent.Config) { c.AfterAgentCallbacks = []agent.AfterAgentCallback{hour} }),
		"a loop's last callback": stops(),
	}
}

// LOOP 22: a step or callback that does not heed its context holds up the end of a run for
// the grace at most, wherever it is, and whoever ends the run. Afterwards it changes nothing.
func TestDeafStepDoesNotHoldUpARun(t *testing.T) {
	for where := range deafTrees(t) {
		for _, marks := range []bool{false, true} {
			name := where + ", not durable"
			if marks {
				name = where + ", durable"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					svc := session.InMemoryService()
					cfg := durable(deafTrees(t)[where], svc)
					cfg.Durable = marks
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(time.Minute, func() { cancel(errStop) })
					start := time.Now()
					_, err := collect(t, ask(ctx, newRunner(t, cfg), "go"))
					if took := time.Since(start); !errors.Is(err, errStop) || took < time.Minute || took > time.Minute+drive.Grace+100*time.Millisecond {
						t.Errorf("error %v after %v", err, took)
					}
					before := stored(t, svc)
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					if diff := cmp.Diff(before, stored(t, svc)); diff != "" {
						t.Errorf("the log changes afterwards:\n%s", diff)
					}
					if _, err := get(t, svc).State().Get("late"); err == nil {
						t.Error("the state has what was written late")
					}
					if open := unfinished(t, svc); len(open) > 0 {
						t.Errorf("begun and never finished: %q", open)
					}
				})
			})
		}
	}
}

// unfinished are the steps whose end is not in the log.
func unfinished(t *testing.T, svc session.Service) (open []session.Address) {
	t.Helper()
	left := make(map[session.Address]int)
	for ev := range get(t, svc).Events().All() {
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindStepStarted:
			left[ev.Address]++
		case ev.Mark.Kind == mark.KindStepFinished:
			left[ev.Address]--
		}
	}
	for at, n := range left {
		if n != 0 {
			open = append(open, at)
		}
	}
	return open
}

// LOOP 22: whoever stops listening does not wait longer either.
func TestDeafStepDoesNotHoldUpWhoLeaves(t *testing.T) {
	for _, marks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			says := custom(t, "says", func(_ agent.InvocationContext, yield yield) {
				yield(says("one"), nil)
				time.Sleep(time.Hour)
				if yield(says("two"), nil) {
					t.Error("a late event was heard")
				}
			})
			cfg := durable(sequence(t, "line", says), session.InMemoryService())
			cfg.Durable = marks
			start := time.Now()
			for ev := range ask(t.Context(), newRunner(t, cfg), "go") {
				if ev.Author == "says" && ev.Mark == nil {
					break
				}
			}
			if took := time.Since(start); took != drive.Grace {
				t.Errorf("it took %v", took)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// LOOP 22: a branch that does not heed its context does not hold up a parallel agent one
// of whose branches has failed.
func TestDeafBranchDoesNotHoldUpAFailure(t *testing.T) {
	for _, marks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fails := custom(t, "fails", func(_ agent.InvocationContext, yield yield) {
				time.Sleep(time.Second)
				yield(nil, errStop)
			})
			svc := session.InMemoryService()
			cfg := durable(branches(t, sequence(t, "line", deaf(t, "deaf")), fails), svc)
			cfg.Durable = marks
			start := time.Now()
			_, err := collect(t, ask(t.Context(), newRunner(t, cfg), "go"))
			if took := time.Since(start); !errors.Is(err, errStop) || took != time.Second+drive.Grace {
				t.Errorf("error %v after %v", err, took)
			}
			if open := unfinished(t, svc); len(open) > 0 {
				t.Errorf("begun and never finished: %q", open)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// LOOP 22, LOOP 30: a step that was left behind has no outcome: when the run is resumed it
// is made again, as its next attempt, and the first one counts no more.
func TestAbandonedStepIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := session.InMemoryService()
		tries := 0
		slow := custom(t, "slow", func(_ agent.InvocationContext, yield yield) {
			tries++
			if tries == 1 {
				ev := says("first try")
				ev.Actions.StateDelta = map[string]any{"draft": "first"}
				yield(ev, nil)
				time.Sleep(time.Hour)
				return
			}
			yield(says("second try"), nil)
		})
		root := sequence(t, "line", speaker(t, "before", "one"), slow)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(errStop) })
		id := ""
		for ev := range ask(ctx, newRunner(t, durable(root, svc)), "go") {
			if ev != nil {
				id = ev.InvocationID
			}
		}
		said, err := resume(t, svc, root, id)
		if diff := cmp.Diff([]string{"slow: second try"}, said); diff != "" || err != nil {
			t.Errorf("error %v\n%s", err, diff)
		}
		if v, err := get(t, svc).State().Get("draft"); err == nil {
			t.Errorf("the state has %v of the first try", v)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A run can be pulled, though its agents are in a goroutine of their own.
func TestPulledRun(t *testing.T) {
	for _, stops := range []bool{false, true} {
		next, stop := iter.Pull2(ask(t.Context(), newRunner(t, durable(speaker(t, "a", "one", "two"), session.InMemoryService())), ""))
		n := 0
		for {
			ev, err, ok := next()
			if !ok {
				break
			}
			if n++; err != nil || ev == nil {
				t.Fatalf("got %v, %v", ev, err)
			}
			if stops && n == 2 {
				stop()
			}
		}
		if want := map[bool]int{false: 4, true: 2}[stops]; n != want {
			t.Errorf("got %d events, want %d", n, want)
		}
	}
}
