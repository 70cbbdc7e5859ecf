// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
)

const small = "name: small\nsub_agents: [{name: a, text: a}]\n"

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// codes are the codes of an error's problems.
func codes(err error) []string {
	var out []string
	problems, _ := errors.AsType[definition.Problems](err)
	for _, p := range problems {
		out = append(out, p.Code)
	}
	return out
}

func TestRefsDoNotLeaveTheFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	secret := write(t, outside, "secret.yaml", "name: secret\ntext: secret\n")
	if err := os.Symlink(secret, filepath.Join(dir, "link.yaml")); err != nil {
		t.Skip(err)
	}
	file := write(t, dir, "root.yaml", "name: root\nsub_agents:\n  - ref: link.yaml\n  - ref: a/../../root.yaml\n")
	_, err := definition.Load(file)
	if diff := cmp.Diff([]string{definition.CodeRef, definition.CodeRef}, codes(err)); diff != "" {
		t.Errorf("%s%v", diff, err)
	}
	// The definition itself may be a link: whoever names it may read it.
	if err := os.Symlink(write(t, outside, "root.yaml", small), filepath.Join(dir, "linked.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := definition.Load(filepath.Join(dir, "linked.yaml")); err != nil {
		t.Error(err)
	}
}

// D13: the script of a model is inside the folder of the definition, whatever links there are.
func TestScriptsDoNotLeaveTheFolder(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	script := write(t, outside, "script.yaml", "secret: hunter2\n")
	for link, target := range map[string]string{"script.yaml": script, "folder": outside} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for _, name := range []string{"script.yaml", "folder/script.yaml"} {
		file := write(t, dir, "root.yaml", "name: root\nmodel: scripted/"+name+"\ninstructions: Write.\n")
		_, err := definition.Load(file)
		if !slices.Equal(codes(err), []string{definition.CodeOutside}) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	inside := write(t, dir, "inside.yaml", "answers: [{text: Hi.}]\n")
	if err := os.Symlink(filepath.Base(inside), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := definition.Load(write(t, dir, "root.yaml", "name: root\nmodel: scripted/link.yaml\ninstructions: Write.\n")); err != nil {
		t.Error(err)
	}
}

func TestLoadSaysWhyAFileCannotBeRead(t *testing.T) {
	_, err := definition.Load(filepath.Join(t.TempDir(), "none.yaml"))
	if !errors.Is(err, fs.ErrNotExist) || !slices.Equal(codes(err), []string{definition.CodeFile}) {
		t.Errorf("err = %v", err)
	}
	_, err = definition.Load(t.TempDir())
	if !slices.Equal(codes(err), []string{definition.CodeFile}) {
		t.Errorf("a folder: err = %v", err)
	}
	large := write(t, t.TempDir(), "large.yaml", small+strings.Repeat("# comment\n", 1<<17))
	if _, err = definition.Load(large); !slices.Equal(codes(err), []string{definition.CodeFile}) {
		t.Errorf("more than 1 MiB: err = %v", err)
	}
}

func TestParseFollowsRefsOnlyInItsFS(t *testing.T) {
	const root = "name: root\nsub_agents: [{ref: parts/a.yaml}]\n"
	_, err := definition.Parse("x/root.yaml", []byte(root), definition.Options{})
	if !slices.Equal(codes(err), []string{definition.CodeRef}) {
		t.Errorf("without FS: %v", err)
	}
	fsys := fstest.MapFS{
		"x/parts/a.yaml": {Data: []byte("name: a\nsub_agents: [{ref: ../b.yaml}]\n")},
		"x/b.yaml":       {Data: []byte("name: b\ntext: b\n")},
	}
	d, err := definition.Parse("x/root.yaml", []byte(root), definition.Options{FS: fsys, Path: "x/root.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	b := d.Root.SubAgents[0].SubAgents[0]
	if got := b.Position().String(); got != "x/b.yaml:1:1" {
		t.Errorf("b is at %s", got)
	}
	if p, ok := b.FieldPosition("text"); !ok || p.Line != 2 || p.Column != 7 {
		t.Errorf("b's text is at %v, %v", p, ok)
	}
}

// What nobody can see from outside: problems keep their causes, and go over a wire.
func TestProblemsKeepTheirCauses(t *testing.T) {
	_, err := definition.Parse("x.yaml", []byte(small+"stop_when: state.\n"), definition.Options{})
	if e, ok := errors.AsType[*expr.Error](err); !ok || e.Line != 1 {
		t.Errorf("no *expr.Error in %v", err)
	}
	data, jsonErr := json.Marshal(err)
	if jsonErr != nil || !strings.Contains(string(data), `"line":3,"column":18`) {
		t.Errorf("%s, %v", data, jsonErr)
	}
}

func TestNullRemovesAKey(t *testing.T) {
	d, err := definition.Parse("x.yaml", []byte("name: x\nmax_iterations: 1\nstate: {a: 1, b: null}\nsub_agents: [{name: s, set: {a: null}}]\n"), definition.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, state := run(t, d, definition.BuildConfig{}, nil); state["a"] != nil {
		t.Errorf("a = %v", state["a"])
	}
}

func TestPositionsInScalarsOfEveryStyle(t *testing.T) {
	for _, tt := range []struct {
		text         string
		line, column int
	}{
		{`text: a {{nobody}}`, 1, 9},
		{`text: "a\tb\u00e9\x41 {{nobody}}"`, 1, 23},
		{`text: 'it''s {{nobody}}'`, 1, 14},
		{"text: &x !!str a {{nobody}}", 1, 18},
		{"text: |\n   a\n\n     b {{nobody}}\n   c", 4, 8},
		{"text: |2-  # why\n   a {{nobody}}", 2, 6},
		{"text: >\n   a\n   b\n\n   c {{nobody}}", 5, 6},
		{"text: a\n  b\n  {{nobody}} c", 3, 3},
		{"text: \"a\n  b\\\n    c {{nobody}}\"", 3, 7},
		{"text: é日本 {{nobody}}", 1, 11},
		{"text: \"\\U0001F600 {{nobody}}\"", 1, 19},
		{"text: &t \"{{nobody}}\"\ndescription: *t", 1, 11},
	} {
		_, err := definition.Parse("x.yaml", []byte("name: x\n"+tt.text+"\n"), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != 1 || problems[0].Line != tt.line+1 || problems[0].Column != tt.column {
			t.Errorf("%q: want %d:%d, got\n%v", tt.text, tt.line+1, tt.column, err)
		}
	}
}
