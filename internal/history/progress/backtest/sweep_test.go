// SPDX-License-Identifier: Apache-2.0

package backtest_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/loop"
)

// recorded is a run of a plan with one step that got these scores.
func recorded(name string, plan loop.Plan, scores ...float64) *backtest.Recording {
	plan.Steps = []loop.Step{{Name: "s"}}
	r := &backtest.Recording{InvocationID: name, Loop: "l", Plan: &plan}
	var tally loop.Tally
	at := time.Unix(1e9, 0)
	for i := 0; ; i++ {
		d := plan.Next(&tally)
		if d.Action == loop.Stop {
			r.Stop = d.Stop
			return r
		}
		o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, RolledBack: d.Action == loop.Rollback}
		if !o.RolledBack {
			o.Started, o.Finished = at, at.Add(10*time.Second)
			o.State = map[string]any{"score": scores[d.Iteration-1]}
			o.Usage = loop.Usage{Calls: 1, InputTokens: 1000, Cost: new(0.02)}
		}
		at = o.Finished
		plan.Add(&tally, o)
		r.Outcomes = append(r.Outcomes, o)
	}
}

// pastRuns are some runs by the same plan.
func pastRuns() []*backtest.Recording {
	plan := loop.Plan{MaxIterations: 6, Score: &loop.Score{Key: "score", Target: new(9.0), MinDeltaPercent: new(2.0)}}
	return []*backtest.Recording{
		recorded("night school", plan, 5, 6, 6.3, 7.1, 8, 8.2),
		recorded("bakery", plan, 5, 7, 7.5, 7.6, 7.7),
		recorded("violins", plan, 6, 9),
		recorded("boat", loop.Plan{MaxIterations: 6, Score: &loop.Score{Key: "score", Target: new(9.0), MinDeltaPercent: new(10.0)}}, 5, 7, 7.5),
	}
}

// with sets a field of a plan.
func with(field string, value float64) func(*loop.Plan) (*loop.Plan, error) {
	return func(p *loop.Plan) (*loop.Plan, error) { return p.With(field, strconv.FormatFloat(value, 'f', -1, 64)) }
}

func levels(s *backtest.Sweep) (lines []string) {
	for _, l := range s.Levels {
		bounds := "(["
		if !l.IncludesFrom {
			bounds = "("
		} else {
			bounds = "["
		}
		to := "∞"
		if l.To != nil {
			to = fmt.Sprintf("%.4g", *l.To)
		}
		end := ")"
		if l.IncludesTo {
			end = "]"
		}
		lines = append(lines, fmt.Sprintf("%s%.4g, %s%s at %g: same %d, kept %d, lost %d, unknown %d, saves %d", bounds, l.From, to, end, l.Value,
			l.Same, l.Kept, l.Lost, l.Unknown, l.Saved.Iterations))
	}
	return lines
}

// Where would past runs have stopped with another number?
func TestSweep(t *testing.T) {
	for field, want := range map[string][]string{
		"max_iterations": {
			"[1, 1] at 1: same 0, kept 0, lost 4, unknown 0, saves 11", "[2, 2] at 2: same 1, kept 0, lost 3, unknown 0, saves 7",
			"[3, 3] at 3: same 2, kept 0, lost 2, unknown 0, saves 4", "[4, 4] at 4: same 3, kept 0, lost 1, unknown 0, saves 2",
			"[5, 5] at 5: same 3, kept 0, lost 1, unknown 0, saves 1", "[6, 6] at 6: same 4, kept 0, lost 0, unknown 0, saves 0",
			"[7, ∞) at 7: same 3, kept 0, lost 0, unknown 1, saves 0",
		},
		"score.target": nil, "score.min_delta": nil, "score.min_delta_percent": nil, "timeout": nil, "budget.tokens": nil, "score.patience": nil,
		"budget.cost": nil, "quality_gate": nil, "no_progress.repeats": nil, "score.dimension_target": nil, "budget.calls": nil, "max_consecutive_failures": nil,
	} {
		s, err := backtest.NewSweep(pastRuns(), field)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, levels(s)); want != nil && diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
		if len(s.Levels) == 0 {
			t.Errorf("%s: no levels", field)
		}
	}
	if _, err := backtest.NewSweep(pastRuns(), "name"); err == nil {
		t.Error("the name of a loop was swept")
	}
}

// The levels are true: whatever the value, a back-test of all runs comes to what its level says.
func TestSweepIsTheBacktestOfEachValue(t *testing.T) {
	dice := rand.New(rand.NewPCG(7, 7))
	for _, field := range backtest.SweepFields() {
		runs := pastRuns()
		for i := range 3 {
			plan := loop.Plan{MaxIterations: 7, Score: &loop.Score{Key: "score", Target: new(9.5), MinDelta: new(0.05)}, OnRegression: loop.RollbackOnWorse,
				Budget: &loop.Budget{Tokens: 6000}, Timeout: loop.Duration(time.Minute)}
			var scores []float64
			for range 7 {
				scores = append(scores, float64(dice.IntN(40))/5+1)
			}
			runs = append(runs, recorded(fmt.Sprint(i), plan, scores...))
		}
		s, err := backtest.NewSweep(runs, field)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range s.Levels {
			values := []float64{l.Value}
			if l.To != nil && *l.To > l.From && *l.To < 100 {
				values = append(values, l.From+(*l.To-l.From)*(0.05+0.9*dice.Float64()))
			}
			for _, v := range values {
				got, _ := backtest.Run(runs, with(field, v))
				if got.Saved.Time = l.Saved.Time; got != l.Balance && v == l.Value || got != l.Balance && !wholeNumbers(field) {
					t.Errorf("%s=%v, level %d of %q:\n got %+v\nwant %+v", field, v, i, levels(s), got, l.Balance)
				}
			}
		}
	}
}

func wholeNumbers(field string) bool {
	switch field {
	case "score.patience", "max_iterations", "max_consecutive_failures", "no_progress.repeats", "budget.calls", "budget.tokens":
		return true
	}
	return false
}

// What would other stop policies have saved, and lost?
func ExampleNewSweep() {
	sweep, err := backtest.NewSweep(pastRuns(), "score.min_delta_percent")
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, l := range sweep.Levels {
		safe := ""
		if i == sweep.Safe {
			safe = "  loses nothing"
		}
		fmt.Printf("%g%%: saves %d iterations and $%.2f, loses %d of %d%s\n", l.Value, l.Saved.Iterations, l.Saved.Cost, l.Lost, l.Runs, safe)
	}
	balance, trials := backtest.Run(pastRuns(), with(sweep.Field, 7))
	fmt.Println("7%:", balance.Lost, "lost by", balance.Loss)
	for _, t := range trials {
		fmt.Println(t.Run, t.Verdict, t.Stops, "was", t.Was)
	}
	// Output:
	// 1%: saves 0 iterations and $0.00, loses 0 of 4
	// 2%: saves 0 iterations and $0.00, loses 0 of 4  loses nothing
	// 3%: saves 0 iterations and $0.00, loses 0 of 4
	// 6%: saves 3 iterations and $0.06, loses 1 of 4
	// 8%: saves 4 iterations and $0.08, loses 2 of 4
	// 21%: saves 5 iterations and $0.10, loses 2 of 4
	// 41%: saves 7 iterations and $0.14, loses 3 of 4
	// 7%: 1 lost by 1.9
	// night school lost 3 was 6
	// bakery same 4 was 4
	// violins same 2 was 2
	// boat unknown 3 was 3
}
