// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

// U6, T9: warnings do not keep a definition from running.
func TestWarnings(t *testing.T) {
	d := parse(t, `name: warned
inputs: {topic: cats, unused: 1}
sub_agents:
  - name: a
    command: [echo, hi, "{{score}}", "{maybe}"]
    stdin: "{{topic}}"
    can_exit_loop: true
  - name: b
    text: "{maybe} {{perhaps?}}"
`)
	var b strings.Builder
	if err := d.Warnings().Format(&b); err != nil {
		t.Fatal(err)
	}
	want := `x.yaml:2:23: warning: no agent reads the input "unused" [LOOP023]
    2 | inputs: {topic: cats, unused: 1}
      |                       ^^^^^^
x.yaml:5:26: warning: {{score}} is always empty here: the loop "warned" has no score [LOOP024]
    5 |     command: [echo, hi, "{{score}}", "{maybe}"]
      |                          ^^^^^^^^^
x.yaml:7:20: warning: "a" never asks to end the loop [LOOP017]
    7 |     can_exit_loop: true
      |                    ^^^^ give it exit_when, the condition that ends the loop
x.yaml:9:12: warning: {maybe} is read here but no agent writes it [LOOP020]
    9 |     text: "{maybe} {{perhaps?}}"
      |            ^^^^^^^ the keys are topic, unused; declare a value from outside under inputs
x.yaml:9:20: warning: {{perhaps?}} is read here but no agent writes it [LOOP020]
    9 |     text: "{maybe} {{perhaps?}}"
      |                    ^^^^^^^^^^^^ the keys are topic, unused; declare a value from outside under inputs
5 warnings
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := d.Build(t.Context(), definition.BuildConfig{}); err != nil {
		t.Error(err)
	}
	b.Reset()
	if err := definition.Problems(nil).Format(&b); err != nil || b.Len() > 0 {
		t.Errorf("no problems are %q, %v", b.String(), err)
	}
}

// A coding agent that cli asks does not speak the Agent Client Protocol by itself.
func TestWarningOfACodingAgentUnderACP(t *testing.T) {
	d := parse(t, "name: x\nacp: [claude]\nprompt: hi\n")
	if got := d.Warnings(); len(got) != 1 || got[0].Message != "claude alone does not speak the Agent Client Protocol" || got[0].Hint != "write cli: claude" {
		t.Errorf("warned of %v", got)
	}
	if got := parse(t, "name: x\nacp: [claude, --acp]\nprompt: hi\n").Warnings(); len(got) > 0 {
		t.Errorf("warned of %v", got)
	}
}

// A command in which a value may be run as code has to say so, and check says so too.
func TestUnsafeIsNoted(t *testing.T) {
	const text = "name: a\ninputs: {x: hi}\ncommand: [sh, -c, 'echo {{x}}']\n"
	if _, err := definition.Parse("x.yaml", []byte(text), definition.Options{}); err == nil ||
		!strings.Contains(err.Error(), "command[2]: {{x}} is text of any content") {
		t.Errorf("without unsafe: %v", err)
	}
	for field, want := range map[string]string{
		"unsafe: true\n": `"a" is unsafe: it takes any value as an argument or a setting`,
		"unsafe: true\ncommand: [cat]\nstdin: '{{x}}'": `"a" does not need unsafe`,
	} {
		all := text + field
		if strings.Contains(field, "command") {
			all = "name: a\ninputs: {x: hi}\n" + field
		}
		var got []string
		for _, p := range parse(t, all).Notes() {
			got = append(got, p.Message)
		}
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: notes %q, want %q", field, got, want)
		}
	}
}

// D17: an output key is one result's own.
func TestSharedKeysAreNoted(t *testing.T) {
	d := parse(t, `name: a
type: sequential
inputs: {topic: cats, draft: hi}
sub_agents:
  - {name: b, text: "{{topic}} {{draft}}", output_key: topic}
  - {name: c, text: one, output_key: verdict}
  - {name: d, text: "two {{verdict}}", output_key: verdict}
  - name: e
    type: loop
    max_iterations: 2
    output_key: story
    sub_agents: [{name: f, text: "{{story}}", output_key: story}]
`)
	var got []string
	for _, p := range d.Notes() {
		if p.Code == definition.CodeSharedKey {
			got = append(got, p.Message)
		}
	}
	want := []string{
		`"b" overwrites "topic", which an input gives`,
		`"c" and "d" both write "verdict": the later result overwrites the earlier one`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// D17: keys are written in snake_case. Another spelling works, and is noted with the usual one.
func TestKeysNotInSnakeCaseAreNoted(t *testing.T) {
	d := parse(t, `name: a
type: sequential
inputs: {theTopic: cats, plain_topic: x}
state: {HTTPStatus: 0, "app:Level": 1}
sub_agents:
  - {name: b, text: "{{theTopic}} {{plain_topic}} {{HTTPStatus}}", output_key: my-draft}
  - {name: c, text: "{{my-draft}}", output_key: ação}
  - {name: d, set: {wordCount2: 'size(state["my-draft"])'}}
  - {name: e, text: "{{wordCount2}} {{ação}}", output_key: Nota}
`)
	var got []string
	for _, p := range d.Notes() {
		if p.Code == definition.CodeKeyName {
			got = append(got, fmt.Sprintf("%d: %s: %s", p.Line, p.Message, p.Hint))
		}
	}
	want := []string{
		`3: the key "theTopic" is not in snake_case: write the_topic, so that all keys are spelled alike`,
		`4: the key "HTTPStatus" is not in snake_case: write http_status, so that all keys are spelled alike`,
		`4: the key "app:Level" is not in snake_case: write app:level, so that all keys are spelled alike`,
		`6: the key "my-draft" is not in snake_case: write my_draft: in an expression, state.my-draft subtracts`,
		`8: the key "wordCount2" is not in snake_case: write word_count2, so that all keys are spelled alike`,
		`9: the key "Nota" is not in snake_case: write nota, so that all keys are spelled alike`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// LOOP 16: a loop of which nobody can say whose words it hands back is warned of.
func TestResultThatCannotBeTold(t *testing.T) {
	const (
		writer = `{name: writer, instructions: 'Improve {{draft}} by {{review}}', output_key: draft, can_exit_loop: WRITER}`
		critic = `{name: critic, instructions: 'Judge {{draft}}', output_key: review, can_exit_loop: CRITIC}`
		makes  = `{name: make, set: {draft: iteration * 2}}`
		marks  = `{name: mark, text: "{{draft}}", output_key: mark}`
		inLine = `{name: line, type: sequential, sub_agents: [` + writer + `, ` + critic + `]}`
	)
	for name, tt := range map[string]struct {
		head, writer, critic string
		steps                []string
		want                 string
	}{
		"a review":            {"", "false", "false", []string{writer, critic}, `it is not clear what "x" hands back: "critic" speaks last, but the steps before it read what it says`},
		"both may leave":      {"", "true", "true", []string{writer, critic}, `it is not clear what "x" hands back: "critic" speaks last, but it may end the loop, and so may others`},
		"the critic alone":    {"", "false", "true", []string{writer, critic}, ""},
		"the writer last":     {"state: {draft: once}\n", "false", "false", []string{critic, writer}, ""},
		"the writer is told":  {"result: draft\n", "false", "false", []string{writer, critic}, ""},
		"the critic decides":  {"stop_when: state.review == \"fine\"\n", "false", "false", []string{writer, critic}, ""},
		"the critic scores":   {"score: {key: review, target: 8, label: Score}\n", "false", "false", []string{writer, critic}, ""},
		"a finalizer":         {"", "false", "false", []string{writer, critic, `{name: tell, text: "{{draft}}", output_key: loop_output}`}, ""},
		"nobody speaks after": {"", "false", "false", []string{writer, `{name: count, set: {n: iteration}}`}, ""},
		"a critic within":     {"", "false", "true", []string{inLine}, `it is not clear what "x" hands back: "critic" speaks last, but it may end the loop`},
		"a judge within": {"score: {key: review, target: 8, label: Score}\n", "false", "false", []string{inLine},
			`it is not clear what "x" hands back: "critic" speaks last, but the loop stops by what it says`},
		"a review within":     {"", "false", "false", []string{inLine}, `it is not clear what "x" hands back: "critic" speaks last, but the steps before it read what it says`},
		"a key of a sequence": {"result: draft\n", "false", "true", []string{inLine}, ""},
		"only a score": {"score: {key: mark}\n", "", "", []string{makes, marks},
			`"x" hands back its score: no step but "mark" says anything`},
		"a score and a key":   {"score: {key: mark}\nresult: draft\n", "", "", []string{makes, marks}, ""},
		"a score that is set": {"score: {key: n}\n", "", "", []string{`{name: count, set: {n: iteration}}`, `{name: mark, text: "{{n}}"}`}, ""},
		"another order":       {"order: [critic, writer]\nstate: {draft: once}\n", "false", "false", []string{writer, critic}, ""},
	} {
		steps := strings.NewReplacer("WRITER", tt.writer, "CRITIC", tt.critic).Replace("  - " + strings.Join(tt.steps, "\n  - "))
		if !strings.Contains(steps, "critic") {
			steps = strings.Replace(steps, " by {{review}}", "", 1)
		}
		var said strings.Builder
		for _, p := range parse(t, "name: x\nmax_iterations: 3\n"+tt.head+"sub_agents:\n"+steps+"\n").Warnings() {
			if p.Code == definition.CodeResult {
				said.WriteString(p.Message)
			}
		}
		if said.String() != tt.want {
			t.Errorf("%s: %q, want %q", name, said.String(), tt.want)
		}
	}
}

// check says which placeholder keeps a provider's cache from the text behind it, and only where that matters.
func TestWarningOfASpoiledCache(t *testing.T) {
	long := strings.Repeat("All the rules. ", 320)
	for name, c := range map[string]struct{ agent, warned string }{
		"before the rules":         {"instructions: 'About {{topic}}: better than {{draft?}}. " + long + "'", "behind {{draft}} stand 1200 tokens that no cache can keep"},
		"behind them":              {"instructions: '" + long + " Better than {{draft?}}.'", ""},
		"only an input":            {"instructions: 'About {{topic}}. " + long + "'", ""},
		"the rules are static":     {"instructions: 'Better than {{draft?}}. " + long + "'\n    static_instruction: 'Write well.'", ""},
		"nobody asks for a cache":  {"instructions: 'Better than {{draft?}}. " + long + "'\n    prompt_cache: off", ""},
		"too short to be worth it": {"instructions: 'Better than {{draft?}}. " + long[:3000] + "'", ""},
	} {
		d := parse(t, "name: l\nmax_iterations: 3\ninputs: {topic: cats}\nsub_agents:\n  - name: a\n    output_key: draft\n    "+c.agent+"\n")
		var got []string
		for _, p := range d.Warnings() {
			if p.Code == definition.CodeSpoiled {
				got = append(got, p.Message)
			}
		}
		if text := strings.Join(got, "; "); text != c.warned {
			t.Errorf("%s: warned %q, want %q", name, text, c.warned)
		}
	}
}

// check says what happens when a coding agent is denied something, unless the definition does.
func TestDeniedIsExplained(t *testing.T) {
	for fields, want := range map[string]string{
		"cli: claude, prompt: Mend it.":                    `"a" fails if its coding agent tries what it may not: its permissions are edit`,
		"cli: claude, prompt: Mend it., permissions: read": `"a" fails if its coding agent tries what it may not: its permissions are read`,
		"cli: claude, prompt: Mend it., denied: fail":      "",
		"cli: claude, prompt: Mend it., denied: allow":     "",
		"cli: claude, prompt: Mend it., permissions: all":  "",
		"cli: codex, prompt: Mend it.":                     "", // it does not say that it was denied something
		"command: [\"true\"]":                              "",
	} {
		var got strings.Builder
		for _, p := range parse(t, "name: l\nmax_iterations: 2\nsub_agents: [{name: a, "+fields+"}]\n").Notes() {
			if p.Code == definition.CodeTask {
				got.WriteString(p.Message)
			}
		}
		if got.String() != want {
			t.Errorf("%s: %q, want %q", fields, got.String(), want)
		}
	}
}
