// SPDX-License-Identifier: Apache-2.0

package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// summary writes a grade on one line.
func summary(g check.Grade) string {
	var all []string
	for _, r := range g.Results {
		text := r.Name + " –"
		if r.Value != nil {
			text = fmt.Sprintf("%s %s", r.Name, brief.Score(*r.Value))
		}
		all = append(all, text)
	}
	text := strings.Join(all, ", ")
	if g.Passed != nil {
		text += fmt.Sprintf(": %t %s", *g.Passed, brief.Score(*g.Score))
	}
	return text
}

// grade runs the checks of the first case of a file over the answers of its turns.
func grade(t *testing.T, text string, answers ...string) string {
	t.Helper()
	set := read(t, "a.yaml", text)
	g, err := set.Grader()
	if err != nil {
		t.Fatal(err)
	}
	s := &check.Subject{Case: set.Cases[0]}
	for _, a := range answers {
		s.Turns = append(s.Turns, check.Outcome{Answer: a})
	}
	got, err := g.Grade(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return summary(got)
}

func TestGrade(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		answers    []string
	}{
		{"cases: [{input: a}]", "completed 1: true 1", []string{"x"}},
		{"cases: [{input: a}]", "completed 0: false 0", nil},
		{"cases: [{input: a, expected: b}]", "rouge1 1: true 1", []string{"B!"}},
		{"cases: [{input: a, expected: b, calls: []}]", "rouge1 0, calls 1: false 0.5", []string{"c"}},
		{"cases: [{input: a, expected: b, checks: [equals]}]", "equals 1: true 1", []string{"b"}},
		{"cases: [{input: a, expected: b, checks: [{contains: b}]}]", "rouge1 0.5, contains 1: false 0.75", []string{"b c d"}},
		{"cases: [{input: a, expected: b}]\nchecks: [completed]", "completed 1: true 1", []string{"c"}},
		{"cases: [{input: a, expected: b}]\nchecks: []", "", []string{"c"}},
		{"cases: [{input: a, expected: b}]\nchecks: [equals, {contains: c, weight: 3}]\npass: {score: 0.75}", "equals 0, contains 1: true 0.75", []string{"c"}},
		{"cases: [{input: a, expected: b}]\nchecks: [equals, {contains: c, weight: 3}]\npass: {score: 0.76}", "equals 0, contains 1: false 0.75", []string{"c"}},
		{"cases: [{input: a}]\nchecks: [{equals: b, informational: true}, {equals: c}]", "equals 0, equals #2 1: true 1", []string{"c"}},
		{"cases: [{input: a}]\nchecks: [equals]", "equals –", []string{"c"}},
		{"cases: [{turns: [{input: a, checks: [{equals: x}]}, {input: b, checks: [{equals: y, name: end}]}]}]",
			"turn 1: equals 1, turn 2: end 0: false 0.5", []string{"x", "z"}},
		{"cases: [{turns: [{input: a, expected: x}, {input: b, expected: y}]}]", "rouge1 0.5: false 0.5", []string{"x"}},
	} {
		if got := grade(t, tt.text, tt.answers...); got != tt.want {
			t.Errorf("%s\n%q: got %s, want %s", tt.text, tt.answers, got, tt.want)
		}
	}
}

func TestGradeOfACanceledContextIsAnError(t *testing.T) {
	g, err := read(t, "a.yaml", "cases: [{id: a, input: a}]").Grader()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := g.Grade(ctx, &check.Subject{Case: cases.Case{ID: "a"}}); !errors.Is(err, cause) {
		t.Error(err)
	}
}

// A grader is used by many case-runs at a time; the race detector looks at this test.
func TestGraderIsSafeForConcurrentUse(t *testing.T) {
	set := read(t, "a.yaml", `
cases: [{input: a, expected: b, calls: []}]
checks: [rouge1, calls, equals, {matches: b}, {schema: {type: object}}, {expr: "json(answer).a == 1"}, {max: {seconds: 1}}, completed]
`)
	g, err := set.Grader()
	if err != nil {
		t.Fatal(err)
	}
	s := &check.Subject{Case: set.Cases[0], Turns: []check.Outcome{{Answer: `b {"a": 1}`}}}
	var wg sync.WaitGroup
	grades := make([]string, 8)
	for i := range grades {
		wg.Go(func() {
			if grade, err := g.Grade(t.Context(), s); err == nil {
				grades[i] = summary(grade)
			}
		})
	}
	wg.Wait()
	if want := "rouge1 0.5, calls 1, equals 0, matches 1, schema 0, expr 1, max 1, completed 1: false 0.6875"; len(slices.Compact(grades)) != 1 || grades[0] != want {
		t.Errorf("%q", grades)
	}
}

func TestGraderNamesWhatIsWrong(t *testing.T) {
	set := &cases.Set{Cases: []cases.Case{{ID: "a", Checks: []check.Spec{{Kind: check.Expr, Expr: "1 +"}}}}}
	_, err := set.Grader()
	if e, ok := errors.AsType[*check.Error](err); !ok || e.Field != "expr" || !strings.HasPrefix(err.Error(), `check "expr" of case "a": expr:1:`) {
		t.Error(err)
	}
}

// No text makes a reader panic. What it accepts can be graded and stored, and has IDs that differ.
func FuzzRead(f *testing.F) {
	for name, text := range adkForms {
		f.Add(name, text, `{"criteria": {"response_match_score": 0.1}}`)
	}
	f.Add("a.yaml", "cases: b.csv\nchecks: [rouge1, {expr: \"score > 1.0\"}, {schema: {type: object}}]", "input,set.a\n1,\"2\"\n")
	f.Add("a.csv", "id;input;tags\n1;a;b c\n", "")
	f.Add("a.jsonl", `{"input": "a", "turns": null, "calls": [{"name": "b", "args": {"c": 1e400}}]}`, "")
	f.Add("a.yaml", "cases: [&a {input: a, state: {<<: *a}, checks: [{max: {cost: .nan}}]}]", "")
	f.Fuzz(func(t *testing.T, name, text, other string) {
		if i := strings.LastIndexByte(name, '.'); i < 0 || !slices.Contains([]string{".csv", ".jsonl", ".json", ".yaml"}, name[i:]) {
			name = "a.yaml"
		} else {
			name = "a" + name[i:]
		}
		fsys := fstest.MapFS{"test_config.json": {Data: []byte(other)}, "b.csv": {Data: []byte(other)}, "b.jsonl": {Data: []byte(other)}}
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		set, err := cases.Read(fsys, name, "")
		if err != nil {
			return
		}
		g, err := set.Grader()
		if err != nil {
			t.Fatalf("%v of\n%s", err, text)
		}
		ids := make(map[string]bool)
		for _, c := range set.Cases {
			if ids[c.ID] || len(c.Turns) == 0 {
				t.Fatalf("case %q of\n%s", c.ID, text)
			}
			ids[c.ID] = true
			if _, err := g.Grade(t.Context(), &check.Subject{Case: c, Turns: []check.Outcome{{Answer: "a"}}}); err != nil {
				t.Fatal(err)
			}
		}
		set.Hash()
		if _, err := json.Marshal(set); err != nil {
			t.Fatal(err)
		}
	})
}
