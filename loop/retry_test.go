// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// failing fails a step so many times, and then never again.
func failing(times int, o loop.Outcome) script {
	n := 0
	return func(loop.Decision) loop.Outcome {
		if n++; n <= times {
			return o
		}
		return loop.Outcome{}
	}
}

// LOOP 20: a failed step is tried again, as often and after as long as it says.
// G10, C13
func TestLaw20Retry(t *testing.T) {
	again := func(attempts uint) loop.Plan {
		return loop.Plan{Steps: []loop.Step{{Name: "a", Retry: &loop.Retry{Attempts: attempts}}, {Name: "b"}}, MaxIterations: 1,
			OnError: loop.SkipStep}
	}
	stop := again(3)
	stop.OnError = ""
	short := again(5)
	short.IterationTimeout = secs(3)
	for name, c := range map[string]struct {
		plan    loop.Plan
		script  script
		ran     string
		want    string
		retries int
		failed  int
	}{
		"it works at last": {again(3), failing(2, failure("")), "a@1 a@1 a@1 b@1",
			"max_iterations after 1 iteration: limit of 1 iteration", 2, 0},
		"it never works": {again(3), failing(9, failure("")), "a@1 a@1 a@1 b@1",
			"error after 1 iteration: No iteration succeeded; the last failure: b: broken", 2, 2},
		"nor does policy help": {stop, failing(9, failure("")), "a@1 a@1 a@1", "error after 0 iterations: a: broken", 2, 1},
		"once is not again": {again(1), failing(1, failure("")), "a@1 b@1",
			"max_iterations after 1 iteration: limit of 1 iteration", 0, 1},
		"a timeout": {again(2), failing(1, failure(loop.Timeout)), "a@1 a@1 b@1",
			"max_iterations after 1 iteration: limit of 1 iteration", 1, 0},
		"a panic": {again(2), failing(1, failure(loop.Panicked)), "a@1 a@1 b@1",
			"max_iterations after 1 iteration: limit of 1 iteration", 1, 0},
		"the iteration's time": {again(2), failing(1, failure(loop.IterationTimeout)), "a@1",
			"error after 0 iterations: No iteration succeeded; the last failure: a: iteration_timeout: broken", 0, 1},
		"no time is left": {short, failing(9, failure("")), "a@1 a@1 a@1",
			"error after 0 iterations: No iteration succeeded; the last failure: a: iteration_timeout: no time to try again: broken", 2, 1},
		"the loop's time": {again(2), failing(1, failure(loop.TotalTimeout)), "a@1", "timeout after 0 iterations: broken", 0, 0},
		"the budget":      {again(2), failing(1, failure(loop.BudgetSpent)), "a@1", "budget after 0 iterations: broken", 0, 0},
		"no use": {stop, failing(1, loop.Outcome{Failure: &loop.Failure{Message: "bad key", Permanent: true}}), "a@1",
			"error after 0 iterations: a: bad key", 0, 1},
		"an exit of a failed try": {again(2), failing(1, loop.Outcome{Failure: failure("").Failure, Exit: &loop.Exit{}}), "a@1 a@1 b@1",
			"max_iterations after 1 iteration: limit of 1 iteration", 1, 0},
		"canceled while trying": {again(9), failing(9, loop.Outcome{Canceled: "ctrl-c"}), "a@1", "canceled after 0 iterations: ctrl-c", 0, 0},
		"a failure too many at all": {func() loop.Plan { p := again(2); p.MaxConsecutiveFailures = 2; return p }(), failing(9, failure("")),
			"a@1 a@1 b@1", "error after 0 iterations: 2 steps failed one after another, the last: b: broken", 1, 2},
	} {
		tr := run(t, c.plan, c.script)
		if got := strings.Join(tr.ran, " "); got != c.ran {
			t.Errorf("%s: ran %s, want %s", name, got, c.ran)
		}
		if got := tr.stop.String(); got != "Stopped: "+c.want || tr.stop.Retries != c.retries || tr.stop.Failures != c.failed {
			t.Errorf("%s: %s, %d retries, %d failures, want %s", name, got, tr.stop.Retries, tr.stop.Failures, c.want)
		}
		attempt := 0
		for i, d := range tr.decided {
			if attempt++; i > 0 && tr.ran[i] != tr.ran[i-1] {
				attempt = 1
			}
			if d.Attempt != attempt {
				t.Errorf("%s: %s is attempt %d, want %d", name, tr.ran[i], d.Attempt, attempt)
			}
		}
	}
}

// Timeouts that were tried again are timeouts.
func TestRetriedTimeoutsCount(t *testing.T) {
	p := loop.Plan{Steps: []loop.Step{{Name: "a", Timeout: secs(1), Retry: &loop.Retry{Attempts: 3}}}, MaxIterations: 1}
	if tr := run(t, p, taking(5)); tr.stop.Timeouts != 3 || tr.stop.Failures != 1 || tr.stop.Reason != loop.ReasonError {
		t.Errorf("%v: %d timeouts", tr.stop, tr.stop.Timeouts)
	}
}

// G10: the waits double, up to a limit, and are a little shorter than that, by
// when the run began.
func TestBackoff(t *testing.T) {
	waits := func(r loop.Retry, start time.Time) (out []time.Duration) {
		r.Attempts = 9
		p := loop.Plan{Steps: []loop.Step{{Name: "a", Retry: &r}}}
		var u loop.Tally
		for range 8 {
			d := p.Next(&u)
			out = append(out, d.Wait)
			o := failure("")
			o.Started, o.Finished = start, start.Add(time.Second)
			p.Add(&u, o)
		}
		return out
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		retry loop.Retry
		want  []float64 // seconds
	}{
		"none":             {loop.Retry{}, []float64{0, 0, 0, 0, 0, 0, 0, 0}},
		"a minute at most": {loop.Retry{Backoff: secs(2)}, []float64{0, 2, 4, 8, 16, 32, 60, 60}},
		"its own limit":    {loop.Retry{Backoff: secs(1), MaxBackoff: secs(5)}, []float64{0, 1, 2, 4, 5, 5, 5, 5}},
		"longer at once":   {loop.Retry{Backoff: secs(90)}, []float64{0, 90, 90, 90, 90, 90, 90, 90}},
		"beyond all bounds": {loop.Retry{Backoff: 1 << 60, MaxBackoff: 1<<63 - 1}, []float64{0, 1152921504.606846976, 2305843009.213693952,
			4611686018.427387904, 9223372036.854775807, 9223372036.854775807, 9223372036.854775807, 9223372036.854775807}},
	} {
		got := waits(c.retry, start)
		for i, w := range got {
			most := c.want[i] * 1.000001
			if s := w.Seconds(); s > most || s < c.want[i]*0.8 {
				t.Errorf("%s: wait %d is %s, want up to %gs", name, i, w, c.want[i])
			}
		}
		if diff := cmp.Diff(got, waits(c.retry, start)); diff != "" {
			t.Errorf("%s: not the same again:\n%s", name, diff)
		}
	}
	if slices.Equal(waits(loop.Retry{Backoff: secs(2)}, start), waits(loop.Retry{Backoff: secs(2)}, start.Add(time.Millisecond))) {
		t.Error("runs that failed together come back together")
	}
}

// LOOP 20, G10: what a failed step is asked to wait it waits, if that is longer than its
// backoff. For longer than max_backoff it does not wait, and says so.
func TestRetryAfter(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		retry  loop.Retry
		asked  loop.Duration
		low    loop.Duration // of the wait
		high   loop.Duration
		failed string // instead
	}{
		"longer than the backoff":  {loop.Retry{Backoff: secs(1)}, secs(30), secs(30), secs(30.2), ""},
		"without a backoff":        {loop.Retry{}, secs(30), secs(30), secs(30), ""},
		"shorter than the backoff": {loop.Retry{Backoff: secs(10)}, secs(2), secs(8), secs(10), ""},
		"all that is allowed":      {loop.Retry{Backoff: secs(1), MaxBackoff: secs(30)}, secs(30), secs(30), secs(30), ""},
		"more than a minute": {loop.Retry{}, secs(61), 0, 0, "broken (not tried again: it asks to wait 1m 01s, and " +
			"retry.max_backoff is 1m)"},
		"more than is allowed": {loop.Retry{Backoff: secs(1), MaxBackoff: secs(5)}, secs(30), 0, 0,
			"broken (not tried again: it asks to wait 30s, and retry.max_backoff is 5s)"},
		"a longer limit": {loop.Retry{Backoff: secs(1), MaxBackoff: secs(300)}, secs(120), secs(120), secs(120.2), ""},
	} {
		c.retry.Attempts = 3
		p := loop.Plan{Steps: []loop.Step{{Name: "a", Retry: &c.retry}}}
		var u loop.Tally
		o := failure("")
		o.Started, o.Finished = start, start.Add(time.Second)
		o.Failure.RetryAfter = time.Duration(c.asked)
		p.Add(&u, o)
		d := p.Next(&u)
		if c.failed != "" {
			if d.Stop == nil || !strings.HasSuffix(d.Stop.Detail, c.failed) {
				t.Errorf("%s: %+v", name, d)
			}
			continue
		}
		if d.Attempt != 2 || d.Wait < time.Duration(c.low) || d.Wait > time.Duration(c.high) {
			t.Errorf("%s: attempt %d after %s, want %s to %s", name, d.Attempt, d.Wait, c.low, c.high)
		}
		// The next failure does not ask, and the backoff counts again.
		o.Failure = failure("").Failure
		if p.Add(&u, o); p.Next(&u).Wait > 2*time.Duration(c.retry.Backoff) {
			t.Errorf("%s: then it waits %s", name, p.Next(&u).Wait)
		}
	}
}

// G6: a step that fails again and again is not run for a while.
func TestCircuit(t *testing.T) {
	p := loop.Plan{
		Steps:         []loop.Step{{Name: "a", Circuit: &loop.Circuit{Failures: 2, Cooldown: secs(3)}}, {Name: "b"}},
		MaxIterations: 8, OnError: loop.SkipStep,
	}
	broken := func(until int) script {
		return func(d loop.Decision) loop.Outcome {
			if d.Step == 0 && d.Iteration <= until {
				return failure("")
			}
			return loop.Outcome{}
		}
	}
	// Seconds 1 a, 2 b, 3 a: open. It is tried at 7, and fails; then at 11.
	tr := run(t, p, broken(5))
	want := "a@1 b@1 a@2 b@2 a@3 refused b@3 a@4 refused b@4 a@5 b@5 a@6 refused b@6 a@7 refused b@7 a@8 b@8"
	if got := strings.Join(tr.ran, " "); got != want {
		t.Errorf("ran  %s\nwant %s", got, want)
	}
	if tr.stop.Failures != 7 {
		t.Errorf("%d failures", tr.stop.Failures)
	}
	if f := tr.decided[4].Refuse; f == nil || f.Kind != loop.CircuitOpen ||
		f.Message != "not run: it failed 2 times running and is tried again after 2s" {
		t.Errorf("refused with %+v", f)
	}
	// A success closes it.
	tr = run(t, p, func(d loop.Decision) loop.Outcome {
		if d.Step == 0 && d.Iteration%2 == 1 {
			return failure("")
		}
		return loop.Outcome{}
	})
	if strings.Contains(strings.Join(tr.ran, " "), "refused") {
		t.Errorf("ran %v", tr.ran)
	}
	// It opens between two tries as well.
	p.Steps[0].Retry = &loop.Retry{Attempts: 5}
	tr = run(t, p, broken(1))
	if got := strings.Join(tr.ran[:4], " "); got != "a@1 a@1 a@1 refused b@1" {
		t.Errorf("ran %s", got)
	}
}

// An open circuit does not make a loop spin: where nothing else is left to run,
// it waits.
func TestCircuitDoesNotSpin(t *testing.T) {
	broken := func(loop.Decision) loop.Outcome { return failure("") }
	circuit := &loop.Circuit{Failures: 1, Cooldown: secs(60)}
	p := loop.Plan{Steps: []loop.Step{{Name: "a", Circuit: circuit}}, OnError: loop.SkipStep, Timeout: secs(1000)}
	tr := run(t, p, broken)
	if tr.stop.Reason != loop.ReasonError || tr.stop.Iterations != 17 || tr.decided[1].Wait != time.Minute {
		t.Errorf("%v", tr.stop)
	}
	p.Steps = []loop.Step{{Name: "a", Circuit: circuit}, {Name: "b", Circuit: circuit}}
	tr = run(t, p, broken)
	if got := strings.Join(tr.ran[:6], " "); got != "a@1 b@1 a@2 refused b@2 a@3 b@3 refused" || tr.stop.Reason != loop.ReasonError {
		t.Errorf("%s: %v", got, tr.stop)
	}
}

// A plan may change while a step is being tried.
func TestRetryOfAnotherPlan(t *testing.T) {
	p := loop.Plan{Steps: []loop.Step{{Name: "a", Retry: &loop.Retry{Attempts: 3, Backoff: secs(1)}}}}
	var u loop.Tally
	p.Add(&u, failure(""))
	p.Steps[0].Retry = nil
	if d := p.Next(&u); d.Action != loop.RunStep || d.Attempt != 2 || d.Wait != 0 {
		t.Errorf("%+v", d)
	}
}
