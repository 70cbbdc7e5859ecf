// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/runs/program"
)

const team = `name: team   # of two
type: sequential
inputs: {topic: bread}
sub_agents:
  - name: writer
    model: openai/x
    instructions: |
      Write about {{topic}}.
    output_key: draft
  - {name: keep, command: [sh, keep.sh], stdin: "{{draft}}", description: Keeps it.}
  - {name: list, text: "{{#topic}}{{.}}{{/topic}}", output_key: listed}
`

func readTeam(t *testing.T) *program.Program {
	t.Helper()
	p := new(program.Program)
	if _, err := p.ReadOwn("team.yaml", program.Text(team)); err != nil {
		t.Fatal(err)
	}
	return p
}

// A change replaces one text and keeps the rest of the file, and its patch says how the file differs.
func TestChange(t *testing.T) {
	p := readTeam(t)
	def, texts, patch, err := eval.Change(p, map[string]string{"writer.instructions": "Praise {{topic}}.\nBe short.\n", "keep.description": ""})
	if err != nil {
		t.Fatal(err)
	}
	want := "--- a/team.yaml\n+++ b/team.yaml\n@@ -5,7 +5,8 @@\n   - name: writer\n     model: openai/x\n     instructions: |\n" +
		"-      Write about {{topic}}.\n+      Praise {{topic}}.\n+      Be short.\n     output_key: draft\n"
	if !strings.HasPrefix(patch, want) || !strings.Contains(p.Files[p.Path], "# of two\n") {
		t.Errorf("the patch is\n%s\nwant\n%s", patch, want)
	}
	if got := fmt.Sprint(texts); got != "[{keep.description Keeps it.} {writer.instructions Praise {{topic}}.\nBe short.\n}]" {
		t.Errorf("the texts are %s", got)
	}
	at, err := filepath.Abs("team.yaml")
	for name, want := range map[string]string{at: "--- a/team.yaml\n", "../../up/team.yaml": "--- a/team.yaml\n", "teams/./team.yaml": "--- a/teams/team.yaml\n"} {
		moved := readTeam(t)
		moved.File = name
		if _, _, patch, wrong := eval.Change(moved, map[string]string{"writer.instructions": "Praise {{topic}}."}); errors.Join(err, wrong) != nil || !strings.HasPrefix(patch, want) {
			t.Errorf("%s: %v %v\n%s", name, err, wrong, patch)
		}
	}
	if def.Root.SubAgents[0].LLM.Instructions != "Praise {{topic}}.\nBe short.\n" {
		t.Errorf("the definition has %q", def.Root.SubAgents[0].LLM.Instructions)
	}
	for _, same := range []string{"", " \n", "Write about {{topic}}."} {
		p := readTeam(t)
		if _, _, patch, err := eval.Change(p, map[string]string{"writer.instructions": same}); err != nil || patch != "" || p.Files[p.Path] != team {
			t.Errorf("%q changes the definition: %v\n%s", same, err, patch)
		}
	}
}

// A proposed text that reads more or less than the text before, or that is not for one of the texts, is refused.
func TestRefusedChange(t *testing.T) {
	for _, tt := range []struct {
		field, text, want string
		mistake           bool // of whoever names the field, and not of whoever proposes the text
	}{
		{field: "writer.instructions", text: "Write.", want: "lacks the placeholder {{topic}}"},
		{field: "writer.instructions", text: "Write about {{topic}} and {{app:key}}.", want: "has a placeholder {{app:key}}"},
		{field: "writer.instructions", text: "Write about {{topic}} {artifact.key}.", want: "has a placeholder {{artifact.key}}"},
		{field: "writer.instructions", text: "{{#topic}} {{topic}}", want: "topic"},
		{field: "list.text", text: "{{topic}} {{#topic}}{{.}}{{/topic}}", want: "has a placeholder {{topic}}"},
		{field: "list.text", text: "{{#topic}}{{topic}}{{/topic}}", want: "lacks the placeholder {{.}} in {{#topic}}"},
		{field: "writer.text", text: "Bread", want: "no such text", mistake: true},
		{field: "nobody.instructions", text: "Bread", want: "no agent", mistake: true},
		{field: "keep.command", text: "rm", want: "cannot be changed", mistake: true},
		{field: "keep.stdin", text: "rm", want: "cannot be changed", mistake: true},
		{field: "instructions", text: "Bread", want: "cannot be changed", mistake: true},
	} {
		p := readTeam(t)
		_, _, _, err := eval.Change(p, map[string]string{tt.field: tt.text})
		if _, ok := errors.AsType[*eval.Refusal](err); ok == tt.mistake || err == nil || !strings.Contains(err.Error(), tt.want) || p.Files[p.Path] != team {
			t.Errorf("%s %q: %v, want %q", tt.field, tt.text, err, tt.want)
		}
	}
}

// The parts of a set share no group and have all cases, whatever the order of the file.
func TestPart(t *testing.T) {
	var all []check.Case
	for i := range 30 {
		all = append(all, check.Case{ID: fmt.Sprint("c", i), Group: []string{"", "", fmt.Sprint("g", i%4)}[i%3]})
	}
	split := func(seed uint64, part string, from []check.Case) (ids []string) {
		set := cases.Set{Seed: seed, Cases: from}
		if err := eval.Part(&set, part, 0.3); err != nil {
			t.Fatal(err)
		}
		for _, c := range set.Cases {
			ids = append(ids, c.ID)
		}
		return ids
	}
	turned := slices.Clone(all)
	slices.Reverse(turned)
	seen := make(map[string]bool)
	for seed := range uint64(20) {
		train, hidden := split(seed, eval.PartTrain, all), split(seed, eval.PartHidden, all)
		seen[fmt.Sprint(hidden)] = true
		group := make(map[string]string)
		for name, ids := range map[string][]string{"train": train, "hidden": hidden} {
			for _, id := range ids {
				for _, c := range all {
					if c.ID == id && c.Group != "" && group[c.Group] != "" && group[c.Group] != name {
						t.Errorf("seed %d: group %s is in both parts", seed, c.Group)
					} else if c.ID == id && c.Group != "" {
						group[c.Group] = name
					}
				}
			}
		}
		again := split(seed, eval.PartHidden, turned)
		slices.Reverse(again)
		if len(train)+len(hidden) != len(all) || len(hidden) < 5 || len(hidden) > 14 || !slices.Equal(hidden, again) {
			t.Errorf("seed %d: %d and %d cases, %v and %v", seed, len(train), len(hidden), hidden, again)
		}
	}
	if len(seen) < 10 {
		t.Errorf("20 seeds make %d parts", len(seen))
	}
	refused(t, eval.Part(&cases.Set{Cases: []check.Case{{ID: "a", Group: "g"}, {ID: "b", Group: "g"}}}, eval.PartTrain, 0.3), "1 group of cases")
	for _, part := range []string{eval.PartTrain, eval.PartHidden} {
		two := cases.Set{Cases: []check.Case{{ID: "a"}, {ID: "b"}}}
		if err := eval.Part(&two, part, 0.99); err != nil || len(two.Cases) != 1 {
			t.Errorf("%s of two cases: %d, %v", part, len(two.Cases), err)
		}
	}
}
