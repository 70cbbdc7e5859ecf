// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/expr"
)

// reads notes which keys of which maps were looked at, so that none is passed
// over in silence.
type reads struct {
	asked map[*yaml.Node]map[string]bool // by map
	whole map[*yaml.Node]bool            // with all that is in them
	owner map[*yaml.Node]string          // agents by their maps
	files []value
}

func newReads() *reads {
	return &reads{make(map[*yaml.Node]map[string]bool), make(map[*yaml.Node]bool), make(map[*yaml.Node]string), nil}
}

// ask notes that a key is looked at.
func (v value) ask(key string) {
	if v.reads == nil || !v.isMap() {
		return
	}
	if v.reads.asked[v.Node] == nil {
		v.reads.asked[v.Node] = make(map[string]bool)
	}
	v.reads.asked[v.Node][key] = true
}

// asked reports whether a key was looked at.
func (v value) asked(key string) bool { return v.reads != nil && v.reads.asked[v.Node][key] }

// all notes that a value is looked at with all that is in it.
func (v value) all() value {
	if v.reads != nil && v.Node != nil {
		v.reads.whole[v.Node] = true
	}
	return v
}

// of notes whose map it is.
func (v value) of(a *agent) {
	if v.reads != nil && v.Node != nil {
		v.reads.owner[v.Node] = a.was
	}
}

// peek is the value for those who only look, and carry nothing over.
func (v value) peek() value {
	v.reads = nil
	return v
}

// unread says of each key that nobody has looked at that it is left out, or that
// it is mistyped. What the report tells of as a whole is not looked into.
func (i *importer) unread() {
	u := &unread{importer: i, told: make(map[place]bool), seen: make(map[*yaml.Node]bool)}
	for _, it := range i.report.Items {
		if it.Line > 0 && (it.Kind == Dropped || it.Kind == Failed) {
			u.told[place{it.File, it.Line, it.Column}] = true
		}
	}
	for _, v := range i.reads.files { // what is said of an agent is not about all of its fields
		delete(u.told, v.at())
		for n := range i.reads.owner {
			delete(u.told, value{Node: n, file: v.file}.at())
		}
	}
	for _, v := range slices.Clone(i.reads.files) {
		u.walk(v, "", "")
	}
}

// unread looks for what was not looked at.
type unread struct {
	*importer
	told map[place]bool
	seen map[*yaml.Node]bool
}

func (u *unread) walk(v value, agent, path string) {
	if v.Node == nil || u.reads.whole[v.Node] || u.seen[v.Node] {
		return
	}
	u.seen[v.Node] = true
	if name, ok := u.reads.owner[v.Node]; ok {
		agent, path = name, ""
	}
	for _, item := range v.items() {
		if !u.told[item.at()] || item.isMap() && item.Style&yaml.FlowStyle == 0 {
			u.walk(item, agent, path)
		}
	}
	u.twice(v, agent, path)
	asked := u.reads.asked[v.Node]
	for _, p := range v.pairs() {
		// The first key of a map in block style is where the map is.
		told := u.told[p.at] || u.told[p.value.at()] && (!p.value.isMap() || p.value.Style&yaml.FlowStyle != 0)
		switch full := dotted(path, p.key); {
		case told, u.reads.whole[p.value.Node]:
		case asked[p.key]:
			u.walk(p.value, agent, full)
		case p.value.blank() || u.seen[p.value.Node]:
		default:
			u.seen[p.value.Node] = true
			u.left(p, agent, full, slices.Sorted(maps.Keys(asked)))
		}
	}
}

// twice refuses a key that stands in a map twice: of its values only one was read.
func (u *unread) twice(v value, agent, path string) {
	if !v.isMap() {
		return
	}
	before := make(map[string]bool)
	for n := 0; n < len(v.Content); n += 2 {
		k := value{Node: v.Content[n], file: v.file}.deref()
		if k.isScalar() && k.ShortTag() != "!!merge" && before[k.Value] {
			u.fail(k.at(), agent, dotted(path, k.Value), "the field %q stands there twice", dotted(path, k.Value)).Advice = "take one of them away"
		}
		before[k.Value] = true
	}
}

func dotted(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// left tells of a key that nobody has looked at.
func (u *unread) left(p pair, agent, full string, asked []string) {
	if expr.Nearest(p.key, asked) != "" {
		u.fail(p.at, agent, full, "unknown field %q", full).Advice = u.near(p.key, asked)
		return
	}
	u.dropped(p.at, agent, full, "", "nothing here reads it")
}
