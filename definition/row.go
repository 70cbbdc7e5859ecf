// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// row says all there is to say about a field of the file: its name, what it is, what
// its value can be, how that is read, and where in an S it goes.
type row[S any] struct {
	Field
	needed bool
	single bool   // fields of the same name have another shape
	hint   string // what may help with a value that is wrong
	shape  func() shape
	into   func(p place, n *yaml.Node, s *S) bool // false: it could not be read
	preset func(*S)                               // sets the default; nil if there is none
}

// field is the row of a field that becomes a T of an S. A row without a doc is of a
// field that a row of another kind of agent explains.
func field[S, T any](name, doc string, v value[T], at func(*S) *T) row[S] {
	return special(name, doc, v.shape, func(p place, n *yaml.Node, s *S) bool {
		t, ok := v.read(p, n)
		if ok {
			*at(s) = t
		}
		return ok
	})
}

// special is the row of a field that does not become one T: its value is of more than
// one type, or says something about more than the S.
func special[S any](name, doc string, s func() shape, into func(place, *yaml.Node, *S) bool) row[S] {
	return row[S]{Field: Field{Name: name, Doc: doc}, shape: s, into: into}
}

// must says that the agent, or the map, needs the field.
func (w row[S]) must() row[S] { w.needed = true; return w }

// alone says that the shape is that of this kind of agent, and another one's elsewhere.
func (w row[S]) alone() row[S] { w.single = true; return w }

func (w row[S]) helped(hint string) row[S] { w.hint = hint; return w }

// shown is a default that those know who use the value.
func (w row[S]) shown(v any) row[S] {
	of := w.shape
	w.shape = func() shape { return preset(of(), v) }
	return w
}

// or is a default that is set here, as the file would write it.
func (w row[S]) or(v any) row[S] {
	data, _ := json.Marshal(v) // of what is written here
	r := &reader{loader: newLoader(), src: source.New("", "", 0, "")}
	n := r.parse(r.src, string(data))
	w.preset = func(s *S) { w.into(place{reader: r, field: w.Name}, n, s) }
	return w.shown(v)
}

// reads reads a value into s. It gives the last problem the row's hint.
func (w row[S]) reads(p place, n *yaml.Node, s *S) bool {
	before := len(p.problems)
	ok := w.into(p, source.Deref(n), s)
	if len(p.problems) > before {
		p.hint(w.hint)
	}
	return ok
}
