// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
)

const greeting = `
name: greeting
query: Say hello
inputs: {who: {default: Bo}, list: {type: path, default: names.txt}}
state: {n: 3, tone: kind}
model: scripted/script.yaml
max_iterations: 10
sub_agents:
  - {name: count, set: {n: state.n - 1}, exit_when: result.n == 0}
  - {name: greet, instructions: "Greet {{who}} {{tone}} {{list}}"}
`

// What the recorded definition gave by itself comes from the changed definition; what a person gave stays.
func TestChangedStart(t *testing.T) {
	for _, c := range []struct {
		name  string
		given map[string]string
		old   string
		now   string
		same  bool
		want  []string // in the report
	}{
		{name: "folder", old: "# no", now: "# change", same: true, want: []string{"2 requests\n"}},
		{name: "state", old: "n: 3", now: "n: 4", want: []string{"recorded is exit_loop after 2 iterations", "greet asks more often than recorded"}},
		{name: "given state", given: map[string]string{"n": "3", "tone": "grim"}, old: "tone: kind", now: "tone: rude", same: true, want: []string{"2 requests\n"}},
		{name: "request", old: "tone: kind", now: "tone: rude", same: true, want: []string{"2 requests, 2 changed", "[-kind-]{+rude+}"}},
		{name: "default", old: "default: Bo", now: "default: Al", same: true, want: []string{"2 requests, 2 changed", "[-Bo-]{+Al+}"}},
		{name: "given input", given: map[string]string{"who": "Di"}, old: "default: Bo", now: "default: Al", same: true, want: []string{"2 requests\n"}},
		{name: "query", old: "Say hello", now: "Say bye", same: true, want: []string{"2 requests, 2 changed", "[-hello-]{+bye+}"}},
		{name: "written state", old: "{name: greet, ", now: "{name: greet, output_key: tone, ", want: []string{"the state differs: tone: [-kind-]{+hi+}"}},
		{name: "state left alone", old: "set: {n: state.n - 1}, exit_when: result.n == 0", now: "set: {m: state.n - 3}, exit_when: result.m == 0",
			want: []string{"the state differs: n: [-0-]{+3+}"}},
		{name: "another key", old: "tone: kind", now: "tone: kind, more: 1", same: true, want: []string{"2 requests\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "run.jsonl")
			for name, text := range map[string]string{"loop.yaml": greeting, "script.yaml": "answers: [{text: hi, repeat: true}]"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			def, err := definition.Load(filepath.Join(dir, "loop.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			state, err := def.InitialState(c.given)
			if err != nil {
				t.Fatal(err)
			}
			record(t, dir, file, state)
			text := strings.Replace(greeting+"# no", c.old, c.now, 1)
			if def, err = definition.Parse(filepath.Join(t.TempDir(), "loop.yaml"), []byte(text), definition.Options{}); err != nil {
				t.Fatal(err)
			}
			report, same := playAs(t, file, def)
			if same != c.same {
				t.Errorf("the same end: %v\n%s", same, report)
			}
			for _, want := range c.want {
				if !strings.Contains(report, want) {
					t.Errorf("the report lacks %q:\n%s", want, report)
				}
			}
			if !strings.HasPrefix(report, file+": ") || strings.Contains(report, "note: ") {
				t.Errorf("%s", report)
			}
		})
	}
}

// A log that was changed since it was written is played as it is now, and the report says so.
func TestChangedLog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "runs", "1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	changed := strings.Replace(string(text), `"timestamp":"20`, `"timestamp":"21`, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	report, same := play(t, file)
	if !same || !strings.Contains(report, "\n  note: the log is not as it was written: the hash in its last line is that of other events") {
		t.Errorf("%s", report)
	}
}
