// SPDX-License-Identifier: Apache-2.0

package backtest_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/longtest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress/backtest"
	"github.com/refrain-dev/refrain/progress/internal/erratictest"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// A back-test of a recorded run by its own plan gives the record that
// the run has left, for every loop in it.
func TestRecordedRunsAreTheirOwnBacktest(t *testing.T) {
	loops, seeds := 0, longtest.N[uint64](60, 300)
	for seed := range seeds {
		dice := rand.New(rand.NewPCG(seed, 4))
		inner := erratictest.Loop(t, "inner", dice, erratictest.Agent(t, "a", dice), erratictest.Agent(t, "b", dice))
		outer := erratictest.Loop(t, "outer", dice, erratictest.Agent(t, "c", dice), inner, erratictest.Agent(t, "d", dice))
		svc := session.InMemoryService()
		r, err := runner.New(runner.Config{AppName: "a", Agent: outer, SessionService: svc, AutoCreateSession: true, Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		var evs []*session.Event
		for range 2 { // the second finds what the first has left
			for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
				if err != nil { // nothing in it has worked
					if !strings.Contains(err.Error(), loop.NoneSucceeded) {
						t.Fatal(err)
					}
					break
				}
				evs = append(evs, ev)
			}
		}
		recs, err := backtest.Recordings(evs)
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range recs {
			loops++
			got := rec.Plan.Backtest(rec.Outcomes)
			if rec.Stop == nil || got.Stop == nil {
				t.Fatalf("seed %d, %s: recorded %v, back-test %v (%s)", seed, rec.Loop, rec.Stop, got.Stop, got.Note)
			}
			if r := &rec.Stop.Result; r.Source == loop.FromLast && r.Iteration < got.Stop.Result.Iteration {
				got.Stop.Result = *r // outcomes do not tell that an iteration said nothing, so that an earlier one's text was handed back
			}
			if diff := cmp.Diff(rec.Stop, got.Stop, cmpopts.IgnoreFields(loop.StopRecord{}, "Events", "Digest")); diff != "" {
				t.Fatalf("seed %d, %s (-recorded +back-test):\n%s", seed, rec.Loop, diff)
			}
		}
	}
	if loops < 2*int(seeds) {
		t.Errorf("%d loops recorded", loops)
	}
}
