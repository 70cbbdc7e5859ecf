// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Whatever a case is called, its runs have IDs of their own that people can type, and that are not in lists of runs.
func TestIDsOfCaseRuns(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	var set cases.Set
	long := strings.Repeat("long", 30)
	for _, id := range []string{"a/b", "a b", "a-b", "ü", "../..", long + "1", long + "2", "-", "last"} {
		set.Cases = append(set.Cases, oneTurn(id, "x", "a x"))
	}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{version(t, eval.SideA, "name: t\ntext: a {{user_input}}\n")}})
	ids := make(map[string]bool)
	for _, s := range e.Scored {
		ids[s.Run] = true
		if len(s.Run) > 64 || strings.ContainsFunc(s.Run, func(r rune) bool { return r > 'z' || strings.ContainsRune(` /\`, r) }) ||
			!caserun.Is(s.Run) || s.Grade.Passed == nil || !*s.Grade.Passed {
			t.Errorf("case %q: %+v", s.Case, s)
		}
	}
	if len(ids) != len(set.Cases) {
		t.Errorf("%d IDs of %d cases", len(ids), len(set.Cases))
	}
	if caserun.Is(e.ID) || caserun.Is("r_1.A") {
		t.Error("another run is taken for that of a case")
	}
}

// A step that is replaced does not act in runs of cases.
func TestReplacedStepsOfCases(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	at := filepath.Join(t.TempDir(), "sent")
	set := cases.Set{Replace: map[string]any{"send": "sent to nobody"}, Cases: []check.Case{oneTurn("c", "x", "sent to nobody")}}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{version(t, eval.SideA,
		"name: t\ntype: sequential\nsub_agents:\n  - {name: send, command: [touch, "+at+"]}\n")}})
	if diff := cmp.Diff(map[string]string{"A.c.1": "passed"}, results(e.Record)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(at); err == nil {
		t.Error("the step has acted")
	}
}

// A case is appended to the list, whatever is behind it, and the rest of the file stays as it is.
func TestAppend(t *testing.T) {
	answer := "one\n\n  two: #3\n"
	several := &check.Case{ID: "new: one", Values: map[string]any{"to": "Ana", "n": int64(7)},
		Turns: []check.Turn{{Input: "a \"b\"\n- c", Expected: &answer, Calls: []check.Call{{Name: "find", Args: map[string]any{"x": "<y>"}}}},
			{Input: "yes", Expected: new("x\ny")}}}
	one := &check.Case{ID: "r_1", Turns: []check.Turn{{Input: "hello", Expected: new("hi")}}}
	for name, text := range map[string]string{
		"no file": "",
		"a list":  "cases:\n  - {id: a, input: x, expected: y}\n",
		"no end":  "cases:\n- id: a\n  input: x\n  expected: y",
		"more":    "# mine\ncases:\n    - id: a # first\n      input: |\n        x\n\n        z\n\n# checks\nchecks: [{contains: }]\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cases.yaml")
			if text != "" {
				if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []*check.Case{several, one} {
				if err := eval.Append(file, c); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			set, err := cases.Open(file)
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			n := len(set.Cases)
			if diff := cmp.Diff([]check.Case{*several, *one}, set.Cases[n-2:]); diff != "" {
				t.Errorf("%s\n%s", diff, got)
			}
			for line := range strings.Lines(text) {
				if !strings.Contains(string(got), strings.TrimRight(line, "\n")) {
					t.Errorf("%q is not in %s", line, got)
				}
			}
			if err := eval.Append(file, one); err == nil {
				t.Error("a case is added twice")
			}
		})
	}
	for _, text := range []string{"cases: [{id: a, input: x}]\n", "- {query: x, reference: y}\n", "cases: x\n"} {
		file := filepath.Join(t.TempDir(), "cases.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := eval.Append(file, one); err == nil {
			t.Errorf("a case is added to %q", text)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}

// The case of a run has what people answered and the state with which the session began, so that it passes as the run did.
func TestCaseOfAnsweredRun(t *testing.T) {
	b := newBench(t, session.InMemoryService(), program.Code{})
	v := version(t, eval.SideA, `name: t
type: sequential
inputs: {size: {type: int, default: 3}}
state: {n: 3, m: 1}
sub_agents:
  - {name: title, ask: answer, question: "Which title?", output_key: title}
  - {name: ok, ask: approve, question: "Is {{title}} right?", output_key: ok}
  - {name: last, text: "{{title}} {{ok.approved}} {{n}} {{m}} {{other?}} {{size}} {{user_input}}"}
`)
	set := cases.Set{Repeat: 1, Cases: []check.Case{{ID: "c", Turns: []check.Turn{{Input: "x"}}, Values: map[string]any{"size": 5},
		State: map[string]any{"n": 7, "other": "it"}, Answers: map[string]any{"title": "Cats", "ok": true}}}}
	e := b.run(t, &eval.Plan{Set: set, Versions: []eval.Version{v}})
	run, err := runlog.Read(t.Context(), b.Service, lease.Key{AppName: "app", UserID: "ana", SessionID: e.Scored[0].Run})
	if err != nil {
		t.Fatal(err)
	}
	c, err := eval.CaseOf(run.View(), &b.Code)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cases.yaml")
	if err := eval.Append(file, c); err != nil {
		t.Fatal(err)
	}
	again, err := cases.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	got := again.Cases[0]
	if diff := cmp.Diff(fmt.Sprint(set.Cases[0].State, set.Cases[0].Answers), fmt.Sprint(got.State, got.Answers)); diff != "" {
		t.Error(diff)
	}
	again.Checks = []check.Spec{{Kind: check.Equals}}
	e = b.run(t, &eval.Plan{Set: *again, Versions: []eval.Version{v}})
	if want := "Cats true 7 1 it 5 x"; e.Scored[0].Answer != want || *got.Turns[0].Expected != want {
		t.Errorf("%+v of %+v", e.Scored[0], got)
	}
}
