// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// decisions are loops that decide by keys that the log of a run does not tell: other
// sessions change them, or stores do not keep them.
func decisions(t testing.TB) map[string]func() agent.Agent {
	t.Helper()
	build := func(change func(*loopagent.Config)) func() agent.Agent {
		return func() agent.Agent {
			calls := 0
			critic := custom(t, "critic", func(ctx agent.InvocationContext, yield yield) {
				calls++
				n := float64(drive.At(ctx).Loop().Iteration)
				ev := says(fmt.Sprint("iteration ", n))
				ev.Actions.StateDelta = map[string]any{
					"temp:score": n, "user:score": n, "app:score": n, "temp:stop": n >= 3, "user:stop": n >= 3, "app:stop": n >= 3,
				}
				yield(ev, nil)
			})
			cfg := loopagent.Config{
				AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{sequence(t, "line", critic, speaker(t, "tail", "t")), speaker(t, "editor", "a", "b")}},
				MaxIterations: 4,
			}
			change(&cfg)
			a, err := loopagent.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			return sequence(t, "root", custom(t, "first", func(_ agent.InvocationContext, yield yield) { yield(sets("temp:limit", 2), nil) }), a)
		}
	}
	count := func(ctx agent.Context) error {
		n := 0.0
		if v, err := ctx.State().Get("user:count"); err == nil {
			n = v.(float64)
		}
		return ctx.State().Set("user:count", n+1)
	}
	// Beside other branches a loop puts back what it has changed itself.
	putsBack := func() agent.Agent {
		draft := custom(t, "draft", func(ctx agent.InvocationContext, yield yield) {
			n := float64(drive.At(ctx).Loop().Iteration)
			ev := says(fmt.Sprint("draft ", n))
			ev.Actions.StateDelta = map[string]any{"mark": 10 - n, "temp:score": 10 - n}
			yield(ev, nil)
		})
		inner, err := loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "inner", SubAgents: []agent.Agent{draft, speaker(t, "tail", "t")}},
			MaxIterations: 2, Rules: loop.Plan{Score: &loop.Score{Key: "mark"}, OnRegression: loop.RollbackOnWorse},
		})
		if err != nil {
			t.Fatal(err)
		}
		outer, err := loopagent.New(loopagent.Config{
			AgentConfig: agent.Config{Name: "outer", SubAgents: []agent.Agent{inner}}, MaxIterations: 2, Rules: loop.Plan{Score: &loop.Score{Key: "temp:score"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		branches, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{outer}}})
		if err != nil {
			t.Fatal(err)
		}
		return branches
	}
	all := map[string]func() agent.Agent{
		"a key that a loop within puts back": putsBack,
		"a computed key":                     build(func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: `state["te" + "mp:stop"]`} }),
		"a key from before the loop": build(func(c *loopagent.Config) {
			c.Rules.StopWhen = &loop.Condition{Expr: `iteration > state["temp:limit"]`}
		}),
		"an iteration callback that counts": build(func(c *loopagent.Config) {
			c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, _ int) error { return count(ctx) }}
			c.AfterIteration = []loopagent.AfterIterationCallback{func(ctx agent.Context, _ loop.IterationRecord) error { return count(ctx) }}
		}),
		"agent callbacks that count": build(func(c *loopagent.Config) {
			cb := func(ctx agent.Context) (*genai.Content, error) { return nil, count(ctx) }
			c.AgentConfig.BeforeAgentCallbacks = []agent.BeforeAgentCallback{cb}
			c.AgentConfig.AfterAgentCallbacks = []agent.AfterAgentCallback{cb}
		}),
		"a callback that counts to three": build(func(c *loopagent.Config) {
			c.BeforeIteration = []loopagent.BeforeIterationCallback{func(ctx agent.Context, _ int) error {
				if v, err := ctx.State().Get("user:count"); err == nil && v.(float64) >= 3 {
					return nil
				}
				return count(ctx)
			}}
		}),
	}
	must := func(a agent.Agent, err error) agent.Agent {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	// two is a loop of an agent that says and sets something, and one that values it.
	two := func(change func(*loopagent.Config), made, found map[string]any, leaves bool) func() agent.Agent {
		say := func(name string, delta map[string]any, leaves bool) agent.Agent {
			return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
				ev := says(name)
				ev.Actions.StateDelta, ev.Actions.Escalate = maps.Clone(delta), leaves
				yield(ev, nil)
			})
		}
		return func() agent.Agent {
			cfg := loopagent.Config{MaxIterations: 3, AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{
				sequence(t, "maker", speaker(t, "before", "a"), say("makes", made, false), speaker(t, "behind", "b")), say("critic", found, leaves),
			}}}
			change(&cfg)
			return sequence(t, "root", must(loopagent.New(cfg)), speaker(t, "end", "over"))
		}
	}
	all["a cached step that sets temp: keys"] = two(func(c *loopagent.Config) {
		c.Rules.Score, c.Rules.OnRegression, c.Rules.QualityGate = &loop.Score{Key: "temp:score"}, loop.RollbackOnWorse, new(4.0)
		c.Caches = map[string]loopagent.Cache{"maker": {
			Key: func(func(string) (any, bool)) (string, error) { return "the same", nil },
		}}
	}, map[string]any{"temp:score": 1}, nil, false)
	all["no progress of a step that sets temp: keys"] = two(func(c *loopagent.Config) {
		c.MaxIterations, c.Rules.NoProgress = 5, &loop.NoProgress{Repeats: 3}
	}, map[string]any{"temp:note": "n"}, map[string]any{"temp:note": "m"}, false)
	all["a critic that writes a temp: key nobody reads"] = two(func(c *loopagent.Config) {
		c.Rules.Score = &loop.Score{Key: "score"}
	}, map[string]any{"doc": "d"}, map[string]any{"score": 5, "temp:note": "n"}, false)
	all["a critic that rewrites a temp: key of the maker"] = two(func(c *loopagent.Config) {
		c.Rules.Score, c.Rules.CanExit = &loop.Score{Key: "score"}, []string{"critic"}
	}, map[string]any{"doc": "d", "temp:note": "m"}, map[string]any{"found": true, "temp:note": "n"}, false)
	for _, prefix := range []string{"user:", "app:"} {
		all["a critic that leaves and writes "+prefix] = two(func(c *loopagent.Config) {
			c.Rules.Score, c.Rules.CanExit = &loop.Score{Key: "score"}, []string{"critic"}
		}, map[string]any{"doc": "d"}, map[string]any{prefix + "score": 5}, true)
	}
	for _, prefix := range []string{"temp:", "user:", "app:"} {
		all["stop_when over "+prefix] = build(func(c *loopagent.Config) { c.Rules.StopWhen = &loop.Condition{Expr: `state["` + prefix + `stop"]`} })
		all["stop_when over "+prefix+" after each step"] = build(func(c *loopagent.Config) {
			c.Rules.StopWhen, c.Rules.StopCheck = &loop.Condition{Expr: `state["` + prefix + `stop"]`}, loop.EachStep
		})
		all["score of "+prefix] = build(func(c *loopagent.Config) { c.Rules.Score = &loop.Score{Key: prefix + "score", Target: new(3.0)} })
		all["score with rollback of "+prefix] = build(func(c *loopagent.Config) {
			c.Rules.Score = &loop.Score{Expr: `-double(state["` + prefix + `score"])`, Target: new(-1.0)}
			c.Rules.OnRegression = loop.RollbackOnWorse
		})
		all["no progress by "+prefix] = build(func(c *loopagent.Config) {
			c.Rules.NoProgress = &loop.NoProgress{Keys: []string{prefix + "stop"}, Repeats: 2}
		})
	}
	return all
}

// LOOP 30: what has been decided comes from the log, whatever temp:, user: and app:
// keys say when the run is resumed.
func TestWhatWasDecidedComesFromTheLog(t *testing.T) {
	for name, root := range decisions(t) {
		t.Run(name, func(t *testing.T) {
			store := session.InMemoryService()
			p := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
			want := p.outcome(p.first())
			log := p.log()
			for k := 1; k < len(log); k += longtest.N(7, 1) {
				store := crashed(t, nil, log, k)
				again := &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
				_, err := again.again(p.id)
				got := again.outcome(err)
				if !strings.Contains(name, "count") { // an attempt that was cut off has counted too
					if diff := cmp.Diff(want, got, times); diff != "" {
						t.Fatalf("cut off after %d events (-whole +resumed):\n%s\n%s", k, diff, lines(brief(again.log())))
					}
				}
				if err != nil {
					t.Fatalf("cut off after %d events: %v\n%s", k, err, lines(brief(again.log())))
				}
				store = crashed(t, nil, log, k)
				elsewhere(t, store)
				again = &process{TB: t, world: new(world), store: store, Runner: newRunner(t, durable(root(), store))}
				if _, err := again.again(p.id); errors.Is(err, runner.ErrDiverged) {
					t.Fatalf("cut off after %d events, and other sessions have changed keys: %v\n%s", k, err, lines(brief(again.log())))
				}
			}
		})
	}
}

// elsewhere changes keys in another session that all sessions share.
func elsewhere(t testing.TB, store session.Service) {
	t.Helper()
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "other"})
	if err != nil {
		t.Fatal(err)
	}
	ev := &session.Event{Author: "user"}
	ev.Actions.StateDelta = map[string]any{
		"user:score": -7.0, "app:score": 7.0, "user:stop": true, "app:stop": true, "user:count": 70.0,
	}
	if err := store.AppendEvent(t.Context(), made.Session, ev); err != nil {
		t.Fatal(err)
	}
}
