// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// maxMerged is how many edits one value may take; what takes more is written anew.
const maxMerged = 200

var errManyEdits = errors.New("it takes too many edits")

// merge sets a map or a list where one stands by setting what is another in it, so
// that the rest stays as it is written. It reports whether that came out right; if
// not, nothing has changed.
func (e *Editor) merge(path string, want *yaml.Node) bool {
	m := merger{Editor: &Editor{mark: e.mark, sheet: e.sheet}}
	if err := m.value(path, want); err != nil {
		return false
	}
	p, err := m.sheet.find(path)
	if err != nil || p.node == nil || !equal(p.node, want) {
		return false
	}
	e.sheet = m.sheet
	return true
}

// merger is an editor on the way.
type merger struct {
	*Editor
	edits int
}

// edit counts an edit.
func (m *merger) edit(err error) error {
	if m.edits++; err == nil && m.edits > maxMerged {
		return errManyEdits
	}
	return err
}

// value makes what stands at a path the value.
func (m *merger) value(path string, want *yaml.Node) error {
	p, err := m.sheet.find(path)
	if err != nil {
		return err
	}
	is := p.node
	switch {
	case is != nil && equal(is, want):
		return nil
	case is == nil || is.Kind != want.Kind || want.Kind == yaml.ScalarNode || len(is.Content) == 0 ||
		len(want.Content) == 0:
		return m.edit(m.put(path, newValue{node: want}))
	case want.Kind == yaml.MappingNode:
		return m.fields(path, is, want)
	}
	return m.items(path, is, want)
}

// fields makes the fields of a map those of another one.
func (m *merger) fields(path string, is, want *yaml.Node) error {
	wanted := make(map[string]bool)
	for i := 0; i+1 < len(want.Content); i += 2 { // first, so that it is never empty
		key := want.Content[i].Value
		wanted[key] = true
		if err := m.value(path+hop{key: key, keyed: true}.in(path), want.Content[i+1]); err != nil {
			return err
		}
	}
	for i := 0; i+1 < len(is.Content); i += 2 {
		if key := is.Content[i].Value; !wanted[key] {
			if err := m.edit(m.Remove(path + hop{key: key, keyed: true}.in(path))); err != nil {
				return err
			}
		}
	}
	return nil
}

// items makes the values of a list those of another one.
func (m *merger) items(path string, is, want *yaml.Node) error {
	now, names := entryNames(is), entryNames(want) // now is what is in the list while it is edited
	for i, c := range want.Content {
		at := path + hop{at: i}.in(path)
		j := i
		if i >= len(now) || now[i] != names[i] {
			j = slices.Index(now, names[i])
		}
		switch {
		case j < 0 && i < len(now) && c.Kind != yaml.ScalarNode &&
			!slices.Contains(names, now[i]): // it takes the place of one that goes
			now[i] = names[i]
		case j < 0:
			if err := m.edit(m.lay(path, i, newValue{node: c})); err != nil {
				return err
			}
			now = slices.Insert(now, i, names[i])
		case j != i:
			if err := m.edit(m.Move(path, j, i)); err != nil {
				return err
			}
			now = slices.Insert(slices.Delete(now, j, j+1), i, names[i])
		}
		if err := m.value(at, c); err != nil {
			return err
		}
	}
	for i := len(now) - 1; i >= len(want.Content); i-- {
		if err := m.edit(m.Remove(path + hop{at: i}.in(path))); err != nil {
			return err
		}
	}
	return nil
}

// entryNames gives the values of a list names to know them by: their name, or what they
// are, and a number for what is there again.
func entryNames(list *yaml.Node) []string {
	var names []string
	seen := make(map[string]int)
	for _, c := range list.Content {
		name := pen{json: true}.flow(c)
		for i := 0; i+1 < len(c.Content) && c.Kind == yaml.MappingNode; i += 2 {
			if c.Content[i].Value == "name" && c.Content[i+1].Kind == yaml.ScalarNode {
				name = "name " + c.Content[i+1].Value
			}
		}
		seen[name]++
		names = append(names, strconv.Itoa(seen[name])+" "+name)
	}
	return names
}

// equal compares two values; maps have no order.
func equal(a, b *yaml.Node) bool {
	if source.IsNull(a) && source.IsNull(b) {
		return true
	}
	if a.Kind != b.Kind || a.ShortTag() != b.ShortTag() || a.Value != b.Value || a.Anchor != b.Anchor ||
		len(a.Content) != len(b.Content) {
		return false
	}
	if a.Kind != yaml.MappingNode {
		return slices.EqualFunc(a.Content, b.Content, equal)
	}
	fields := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(b.Content); i += 2 {
		fields[b.Content[i].Value] = b.Content[i+1]
	}
	for i := 0; i+1 < len(a.Content); i += 2 {
		c := fields[a.Content[i].Value]
		if c == nil || a.Content[i].Kind != yaml.ScalarNode || !equal(a.Content[i+1], c) {
			return false
		}
		delete(fields, a.Content[i].Value)
	}
	return true
}
