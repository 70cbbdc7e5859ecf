// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/command/internal/plan"
)

const sections = "# Goal\n\nMake it fast.\n\n## Validation Commands\n- `go test ./...`\n- go vet ./...\n\n" +
	"### Task 1: Cache the `index`\n- [x] write it\n- [ ] test it\n\n```\n- [ ] no box\n```\nCheck: `go test ./cache`\n\n" +
	"### Iteration 2: Measure\n- [x] with a text about [ ] boxes\n- [x] done\n\n### Notes\nNothing.\n"

const list = "# Eight tasks\n\n## Tasks\n\n- [ ] One\n  - [ ] with a part\n\n  and a text\n- [!] Two\n1. [X] **Three**\n* [ ] One\n"

const stories = `{"project": "P", "branchName": "ralph/p", "userStories": [
  {"id": "US-2", "title": "Second", "priority": 2, "passes": false, "notes": ""},
  {"id": "US-1", "title": "First", "acceptanceCriteria": ["a", "b"], "priority": 1, "passes": true},
  {"id": "US-3", "title": "Third", "priority": 3}
]}`

func tasks(p *plan.Plan) (all []string) {
	for _, t := range p.Tasks {
		all = append(all, fmt.Sprintf("[%c] %s|%s", t.Mark, t.Key, t.Check))
	}
	return all
}

func TestPlansAreRead(t *testing.T) {
	for _, tt := range []struct {
		text, check, branch string
		want                []string
	}{
		{sections, "go test ./...\ngo vet ./...", "fast", []string{"[ ] Task 1: Cache the index|go test ./cache", "[x] Iteration 2: Measure|"}},
		{list, "", "fast", []string{"[ ] One|", "[!] Two|", "[x] Three|", "[ ] One (2)|"}},
		{stories, "", "ralph/p", []string{"[x] US-1 First|", "[ ] US-2 Second|", "[ ] US-3 Third|"}},
	} {
		p, err := plan.Parse(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, tasks(p)); diff != "" || p.Check != tt.check || p.BranchOf("docs/2026-01-02-Fast.md") != tt.branch {
			t.Errorf("%s\ncheck %q, branch %q", diff, p.Check, p.BranchOf("docs/2026-01-02-Fast.md"))
		}
	}
	p, _ := plan.Parse(list)
	if want := "- [ ] One\n  - [ ] with a part\n\n  and a text"; p.Tasks[0].Text != want {
		t.Errorf("the first task is %q", p.Tasks[0].Text)
	}
	for _, text := range []string{"", "no task", "```\n- [ ] x\n```\n", "{}", `{"userStories": [{}]}`, "{"} {
		if _, err := plan.Parse(text); err == nil {
			t.Errorf("%q is taken for a plan", text)
		}
	}
}

// Only the boxes of the tasks change.
func TestBoxesAreMarked(t *testing.T) {
	for text, want := range map[string]string{
		sections: strings.Replace(sections, "- [ ] test it", "- [x] test it", 1),
		list:     strings.Replace(strings.Replace(list, "[ ] One", "[x] One", 1), "[ ] with", "[x] with", 1),
		stories:  strings.Replace(strings.Replace(stories, "false", "true", 1), `{"id": "US-3`, `{"passes": true, "id": "US-3`, 1),
	} {
		p, err := plan.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Marked(map[string]plan.Mark{"Task 1: Cache the index": plan.Done, "One": plan.Done, "US-2 Second": plan.Done, "US-3 Third": plan.Done})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

// A text with all boxes marked has the same tasks, all done; the rest of the text stays.
func FuzzPlan(f *testing.F) {
	for _, text := range []string{sections, list, stories, "- [ ] a\r\n\t- [ ] b\r\n~~~\n~~~\n## x\n### y\n- [x] z", "### a\n- [ ] b\n#### c\n- [ ] d\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := plan.Parse(text)
		if err != nil {
			return
		}
		marks := make(map[string]plan.Mark)
		for _, k := range p.Tasks {
			if _, ok := marks[k.Key]; ok {
				t.Fatalf("two tasks have the key %q", k.Key)
			}
			marks[k.Key] = plan.Done
		}
		done := p.Marked(marks)
		again, err := plan.Parse(done)
		if err != nil || len(again.Tasks) != len(p.Tasks) {
			t.Fatalf("%q with all boxes marked is %q: %v", text, done, err)
		}
		for i, k := range again.Tasks {
			if k.Mark != plan.Done || k.Key != p.Tasks[i].Key {
				t.Fatalf("task %q of %q is %q, %c", p.Tasks[i].Key, done, k.Key, k.Mark)
			}
		}
		if !json.Valid([]byte(text)) && len(done) != len(text) {
			t.Fatalf("%q became %q", text, done)
		}
	})
}

// A task that fails gives back its own files only: a task that was done between its tries keeps its work.
func TestFilesFromBeforeAFailedTask(t *testing.T) {
	read := func(text string) *plan.Plan {
		p, err := plan.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	alone, both := read("- [ ] Hard\n"), read("- [ ] Easy\n- [ ] Hard\n")
	var g plan.Progress
	for i, step := range []struct {
		plan      *plan.Plan
		files     string
		succeeds  bool
		restoring string
	}{
		{alone, "a", false, ""}, {both, "b", true, ""}, {both, "c", false, ""}, {both, "d", false, "c"},
	} {
		next := step.plan.Next(g, "true", step.files)
		out := step.plan.Tick(next, plan.Outcome{Succeeded: step.succeeds, Tries: 3})
		if g = out.Progress; out.Restore != step.restoring {
			t.Errorf("step %d, task %s: restores %q, want %q", i, next.Title, out.Restore, step.restoring)
		}
	}
	next := alone.Next(plan.Progress{}, "true", "a")
	if out := alone.Tick(next, plan.Outcome{Tries: 1, Stop: true}); out.Restore != "" || !out.Over {
		t.Errorf("a loop that stops restores %q", out.Restore)
	}
}
