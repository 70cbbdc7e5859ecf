// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// folder is a folder of definitions.
func folder(files map[string]string) fstest.MapFS {
	fsys := make(fstest.MapFS)
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func parseIn(files map[string]string) (*definition.Definition, error) {
	return definition.Parse("x.yaml", []byte(files["x.yaml"]), definition.Options{FS: folder(files)})
}

const critic = "name: critic\ninstructions: Say what is wrong.\noutput_key: review\non_error: stop\n"

// U12, T9: an agent in a file can be used twice, with another name, key, permission, policy and delays.
func TestFileIsUsedTwice(t *testing.T) {
	d, err := parseIn(map[string]string{
		"critic.yaml": critic,
		"strict.yaml": "{ref: critic.yaml, output_key: remark, delay_after: 1s}",
		"x.yaml": `name: refine
max_iterations: 2
sub_agents:
  - ref: critic.yaml
  - {ref: critic.yaml, name: second, output_key: verdict, can_exit_loop: true, on_error: skip_step, delay_before: 2s, delay_after: 3s}
  - {ref: strict.yaml, name: third, delay_after: 4s}
`})
	if err != nil {
		t.Fatal(err)
	}
	first, second, third := d.Root.SubAgents[0], d.Root.SubAgents[1], d.Root.SubAgents[2]
	if first.Name != "critic" || first.OutputKey != "review" || first.CanExitLoop || first.OnError != loop.StopOnError || first.Step != nil {
		t.Errorf("the first is %+v", first)
	}
	if second.Name != "second" || second.OutputKey != "verdict" || !second.CanExitLoop || second.OnError != loop.SkipStep ||
		second.Step.DelayBefore != loop.Duration(2*time.Second) || second.Step.DelayAfter != loop.Duration(3*time.Second) || second.LLM.Instructions != first.LLM.Instructions {
		t.Errorf("the second is %+v", second)
	}
	if third.Name != "third" || third.OutputKey != "remark" || third.Step.DelayAfter != loop.Duration(4*time.Second) {
		t.Errorf("the third is %+v", third)
	}
	if at, _ := second.FieldPosition("output_key"); at.File != "x.yaml" || at.Line != 5 {
		t.Errorf("its key is said to be at %v", at)
	}
	if at, _ := second.FieldPosition("instructions"); at.File != "critic.yaml" || at.Line != 2 {
		t.Errorf("its instructions are said to be at %v", at)
	}
}

// U12: two uses of a file need names of their own, and what is about the agent itself stays in its file.
func TestUsesOfAFileThatCannotBe(t *testing.T) {
	group := "name: group\ntype: sequential\nsub_agents: [{name: inside, text: hi}]\n"
	for name, tt := range map[string]struct{ steps, want string }{
		"one name": {"[{ref: critic.yaml}, {ref: critic.yaml}]",
			`x.yaml:1:52: error: two agents are called "critic": "critic.yaml" is used twice; the first is at critic.yaml:1:7 [LOOP011] ` +
				`(give this one a name of its own: {ref: critic.yaml, name: critic_2})`},
		"one name beside both": {"[{ref: critic.yaml, name: a}, {ref: critic.yaml, name: a}]", `two agents are called "a": "critic.yaml" is used twice; the first is at x.yaml:1:51`},
		"agents inside": {"[{ref: group.yaml}, {ref: group.yaml, name: other}]",
			`two agents are called "inside": "group.yaml" is used twice; the first is at group.yaml:3:21 [LOOP011] (agents inside a file keep their names, so it can be used once; ` +
				`make a second file, with other names in it)`},
		"another field": {"[{ref: critic.yaml, instructions: Be kind.}]",
			`x.yaml:1:45: error: "instructions" is not allowed beside ref [LOOP007] (move it to the file that ref names; beside ref can stand name, output_key, can_exit_loop, on_error, ` +
				`delay_before, delay_after)`},
		"a wrong value": {"[{ref: critic.yaml, on_error: skip}]", `x.yaml:1:55: error: on_error must be stop, skip_step or next_iteration, got "skip"`},
		"no value":      {"[{ref: critic.yaml, name: }]", `x.yaml:1:51: error: name has no value`},
	} {
		_, err := parseIn(map[string]string{"critic.yaml": critic, "group.yaml": group, "x.yaml": "{name: all, sub_agents: " + tt.steps + "}"})
		problems, _ := errors.AsType[definition.Problems](err)
		var got []string
		for _, p := range problems {
			if p.Severity == definition.SeverityError {
				got = append(got, p.Error()+" ("+p.Hint+")")
			}
		}
		if len(got) != 1 || !strings.Contains(got[0], tt.want) {
			t.Errorf("%s: got %q, want %s", name, got, tt.want)
		}
	}
}

// Files that lead to each other twice have an end.
func TestRefsAreBounded(t *testing.T) {
	files := map[string]string{"f9.yaml": "{name: leaf, text: hi}"}
	for i, next := range []string{"f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9"} {
		name := "f" + string(rune('0'+i)) + ".yaml"
		files[name] = "{name: n" + string(rune('0'+i)) + ", type: sequential, sub_agents: [{ref: " + next + ".yaml}, {ref: " + next +
			".yaml, name: m" + string(rune('0'+i)) + "}]}"
	}
	files["x.yaml"] = files["f0.yaml"]
	if _, err := parseIn(files); err == nil || !strings.Contains(err.Error(), "the definition has more than 100 refs") {
		t.Errorf("got %v", err)
	}
}
