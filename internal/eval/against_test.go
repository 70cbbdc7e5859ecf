// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
)

// refused checks that an error has a text.
func refused(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v, want one with %q", err, text)
	}
}

// Runs that have chosen the cases are compared with nothing over these cases, also in a later eval and if they were scored again.
func TestChosenByFailure(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	v := version(t, eval.SideA, "name: t\ntext: a {{user_input}}\n")
	set := cases.Set{Repeat: 1, Cases: []check.Case{oneTurn("cat", "cat", "a cat"), oneTurn("dog", "dog", "a cow")}}
	old := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{v}})
	scored, err := eval.Score(t.Context(), b.Config, old.Record, &set, "cases.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := eval.Score(t.Context(), b.Config, scored, &set, "cases.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	const chosen = "chosen because they failed in the runs of eval "
	for _, source := range []*eval.Record{old.Record, scored} {
		p := &eval.Plan{Set: set, Versions: []eval.Version{v}}
		if err := eval.Failed(p, source); err != nil {
			t.Fatal(err)
		}
		for _, other := range []*eval.Record{source, old.Record, twice} {
			_, err := eval.Known(p, other)
			refused(t, err, chosen)
		}
		again := b.run(t, p)
		for _, pair := range [][2]*eval.Record{{again.Record, source}, {source, again.Record}} {
			_, err := eval.Compare(pair[0], pair[1])
			refused(t, err, chosen)
		}
		chosenAgain, err := eval.Score(t.Context(), b.Config, again.Record, &again.Set, "cases.yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = eval.Compare(chosenAgain, old.Record)
		refused(t, err, chosen)
		third := &eval.Plan{Set: set, Versions: []eval.Version{v}}
		if err := eval.Failed(third, again.Record); err != nil {
			t.Fatal(err)
		}
		_, err = eval.Known(third, old.Record)
		refused(t, err, chosen)
	}
	fresh := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{v}})
	if _, err := eval.Compare(fresh.Record, old.Record); err != nil {
		t.Error(err)
	}
}

// A budget of cost ends the eval at the first case-run whose cost is unknown, and the report says what to do.
func TestUnknownCostEndsTheBudget(t *testing.T) {
	b, o := withOracle(t, 1)
	set := cases.Set{Repeat: 4, Parallel: 1, Cases: questions(rand.New(rand.NewPCG(1, 2)), 5), Budget: budget.Limits{Cost: new(0.045)}}
	v := version(t, eval.SideA, "name: t\nmodel: openai/oracle\ninstructions: old\n")
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{v}})
	if o.n != 1 || e.Ended.Reason != eval.EndedBudget {
		t.Errorf("%+v after %d requests", e.Ended, o.n)
	}
	want := "because the price of openai/oracle is, and the budget limits it; give the price under prices in the definition"
	if sum := e.Report().Summary(); !strings.Contains(sum.Reason, want) {
		t.Errorf("the reason is %q", sum.Reason)
	}
}

// An eval of which no run has begun was not interrupted. One that was is not taken as the other version.
func TestInterruptedEvals(t *testing.T) {
	b, _ := withOracle(t, 1)
	set := cases.Set{Repeat: 1, Parallel: 1, Cases: questions(rand.New(rand.NewPCG(1, 2)), 4)}
	p := &eval.Plan{Set: set, Versions: []eval.Version{asking(t, eval.SideA, "new")}, Hash: set.Hash()}
	ctx, cancel := context.WithCancel(t.Context())
	b.OnScored = func(*eval.Scored) { cancel() }
	e, err := eval.Start(ctx, b.Config, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if old, err := eval.Interrupted(t.Context(), b.Config, p); err != nil || old != nil {
		t.Errorf("no run has begun, and it is called interrupted: %v, %v", old, err)
	}
	if e, err = eval.Open(ctx, b.Config, e.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := e.Run(ctx); err == nil {
		t.Fatal("it has ended")
	}
	e.Close()
	other := *p
	for _, change := range []func(){
		func() { other.Set.Margin = 0.1 }, func() { other.Set.Decide = "score" }, func() { other.Set.Timeout = 1 },
		func() { other.StopEarly = true }, func() { other.Set.Budget.Tokens = 7 },
	} {
		other = *p
		change()
		if old, err := eval.Interrupted(t.Context(), b.Config, &other); err != nil || old != nil {
			t.Errorf("an eval with another plan is the same: %v, %v", old, err)
		}
	}
	rec, err := eval.Interrupted(t.Context(), b.Config, p)
	if err != nil || rec == nil {
		t.Fatalf("the interrupted eval: %v, %v", rec, err)
	}
	const unended = " has run only 1 of 4 runs; continue it first: refrain eval resume ev_"
	_, err = eval.Known(p, rec)
	refused(t, err, unended)
	b.OnScored = nil
	whole := b.run(t, p)
	for _, pair := range [][2]*eval.Record{{whole.Record, rec}, {rec, whole.Record}} {
		_, err := eval.Compare(pair[0], pair[1])
		refused(t, err, unended)
	}
	if ids := rec.Changed(&set); len(ids) > 0 {
		t.Errorf("%v have changed", ids)
	}
	set.Cases[0].Turns[0].Input = "0.5"
	if ids := whole.Changed(&set); len(ids) != 1 {
		t.Errorf("%v have changed", ids)
	}
}

// A command to type again has its words quoted for a shell, and what the eval was started with.
func TestRetry(t *testing.T) {
	v := version(t, eval.SideA, "name: t\ntext: a\n")
	v.Name = "my loop.yaml"
	v.Program = []byte(`{"file":"x","path":"/x","dir":"/a","root":"/a/b c","model":"openai/big"}`)
	rec := eval.Record{ID: "ev_1", Plan: eval.Plan{File: "it's.yaml", Versions: []eval.Version{v, {Side: eval.SideB, Name: "old.yaml"}}}}
	want := `refrain eval 'my loop.yaml' --cases 'it'\''s.yaml' --failed ev_1 --against old.yaml --model openai/big --root 'b c'`
	if got := rec.Report().Retry; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rec.Versions[0].Texts = []eval.Text{{Field: "t.text"}}
	want = strings.Replace(want, " --against", " --change t.text --against", 1)
	if got := rec.Report().Retry; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
