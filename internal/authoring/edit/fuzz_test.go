// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/authoring/edit"
)

func editSeeds(f *testing.F, add func(data []byte)) {
	for _, pattern := range []string{"../../../definition/testdata/good/*.yaml", "testdata/edit/*.txt", "../../../examples/*/loop.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			text := string(data)
			if _, in, ok := strings.Cut(text, "-- before --\n"); ok {
				text = in
			}
			text, _, _ = strings.Cut(text, "-- after --\n")
			text, _, _ = strings.Cut(text, "-- said --\n")
			if len(text) < 1000 { // a large one is slow to go on from
				add([]byte(text))
			}
		}
	}
	for _, text := range []string{
		"\ufeffa: b", ": 00", "a: 'b'\r\nc: \"d\\\"\"\r\n", "? a\n: b\n", "{a: [b: c, {? d}], }", "a: |+\n\n\n", "a: |1-\n  b\n- c", "- - - a\n", "a:\n- &b c\n- *b\n",
		"a: !!str\nb: ! c\nd: !<x> |\n e\n", "a: b\u0085c: d\u2028  e\n", "--- # x\na: 1\n... # y\n", "\"a\\\n  b\": c\n", "a: \"b\\\n  \\  c\"\n", "a:\t# b\n\t\n  c: d\n", "[]", "{}", "a:\n  - b\n #c\n",
	} {
		add([]byte(text))
	}
}

// at follows a path through a value; list and key are where it is in.
func at(v any, path []any) (any, bool) {
	for _, p := range path {
		switch c := v.(type) {
		case map[string]any:
			k, _ := p.(string)
			inner, ok := c[k]
			if !ok {
				return nil, false
			}
			v = inner
		case []any:
			i, ok := p.(int)
			if !ok || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// paths lists the paths to all values in one.
func paths(v any, path []any) (all [][]any) {
	each := func(k, v any) {
		p := append(slices.Clone(path), k)
		all = append(append(all, p), paths(v, p)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			each(k, v[k])
		}
	case []any:
		for i, c := range v {
			each(i, c)
		}
	}
	return all
}

// replaced is a value with another one at a path; change makes it of the collection
// that it is in.
func replaced(v any, path []any, change func(c any, last any) any) any {
	if len(path) == 1 {
		return change(v, path[0])
	}
	switch c := v.(type) {
	case map[string]any:
		out := make(map[string]any)
		maps.Copy(out, c)
		out[path[0].(string)] = replaced(out[path[0].(string)], path[1:], change)
		return out
	case []any:
		out := slices.Clone(c)
		out[path[0].(int)] = replaced(out[path[0].(int)], path[1:], change)
		return out
	}
	return v
}

// decode is what a program reads; ok is false for what has no one meaning.
func decode(data []byte) (v any, ok bool) {
	defer func() { ok = ok && recover() == nil }()
	if err := yaml.Unmarshal(data, &v); err != nil {
		return nil, false
	}
	for _, p := range paths(v, nil) {
		if c, _ := at(v, p); reflect.TypeOf(c) == reflect.TypeFor[map[any]any]() {
			return nil, false
		}
	}
	_, ok = v.(map[string]any)
	return v, ok
}

// Whatever the text and the operation: no panic, and what comes out says what a model
// that knows nothing of texts says.
func FuzzEditor(f *testing.F) {
	n := uint16(0)
	editSeeds(f, func(data []byte) {
		n++
		f.Add(data, n, 3*n+1, uint16(0), "new")
		f.Add(data, n+3, 5*n+2, uint16(1), "two\nlines\n")
	})
	f.Fuzz(checkEdit)
}

func checkEdit(t *testing.T, data []byte, op, where, more uint16, text string) {
	e, err := edit.New(data)
	if err != nil {
		return
	}
	if string(e.Bytes()) != string(data) {
		t.Fatalf("read and written: %q of %q", e.Bytes(), data)
	}
	before, ok := decode(data)
	if !ok {
		return
	}
	all := paths(before, nil)
	if len(all) == 0 {
		return
	}
	p := all[int(where)%len(all)]
	path := edit.FieldPath(p...)
	values := []any{text, int(more), map[string]any{text: text, "k": []any{text, 1}}, []any{text, map[string]any{"a": text}}, true, nil}
	value := values[int(more)%len(values)]
	up, _ := at(before, p[:len(p)-1])
	list, inList := up.([]any)
	listPath := edit.FieldPath(p[:len(p)-1]...)
	to := int(more) % max(len(list), 1)
	var want any
	switch op % 6 {
	case 0:
		err = e.Set(path, value)
		want = replaced(before, p, func(c, last any) any { return with(c, last, value) })
	case 1:
		err = e.Remove(path)
		want = replaced(before, p, without)
	case 2:
		err = e.Set(edit.FieldPath(append(p[:len(p)-1:len(p)-1], "new field")...), value)
		if inList {
			if err == nil {
				t.Error("a field in a list")
			}
			return
		}
		want = replaced(before, append(p[:len(p)-1:len(p)-1], "new field"), func(c, last any) any { return with(c, last, value) })
	case 3, 4, 5:
		if !inList {
			return
		}
		i := p[len(p)-1].(int)
		switch op % 6 {
		case 3:
			err = e.Insert(listPath, i, value)
			list = slices.Insert(slices.Clone(list), i, value)
		case 4:
			err = e.Move(listPath, i, to)
			list = slices.Insert(slices.Delete(slices.Clone(list), i, i+1), to, list[i])
		case 5:
			if p[max(len(p)-2, 0)] == "sub_agents" || len(p) > 1 && p[len(p)-2] == "tools" {
				return // it gives names
			}
			err = e.Duplicate(path, "")
			list = slices.Insert(slices.Clone(list), i, list[i])
		}
		want = replaced(before, p, func(any, any) any { return list })
	}
	if err != nil {
		if string(e.Bytes()) != string(data) {
			t.Errorf("%v, and the text has changed", err)
		}
		return
	}
	after, ok := decode(e.Bytes())
	if !ok || !reflect.DeepEqual(after, want) {
		t.Errorf("op %d at %s, %d, %q:\n%q\n%q\n%v\nwant %v", op%6, path, more, text, data, e.Bytes(), after, want)
	}
	if again, err := edit.New(e.Bytes()); err != nil || string(again.Bytes()) != string(e.Bytes()) {
		t.Errorf("%q cannot be edited again: %v", e.Bytes(), err)
	}
}

// with is a collection with another value in it.
func with(c, last, value any) any {
	switch c := c.(type) {
	case map[string]any:
		out := make(map[string]any)
		maps.Copy(out, c)
		out[last.(string)] = value
		return out
	case []any:
		out := slices.Clone(c)
		out[last.(int)] = value
		return out
	}
	return c
}

// without is a collection with a value less.
func without(c, last any) any {
	switch c := c.(type) {
	case map[string]any:
		out := make(map[string]any)
		for k, v := range c {
			if k != last {
				out[k] = v
			}
		}
		return out
	case []any:
		return slices.Delete(slices.Clone(c), last.(int), last.(int)+1)
	}
	return c
}

// Whatever is renamed: no panic, and back again gives the text that there was.
func FuzzEditRename(f *testing.F) {
	editSeeds(f, func(data []byte) {
		f.Add(data, "draft", "text")
		f.Add(data, "a", "b_2")
		f.Add(data, "write", "é")
	})
	f.Add([]byte("name: a\ntext: \"{{#k}}{{ k.k }}{{/ k }}\\x6b{{\\x6b}} {k?} {{artifact.k}}\"\noutput_key: k\nexit_when: 'state.k == \"k\" && state[''k''] != prev.k.k || \"k\" in state // state.k'\n"), "k", "key")
	f.Fuzz(func(t *testing.T, data []byte, from, to string) {
		for _, agents := range []bool{false, true} {
			e, err := edit.New(data)
			if err != nil {
				return
			}
			rename := e.RenameKey
			if agents {
				rename = e.RenameAgent
			}
			done, err := rename(from, to)
			if err != nil {
				if string(e.Bytes()) != string(data) {
					t.Errorf("%v, and the text has changed", err)
				}
				continue
			}
			if len(done.Changed) == 0 && from != to {
				t.Errorf("%q to %q in %q: nothing has changed", from, to, data)
			}
			lines := strings.Count(string(data), "\n")
			for _, u := range done.Changed {
				if u.Path == "" || u.Line < 1 || u.Line > lines+1 || u.Column < 1 {
					t.Errorf("%+v of %q", u, e.Bytes())
				}
			}
			mid := string(e.Bytes())
			back, err := rename(to, from)
			if _, same := decode(data); err != nil && same && strconv.CanBackquote(from) && len(back.Left) == 0 {
				t.Errorf("%q to %q in %q, %q, and not back: %v", from, to, data, mid, err)
			}
		}
	})
}
