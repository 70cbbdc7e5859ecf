// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session/mark"
)

// LOOP 32: a person looks at each iteration and ends the loop by approving. What
// the person says is in the state.
func TestPersonApproves(t *testing.T) {
	h := newHouse(t, `name: letter
max_iterations: 5
sub_agents:
  - name: write
    text: draft {{iteration}}, {{review.reason}}
    output_key: draft
  - name: review
    question: "Good? {{draft}}"
    can_exit_loop: true
    output_key: review
`, definition.BuildConfig{})
	q := h.asked()
	if q.Kind != mark.AskApproval || q.Text != "Good? draft 1, " || !q.Deadline.IsZero() {
		t.Errorf("asked %+v", q)
	}
	h.answer(q, "false")
	q = h.asked()
	if q.Text != "Good? draft 2, because" {
		t.Errorf("asked %q", q.Text)
	}
	h.answer(q, "true")
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%v %v", h.state("review"), h.state("draft")); got != "map[approved:true reason:because] draft 2, because" {
		t.Errorf("the state has %s", got)
	}
}

// LOOP 32: a person answers in words, among some, or edits the state.
func TestPersonAnswersAndEdits(t *testing.T) {
	h := newHouse(t, `name: line
type: sequential
state: {draft: one, tone: dry}
sub_agents:
  - {name: title, question: "Which title for {{draft}}?", ask: answer, output_key: title}
  - {name: size, question: How long?, ask: answer, options: [short, long], output_key: size}
  - {name: fix, question: Fix it., ask: edit, keys: [draft, tone]}
  - {name: say, text: "{{title}}, {{size}}, {{draft}}, {{tone}}", output_key: said}
`, definition.BuildConfig{})
	q := h.asked()
	h.answer(q, `"The cat"`)
	if q = h.asked(); cmp.Diff([]string{"short", "long"}, q.Options) != "" {
		t.Errorf("asked %+v", q)
	}
	h.answer(q, `"long"`)
	if q = h.asked(); cmp.Diff(map[string]any{"draft": "one", "tone": "dry"}, q.Keys) != "" {
		t.Errorf("asked %+v", q)
	}
	h.answer(q, `{"draft": "two"}`)
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	if got := h.state("said"); got != "The cat, long, two, dry" {
		t.Errorf("said %q", got)
	}
}

// LOOP 32: every form of a default is one of the question.
func TestDefaultAnswers(t *testing.T) {
	for _, tt := range []struct{ fields, want string }{
		{"default: false", "false"},
		{"ask: approve, default: true", "true"},
		{"ask: answer, default: 7", `"7"`},
		{"ask: answer, default: as it is", `"as it is"`},
		{"ask: answer, options: [a, 2], default: 2", `"2"`},
		{"ask: edit, keys: [draft], default: {draft: [1, x]}", `{"draft":[1,"x"]}`},
		{"ask: edit, keys: [draft], default: {}", `{}`},
	} {
		d := parse(t, "name: x\ntype: sequential\nstate: {draft: a}\nsub_agents: [{name: a, question: What?, deadline: 24h, "+tt.fields+"}]")
		if got := string(d.Root.SubAgents[0].Human.Default); got != tt.want {
			t.Errorf("%s: the default is %s, want %s", tt.fields, got, tt.want)
		}
		h := newHouse(t, "name: x\ntype: sequential\nstate: {draft: a}\nsub_agents: [{name: a, question: What?, deadline: 24h, "+tt.fields+"}]", definition.BuildConfig{})
		if q := h.asked(); string(q.Default) != tt.want || q.Deadline.IsZero() {
			t.Errorf("%s: asked %+v", tt.fields, q)
		}
	}
}

// LOOP 32, 34: before a run it is said who may not answer, how long that may take,
// and how the loop can end.
func TestPeopleBeforeARun(t *testing.T) {
	d := parse(t, `name: people
max_iterations: 3
state: {draft: a}
sub_agents:
  - {name: gate, question: Good?, can_exit_loop: true}
  - {name: word, question: Which?, ask: answer, deadline: 1h}
  - {name: edit, question: Fix., ask: edit, keys: [draft], can_exit_loop: true, deadline: 10m, default: {}}
`)
	var b strings.Builder
	d.Warnings().Format(&b)
	d.Notes().Format(&b)
	worst := d.Worst(definition.Assumed{})
	worst.Notes().Format(&b)
	const want = `x.yaml:6:59: warning: if there is no answer within 1h, "word" fails [LOOP047]
    6 |   - {name: word, question: Which?, ask: answer, deadline: 1h}
      |                                                           ^^ give default, the answer to use then
x.yaml:7:75: warning: "edit" never asks to end the loop [LOOP017]
    7 | k: edit, keys: [draft], can_exit_loop: true, deadline: 10m, default: {}}
      |                                        ^^^^ a person ends the loop by approving: ask: approve; or read the answer in the loop's stop_when
2 warnings
x.yaml:6:28: note: no agent uses the answer to "word" [LOOP047]
    6 |   - {name: word, question: Which?, ask: answer, deadline: 1h}
      |                            ^^^^^^ give it an output_key, and read it: {{KEY}}
1 note
x.yaml:5:28: note: nothing limits how long "gate" waits for a person [LOOP046]
    5 |   - {name: gate, question: Good?, can_exit_loop: true}
      |                            ^^^^^ give deadline, such as 24h, and default, the answer to use then
1 note
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if ways := d.Root.Stops(); ways[0].Text != "gate: when the person approves" || len(ways) != 3 {
		t.Errorf("it ends %v", ways)
	}
	if !worst.Total.Seconds.Unbounded() || worst.Total.Calls != 0 {
		t.Errorf("at the most %+v", worst.Total)
	}
	// No timeout bounds how long people take: 30m of the loop, and 3 times 70m.
	bounded := parse(t, `name: x
max_iterations: 3
sub_agents:
  - {name: gate, question: Good?, can_exit_loop: true, deadline: 1h, default: false, retry: 2}
  - {name: work, command: [work]}
  - {name: more, type: parallel, sub_agents: [{name: a, question: A?, deadline: 10m, default: true}]}
`)
	if got := float64(bounded.Worst(definition.Assumed{}).Total.Seconds); got != 900+3*(2*3600+600) {
		t.Errorf("at the most %v seconds", got)
	}
	if _, err := definition.Parse("x.yaml", []byte("name: x\nmax_iterations: 0\nsub_agents: [{name: a, question: Good?, can_exit_loop: true}]"),
		definition.Options{}); err != nil {
		t.Errorf("a person can end a loop that has no other bound: %v", err)
	}
	if _, err := definition.Parse("x.yaml",
		[]byte("name: x\nmax_iterations: 0\nsub_agents: [{name: a, question: Good?, ask: answer, can_exit_loop: true}]"),
		definition.Options{}); err == nil {
		t.Error("nothing ends this loop")
	}
}
