// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

// set sets one value in the text of a definition.
func set(data []byte, path string, value any) ([]byte, error) {
	e, err := edit.New(data)
	if err == nil {
		err = e.Set(path, value)
	}
	if err != nil {
		return nil, err
	}
	return e.Bytes(), nil
}

// Every definition that is there can be edited, and only what was edited is another
// one.
func TestEditKeepsEveryDefinition(t *testing.T) {
	files, _ := filepath.Glob("../../../examples/*/*.yaml")
	good, _ := filepath.Glob("../../../definition/testdata/good/*.yaml")
	n := 0
	for _, file := range append(files, good...) {
		data := []byte(readFile(t, file))
		if _, err := definition.Load(file); err != nil {
			continue
		}
		n++
		got, err := set(data, "name", "edited")
		if err == nil {
			got, err = set(got, "display_name", "Edited: it")
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		back := strings.Replace(string(got), "display_name: \"Edited: it\"\n", "", 1)
		was, is := strings.Split(string(data), "\n"), strings.Split(back, "\n")
		changed := 0
		for i := range was {
			if i >= len(is) || was[i] != is[i] {
				changed++
			}
		}
		if changed != 1 || len(was) != len(is) {
			t.Errorf("%s: %d lines changed: %s", file, changed, cmp.Diff(string(data), back))
		}
		if _, err := definition.Parse(file, got, definition.Options{FS: os.DirFS(filepath.Dir(file))}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	if n < 8 {
		t.Errorf("only %d files", n)
	}
}

// Every agent of every definition that is there can be copied, moved, renamed and
// removed again, and the text is then what it was.
func TestEditThereAndBack(t *testing.T) {
	files, _ := filepath.Glob("../../../examples/*/*.yaml")
	n := 0
	for _, file := range files {
		text := readFile(t, file)
		d, err := definition.Load(file)
		if err != nil || len(d.Root.SubAgents) < 2 || strings.Contains(text, "ref: ") {
			continue
		}
		e, err := edit.New([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		last := len(d.Root.SubAgents) - 1
		for i, sub := range d.Root.SubAgents {
			n++
			at := edit.FieldPath("sub_agents", i)
			rename := func(from, to string) error { _, err := e.RenameAgent(from, to); return err }
			for _, err := range []error{
				e.Duplicate(at, ""), e.Remove(edit.FieldPath("sub_agents", i+1)),
				e.Move("sub_agents", i, last), e.Move("sub_agents", last, i),
				e.Move("sub_agents", i, 0), e.Move("sub_agents", 0, i),
				rename(sub.Name, "an_other"), rename("an_other", sub.Name),
			} {
				if err != nil {
					t.Errorf("%s: %s: %v", file, at, err)
				}
			}
			if key := sub.OutputKey; key != "" && key != definition.LoopOutput {
				_, there := e.RenameKey(key, "an_other")
				_, back := e.RenameKey("an_other", key)
				if there != nil || back != nil {
					t.Errorf("%s: rename %s: %v, %v", file, key, there, back)
				}
			}
			if diff := cmp.Diff(text, string(e.Bytes())); diff != "" {
				t.Fatalf("%s: %s (-before +after):\n%s", file, at, diff)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d agents", n)
	}
}

// A key that is renamed in a whole definition leaves nothing that reads the old one,
// nor anything that nobody reads now.
func TestEditRenamesEveryKey(t *testing.T) {
	files, _ := filepath.Glob("../../../examples/*/*.yaml")
	good, _ := filepath.Glob("../../../definition/testdata/good/*.yaml")
	n := 0
	for _, file := range append(files, good...) {
		d, err := definition.Load(file)
		if err != nil {
			continue
		}
		for _, key := range keysIn(d) {
			e, _ := edit.New([]byte(readFile(t, file)))
			done, err := e.RenameKey(key, "an_other")
			if err != nil && (strings.Contains(err.Error(), "anchor") || strings.Contains(err.Error(), "there is no key")) || len(done.Left) > 0 {
				continue // it stands elsewhere too
			}
			if n++; err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			after, err := definition.Parse(file, e.Bytes(), definition.Options{FS: os.DirFS(filepath.Dir(file))})
			if err != nil {
				t.Errorf("%s: %s: %v", file, key, err)
				continue
			}
			count := func(d *definition.Definition) int { return len(d.Warnings()) + len(d.Notes()) }
			if was, is := count(d), count(after); was != is {
				t.Errorf("%s: %s: %d warnings and notes, then %d: %v %v", file, key, was, is, after.Warnings(), after.Notes())
			}
			if slices.Contains(keysIn(after), key) || !slices.Contains(keysIn(after), "an_other") {
				t.Errorf("%s: %s is written still: %v", file, key, keysIn(after))
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d keys", n)
	}
}

// keysIn are the keys that a definition gives or writes.
func keysIn(d *definition.Definition) []string {
	keys := make(map[string]bool)
	for _, in := range d.Inputs {
		keys[in.Name] = true
	}
	for key := range d.State {
		keys[key] = true
	}
	for a := range d.Root.All {
		keys[a.OutputKey], keys[a.ResultKey] = true, true
		if a.Expression != nil {
			for key := range a.Expression.Set {
				keys[key] = true
			}
		}
	}
	delete(keys, "")
	delete(keys, definition.LoopOutput)
	return slices.Sorted(maps.Keys(keys))
}

// Line ends, a byte order mark and tabs in comments stay, and what is added has the
// line ends of the file.
func TestEditKeepsLineEnds(t *testing.T) {
	const text = "\ufeffname: a\t# tab\there\r\ninstructions: |\r\n  one\r\n  two\r\n\r\nsub_agents:\r\n- name: b\r\n  text: c"
	e, err := edit.New([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		e.Set("instructions", "one\nand two\n"),
		e.Set("max_iterations", 3),
		e.Insert("sub_agents", 1, map[string]any{"text": "x\ny", "name": "d"}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := "\ufeffname: a\t# tab\there\r\ninstructions: |\r\n  one\r\n  and two\r\nmax_iterations: 3\r\n\r\nsub_agents:\r\n- name: b\r\n  text: c\r\n- name: d\r\n  text: |-\r\n    x\r\n    y"
	if diff := cmp.Diff(want, string(e.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// An error names what was to be done and the place, and the text is as it was.
func TestEditError(t *testing.T) {
	const text = "name: a\ntext: *b\n"
	if _, err := edit.New([]byte(text)); err == nil {
		t.Error("an alias for nothing")
	}
	e, err := edit.New([]byte("a: &x 1\nb:  *x\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := errors.AsType[*edit.Error](e.Set("b", 2))
	if !ok || got.Op != "set" || got.Path != "b" || got.Line != 2 || got.Column != 5 || errors.Unwrap(got) == nil {
		t.Errorf("%+v", got)
	}
	if string(e.Bytes()) != "a: &x 1\nb:  *x\n" {
		t.Errorf("the text has changed: %q", e.Bytes())
	}
	for _, value := range []any{make(chan int), func() {}, "\xff", map[any]any{1: make(chan int)}} {
		if err := e.Set("c", value); err == nil {
			t.Errorf("%T was written: %s", value, e.Bytes())
		}
	}
	if err := e.Set("\xff", 1); err == nil {
		t.Error("a path that is not UTF-8")
	}
}

// A text that YAML would read as a number, a date or a truth is written in quotes, in a map too.
func TestSetQuotesWhatIsNoTextWithoutThem(t *testing.T) {
	const file = "name: refine\nsub_agents:\n  - {name: judge, set: {height: \"3.0\"}}\n"
	for _, text := range []string{"25", "2.5", "1e3", "0x1F", ".inf", "+7", "2001-01-01", "true", "Null", "no", "2 cats", "3.0.1", "v2"} {
		for path, value := range map[string]any{"description": text, "sub_agents[0].set": edit.YAML(`{height: "` + text + `"}`)} {
			out, err := set([]byte(file), path, value)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if plain := strings.Contains(text, " ") || strings.Count(text, ".") == 2 || text == "v2"; plain == strings.Contains(string(out), `"`+text+`"`) {
				t.Errorf("%s at %s is written so:\n%s", text, path, out)
			}
		}
	}
}

func TestFieldPath(t *testing.T) {
	for _, tt := range []struct {
		elems []any
		want  string
	}{
		{[]any{"sub_agents", 1, "text"}, "sub_agents[1].text"},
		{[]any{"prices", "openai/gpt-4.1", "input"}, `prices["openai/gpt-4.1"].input`},
		{[]any{"env", `a"b`, "", "c"}, `env["a\"b"][""].c`},
		{nil, ""},
	} {
		if got := edit.FieldPath(tt.elems...); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.elems, got, tt.want)
		}
		if len(tt.elems) == 0 || tt.elems[1] == 1 {
			continue
		}
		e, _ := edit.New([]byte("prices: {openai/gpt-4.1: {input: 1}}\nenv: {'a\"b': {'': {c: 1}}}\n"))
		if err := e.Set(tt.want, 2); err != nil || !strings.Contains(string(e.Bytes()), ": 2}") {
			t.Errorf("%s: %v, %s", tt.want, err, e.Bytes())
		}
	}
}
