// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

func secs(n float64) loop.Duration { return loop.Duration(n * float64(time.Second)) }

// taking says how long each step of each iteration takes, in seconds, the last
// one for ever.
func taking(seconds ...float64) script {
	i := -1
	return func(loop.Decision) loop.Outcome {
		i++
		return lasting(time.Duration(secs(seconds[min(i, len(seconds)-1)])), loop.Outcome{})
	}
}

// bounds are the limits that a run was told, one for each step.
func bounds(tr trace) string {
	var out []string
	for _, d := range tr.decided {
		s := strings.TrimSpace(fmt.Sprintf("%s %s", d.Timeout, strings.TrimSuffix(d.TimeoutKind, "timeout")))
		if d.Wait > 0 {
			s += fmt.Sprintf(" after %s", d.Wait)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

// LOOP 21: limits of time at three levels. F1, F2, F3, F4, F5, F6, C11, C27, T13
func TestLaw21Timeouts(t *testing.T) {
	ab := steps("a", "b")
	timed := []loop.Step{{Name: "a", Timeout: secs(5)}, {Name: "b"}}
	for name, c := range map[string]struct {
		plan   loop.Plan
		script script
		bounds string
		want   string
	}{
		"none": {loop.Plan{Steps: ab, MaxIterations: 1}, taking(1e6), "0s, 0s", "max_iterations after 1 iteration: limit of 1 iteration"},
		"a step fails over to the next": {loop.Plan{Steps: timed, MaxIterations: 1}, taking(9, 1),
			"5s, 0s", "max_iterations after 1 iteration: limit of 1 iteration"},
		"a step, and policy says stop": {loop.Plan{Steps: timed, OnError: loop.StopOnError}, taking(9, 1),
			"5s", "error after 0 iterations: a: timeout: out of time"},
		"the iteration goes on with the next": {loop.Plan{Steps: ab, MaxIterations: 2, IterationTimeout: secs(4)}, taking(3, 2, 1, 1),
			"4s iteration_, 1s iteration_, 4s iteration_, 3s iteration_", "max_iterations after 2 iterations, 1 of them cut short: limit of 2 iterations"},
		"the iteration between two steps": {loop.Plan{Steps: ab, MaxIterations: 2, IterationTimeout: secs(3)}, taking(3, 1, 1),
			"3s iteration_, 3s iteration_, 2s iteration_", "max_iterations after 2 iterations, 1 of them cut short: limit of 2 iterations"},
		"the iteration, and policy says stop": {loop.Plan{Steps: ab, OnError: loop.StopOnError, IterationTimeout: secs(3)}, taking(3, 1),
			"3s iteration_", "error after 0 iterations: a: iteration_timeout: the iteration took longer than 3s"},
		"a last step that fills the iteration is complete": {loop.Plan{Steps: ab, MaxIterations: 1, IterationTimeout: secs(4)}, taking(2, 2),
			"4s iteration_, 2s iteration_", "max_iterations after 1 iteration: limit of 1 iteration"},
		"the shortest counts": {loop.Plan{Steps: timed, MaxIterations: 2, IterationTimeout: secs(7), Timeout: secs(12)}, taking(4, 3, 3, 1),
			"5s, 3s iteration_, 5s, 2s total_", "max_iterations after 2 iterations: limit of 2 iterations"},
		"total, within a step": {loop.Plan{Steps: ab, MaxIterations: 9, Timeout: secs(5)}, taking(2, 2, 2),
			"5s total_, 3s total_, 1s total_", "timeout after 1 iteration: out of time"},
		"total, between steps": {loop.Plan{Steps: ab, MaxIterations: 9, Timeout: secs(5)}, taking(2, 3),
			"5s total_, 3s total_", "timeout after 1 iteration: 5s of 5s used"},
		"a limit from around the loop": {loop.Plan{Steps: ab}, at(loop.Plan{Steps: ab}, "b", 2, failure(loop.TotalTimeout), nil),
			"0s, 0s, 0s, 0s", "timeout after 1 iteration: broken"},
	} {
		tr := run(t, c.plan, c.script)
		if got := bounds(tr); got != c.bounds {
			t.Errorf("%s: bounds %s, want %s", name, got, c.bounds)
		}
		if got := tr.stop.String(); got != "Stopped: "+c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if tr.stop.Reason == loop.ReasonTimeout && !holding(tr.stop, true)["timeout"] {
			t.Errorf("%s: nothing fired: %+v", name, tr.stop.Conditions)
		}
	}
}

// A timeout without a word is one all the same.
func TestLimitsWithoutAMessage(t *testing.T) {
	for kind, want := range map[string]loop.StopReason{loop.TotalTimeout: loop.ReasonTimeout, loop.BudgetSpent: loop.ReasonBudget} {
		tr := run(t, loop.Plan{Steps: steps("a"), MaxIterations: 3}, func(loop.Decision) loop.Outcome {
			return loop.Outcome{Failure: &loop.Failure{Kind: kind}}
		})
		if tr.stop.Reason != want || tr.stop.Detail == "" || tr.stop.Iteration != 1 {
			t.Errorf("%s: %v", kind, tr.stop)
		}
	}
}

// LOOP 17: the finalizer keeps its share of the time, whatever the iterations
// have used. The iteration's limit is none of its business.
func TestLaw17FinalizerKeepsItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		plan  loop.Plan
		takes []float64
		want  time.Duration
		kind  string
	}{
		"no limit":             {loop.Plan{MaxIterations: 1}, []float64{60}, 0, ""},
		"a tenth":              {loop.Plan{Timeout: secs(100)}, []float64{100}, 10 * time.Second, loop.TotalTimeout},
		"all that is left":     {loop.Plan{Timeout: secs(100), MaxIterations: 1}, []float64{30}, 70 * time.Second, loop.TotalTimeout},
		"its own share":        {loop.Plan{Timeout: secs(100), FinalizerReserve: 0.25}, []float64{100}, 25 * time.Second, loop.TotalTimeout},
		"after a step overran": {loop.Plan{Timeout: secs(100), StopWhen: &loop.Condition{Expr: "true"}}, []float64{89}, 11 * time.Second, loop.TotalTimeout},
		"the last iteration ran out of time": {
			loop.Plan{IterationTimeout: secs(5), MaxIterations: 2}, []float64{9}, 0, "",
		},
	} {
		c.plan.Steps = steps("a", "final")
		tr := run(t, c.plan, taking(append(c.takes, 1)...))
		d := tr.decided[len(tr.decided)-1]
		if d.Action != loop.Finalize || d.Timeout != c.want || d.TimeoutKind != c.kind {
			t.Errorf("%s: %s for %s %q, want %s %q", name, d.Action, d.Timeout, d.TimeoutKind, c.want, c.kind)
		}
		if tr.stop.Result.Source != loop.FromFinalizer {
			t.Errorf("%s: %+v", name, tr.stop.Result)
		}
	}
	p := loop.Plan{Steps: []loop.Step{{Name: "a"}, {Name: "final", Finalizer: true, Timeout: secs(3)}}, MaxIterations: 1, Timeout: secs(100)}
	if tr := run(t, p, taking(1, 9)); tr.decided[1].Timeout != 3*time.Second || tr.stop.FinalizerFailure != "out of time" ||
		tr.stop.Result.Source != loop.FromLast {
		t.Errorf("its own limit: %+v", tr.stop)
	}
}

// LOOP 21, F8, O5: the limit of a step follows its own history.
func TestAdaptiveTimeout(t *testing.T) {
	limits := func(a loop.AdaptiveTimeout, own loop.Duration, takes ...float64) string {
		p := loop.Plan{Steps: []loop.Step{{Name: "a", AdaptiveTimeout: &a, Timeout: own}}, MaxIterations: uint(len(takes)), OnError: loop.SkipStep}
		return bounds(run(t, p, taking(takes...)))
	}
	for _, c := range []struct {
		name  string
		adapt loop.AdaptiveTimeout
		own   loop.Duration
		takes []float64
		want  string
	}{
		{"max until there are five", loop.AdaptiveTimeout{Max: secs(60)}, 0, []float64{1, 1, 1, 1, 2, 1, 1}, "1m0s, 1m0s, 1m0s, 1m0s, 1m0s, 6s, 6s"},
		{"its own limit until then", loop.AdaptiveTimeout{Max: secs(60), After: 2}, secs(20), []float64{1, 3, 1}, "20s, 20s, 9s"},
		{"at least min", loop.AdaptiveTimeout{Min: secs(5), Max: secs(60), After: 1}, 0, []float64{1, 1}, "1m0s, 5s"},
		{"at most max", loop.AdaptiveTimeout{Max: secs(10), After: 1}, 0, []float64{8, 1}, "10s, 10s"},
		{"another factor", loop.AdaptiveTimeout{Max: secs(60), After: 1, Factor: 1.5}, 0, []float64{8, 1}, "1m0s, 12s"},
		{"a factor beyond all time", loop.AdaptiveTimeout{Max: secs(60), After: 1, Factor: 1e30}, 0, []float64{8, 1}, "1m0s, 1m0s"},
		{"work that grows is learned", loop.AdaptiveTimeout{Max: secs(60), After: 1, Factor: 2}, 0, []float64{1, 9, 9, 9, 1}, "1m0s, 2s, 4s, 8s, 16s"},
	} {
		if got := limits(c.adapt, c.own, c.takes...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}

	// One of twenty runs is an exception; two are not. No more than 32 count.
	p := loop.Plan{Steps: []loop.Step{{Name: "a", AdaptiveTimeout: &loop.AdaptiveTimeout{Max: secs(1000), Factor: 1}}}}
	after := func(takes ...float64) time.Duration {
		var u loop.Tally
		for _, s := range takes {
			p.Add(&u, lasting(time.Duration(secs(s)), loop.Outcome{}))
		}
		return p.Next(&u).Timeout
	}
	even := func(n int) []float64 { return slices.Repeat([]float64{10}, n) }
	for name, c := range map[string][2]time.Duration{
		"one slow":  {after(append(even(19), 90)...), 10 * time.Second},
		"two slow":  {after(append(even(18), 90, 80)...), 80 * time.Second},
		"forgotten": {after(append([]float64{90, 90, 90, 90}, even(32)...)...), 10 * time.Second},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %s, want %s", name, c[0], c[1])
		}
	}
}

// What failed, was cached or only waited says nothing about how long a step takes.
func TestAdaptiveTimeoutCountsRunsOnly(t *testing.T) {
	p := loop.Plan{Steps: []loop.Step{{Name: "a", AdaptiveTimeout: &loop.AdaptiveTimeout{Max: secs(60), After: 1}, DelayBefore: secs(7)}},
		OnError: loop.SkipStep, MaxIterations: 4}
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		o := lasting(5*time.Second, loop.Outcome{})
		switch d.Iteration {
		case 1:
			o.Failure = failure("").Failure
		case 2:
			o.Cached = true
		}
		return o
	})
	if got := bounds(tr); got != "1m0s after 7s, 1m0s after 7s, 1m0s after 7s, 15s after 7s" {
		t.Errorf("%s", got)
	}
	if tr.stop.CacheHits != 1 {
		t.Errorf("%d cache hits", tr.stop.CacheHits)
	}
}

// B9: delays around iterations and steps; they count as the loop's time, not as
// the step's.
func TestDelays(t *testing.T) {
	p := loop.Plan{
		Steps:         []loop.Step{{Name: "a", DelayBefore: secs(1)}, {Name: "b", DelayAfter: secs(2)}, {Name: "final", Finalizer: true, DelayBefore: secs(99)}},
		MaxIterations: 2, DelayBefore: secs(10), DelayAfter: secs(20), Timeout: secs(1000),
	}
	tr := run(t, p, taking(1))
	var waits []time.Duration
	for _, d := range tr.decided {
		waits = append(waits, d.Wait/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{11, 0, 33, 0, 0}, waits); diff != "" {
		t.Error(diff)
	}
	if tr.stop.Elapsed != 49*time.Second {
		t.Errorf("elapsed %s", tr.stop.Elapsed)
	}
	// What is waited around an iteration is no part of it; what its steps wait, is.
	p.Timeout, p.DelayBefore = 0, secs(100)
	p.IterationTimeout, p.Steps[1].DelayBefore = secs(5), secs(60)
	if got := bounds(run(t, p, nil)); got != "4s iteration_ after 1m41s, 1ns iteration_ after 3s, 4s iteration_ after 2m3s, 1ns iteration_ after 3s" {
		t.Errorf("%s", got)
	}
	// No delay outlasts the loop.
	p.Timeout, p.IterationTimeout = secs(40), 0
	if tr = run(t, p, nil); tr.decided[0].Wait != 36*time.Second || tr.stop.Reason != loop.ReasonTimeout || tr.stop.Result.Source != loop.FromFinalizer {
		t.Errorf("%+v: %v", tr.decided[0], tr.stop)
	}
}

// LOOP 23: a budget ends a loop between its steps, and leaves the finalizer its
// share. F10
func TestLaw23Budget(t *testing.T) {
	use := func(calls, tokens int64, cost float64) script {
		return func(loop.Decision) loop.Outcome {
			return loop.Outcome{Usage: loop.Usage{Calls: calls, InputTokens: tokens - tokens/4, OutputTokens: tokens / 4, Cost: &cost}}
		}
	}
	for name, c := range map[string]struct {
		budget loop.Budget
		script script
		final  bool
		want   string
	}{
		"calls, to the last":     {loop.Budget{Calls: 4}, use(1, 1, 0), false, "budget after 2 iterations: 4 of 4 calls used"},
		"calls, exceeded":        {loop.Budget{Calls: 5}, use(2, 1, 0), false, "budget after 1 iteration: 6 of 5 calls used"},
		"tokens":                 {loop.Budget{Tokens: 1000}, use(1, 400, 0), false, "budget after 1 iteration: 1200 of 1000 tokens used"},
		"cost":                   {loop.Budget{Cost: new(1.0)}, use(1, 1, 0.3), false, "budget after 2 iterations: 1.2 of 1 cost used"},
		"the worst is named":     {loop.Budget{Calls: 2, Tokens: 100}, use(1, 400, 0), false, "budget after 0 iterations: 400 of 100 tokens used"},
		"less for a finalizer":   {loop.Budget{Calls: 10}, use(1, 1, 0), true, "budget after 5 iterations: 10 of 9 calls used"},
		"a step too many":        {loop.Budget{Calls: 3}, use(1, 1, 0), true, "budget after 1 iteration: 2 of 2 calls used"},
		"not reached":            {loop.Budget{Calls: 100, Tokens: 1e6, Cost: new(1e6)}, use(1, 1, 1), true, "max_iterations after 9 iterations: limit of 9 iterations"},
		"nothing is used at all": {loop.Budget{Calls: 1}, nil, false, "max_iterations after 9 iterations: limit of 9 iterations"},
	} {
		p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 9, Budget: &c.budget}
		if c.final {
			p.Steps = steps("a", "b", "final")
		}
		tr := run(t, p, c.script)
		if got := tr.stop.String(); got != "Stopped: "+c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if c.final != (tr.stop.Result.Source == loop.FromFinalizer) {
			t.Errorf("%s: %+v", name, tr.stop.Result)
		}
	}
	// What fits to the last cent is not exceeded.
	last := loop.Plan{Steps: steps("a", "b", "final"), Budget: &loop.Budget{Cost: new(1.2)}, FinalizerReserve: 0.25}
	if got := run(t, last, use(1, 1, 0.3)).stop.String(); got != "Stopped: budget after 2 iterations: 1.2 of 0.9 cost used" {
		t.Error(got)
	}
	if got := run(t, last, use(1, 1, 0.15)).stop.String(); got != "Stopped: budget after 3 iterations: 0.9 of 0.9 cost used" {
		t.Error(got)
	}
	// A call that would not fit was not made: what it was part of is undone work.
	p := loop.Plan{Steps: steps("a", "b", "final"), Budget: &loop.Budget{Calls: 100}}
	tr := run(t, p, at(p, "b", 2, failure(loop.BudgetSpent), nil))
	if tr.stop.String() != "Stopped: budget after 1 iteration: broken" || tr.stop.Failures != 0 || tr.stop.Result.Source != loop.FromFinalizer {
		t.Errorf("%v, %+v", tr.stop, tr.stop)
	}
}

// F10: an unknown price is unknown, and what is known still counts.
func TestBudgetCountsWhatIsKnown(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "b"), MaxIterations: 9, Budget: &loop.Budget{Cost: new(1.0)}}
	priced := func(d loop.Decision) loop.Outcome {
		o := loop.Outcome{Usage: loop.Usage{Calls: 1, InputTokens: 10}}
		if d.Step == 1 {
			o.Usage.Cost = new(0.4)
		}
		return o
	}
	tr := run(t, p, priced)
	if tr.stop.String() != "Stopped: budget after 3 iterations: 1.2 of 1 cost used" || tr.stop.Usage.Cost != nil {
		t.Errorf("%v, cost %v", tr.stop, tr.stop.Usage.Cost)
	}
	want := loop.ConditionRecord{Name: "budget.cost", Value: "1.2", Threshold: "≥ 1", Holds: true, Fired: true, Note: "some prices are unknown and not counted",
		Unit: loop.UnitCost, Have: new(1.2), Bound: new(1.0)}
	if got, _ := condition(tr.stop, "budget.cost"); !cmp.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	tr = run(t, p, func(loop.Decision) loop.Outcome { return loop.Outcome{Usage: loop.Usage{Calls: 1}} })
	if tr.stop.Reason != loop.ReasonMaxIterations {
		t.Errorf("no price at all: %v", tr.stop)
	}
}

func condition(rec *loop.StopRecord, name string) (loop.ConditionRecord, bool) {
	for _, c := range rec.Conditions {
		if c.Name == name {
			return c, true
		}
	}
	return loop.ConditionRecord{}, false
}

func TestHeld(t *testing.T) {
	for name, c := range map[string]struct {
		plan loop.Plan
		want loop.Budget
	}{
		"no finalizer": {loop.Plan{Steps: steps("a"), Budget: &loop.Budget{Calls: 10}}, loop.Budget{}},
		"no budget":    {loop.Plan{Steps: steps("a", "final")}, loop.Budget{}},
		"a tenth":      {loop.Plan{Steps: steps("a", "final"), Budget: &loop.Budget{Calls: 100, Tokens: 1000, Cost: new(2.0)}}, loop.Budget{Calls: 10, Tokens: 100, Cost: new(0.2)}},
		"at least one": {loop.Plan{Steps: steps("a", "final"), Budget: &loop.Budget{Calls: 3}}, loop.Budget{Calls: 1}},
		"another":      {loop.Plan{Steps: steps("a", "final"), FinalizerReserve: 0.5, Budget: &loop.Budget{Calls: 7}}, loop.Budget{Calls: 4}},
		"each":         {loop.Plan{Steps: steps("a", "final"), FinalizeEach: true, Budget: &loop.Budget{Calls: 7}}, loop.Budget{}},
	} {
		if diff := cmp.Diff(c.want, c.plan.Reserved()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// F11: the state has a limit, and there is a warning before it.
func TestStateLimit(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 9, StateLimit: 1000}
	tr := run(t, p, func(d loop.Decision) loop.Outcome { return loop.Outcome{StateSize: int64(d.Iteration) * 270} })
	if want := "Stopped: error after 4 iterations: state_too_large: the state has 1080 bytes, state_limit is 1000: keep less in it, or raise state_limit"; tr.stop.String() != want {
		t.Errorf("%v", tr.stop)
	}
	var warnings []string
	for _, r := range tr.ended {
		warnings = append(warnings, fmt.Sprintf("%d %s", r.StateSize, r.Warning))
	}
	if diff := cmp.Diff([]string{"270 ", "540 ", "810 the state has 810 of 1000 bytes", "1080 "}, warnings); diff != "" {
		t.Error(diff)
	}
	if tr.stop.StateSize != 1080 || tr.stop.Result.Source != loop.FromLast {
		t.Errorf("%+v", tr.stop)
	}
}

// A plan's times are written as people write them.
func TestDurationJSON(t *testing.T) {
	p := loop.Plan{Steps: []loop.Step{{Name: "a", Timeout: secs(90)}}, Timeout: secs(1800), DelayAfter: secs(0.5)}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"steps":[{"name":"a","timeout":"1m30s"}],"timeout":"30m0s","delay_after":"500ms"}`; string(b) != want {
		t.Errorf("%s", b)
	}
	var back loop.Plan
	for _, text := range []string{`{"timeout":"soon"}`, `{"timeout":90}`} {
		if err := json.Unmarshal([]byte(text), &back); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
