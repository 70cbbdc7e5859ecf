// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/loop"
)

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
	if d := p.Next(&u); d.Iteration != 10_001 || d.Action != loop.RunStep {
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

// What comes after the finalizer takes nothing back.
func TestAfterTheFinalizer(t *testing.T) {
	p := loop.Plan{Steps: steps("a", "final"), MaxIterations: 1}
	var u loop.Tally
	for range 2 {
		d := p.Next(&u)
		p.Add(&u, loop.Outcome{Iteration: d.Iteration, Step: d.Step})
	}
	before := p.Next(&u)
	p.Add(&u, loop.Outcome{Step: -1, Canceled: "ctrl-c"})
	if diff := cmp.Diff(before, p.Next(&u)); diff != "" || before.Stop.Result.Source != loop.FromFinalizer {
		t.Errorf("%+v\n%s", before.Stop, diff)
	}
}

// A tally that is read from JSON into a used one leaves the copies of that alone.
func TestTallyIsReadAfresh(t *testing.T) {
	p := loop.Plan{Steps: steps("a"), Score: &loop.Score{Key: "score"}}
	var u loop.Tally
	add := func(score float64) {
		p.Add(&u, loop.Outcome{State: map[string]any{"score": score}, Usage: loop.Usage{Calls: 1, Cost: &score}, Failure: nil})
	}
	add(5)
	first, _ := json.Marshal(u)
	rec := p.Next(&u).Ended
	add(7)
	copied := u
	want, _ := json.Marshal(copied)
	if err := json.Unmarshal(first, &u); err != nil {
		t.Fatal(err)
	}
	if got, _ := json.Marshal(copied); string(got) != string(want) || *rec.Score != 5 {
		t.Errorf("%s, want %s", got, want)
	}
	if got, _ := json.Marshal(u); string(got) != string(first) {
		t.Errorf("%s, want %s", got, first)
	}
	if err := json.Unmarshal([]byte(`{"steps":"x"}`), &u); err == nil {
		t.Error("nonsense is read")
	}
}

func simple() *loop.Plan {
	return &loop.Plan{Steps: steps("a", "b", "c"), MaxIterations: math.MaxInt32, CanExit: []string{"c"}}
}

// The plain loop costs nothing to speak of.
func TestPlainLoopAllocatesNothing(t *testing.T) {
	p, state := simple(), map[string]any{"k": "v"}
	var u loop.Tally
	now := time.Now()
	n := testing.AllocsPerRun(1000, func() {
		d := p.Next(&u)
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
		d := p.Next(&u)
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
		d := p.Next(&u)
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
