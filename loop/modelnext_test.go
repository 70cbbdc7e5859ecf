// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// next is what the law says comes next, and why the loop stops if it does.
func (m *model) next() (decision string, reason loop.StopReason) {
	p, reason := m.p, m.reason()
	d := loop.Decision{Action: loop.RunStep, Iteration: m.iteration, Step: -1}
	broken := reason == loop.ReasonCanceled || reason == loop.ReasonError
	switch {
	case m.due && !broken:
		d.Action = loop.Rollback
		if best, _, _ := m.ground(); best != nil {
			d.To = best.number
		}
	case m.legDue():
		d.Action, d.Leg = loop.BeginLeg, m.leg+1
		if best := m.best(); best != nil && !p.OnPlateau[m.leg].Fresh {
			d.To = best.number
		}
	case reason == "":
		d.Attempt = 1
		place := 0
		if m.begins() {
			d.Iteration++
		} else {
			place, d.Attempt = m.place%len(m.seq), m.tries+1
		}
		d.Step = m.seq[place]
		if m.again {
			d.Step = slices.IndexFunc(p.Steps, func(s loop.Step) bool { return s.Name == p.Score.Judge.Step })
			d.Sample = m.asked + 2
		}
		if start := m.startSteps(); start != nil {
			d.Step = start[0]
		}
		if n := samples(p, d.Step); n > 1 && !m.again {
			d.Sample = 1
			if !m.begins() {
				d.Sample += m.asked
			}
		}
		if _, open := m.circuit(d.Step); open && m.idle+1 < len(m.seq) {
			d.Refuse = &loop.Failure{}
		}
	case p.Finalizer() >= 0 && !broken && !m.finalized:
		d.Action, d.Step, d.Attempt = loop.Finalize, p.Finalizer(), 1
	default:
		d.Action = loop.Stop
	}
	return decided(d), reason
}

// circuit is how long a step's circuit stays open.
func (m *model) circuit(step int) (left time.Duration, open bool) {
	if m.p.Steps[step].Circuit == nil {
		return 0, false
	}
	at, is := m.opened[circuitOf(m.p, step)]
	if !is {
		return 0, false
	}
	left = time.Duration(m.p.Steps[step].Circuit.Cooldown) - (m.active - at)
	return left, left > 0
}

func attempts(p *loop.Plan, step int) int {
	if r := p.Steps[step].Retry; r != nil {
		return int(max(1, r.Attempts))
	}
	return 1
}

// samples is how often a step is asked as a judge; 1 if it is none.
func samples(p *loop.Plan, step int) int {
	if p.Score == nil || p.Score.Judge == nil || p.Score.Judge.Step != p.Steps[step].Name {
		return 1
	}
	return int(max(1, p.Score.Judge.Samples, p.Score.Judge.Max))
}

// times holds the decision's wait and limit against what is left.
func (m *model) times(t *testing.T, d loop.Decision) {
	t.Helper()
	if d.Action != loop.RunStep && d.Action != loop.Finalize || d.Refuse != nil {
		if d.Wait != 0 || d.Timeout != 0 {
			t.Fatalf("waits %s, limit %s: %+v", d.Wait, d.Timeout, d)
		}
		return
	}
	p, s := m.p, &m.p.Steps[d.Step]
	const ever = time.Duration(math.MaxInt64)
	left, own, around := ever, ever, time.Duration(0) // of the loop and of the iteration
	if p.Timeout > 0 {
		if left = m.deadline() - m.active; d.Action == loop.Finalize {
			left = max(time.Duration(p.Timeout)-m.active, time.Duration(p.Timeout)-m.deadline())
		}
	}
	if p.IterationTimeout > 0 && d.Action == loop.RunStep {
		own = time.Duration(p.IterationTimeout)
		if m.open {
			own = max(0, own-m.spent) // it was canceled at its end, and goes on
		}
	}
	if m.begins() && d.Action == loop.RunStep && d.Attempt == 1 {
		around = m.after + time.Duration(p.DelayBefore)
		if own != ever {
			own += around
		}
	}
	left = min(left, own)
	var low, high time.Duration
	switch r := s.Retry; {
	case d.Action == loop.Finalize || d.Sample > 1 && d.Attempt == 1:
	case d.Attempt > 1:
		high = min(time.Duration(r.Backoff)<<(d.Attempt-2), longestWait(r))
		if low = high * 8 / 10; m.told > low {
			low, high = m.told, max(high, min(m.told+high/5, longestWait(r)))
		}
	default:
		high = m.after + time.Duration(s.DelayBefore)
		if m.begins() {
			high += time.Duration(p.DelayBefore)
		}
		low = high
	}
	if wait, open := m.circuit(d.Step); open && d.Action == loop.RunStep {
		low, high = max(low, wait), max(high, wait)
	}
	if low, high = min(low, left), min(high, left); d.Wait < low || d.Wait > high {
		t.Fatalf("waits %s, want %s to %s: %+v", d.Wait, low, high, d)
	}
	limit := time.Duration(s.Timeout)
	if a := s.AdaptiveTimeout; a != nil {
		limit = m.adapted(d.Step, a, limit)
	}
	for _, rest := range []time.Duration{left - d.Wait, own - max(d.Wait, around)} { // a shorter wait gives an iteration no more
		if rest < ever/2 && (limit == 0 || rest < limit) {
			limit = max(1, rest)
		}
	}
	if d.Timeout != limit || (limit == 0) != (d.TimeoutKind == "") {
		t.Fatalf("limit %s %q, want %s: %+v", d.Timeout, d.TimeoutKind, limit, d)
	}
}

func longestWait(r *loop.Retry) time.Duration {
	if r.MaxBackoff == 0 {
		return time.Minute
	}
	return time.Duration(r.MaxBackoff)
}

// adapted is the limit that follows from a step's history.
func (m *model) adapted(step int, a *loop.AdaptiveTimeout, own time.Duration) time.Duration {
	runs := m.runs[step]
	after, factor := 5, 3.0
	if a.After > 0 {
		after = int(a.After)
	}
	if a.Factor > 0 {
		factor = a.Factor
	}
	switch {
	case len(runs) >= after:
		runs = slices.Sorted(slices.Values(runs[max(0, len(runs)-32):]))
		rank := int(math.Ceil(0.95 * float64(len(runs))))
		return time.Duration(min(max(float64(runs[rank-1])*factor, float64(a.Min)), float64(a.Max)))
	case own > 0:
		return own
	}
	return time.Duration(a.Max)
}

// checkRecord holds the stop record against the model: always a result, and the
// counts of what has happened.
func (m *model) checkRecord(t *testing.T, rec *loop.StopRecord) {
	t.Helper()
	want := loop.Result{Source: loop.FromPartial, Iteration: m.iteration}
	complete, rejected := 0, 0
	for _, it := range m.past {
		if it.complete {
			complete++
			want = loop.Result{Source: loop.FromLast, Iteration: it.number}
		}
		if it.rejected {
			rejected++
		}
	}
	if best := m.best(); best != nil {
		want = loop.Result{Source: loop.FromBest, Iteration: best.number}
		if rec.BestScore == nil || *rec.BestScore != m.bestMean || rec.BestIteration != best.number {
			t.Fatalf("best %+v, want %+v", rec, best)
		}
	} else if rec.BestScore != nil {
		t.Fatalf("a best out of nothing: %+v", rec)
	}
	switch last := (loop.Result{Source: loop.FromPartial, Iteration: m.iteration}); rec.Reason {
	case loop.ReasonTarget:
		want = loop.Result{Source: loop.FromBest, Iteration: m.iteration}
	case loop.ReasonCondition:
		if !m.open {
			it := m.fits(m.ended(), m.last().held)
			last.Iteration = it.number
			if it.score != nil && !it.rejected {
				last.Source = loop.FromBest
			}
		}
		want = m.source(last)
	case loop.ReasonExit, loop.ReasonEscalated:
		if !m.p.BestOnExit {
			want = m.source(last)
		}
	}
	if m.finalized && !m.finalFailed {
		want = loop.Result{Source: loop.FromFinalizer, Iteration: m.iteration}
	}
	if rec.Result != want || rec.Iterations != complete || rec.Iteration != m.iteration {
		t.Fatalf("result %+v of %d, %d complete, want %+v of %d, %d", rec.Result, rec.Iteration, rec.Iterations, want, m.iteration, complete)
	}
	if rec.Rejections < rejected || rec.Rejections > rejected+1 || rec.Elapsed != m.active || rec.Usage.Calls != m.used.Calls {
		t.Fatalf("%d rejections, want %d; elapsed %s, want %s; %d calls, want %d", rec.Rejections, rejected, rec.Elapsed, m.active, rec.Usage.Calls, m.used.Calls)
	}
	if (rec.Usage.Cost == nil) != (m.priceless || m.used.Calls == 0 && rec.Usage.Cost == nil) || rec.Usage.Cost != nil &&
		round(*rec.Usage.Cost) != round(*m.used.Cost) {
		t.Fatalf("cost %v, want %v, unknown %v", rec.Usage.Cost, *m.used.Cost, m.priceless)
	}
	if rec.Detail == "" || len(rec.Conditions) == 0 || len(holding(rec, true)) == 0 && rec.Reason != loop.ReasonError && rec.Reason != loop.ReasonCanceled {
		t.Fatalf("record %+v", rec)
	}
}

// source says what an iteration is, if nothing better is known of it.
func (m *model) source(r loop.Result) loop.Result {
	if best := m.best(); r.Source == loop.FromPartial && best != nil && best.number == r.Iteration {
		r.Source = loop.FromBest
	}
	for _, it := range m.past {
		if r.Source == loop.FromPartial && it.number == r.Iteration && it.complete {
			r.Source = loop.FromLast
		}
	}
	return r
}

// checkBounds: no path exceeds a bound, if the driver keeps them as it must.
func (w *driver) checkBounds(t *testing.T, u *loop.Tally, rec *loop.StopRecord) {
	t.Helper()
	p := w.p
	if p.MaxIterations > 0 && rec.Iteration > int(p.MaxIterations) {
		t.Fatalf("%d iterations of %d", rec.Iteration, p.MaxIterations)
	}
	// A step whose delay has used up the time still gets a nanosecond.
	if all := time.Duration(p.Timeout) + w.undoing + time.Duration(2+2*w.reopened); p.Timeout > 0 && rec.Elapsed > all {
		t.Fatalf("%s of %s", rec.Elapsed, all)
	}
	if b := p.Budget; b != nil && w.strict {
		held := p.Reserved()
		calls, tokens := w.used.Calls-w.last.Calls, w.used.InputTokens+w.used.OutputTokens-w.last.InputTokens-w.last.OutputTokens
		if b.Calls > 0 && (w.used.Calls > b.Calls || calls > b.Calls-held.Calls) || b.Tokens > 0 && tokens > b.Tokens-held.Tokens {
			t.Fatalf("%+v of %+v, %+v by the finalizer", w.used, b, w.last)
		}
	}
	b, err := json.Marshal(u)
	if err != nil || len(b) > 12<<10 {
		t.Fatalf("a tally of %d bytes, %v", len(b), err)
	}
}
