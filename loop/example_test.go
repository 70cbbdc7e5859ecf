// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/loop"
)

// A text is refined until its score hardly improves.
func Example() {
	plan := &loop.Plan{
		Name:          "refine",
		Steps:         []loop.Step{{Name: "writer"}, {Name: "critic"}},
		MaxIterations: 10,
		Score:         &loop.Score{Key: "score", MinDeltaPercent: new(5.0)},
	}
	if err := plan.Check(); err != nil {
		fmt.Println(err)
		return
	}
	scores := []float64{5.2, 6.8, 7.4, 7.6}
	state := map[string]any{}

	var t loop.Tally
	for {
		d := plan.Next(&t)
		if d.Ended.Number != 0 {
			fmt.Println(d.Ended)
		}
		if d.Action == loop.Stop {
			fmt.Println(d.Stop)
			fmt.Println(d.Stop.Detail)
			fmt.Println(d.Stop.Result.Source, d.Stop.Result.Iteration)
			return
		}
		if plan.Steps[d.Step].Name == "critic" {
			state["score"] = scores[d.Iteration-1]
		}
		plan.Add(&t, loop.Outcome{Iteration: d.Iteration, Step: d.Step, State: state})
	}
	// Output:
	// Iteration 1: Score 5.2 → Improvement: N/A
	// Iteration 2: Score 6.8 → Improvement: +1.6 (30.8%)
	// Iteration 3: Score 7.4 → Improvement: +0.6 (8.8%)
	// Iteration 4: Score 7.6 → Improvement: +0.2 (2.7%)
	// Stopped: converged after 4 iterations: Improvement < 5%
	// Convergence detected: Improvement < 5%
	// best 4
}

func ExamplePlan_Check() {
	plan := &loop.Plan{
		Steps:    []loop.Step{{Name: "writer"}, {Name: "critic"}},
		Order:    []string{"critik", "writer"},
		StopWhen: &loop.Condition{Expr: "stat.done"},
	}
	err := plan.Check()
	fmt.Println(err)
	if p, ok := errors.AsType[*loop.PlanError](err); ok {
		fmt.Println(p.Field)
	}
	// Output:
	// Order name not found in agent names: critik (did you mean "critic"?)
	// Order leaves out "critic" (it must name every agent once)
	// stop_when: 1:1: nothing is called "stat" (did you mean "state"?)
	// order[0]
}

// A condition in JSON is a string, or several put together.
func ExampleCondition() {
	var c loop.Condition
	err := json.Unmarshal([]byte(`{"any": [
		{"all": ["state.mean >= 8.0", "state.scores.all(s, s >= 7.0)"]},
		{"expr": "state.failed == 0", "for": 2}
	]}`), &c)
	fmt.Println(c, err)
	// Output:
	// (state.mean >= 8.0 and state.scores.all(s, s >= 7.0)) or state.failed == 0 for 2 iterations <nil>
}

// A loop that has stopped goes on with a larger limit.
func ExamplePlan_Reopen() {
	plan := loop.Plan{Steps: []loop.Step{{Name: "refine"}}, MaxIterations: 1}
	var t loop.Tally
	plan.Add(&t, loop.Outcome{Iteration: 1})
	fmt.Println(plan.Next(&t).Stop)
	fmt.Println(plan.Reopen(&t))

	plan.MaxIterations = 3
	fmt.Println(plan.Reopen(&t))
	d := plan.Next(&t)
	fmt.Println(d.Action, d.Iteration)
	// Output:
	// Stopped: max_iterations after 1 iteration: limit of 1 iteration
	// the loop stays stopped: max_iterations: limit of 1 iteration (raise max_iterations above 1)
	// <nil>
	// run_step 2
}

// What would another policy have made of the run?
func ExamplePlan_Backtest() {
	recorded := []loop.Outcome{}
	for i, score := range []float64{5.2, 6.8, 7.4, 7.6, 7.61} {
		recorded = append(recorded, loop.Outcome{Iteration: i + 1, State: map[string]any{"score": score}})
	}
	plan := loop.Plan{Steps: []loop.Step{{Name: "refine"}}, Score: &loop.Score{Key: "score", Target: new(7.0)}}
	r := plan.Backtest(recorded)
	fmt.Println(r.Stop)
	fmt.Println("iterations saved:", r.SavedIterations)

	plan.Score.Target = new(9.0)
	fmt.Println(plan.Backtest(recorded).Note)
	// Output:
	// Stopped: target_reached after 3 iterations: Score 7.4 ≥ 7
	// iterations saved: 2
	// unknown beyond the recording
}
