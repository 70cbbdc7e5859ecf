// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// row is a row of a ledger by its name.
func row(t *testing.T, l loop.Ledger, name string) loop.Row {
	t.Helper()
	i := slices.IndexFunc(l.Rows, func(r loop.Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no row %s in %+v", name, l.Rows)
	}
	return l.Rows[i]
}

// stands is a row on one line: its tense, and its value of its bound.
func stands(r loop.Row) string {
	s := string(r.Status)
	if r.Bound != nil {
		have := "?"
		if r.Have != nil {
			have = num(*r.Have)
		}
		s += fmt.Sprintf(" %s/%s %s", have, num(*r.Bound), r.Unit)
	}
	if r.Counted != 0 {
		s += fmt.Sprintf(" (+%s)", num(r.Counted))
	}
	if r.Reserved != 0 {
		s += fmt.Sprintf(" [%s kept]", num(r.Reserved))
	}
	if r.Provisional {
		s += " so far"
	}
	return s
}

// M9, M11, E4: how a loop can stop, while its fourth iteration is under way.
func TestLedgerOfALoopUnderWay(t *testing.T) {
	p := loop.Plan{
		Steps: append(steps("writer", "critic"), loop.Step{Name: "editor", Finalizer: true}), MaxIterations: 8, CanExit: []string{"critic"},
		Score:        &loop.Score{Key: "score", Target: new(8.0), MinDelta: new(0.1), Patience: 3},
		OnRegression: loop.RollbackOnWorse, NoProgress: &loop.NoProgress{},
		Timeout: loop.Duration(30 * time.Minute), Budget: &loop.Budget{Tokens: 200_000, Cost: new(0.5)},
	}
	var u loop.Tally
	scores := []float64{5.2, 7.1, 6.6}
	at := time.Unix(1e9, 0)
	for d := p.Next(&u); d.Iteration < 4; d = p.Next(&u) {
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step}
		if o.RolledBack = d.Action == loop.Rollback; !o.RolledBack {
			o.Started, o.Finished = at, at.Add(time.Minute)
			o.Usage = loop.Usage{Calls: 1, InputTokens: 5000, OutputTokens: 500, Cost: new(0.01)}
			o.State = map[string]any{"score": scores[d.Iteration-1]}
			o.Fingerprint = fmt.Sprint(d.Iteration, d.Step)
		}
		p.Add(&u, o)
	}
	began := u
	p.Add(&u, loop.Outcome{Iteration: 4, Started: at, Finished: at.Add(time.Minute), Fingerprint: "x", State: map[string]any{"score": 6.6},
		Wrote: []string{}, Usage: loop.Usage{Calls: 1, InputTokens: 5000, Cost: new(0.01)}})
	l := p.Ledger(&u, loop.Moment{
		Iteration: 4, Score: new(7.15), Active: 30 * time.Second, Usage: loop.Usage{Calls: 1, OutputTokens: 36}, Began: &began,
	})
	got := map[string]string{}
	for _, r := range l.Rows {
		got[r.Name] = stands(r)
	}
	if diff := cmp.Diff(map[string]string{
		"exit_loop": "not_asked", "target": "far 7.15/8 score so far", "converged": "likely 2/3 times (+1) so far",
		"no_progress": "far 1/3 times", "max_iterations": "far 4/8 iterations (+1)",
		"timeout":       "far 450/1620 seconds (+90) [180 kept]",
		"budget.tokens": "far 38036/180000 tokens (+5036) [20000 kept]", "budget.cost": "far 0.07/0.45 cost (+0.01) [0.05 kept]",
	}, got); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	if r := row(t, l, "exit_loop"); !cmp.Equal(r.Who, []string{"critic"}) {
		t.Errorf("may ask: %q", r.Who)
	}
	if f := l.Forecast; f == nil || f.Until != loop.ReasonConverged || f.Iterations != 1 || f.Time != 2*time.Minute {
		t.Errorf("forecast %+v", l.Forecast)
	}
}

// What is not known is unknown, which is neither zero nor far.
func TestLedgerSaysWhatIsUnknown(t *testing.T) {
	p := loop.Plan{
		Steps: steps("a"), MaxIterations: 3, CanExit: []string{}, Score: &loop.Score{Key: "score", Target: new(8.0), DimensionTarget: new(7.0)},
		StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: "state.gone > 1"}, {Expr: "iteration > 8"}}},
		NotWorth: &loop.NotWorth{Gain: 0.1}, Budget: &loop.Budget{Cost: new(1.0)},
	}
	var u loop.Tally
	tenses := func() (all []string) {
		for _, r := range p.Ledger(&u, loop.Moment{Iteration: u.Iteration + 1}).Rows {
			all = append(all, r.Name+" "+string(r.Status))
		}
		return all
	}
	if diff := cmp.Diff([]string{
		"exit_loop not_asked", "budget.cost far", "stop_when unknown", "stop_when.any[0] unknown", "stop_when.any[1] unknown",
		"target unknown", "dimension_target unknown", "not_worth unknown", "max_iterations far",
	}, tenses()); diff != "" {
		t.Errorf("before the first iteration (-want +got):\n%s", diff)
	}
	p.Add(&u, loop.Outcome{Iteration: 1, Usage: loop.Usage{Calls: 1, InputTokens: 7}, State: map[string]any{"score": `{"score": 5, "dimensions": {"wit": 6}}`}})
	if diff := cmp.Diff([]string{
		"exit_loop not_asked", "budget.cost unknown", "stop_when far", "stop_when.any[0] unknown", "stop_when.any[1] far",
		"target far", "dimension_target far", "not_worth unknown", "max_iterations far",
	}, tenses()); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
}

// A judge's samples are what an iteration under way is measured by.
func TestLedgerKnowsTheJudgesNoise(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "judge"), Score: &loop.Score{
		Key: "score", Judge: &loop.Judge{Step: "judge", Samples: 3}, MinDelta: new(0.1), Patience: 2,
	}}
	said := [][]float64{{6, 7, 8}, {6.5, 7.5, 8.5}}
	var u loop.Tally
	for range 7 {
		d := p.Next(&u)
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Wrote: []string{}, Fingerprint: fmt.Sprint(d.Iteration)}
		if d.Sample > 0 {
			o.Wrote, o.State = []string{"score"}, map[string]any{"score": said[d.Iteration-1][d.Sample-1]}
		}
		p.Add(&u, o)
	}
	j, ok := p.Judged(&u)
	if !ok || j.Score != 7 || !cmp.Equal(j.Samples, []float64{6.5, 7.5}) || j.Noise <= 0.5 {
		t.Fatalf("%+v, %t", j, ok)
	}
	l := p.Ledger(&u, loop.Moment{Iteration: 2, Score: new(99.0)})
	if r := row(t, l, "converged"); stands(r) != "far 1/2 times so far" || !strings.Contains(r.Threshold, "(the judge's noise)") {
		t.Errorf("%s: %+v", stands(r), r)
	}
}

// A ledger has the rows of the stop record, whatever the plan; on the way it says nothing
// that the loop denies, and it changes nothing.
func TestLedgerFollowsRandomPlans(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 21))
		p := randomPlan(r)
		w := &driver{r: r, p: p}
		var u, began loop.Tally
		var last loop.Ledger
		for range tooLong {
			d := p.Next(&u)
			var m loop.Moment
			switch {
			case d.Action == loop.Stop:
				m.Reason = d.Stop.Reason
			case d.Action == loop.RunStep:
				if m.Iteration = d.Iteration; m.Iteration > began.Iteration && u.Ended.Number != 0 || u.Iteration == 0 {
					began = u
				}
				m.Began = &began
			}
			before, _ := json.Marshal(u)
			l := p.Ledger(&u, m)
			if after, _ := json.Marshal(u); string(after) != string(before) {
				t.Fatalf("seed %d: the ledger has changed the tally:\n%s", seed, cmp.Diff(string(before), string(after)))
			}
			soundLedger(t, seed, l)
			if d.Action == loop.Stop {
				agrees(t, seed, l, d.Stop)
				break
			}
			if len(last.Rows) > len(l.Rows) || (l.Reason == "") != (l.Forecast != nil) || d.Stop != nil && l.Reason != d.Stop.Reason {
				t.Fatalf("seed %d: before %+v, and then %+v", seed, last, l)
			}
			last = l
			o := w.carryOut(d)
			score := o.State["score"]
			p.Add(&u, o)
			if s, ok := score.(float64); ok && u.Ended.Number != 0 && u.Ended.Score != nil && *u.Ended.Score == s && p.Score.Judge == nil {
				comesTrue(t, seed, p, l, &u, m, s)
			}
		}
	}
}

func soundLedger(t *testing.T, seed uint64, l loop.Ledger) {
	t.Helper()
	for _, r := range l.Rows {
		if !(r.Near >= 0 && r.Near <= 1) || r.Counted < 0 || math.IsNaN(r.Counted) || r.Status == "" || r.Fired && l.Reason == "" {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		if (r.Unit != "") != (r.Bound != nil) || r.Have != nil && r.Unit == "" {
			t.Fatalf("seed %d: numbers without a unit: %+v", seed, r)
		}
	}
	if _, err := json.Marshal(l); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// agrees holds a ledger of the end against the stop record.
func agrees(t *testing.T, seed uint64, l loop.Ledger, rec *loop.StopRecord) {
	t.Helper()
	var got []loop.ConditionRecord
	for _, r := range l.Rows {
		if got = append(got, r.ConditionRecord); r.Fired != (r.Status == loop.ConditionFired) {
			t.Fatalf("seed %d: %+v", seed, r)
		}
	}
	if diff := cmp.Diff(rec.Conditions, got); diff != "" || l.Nearest != rec.Nearest {
		t.Fatalf("seed %d: nearest %q and %q (-record +ledger):\n%s", seed, rec.Nearest, l.Nearest, diff)
	}
}

// comesTrue holds what a ledger says with a provisional score against what the score is
// when the iteration has ended with it.
func comesTrue(t *testing.T, seed uint64, p *loop.Plan, _ loop.Ledger, u *loop.Tally, m loop.Moment, score float64) {
	t.Helper()
	if u.Ended.Failures > 0 || m.Began == nil {
		return
	}
	if m.Score = &score; m.Began.Iteration >= m.Iteration {
		return
	}
	guess := p.Ledger(m.Began, m)
	for _, r := range p.Ledger(u, loop.Moment{}).Rows {
		if r.Name == "converged" || r.Name == "target" {
			if g := row(t, guess, r.Name); *g.Have != *r.Have || !g.Provisional {
				t.Fatalf("seed %d: it was to be %+v, and is %+v", seed, g, r)
			}
		}
	}
}

// The band begins at the last score, has what is expected in it, and is nowhere narrower
// than the judge's noise.
func TestForecastBand(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 22))
		s := loop.Score{Key: "score", MinDelta: new(0.1), LowerIsBetter: one(r, 2), Target: maybe(r, 2, new(9.0))}
		p := loop.Plan{Score: &s, MaxIterations: 20, OnRegression: pick(r, loop.KeepBest, loop.RollbackOnWorse)}
		u := loop.Tally{}
		for i := range 3 + r.IntN(6) {
			u.Scores = append(u.Scores, math.Round(10*(5+4*(1-math.Pow(0.6, float64(i)))+r.Float64()/3))/10)
		}
		u.Iteration = len(u.Scores)
		noise := maybe(r, 2, 0.3)
		u.Judge.PastSquares, u.Judge.PastFreedom = noise*noise/8, 1
		f := p.Forecast(&u)
		if f.Until == "" {
			if f.Band != nil {
				t.Errorf("seed %d: nothing ends it, and the band is %v", seed, f.Band)
			}
			continue
		}
		if len(f.Band) != f.High+1 || f.Band[0].Iteration != u.Iteration || f.Band[0].Low != f.Band[0].High {
			t.Fatalf("seed %d: %+v", seed, f)
		}
		if p.OnRegression == loop.KeepBest && f.Band[0].Mid != u.Scores[len(u.Scores)-1] {
			t.Errorf("seed %d: the band begins at %v, the last score is %v", seed, f.Band[0].Mid, u.Scores)
		}
		if got := f.Band[f.Iterations].Mid; f.Iterations > 0 && math.Abs(got-f.Final) > 1e-8 {
			t.Errorf("seed %d: the score is to be %v, in the band %v", seed, f.Final, got)
		}
		for i, b := range f.Band[1:] {
			if b.Mid-b.Low < noise-1e-8 || b.High-b.Mid < noise-1e-8 || b.Iteration != u.Iteration+i+1 {
				t.Errorf("seed %d: noise %v, %+v", seed, noise, b)
			}
		}
	}
}

// How near is each condition of a loop that goes on?
func ExamplePlan_Ledger() {
	plan := loop.Plan{
		Steps: []loop.Step{{Name: "writer"}, {Name: "critic"}}, MaxIterations: 8, CanExit: []string{"critic"},
		Score: &loop.Score{Key: "score", Target: new(8.0), MinDelta: new(0.1), Patience: 2},
	}
	var t loop.Tally
	for i, score := range []float64{5.2, 7.1, 7.15} {
		for step := range plan.Steps {
			plan.Add(&t, loop.Outcome{Iteration: i + 1, Step: step, State: map[string]any{"score": score}})
		}
	}
	ledger := plan.Ledger(&t, loop.Moment{Iteration: 4, Began: &t})
	for _, r := range ledger.Rows {
		fmt.Printf("%-14s  %-9s", r.Name, r.Status)
		if r.Have != nil {
			fmt.Printf("  %g of %g %s, %g of them now", *r.Have, *r.Bound, r.Unit, r.Counted)
		}
		fmt.Println()
	}
	fmt.Println("likely:", ledger.Forecast.Until, "after", ledger.Forecast.Iterations, "more")
	// Output:
	// exit_loop       not_asked
	// target          far        7.15 of 8 score, 0 of them now
	// converged       likely     1 of 2 times, 0 of them now
	// max_iterations  far        4 of 8 iterations, 1 of them now
	// likely: converged after 1 more
}
