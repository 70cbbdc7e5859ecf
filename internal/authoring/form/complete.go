// SPDX-License-Identifier: Apache-2.0

package form

import (
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Option is a text that can be inserted at a place.
type Option struct {
	Label string `json:"label"`
	// Insert is the text to insert, if it differs from Label.
	Insert string `json:"insert,omitzero"`
	Detail string `json:"detail,omitzero"`
	Doc    string `json:"doc,omitzero"`
	// Kind is property, enum or variable.
	Kind string `json:"kind"`
}

var (
	aKey         = lazyregexp.New(`^(\s*)((?:- +)*)([\w]*):(\s|$)`)
	placeholders = lazyregexp.New(`\{\{\s*([\w.]*)$`)
)

// Complete returns the options at a place of a text; line and column count from 1. The text need not be a valid
// definition, nor valid YAML.
func Complete(text string, line, column int) []Option {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return nil
	}
	runes := []rune(lines[line-1])
	before := string(runes[:min(max(column-1, 0), len(runes))])
	if placeholders().MatchString(before) {
		return keys(text)
	}
	if m := aKey().FindStringSubmatch(before); m != nil {
		return values(m[3])
	}
	if strings.ContainsAny(strings.TrimLeft(before, " -"), ` :"'{[`) {
		return nil
	}
	return names(lines, line, before)
}

// names returns the fields that the agent at a line can have, or the parts of the field that the line is in.
func names(lines []string, line int, before string) []Option {
	indent := depth(before)
	own, parent := siblings(lines, line-1, indent)
	inside := parent != "" && parent != "sub_agents" && parent != "config" // a field that is a map
	kind := definition.TypeOf(own["type"], slices.Collect(maps.Keys(own))...)
	var out []Option
	for _, f := range Fields() {
		_, taken := own[f.Name]
		switch {
		case inside && f.Name == parent:
			for _, p := range f.Parts {
				out = append(out, property(p.Name, p.Value, p.Doc))
			}
		case inside, f.Root && parent != "", kind != "" && f.Types != nil && !slices.Contains(f.Types, kind),
			taken && f.Name != strings.TrimLeft(before, " -"):
		default:
			out = append(out, property(f.Name, f.Value, f.Doc))
		}
	}
	return out
}

func property(name, value, doc string) Option {
	return Option{Label: name, Insert: name + ": ", Detail: value, Doc: doc, Kind: "property"}
}

// depth returns the column, from 0, in which a key begins, after the dash of a list.
func depth(line string) int {
	return len(line) - len(strings.TrimLeft(line, " -"))
}

// siblings returns the keys in the same map as a line, with their values, and the key of that map.
func siblings(lines []string, at, indent int) (own map[string]string, parent string) {
	own = make(map[string]string)
	take := func(l string) (key string, d int, ok bool) {
		m := aKey().FindStringSubmatch(l)
		if m == nil {
			return "", depth(l), false
		}
		return m[3], len(m[1]) + len(m[2]), true
	}
	begins := func(l string) bool { return strings.HasPrefix(strings.TrimLeft(l, " "), "-") }
	inside := !begins(lines[at])
	for i := at - 1; i >= 0 && parent == ""; i-- {
		key, d, ok := take(lines[i])
		switch {
		case strings.TrimSpace(lines[i]) == "" || d > indent:
		case d < indent:
			inside, parent = false, key
		case inside:
			if ok {
				own[key] = value(lines[i])
			}
			inside = !begins(lines[i])
		}
	}
	for _, l := range lines[at+1:] {
		key, d, ok := take(l)
		if strings.TrimSpace(l) == "" || d > indent {
			continue
		}
		if d < indent || begins(l) {
			break
		}
		if ok {
			own[key] = value(l)
		}
	}
	return own, parent
}

func value(line string) string {
	_, v, _ := strings.Cut(line, ":")
	return strings.Trim(strings.TrimSpace(v), `"'`)
}

// values returns the possible values of a field.
func values(name string) []Option {
	for _, f := range Fields() {
		if f.Name != name {
			continue
		}
		var out []Option
		for _, c := range f.Choices {
			out = append(out, Option{Label: c, Kind: "enum"})
		}
		if f.Bool {
			out = append(out, Option{Label: "true", Kind: "enum"}, Option{Label: "false", Kind: "enum"})
		}
		if len(out) == 0 {
			out = append(out, Option{Label: f.Name, Insert: " ", Detail: f.Value, Doc: f.Doc, Kind: "property"})
		}
		return out
	}
	return nil
}

var written = lazyregexp.New(`(?m)^\s*(?:- +)?(?:output_key|result_key):\s*([\w-]+)`)

// keys returns the state keys that a text writes.
func keys(text string) []Option {
	out := []Option{{Label: "user_input", Detail: "the request of the run", Kind: "variable"}}
	seen := []string{"user_input"}
	add := func(key, detail string) {
		if key != "" && !slices.Contains(seen, key) {
			seen = append(seen, key)
			out = append(out, Option{Label: key, Detail: detail, Kind: "variable"})
		}
	}
	for _, m := range written().FindAllStringSubmatch(text, -1) {
		add(m[1], "written by a step")
	}
	for a := range Read("text", []byte(text), definition.Options{}).all {
		for _, name := range []string{"inputs", "state", "set"} {
			m, _ := a.Fields[name].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(m)) {
				add(key, name)
			}
		}
	}
	return out
}
