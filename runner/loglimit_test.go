// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// A run fails when its log has reached the limit, whatever its steps write and its loop does about errors. With a higher
// limit it is retried, and what it has written counts again.
func TestLogLimit(t *testing.T) {
	const limit, most = 200 << 10, 100
	kinds := map[string]struct {
		run    func(agent.InvocationContext, yield)
		leaves bool // the loop ends by itself when nothing is wrong
	}{
		"state": {func(_ agent.InvocationContext, yield yield) { yield(sets("text", strings.Repeat("x", 8<<10)), nil) }, true},
		"words": {func(_ agent.InvocationContext, yield yield) { yield(says(strings.Repeat("x", 8<<10)), nil) }, true},
		"marks": {func(_ agent.InvocationContext, yield yield) { yield(nil, errors.New("always")) }, false},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			runs := 0
			step := custom(t, "fills", func(ctx agent.InvocationContext, yield yield) { runs++; kind.run(ctx, yield) })
			root, err := loopagent.New(loopagent.Config{
				AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{step}}, MaxIterations: most, Rules: loop.Plan{OnError: loop.NextIteration},
			})
			if err != nil {
				t.Fatal(err)
			}
			svc := session.InMemoryService()
			r := newRunner(t, durable(root, svc))
			id := ""
			drive := func(limit int64, resume bool) error {
				cfg := agent.RunConfig{LogLimit: limit}
				seq := r.Run(t.Context(), "ana", "s1", nil, cfg)
				if resume {
					seq = r.Resume(t.Context(), "ana", "s1", id, cfg, runner.Continue())
				}
				for ev, e := range seq {
					if ev != nil {
						id = ev.InvocationID
					}
					err = e
				}
				return err
			}
			full, ok := errors.AsType[*session.LogLimitError](drive(limit, false))
			if !ok || full.Limit != limit || full.Size < limit/2 || !strings.Contains(full.Error(), "and its limit is ") || strings.Contains(full.Error(), "--") {
				t.Fatalf("the run ended with %v", err)
			}
			weight := func() (n int) {
				for ev := range session.ViewOf(get(t, svc)).Log().All() {
					n += ev.Weight()
				}
				return n
			}
			before, was := weight(), runs
			if before > limit+limit/10 || runs < 5 || runs == most {
				t.Errorf("the log weighs %d after %d iterations", before, runs)
			}
			if err := drive(limit, true); !errors.Is(err, session.ErrLogLimit) || runs > was {
				t.Errorf("with the same limit: %v, after %d more steps", err, runs-was)
			}
			if err := drive(10<<20, true); kind.leaves && err != nil || errors.Is(err, session.ErrLogLimit) || runs < most {
				t.Errorf("with a higher limit: %v, after %d steps", err, runs)
			}
		})
	}
}
