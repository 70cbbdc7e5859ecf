// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// bench is a store with evals.
type bench struct {
	eval.Config
	scored []eval.Scored
}

func newBench(t *testing.T, service session.Service, code program.Code, set ...func(*supervisor.Config)) *bench {
	t.Helper()
	env := program.Env{Code: code, Report: func(err error) { t.Error(err) }}
	cfg := supervisor.Config{Service: service, AppName: "app", UserID: "ana", Build: program.Rebuild(env)}
	for _, f := range set {
		f(&cfg)
	}
	sup, err := supervisor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sup.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b := &bench{Config: eval.Config{Supervisor: sup, Service: service, AppName: "app", UserID: "ana", Code: code,
		Owner: lease.Process(), LeaseTTL: time.Minute}}
	b.OnScored = func(s *eval.Scored) { b.scored = append(b.scored, *s) }
	return b
}

// version reads a definition.
func version(t *testing.T, side, text string) eval.Version {
	t.Helper()
	p := &program.Program{Root: t.TempDir()}
	def, err := p.ReadOwn("loop.yaml", program.Text(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := eval.NewVersion("loop.yaml", p, def)
	if err != nil {
		t.Fatal(err)
	}
	v.Side = side
	return v
}

// run runs a new eval.
func (b *bench) run(t *testing.T, p *eval.Plan) *eval.Eval {
	t.Helper()
	e, err := eval.Start(t.Context(), b.Config, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e
}

// results are the results of case-runs by side, case and number: passed, failed, or the error.
func results(e *eval.Record) map[string]string {
	all := make(map[string]string)
	for _, s := range e.Scored {
		result := "not evaluated"
		switch {
		case s.Error != "":
			result = s.Error
		case s.Grade.Passed != nil:
			result = map[bool]string{true: "passed", false: "failed"}[*s.Grade.Passed]
		}
		all[fmt.Sprintf("%s.%s.%d", s.Side, s.Case, s.N)] = result
	}
	return all
}

func oneTurn(id, input string, expected ...string) check.Case {
	return check.Case{ID: id, Turns: []check.Turn{{Input: input, Checks: []check.Spec{{Kind: check.Equals, Texts: expected}}}}}
}

// Each case is run as often as the set says, and each run is one of the store that has ended.
func TestEval(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	set := cases.Set{Repeat: 2, Parallel: 3, Cases: []check.Case{
		oneTurn("good", "cat", "a cat"), oneTurn("bad", "dog", "a cat"),
		{ID: "once", Repeat: 1, Turns: []check.Turn{{Input: "x"}}, Checks: []check.Spec{{Kind: check.Equals, Texts: []string{"a x"}}}},
	}}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{version(t, eval.SideA, "name: t\ntext: a {{user_input}}\n")}})
	want := map[string]string{"A.good.1": "passed", "A.good.2": "passed", "A.bad.1": "failed", "A.bad.2": "failed", "A.once.1": "passed"}
	if diff := cmp.Diff(want, results(e.Record)); diff != "" {
		t.Error(diff)
	}
	rec, err := eval.Read(t.Context(), b.Service, "app", "ana", e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.Record, rec); diff != "" {
		t.Errorf("the store has another record: %s", diff)
	}
	infos, err := b.Supervisor.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var runs []string
	for _, info := range infos {
		runs = append(runs, info.ID)
	}
	slices.Sort(runs)
	var scored []string
	for _, s := range b.scored {
		scored = append(scored, s.Run)
	}
	slices.Sort(scored)
	if diff := cmp.Diff(runs, scored); diff != "" || len(runs) != 5 {
		t.Errorf("the runs of the store: %v; %s", runs, diff)
	}
}

// The turns of a case are runs of one session: the second one sees the state that the first one has left.
func TestTurnsAreOneSession(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	set := cases.Set{Cases: []check.Case{{ID: "talk", State: map[string]any{"last": "nothing"}, Turns: []check.Turn{
		{Input: "one", Checks: []check.Spec{{Kind: check.Equals, Texts: []string{"nothing, one"}}}},
		{Input: "two", Checks: []check.Spec{{Kind: check.Equals, Texts: []string{"nothing, one, two"}}}},
	}}}}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{version(t, eval.SideA, `name: t
text: "{{last}}, {{user_input}}"
output_key: last
`)}})
	if diff := cmp.Diff(map[string]string{"A.talk.1": "passed"}, results(e.Record)); diff != "" {
		t.Errorf("%s%+v", diff, e.Scored)
	}
}

// Questions of a run are answered by its case. Without an answer the case-run is an error, and so is a run that fails.
func TestAnswers(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	text := `name: t
type: sequential
sub_agents:
  - {name: title, ask: answer, question: "Which title?", output_key: title}
  - {name: ok, ask: approve, question: "Is {{title}} right?", output_key: ok}
  - {name: last, text: "{{title}} {{ok.approved}}"}
`
	passes := []check.Spec{{Kind: check.Equals, Texts: []string{"Cats true"}}}
	turns := []check.Turn{{Input: "x"}}
	set := cases.Set{Repeat: 1, Parallel: 2, Cases: []check.Case{
		{ID: "all", Turns: turns, Checks: passes, Answers: map[string]any{"title": "Cats", "ok": true}},
		{ID: "words", Turns: turns, Checks: passes, Answers: map[string]any{"title": "Cats", "ok": "yes"}},
		{ID: "none", Turns: turns, Checks: passes, Answers: map[string]any{"title": "Cats"}},
		{ID: "wrong", Turns: turns, Checks: passes, Answers: map[string]any{"title": "Cats", "ok": "perhaps"}},
	}}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{version(t, eval.SideA, text)}})
	got := results(e.Record)
	want := map[string]string{"A.all.1": "passed", "A.words.1": "passed",
		"A.none.1":  `step "ok" asks a person, and the case has no answer of it: Is Cats right?`,
		"A.wrong.1": got["A.wrong.1"]}
	if diff := cmp.Diff(want, got); diff != "" || got["A.wrong.1"] == "" || got["A.wrong.1"] == "failed" {
		t.Errorf("%s %v", diff, got)
	}
}

// A run that fails, or takes too long, has neither passed nor failed its case.
func TestErrorsAreNoResults(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	set := cases.Set{Timeout: 100 * time.Millisecond, Cases: []check.Case{oneTurn("fails", "false", "x"), oneTurn("hangs", "hang", "x")}}
	text := `name: t
type: sequential
sub_agents:
  - {name: work, command: [sh, -c, 'grep -q hang && exec sleep 30; echo no >&2; exit 3'], stdin: "{{user_input}}"}
`
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{version(t, eval.SideA, text)}})
	got := results(e.Record)
	if len(got) != 2 || len(got["A.fails.1"]) < 20 || got["A.hangs.1"] != "it took longer than the timeout of the cases, 100ms" {
		t.Errorf("got %v", got)
	}
	for _, s := range e.Scored {
		if s.Grade.Passed != nil {
			t.Errorf("%s is graded", s.Case)
		}
	}
}

// What does not fit is found before anything runs.
func TestCasesMustFit(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	v := version(t, eval.SideA, "name: t\ninputs: {n: {type: int}}\ntext: a {{n}} {{user_input}}\n")
	turns := []check.Turn{{Input: "x"}}
	for name, set := range map[string]cases.Set{
		"no input value": {Cases: []check.Case{{ID: "c", Turns: turns}}},
		"another type":   {Cases: []check.Case{{ID: "c", Turns: turns, Values: map[string]any{"n": "many"}}}},
		"no message":     {Cases: []check.Case{{ID: "c", Turns: []check.Turn{{}}, Values: map[string]any{"n": 7}}}},
		"no such step": {Cases: []check.Case{{ID: "c", Turns: turns, Values: map[string]any{"n": 7}}},
			Replace: map[string]any{"send": "x"}},
	} {
		if _, err := eval.Start(t.Context(), b.Config, &eval.Plan{Set: set, Versions: []eval.Version{v}}, nil); err == nil {
			t.Errorf("%s: it starts", name)
		} else {
			t.Log(err)
		}
	}
	ids, err := eval.IDs(t.Context(), b.Config)
	if err != nil || len(ids) > 0 {
		t.Errorf("the store has evals %v, %v", ids, err)
	}
}
