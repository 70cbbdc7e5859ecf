// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// LOOP 20: a loop without a limit whose iterations all fail does not spin: it pauses,
// longer each time, and says so.
func TestFailingLoopPauses(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), OnError: loop.SkipStep, DelayAfter: secs(1), Timeout: secs(1000)}
	tr := run(t, p, func(d loop.Decision) loop.Outcome {
		if d.Iteration == 5 {
			return loop.Outcome{}
		}
		return failure("")
	})
	var waits []time.Duration
	for _, d := range tr.decided[:9] {
		waits = append(waits, d.Wait)
	}
	ms := time.Millisecond
	want := []time.Duration{0, 1100 * ms, 1200 * ms, 1400 * ms, 1800 * ms, 1000 * ms, 1100 * ms, 1200 * ms, 1400 * ms}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Error(diff)
	}
	if w := tr.ended[2].Warning; w != "3 iterations failed one after another: the next begins 400ms later" || tr.ended[4].Warning != "" {
		t.Errorf("%s", w)
	}
	if last := tr.decided[len(tr.decided)-2].Wait; last != time.Minute+time.Second {
		t.Errorf("the longest pause is %s", last)
	}
	// A limit of iterations ends it soon enough.
	p.MaxIterations = 3
	if tr = run(t, p, func(loop.Decision) loop.Outcome { return failure("") }); tr.decided[2].Wait != time.Second || tr.ended[1].Warning != "" {
		t.Errorf("%+v: %+v", tr.decided[2], tr.ended[1])
	}
}

// B9: delays that are too long to be added up are long, not none.
func TestHugeDelays(t *testing.T) {
	const ever = loop.Duration(math.MaxInt64)
	p := loop.Plan{Steps: []loop.Step{{Name: "a", DelayBefore: ever, DelayAfter: ever}}, DelayBefore: ever, DelayAfter: ever}
	var u loop.Tally
	if d := p.Next(&u); d.Wait != math.MaxInt64 {
		t.Errorf("waits %s before the first iteration", d.Wait)
	}
	p.Add(&u, loop.Outcome{})
	if d := p.Next(&u); d.Wait != math.MaxInt64 {
		t.Errorf("waits %s between iterations", d.Wait)
	}
}

// LOOP 10: a number of iterations that no counter holds is refused, not taken for none.
func TestMaxIterationsThatNoLoopReaches(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), MaxIterations: ^uint(0)}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "max_iterations is 18446744073709551615 (give at most 2147483647, or 0 for no limit)") {
		t.Errorf("%v", err)
	}
	p.MaxIterations = math.MaxInt32
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// LOOP 14: the record of a loop that converged within the judge's noise has the noise
// as its threshold.
func TestConvergedWithinTheNoise(t *testing.T) {
	p := judged(3)
	p.Score.MinDelta = new(0.1)
	tr := run(t, p, said(p, "ab", []float64{7, 8, 9}, []float64{7.4, 8.4, 9.4}))
	if tr.stop.Reason != loop.ReasonConverged {
		t.Fatalf("%v", tr.stop)
	}
	for _, c := range tr.stop.Conditions {
		if c.Name == "converged" && (!c.Fired || c.Value != "+0.4 (5.0%)" ||
			!strings.Contains(c.Threshold, "< 0.1 or ≤ "+num(tr.ended[1].Noise)+" (the judge's noise)")) {
			t.Errorf("%+v", c)
		}
	}
}
