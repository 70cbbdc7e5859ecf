// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

// FuzzNext drives a random plan with random outcomes and holds what comes of
// it against a model that says only what matters. K10
func FuzzNext(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 7))
		p := randomPlan(r)
		if err := p.Check(); err != nil {
			t.Fatalf("check %+v: %v", p, err)
		}
		var (
			u    loop.Tally
			all  []loop.Outcome
			m    model
			seq  = p.Sequence()
			last *loop.StopRecord // with Finalize
		)
		for range tooLong {
			before, _ := json.Marshal(u)
			d := p.Next(&u, time.Time{})
			after, _ := json.Marshal(u)
			if string(before) != string(after) {
				t.Fatal("Next has changed the tally")
			}
			q, v := *p, u
			if again := over(t, &q, &v).Next(&v, time.Unix(1e9, 0)); !cmp.Equal(d, again) {
				t.Fatalf("decided otherwise after JSON:\n%s", cmp.Diff(d, again))
			}
			m.want(t, p, seq, d)
			if last != nil && (d.Action != loop.Stop || d.Stop.Reason != last.Reason || d.Stop.Detail != last.Detail) {
				t.Fatalf("the finalizer changed %v to %v", last, d.Stop)
			}
			if d.Action == loop.Stop {
				if d.Stop.Result.Source == "" || d.Stop.Detail == "" || len(d.Stop.Conditions) == 0 {
					t.Fatalf("record %+v", d.Stop)
				}
				if back := p.Backtest(all); !cmp.Equal(d.Stop, back.Stop) {
					t.Fatalf("backtest: %s\n%s", back.Note, cmp.Diff(d.Stop, back.Stop))
				}
				return
			}
			last = d.Stop
			o := randomOutcome(r, p, d)
			all = append(all, o)
			copied, kept := u, fmt.Sprintf("%+v", u)
			p.Add(&u, o)
			if fmt.Sprintf("%+v", copied) != kept {
				t.Fatal("Add has changed a copy of the tally")
			}
			m.add(p, seq, d, o)
		}
		if p.MaxIterations > 0 {
			t.Fatal("did not stop")
		}
	})
}

// model knows where the loop must be, and the reasons that a step gives.
type model struct {
	iteration, place int // the next to run; iteration from 0
	running          uint
	reason           loop.StopReason
}

func (m *model) want(t *testing.T, p *loop.Plan, seq []int, d loop.Decision) {
	t.Helper()
	limit := p.MaxIterations > 0 && m.place == 0 && uint(m.iteration) >= p.MaxIterations
	if d.Action == loop.RunStep {
		if m.reason != "" || limit {
			t.Fatalf("goes on after %q, limit %v", m.reason, limit)
		}
		if d.Iteration != m.iteration+1 || d.Step != seq[m.place] {
			t.Fatalf("runs %d in %d, want %d in %d", d.Step, d.Iteration, seq[m.place], m.iteration+1)
		}
		return
	}
	got := d.Stop.Reason
	switch {
	case m.reason != "" && got != m.reason:
		t.Fatalf("stops by %s, want %s", got, m.reason)
	case m.reason != "":
	case got == loop.ReasonCondition && p.StopWhen != nil && (m.place == 0 || p.StopCheck == loop.EachStep):
	case (got == loop.ReasonTarget || got == loop.ReasonConverged) && p.Score != nil && m.place == 0:
	case got == loop.ReasonMaxIterations && limit:
	default:
		t.Fatalf("stops by %s at %d, %d", got, m.iteration, m.place)
	}
}

func (m *model) add(p *loop.Plan, seq []int, d loop.Decision, o loop.Outcome) {
	if d.Action != loop.RunStep {
		return
	}
	if o.Canceled != "" {
		m.reason = loop.ReasonCanceled
		return
	}
	m.place++
	if o.Failure != nil {
		m.running++
		policy := p.Steps[d.Step].OnError
		if policy == "" {
			policy = p.OnError
		}
		if policy == "" && o.Failure.Kind == loop.Timeout {
			policy = loop.SkipStep
		}
		if policy == loop.NextIteration {
			m.place = len(seq)
		}
		if policy == "" || policy == loop.StopOnError || p.MaxConsecutiveFailures > 0 && m.running >= p.MaxConsecutiveFailures {
			m.reason = loop.ReasonError
			return
		}
	} else {
		m.running = 0
	}
	if e := o.Exit; e != nil && p.MayExit(p.Steps[d.Step].Name) {
		switch {
		case e.Status != "":
			m.reason = loop.StopReason(e.Status)
		case e.Escalated:
			m.reason = loop.ReasonEscalated
		default:
			m.reason = loop.ReasonExit
		}
	}
	if m.place >= len(seq) {
		m.iteration++
		m.place = 0
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomPlan(r *rand.Rand) *loop.Plan {
	p := &loop.Plan{MaxIterations: pick(r, 1, 2, 5, 20, uint(0)), OnError: pick(r, "", loop.SkipStep, loop.NextIteration, loop.StopOnError)}
	for i := range 1 + r.IntN(4) {
		p.Steps = append(p.Steps, loop.Step{Name: fmt.Sprintf("s%d", i), OnError: pick(r, "", "", loop.SkipStep, loop.NextIteration)})
	}
	if r.IntN(3) == 0 {
		for _, i := range r.Perm(len(p.Steps)) {
			p.Order = append(p.Order, p.Steps[i].Name)
		}
	}
	if r.IntN(2) == 0 {
		at := r.IntN(len(p.Steps) + 1)
		p.Steps = append(p.Steps[:at:at], append([]loop.Step{{Name: "f", Finalizer: true}}, p.Steps[at:]...)...)
	}
	if r.IntN(3) == 0 {
		p.CanExit = pick(r, []string{}, []string{"s0"}, []string{"s1", "f"})
	}
	if r.IntN(2) == 0 {
		p.Score = &loop.Score{Key: "score", LowerIsBetter: r.IntN(2) == 0, Target: pick(r, nil, new(9.0)), MinDelta: pick(r, nil, new(0.2)),
			MinDeltaPercent: pick(r, nil, new(3.0))}
	}
	if r.IntN(2) == 0 {
		p.StopWhen = &loop.Condition{Any: []loop.Condition{
			{Expr: pick(r, "state.score > 8", "state.done", "iteration > 6", "state.gone"), For: pick(r, uint(0), 2)},
			{All: []loop.Condition{{Expr: "state.done"}, {Not: &loop.Condition{Expr: "score < 5"}}}},
		}}
		p.StopCheck = pick(r, "", loop.EachStep)
	}
	p.MaxConsecutiveFailures = pick(r, uint(0), 2, 3)
	return p
}

func randomOutcome(r *rand.Rand, p *loop.Plan, d loop.Decision) loop.Outcome {
	start := time.Unix(int64(r.IntN(1000)), 0).UTC()
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: start, Finished: start.Add(time.Second)}
	o.State = map[string]any{"score": pick[any](r, r.IntN(10), r.Float64()*10, "none", nil), "done": r.IntN(6) == 0}
	o.Usage = loop.Usage{Calls: int64(r.IntN(2)), Cost: pick(r, nil, new(0.5))}
	if r.IntN(8) == 0 {
		o.Failure = &loop.Failure{Kind: pick(r, "", loop.Timeout, loop.Panicked), Message: pick(r, "", "broken")}
	}
	if r.IntN(12) == 0 {
		o.Exit = &loop.Exit{Status: pick(r, "", "", "blocked", "impossible"), Escalated: r.IntN(2) == 0}
	}
	if r.IntN(60) == 0 {
		o.Canceled = "ctrl-c"
	}
	return o
}

// D19, O6: ten thousand iterations leave a tally of a few kilobytes.
func TestTallyStaysSmall(t *testing.T) {
	p := loop.Plan{
		Steps: steps("a"), CanExit: []string{}, OnError: loop.SkipStep, Score: &loop.Score{Key: "score"},
		StopWhen: &loop.Condition{Any: []loop.Condition{{Expr: `state.text == "x"`}, {Expr: "state.gone > 1"}, {Expr: "state.score < 0", For: 3}}},
	}
	var u loop.Tally
	text := strings.Repeat("some text ", 1000)
	for i := range 10_000 {
		p.Add(&u, loop.Outcome{
			State:   map[string]any{"score": float64(i) / 3, "text": text},
			Exit:    &loop.Exit{Reason: text},
			Failure: &loop.Failure{Message: text},
		})
	}
	if d := p.Next(&u, time.Time{}); d.Iteration != 10_001 || d.Action != loop.RunStep {
		t.Fatalf("decision %+v", d)
	}
	b, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 16<<10 {
		t.Errorf("%d bytes", len(b))
	}
	t.Logf("%d bytes after 10000 iterations", len(b))
}

func simple() *loop.Plan {
	return &loop.Plan{Steps: steps("a", "b", "c"), MaxIterations: 1 << 60, CanExit: []string{"c"}}
}

// The plain loop costs nothing to speak of.
func TestPlainLoopAllocatesNothing(t *testing.T) {
	p, state := simple(), map[string]any{"k": "v"}
	var u loop.Tally
	now := time.Now()
	n := testing.AllocsPerRun(1000, func() {
		d := p.Next(&u, now)
		p.Add(&u, loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: now, Finished: now, State: state, Usage: loop.Usage{Calls: 1}})
	})
	if n != 0 {
		t.Errorf("%v allocations for Next and Add", n)
	}
}

func BenchmarkPlain(b *testing.B) {
	p, state := simple(), map[string]any{"k": "v"}
	var u loop.Tally
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		d := p.Next(&u, now)
		p.Add(&u, loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: now, Finished: now, State: state})
	}
}

func BenchmarkScoredWithCondition(b *testing.B) {
	p := simple()
	p.Score = &loop.Score{Key: "score", Target: new(1e9)}
	p.StopWhen = &loop.Condition{Expr: "state.score < 0"}
	state := map[string]any{"score": 1.5}
	var u loop.Tally
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		d := p.Next(&u, now)
		p.Add(&u, loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: now, Finished: now, State: state})
	}
}

func BenchmarkCheck(b *testing.B) {
	p := simple()
	for b.Loop() {
		if err := p.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
