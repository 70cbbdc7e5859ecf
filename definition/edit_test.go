// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

const edited = `# a loop
name: refine   # its name

max_iterations: 3
score: {key: mark, target: 8} # good enough
sub_agents:
  # who writes
  - name: write
    text: 'it''s {{n}}' # a text
  - {name: "mark é", value: 3}
  - name: long
    instructions: |
      Two
      lines.
`

// One value is changed, and comments, order and spaces stay as they are.
func TestEdit(t *testing.T) {
	for _, tt := range []struct {
		path  string
		value any
		line  string // with it
		was   string // the line in its place; empty for one that is added
	}{
		{"max_iterations", 5, "max_iterations: 5", "max_iterations: 3"},
		{"name", "other", "name: other   # its name", "name: refine   # its name"},
		{"name", "it: is # new", `name: "it: is # new"   # its name`, "name: refine   # its name"},
		{"name", "yes", `name: "yes"   # its name`, "name: refine   # its name"},
		{"score.target", 8.5, "score: {key: mark, target: 8.5} # good enough", "score: {key: mark, target: 8} # good enough"},
		{"score.patience", uint(2), "score: {key: mark, patience: 2, target: 8} # good enough", "score: {key: mark, target: 8} # good enough"},
		{"sub_agents[0].text", "a\nb", `    text: "a\nb" # a text`, `    text: 'it''s {{n}}' # a text`},
		{"sub_agents[1].name", "mark, too", `  - {name: "mark, too", value: 3}`, `  - {name: "mark é", value: 3}`},
		{"sub_agents[1].value", 4, `  - {name: "mark é", value: 4}`, `  - {name: "mark é", value: 3}`},
		{"sub_agents[0].can_exit_loop", true, "    can_exit_loop: true", ""},
		{"timeout", "5m", "timeout: 5m", ""},
	} {
		got, err := definition.Edit([]byte(edited), tt.path, tt.value)
		if err != nil {
			t.Errorf("%s: %v", tt.path, err)
			continue
		}
		back := strings.Replace(string(got), tt.line+"\n", tt.was+"\n", 1)
		if tt.was == "" {
			back = strings.Replace(string(got), tt.line+"\n", "", 1)
		}
		if diff := cmp.Diff(edited, back); diff != "" || !strings.Contains(string(got), tt.line+"\n") {
			t.Errorf("%s: %s\n%s", tt.path, diff, got)
		}
	}
}

// What cannot be edited so is left alone, and it is said why.
func TestEditRefuses(t *testing.T) {
	for _, tt := range []struct {
		text, path string
		value      any
		want       string
	}{
		{edited, "scor.target", 1, `there is no scor in ""`},
		{edited, "sub_agents[7].text", "a", "there is no [7]"},
		{edited, "sub_agents", "a", "no plain value"},
		{edited, "sub_agents[2].instructions", "a", "several lines"},
		{edited, "", 1, "no path"},
		{edited, "name", []string{"a"}, "no text, number"},
		{edited, "name", nil, "no text, number"},
		{"a: &x 1\nb: *x\n", "a", 2, "no plain value"},
		{"a: &x 1\nb: *x\n", "b", 2, "no plain value"},
		{"a:\n  b: 1\n", "c", 2, "not on one line"},
		{"a: [", "a", 2, "not YAML"},
		{"- 1\n", "a", 2, "there is no a"},
	} {
		if got, err := definition.Edit([]byte(tt.text), tt.path, tt.value); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %q, %v, want %s", tt.path, got, err, tt.want)
		}
	}
}

// Every definition that is there can be edited, and only the one line is
// another one.
func TestEditKeepsEveryDefinition(t *testing.T) {
	files, _ := filepath.Glob("../examples/*/*.yaml")
	good, _ := filepath.Glob("testdata/good/*.yaml")
	n := 0
	for _, file := range append(files, good...) {
		data := []byte(readFile(t, file))
		if _, err := definition.Load(file); err != nil {
			continue
		}
		n++
		got, err := definition.Edit(data, "name", "edited")
		if err == nil {
			got, err = definition.Edit(got, "display_name", "Edited: it")
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		was, is := strings.Split(string(data), "\n"), strings.Split(string(got), "\n")
		changed := 0
		for _, line := range was {
			if len(is) > 0 && line != is[0] {
				if changed++; len(is) < 2 || is[1] != "display_name: 'Edited: it'" {
					t.Errorf("%s: %q is %q", file, line, is[:2])
				}
				is = is[1:]
			}
			is = is[1:]
		}
		path := filepath.Join(filepath.Dir(file), filepath.Base(file))
		if _, err := definition.Parse(path, got, definition.Options{FS: os.DirFS(filepath.Dir(file))}); err != nil || changed != 1 {
			t.Errorf("%s: %d lines changed, %v", file, changed, err)
		}
	}
	if n < 8 {
		t.Errorf("only %d files", n)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(edited), "score.target", "8")
	f.Add([]byte("a: 'b'\r\nc: \"d\\\"\"\r\n"), "c", "\u2028")
	f.Add([]byte("\ufeffa: b"), "d", "#")
	f.Add([]byte(": 00"), "0", "\xa8")
	f.Fuzz(func(t *testing.T, data []byte, path, value string) {
		got, err := definition.Edit(data, path, value)
		if err != nil {
			return
		}
		again, err := definition.Edit(got, path, value)
		if err != nil || string(again) != string(got) {
			t.Errorf("%q of %q: %q, and then %q, %v", path, data, got, again, err)
		}
	})
}
