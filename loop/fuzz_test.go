// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	std "cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/loop"
)

var plans = flag.Int("plans", longtest.N(1000, 100_000), "how many random plans to hold against the model")

// K10: random plans with random steps do what the law says, also when they have
// stopped and go on with larger limits. CI
// draws a hundred thousand.
//
// LOOP 31
func TestRandomPlans(t *testing.T) {
	decisions, reasons, reopened, legs := 0, map[loop.StopReason]int{}, map[loop.StopReason]int{}, map[string]int{}
	for seed := range uint64(*plans) {
		n, stops := runRandom(t, seed, false, legs)
		decisions += n
		for i, s := range stops {
			if reasons[s]++; i < len(stops)-1 {
				reopened[s]++
			}
		}
	}
	t.Logf("%d plans, %d decisions: %v, reopened %v, legs %v", *plans, decisions, reasons, reopened, legs)
	if len(legs) < 4 {
		t.Errorf("legs are missing: %v", legs)
	}
	if len(reasons) != 13 {
		t.Errorf("only %d reasons came about: %v", len(reasons), reasons)
	}
	for _, limit := range []loop.StopReason{loop.ReasonMaxIterations, loop.ReasonTimeout, loop.ReasonBudget, loop.ReasonError, loop.ReasonCanceled} {
		if reopened[limit] == 0 {
			t.Errorf("no loop went on after %s", limit)
		}
	}
}

// FuzzNext does the same, and stores plan and tally before every decision. K10
func FuzzNext(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { runRandom(t, seed, true, map[string]int{}) })
}

// runRandom runs a random plan with a driver that does anything, and holds every
// decision against the model. stops are why it stopped: the last one for good.
func runRandom(t *testing.T, seed uint64, always bool, legs map[string]int) (decisions int, stops []loop.StopReason) {
	t.Helper()
	r, look := rand.New(rand.NewPCG(seed, 7)), rand.New(rand.NewPCG(seed, 8))
	p := randomPlan(r)
	if seed%2 == 0 {
		p.Watch = &loop.Watch{Tests: []string{"tests"}, Files: []string{"files"}}
		if p.Score != nil {
			p.Score.Holdout = "hidden"
		}
	}
	if err := p.Check(); err != nil {
		t.Fatalf("seed %d: check %+v: %v", seed, p, err)
	}
	defer func() {
		if t.Failed() {
			b, _ := json.Marshal(p)
			t.Logf("seed %d: %s", seed, b)
		}
	}()
	w := &driver{r: r, watched: rand.New(rand.NewPCG(seed, 9)), p: p, strict: one(r, 2), now: time.Unix(int64(r.IntN(1000)), 0).UTC()}
	var (
		u     loop.Tally
		m     = newModel(p)
		all   []loop.Outcome
		final *loop.StopRecord // with Finalize
		tries = map[[3]int]int{}
		found = map[int][]loop.Finding{} // by iteration
		most  = 20 * len(p.Steps) * 12 * 3
	)
	for n := range most {
		d := p.Next(&u)
		want, why := m.next()
		if d.Action != loop.Stop && d.Action != loop.Finalize {
			why = ""
		}
		if got := decided(d); got != want {
			t.Fatalf("seed %d, after %d: decided %s, want %s\n%+v", seed, n, got, want, d)
		}
		if d.Stop != nil && d.Stop.Reason != why {
			t.Fatalf("seed %d, after %d: stops by %s, want %s", seed, n, d.Stop.Reason, why)
		}
		m.times(t, d)
		if l := p.Leg(d.Leg); l != nil {
			legs[fmt.Sprintf("fresh %v, %s", l.Fresh, std.Or(p.OnRegression, loop.KeepBest))]++
		}
		if d.Ended.Number != 0 {
			found[d.Ended.Number] = d.Ended.Findings
		}
		if always || one(look, 20) {
			q, v := *p, u
			if again := over(t, &q, &v).Next(&v); !cmp.Equal(d, again) {
				t.Fatalf("seed %d: decided otherwise after JSON:\n%s", seed, cmp.Diff(d, again))
			}
			u = v // and goes on from there
		}
		if final != nil && (d.Stop == nil || d.Stop.Reason != final.Reason || d.Stop.Detail != final.Detail) {
			t.Fatalf("seed %d: the finalizer changed %v to %v", seed, final, d.Stop)
		}
		if d.Action == loop.Stop {
			m.checkRecord(t, d.Stop)
			w.checkBounds(t, &u, d.Stop)
			if back := p.BacktestOf(p, all); len(stops) == 0 && !cmp.Equal(d.Stop, back.Stop) {
				t.Fatalf("seed %d: backtest: %s\n%s", seed, back.Note, cmp.Diff(d.Stop, back.Stop))
			} else if len(stops) == 0 {
				checkFindings(t, p, found, all, back.Records)
			}
			stops = append(stops, d.Stop.Reason)
			if len(stops) < 4 && one(look, 3) {
				if q := raised(look, p); w.reopen(t, q, &u, m) {
					p, final = q, nil
					clear(tries)
					continue
				}
			}
			return n, stops
		}
		final = d.Stop
		o := w.carryOut(d)
		if n == most-1 || n > 400 { // there may be nothing else to end it
			o = loop.Outcome{Iteration: d.Iteration, Step: -1, Canceled: "enough"}
		}
		if d.Action == loop.RunStep && d.Refuse == nil {
			key := [3]int{d.Iteration, d.Step, d.Sample}
			if tries[key]++; tries[key] > attempts(p, d.Step) || d.Attempt > attempts(p, d.Step) || d.Sample > samples(p, d.Step)+rejudged(p) {
				t.Fatalf("seed %d: %+v is one too many", seed, d)
			}
		}
		all = append(all, o)
		copied := u
		var kept []byte
		if always || one(look, 20) {
			kept, _ = json.Marshal(copied)
		}
		p.Add(&u, o)
		m.add(d, o)
		if kept != nil {
			if after, _ := json.Marshal(copied); string(after) != string(kept) {
				t.Fatalf("seed %d: Add has changed a copy of the tally:\n%s\n%s", seed, kept, after)
			}
		}
	}
	t.Fatalf("seed %d: does not stop", seed)
	return 0, nil
}

// reopen lets a loop that has stopped go on under a plan, if the model says that
// this lifts what has ended it.
func (w *driver) reopen(t *testing.T, p *loop.Plan, u *loop.Tally, m *model) bool {
	t.Helper()
	before, _ := json.Marshal(u)
	err := p.Reopen(u)
	if ok := m.reopen(p); ok != (err == nil) {
		t.Fatalf("under %+v: lifted %v: %v", p, ok, err)
	}
	if err != nil {
		var stays *loop.StoppedError
		if after, _ := json.Marshal(u); string(after) != string(before) || !errors.As(err, &stays) || stays.Reason == "" || stays.Detail == "" {
			t.Fatalf("%v, and the tally is %s, was %s", err, after, before)
		}
		return false
	}
	w.p, w.last = p, loop.Usage{}
	w.reopened++
	return true
}

// decided is what a driver does next.
func decided(d loop.Decision) string {
	s := fmt.Sprintf("%s step %d in %d, attempt %d, sample %d, to %d, leg %d", d.Action, d.Step, d.Iteration, d.Attempt, d.Sample, d.To, d.Leg)
	if d.Refuse != nil {
		s += ", refused"
	}
	return s
}

// rejudged is how much higher the number of a sample may be if the judge is asked about the best again.
func rejudged(p *loop.Plan) int {
	if p.Rejudges() {
		return 2
	}
	return 0
}
