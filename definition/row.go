// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/loop"
)

// row describes a field of the file: its name, its explanation, its possible values, its reader, and the field of an
// S that gets the value.
type row[S any] struct {
	Field
	needed bool
	single bool   // fields of the same name have another shape
	hint   string // what may help with a value that is wrong
	shape  func() shape
	into   func(p place, n *source.Node, s *S) bool // false: it could not be read
	preset func(*S)                                 // sets the default, or what the fields need; nil if there is none
}

// field makes the row of a field that becomes a T of an S. A row without a doc belongs to a field that a row of another
// kind of agent explains. It is not inlined, like the others in this file: each use would have its own copy of the
// functions in it, 130 KB of the command together.
//
//go:noinline
func field[S, T any](name, doc string, v value[T], at func(*S) *T) row[S] {
	return special(name, doc, v.shape, func(p place, n *source.Node, s *S) bool {
		t, ok := v.read(p, n)
		if ok {
			*at(s) = t
		}
		return ok
	})
}

// special makes the row of a field that does not become one T, because its value has more than one type or sets more
// than one field.
func special[S any](name, doc string, s func() shape, into func(place, *source.Node, *S) bool) row[S] {
	return row[S]{Field: Field{Name: name, Doc: doc}, shape: s, into: into}
}

// does makes the row of a field whose reader stores the value itself.
func does(name, doc string, s func() shape, read func(*reader, *Agent, *source.Node)) row[Agent] {
	return special(name, doc, s, func(p place, n *source.Node, a *Agent) bool {
		read(p.reader, a, n)
		return true
	})
}

// must makes the field required.
func (w row[S]) must() row[S] { w.needed = true; return w }

// alone says that the field has this shape only for this kind of agent.
func (w row[S]) alone() row[S] { w.single = true; return w }

func (w row[S]) helped(hint string) row[S] { w.hint = hint; return w }

// begun returns the values with which the struct of the fields begins.
func (w row[S]) begun(make func(*S)) row[S] { w.preset = make; return w }

// shown sets a default that the code which uses the value applies.
func (w row[S]) shown(v any) row[S] {
	of := w.shape
	w.shape = func() shape { return schema.Preset(of(), v) }
	return w
}

// or sets a default that the reader applies, as the file would write it.
func (w row[S]) or(v any) row[S] {
	data, _ := json.Marshal(v) // of what is written here
	r := &reader{loader: newLoader(), src: source.New("", "", 0, "")}
	n := r.parse(r.src, string(data))
	w.preset = func(s *S) { w.into(place{reader: r, field: w.Name}, n, s) }
	return w.shown(v)
}

// reads reads a value into s. It adds the row's hint to the last problem.
func (w row[S]) reads(p place, n *source.Node, s *S) bool {
	before := len(p.problems)
	ok := w.into(p, source.Deref(n), s)
	if len(p.problems) > before {
		p.hint(w.hint)
	}
	return ok
}

// place is the position of the value that is being read.
type place struct {
	*reader
	a     *Agent
	field string // its path in the agent, such as score.judge
}

func (p place) at(field string) place { return place{p.reader, p.a, field} }

// value is a kind of value. The shape describes the possible values, for the schema and the help. read reads one; ok
// is false if the value is wrong, and then read has reported the problem.
type value[T any] struct {
	shape func() shape
	read  func(p place, n *source.Node) (v T, ok bool)
}

// plain makes a value whose reader does not depend on the agent, and own one whose reader does.
func plain[T any](s func() shape, read func(*reader, *source.Node, string) (T, bool)) value[T] {
	return value[T]{s, func(p place, n *source.Node) (T, bool) { return read(p.reader, n, p.field) }}
}

func own[T any](s func() shape, read func(*reader, *Agent, *source.Node, string) (T, bool)) value[T] {
	return value[T]{s, func(p place, n *source.Node) (T, bool) { return read(p.reader, p.a, n, p.field) }}
}

// as converts a kind of value to another type in Go.
func as[U, T any](v value[T], to func(T) U) value[U] {
	return value[U]{v.shape, func(p place, n *source.Node) (U, bool) {
		t, ok := v.read(p, n)
		return to(t), ok
	}}
}

// shaped makes a kind of value that the schema describes in another way.
func (v value[T]) shaped(s func() shape) value[T] { return value[T]{s, v.read} }

// checked makes a kind of value of which some are errors. complaint is a format of the place and of the value as the
// file writes it.
func (v value[T]) checked(fits func(T) bool, complaint, hint string) value[T] {
	return value[T]{v.shape, func(p place, n *source.Node) (T, bool) {
		t, ok := v.read(p, n)
		if ok && !fits(t) {
			p.report(n, CodeValue, complaint, p.field, n.Value).Hint = hint
			return t, false
		}
		return t, ok
	}}
}

func notEmpty(text string) bool { return text != "" }

// maybe makes a kind of value that is nil if the field is left out.
func maybe[T any](v value[T]) value[*T] { return as(v, func(t T) *T { return &t }) }

var (
	aText   = plain(schema.Text, (*reader).text)
	aWords  = plain(schema.AnyText, (*reader).words)
	aBool   = plain(schema.YesNo, (*reader).boolean)
	aNumber = plain(schema.Number, (*reader).number)
	aSpan   = plain(schema.Duration, (*reader).duration)
	aSize   = plain(schema.ByteSize, (*reader).size)

	aWord  = aText.shaped(schema.Word).checked(notEmpty, "%[1]s is empty", "")
	anExpr = aWords.shaped(schema.Expression).checked(notEmpty, "%[1]s is an empty expression", "")

	aLoopSpan = as(aSpan, func(d time.Duration) loop.Duration { return loop.Duration(d) })
	aDelay    = as(plain(schema.Delay, (*reader).delay), func(d time.Duration) loop.Duration { return loop.Duration(d) })
)

// oneWord makes a kind of value that is one of several words.
func oneWord[T ~string](words ...T) value[T] {
	all := wordsOf(words)
	return value[T]{func() shape { return schema.OneOf(all...) }, func(p place, n *source.Node) (T, bool) {
		v := p.choice(n, p.field, all)
		return T(v), v != ""
	}}
}

// wholeFrom makes a kind of value that is a whole number of at least the given size. A number that is not an int64 has
// 32 bits.
//
//go:noinline
func wholeFrom[T ~uint | ~int | ~int64](least T, hint string) value[T] {
	_, long := any(least).(int64)
	return value[T]{func() shape {
		s := schema.Whole(float64(least))
		if long {
			s.Maximum = nil
		}
		return s
	}, func(p place, n *source.Node) (T, bool) {
		v, ok := p.integer(n, p.field)
		if ok && least > 0 && v < int64(least) {
			p.report(n, CodeValue, "%s must be at least %d, got %d", p.field, least, v).Hint = hint
			return 0, false
		}
		if ok && !long {
			ok = p.within(n, p.field, v, int64(least), math.MaxInt32)
		}
		return T(v), ok
	}}
}

// wholeIn makes a kind of value that is a whole number in a range.
func wholeIn(low, high int) value[int] {
	return value[int]{func() shape {
		s := schema.Whole(float64(low))
		s.Maximum = new(float64(high))
		return s
	}, func(p place, n *source.Node) (int, bool) {
		v, ok := p.integer(n, p.field)
		return int(v), ok && p.within(n, p.field, v, int64(low), int64(high))
	}}
}

// numberIn makes a kind of value that is a number with limits in the schema, which another check reports.
func numberIn(limit func(shape)) value[float64] {
	return aNumber.shaped(func() shape {
		s := schema.Number()
		limit(s)
		return s
	})
}

// These are numbers of at least 0, and above 0. The plan of the loop checks them.
var (
	aFactor = numberIn(func(s shape) { s.Minimum = new(0.0) })
	anAbove = numberIn(func(s shape) { s.ExclusiveMinimum = new(0.0) })
)

// listing says which lists are errors.
type listing struct {
	empty  string                   // the hint for an empty list; "" if it may be empty
	line   func(text string) string // the hint for a text where a list must be
	unique bool                     // no element comes twice
	whole  bool                     // the list counts only if all of its elements can be read
}

// each makes a list of values. It keeps the positions of all elements, also of those that cannot be read.
//
//go:noinline
func each[T comparable](v value[T], l listing) value[[]T] {
	return value[[]T]{func() shape {
		s := schema.List(v.shape())
		if l.empty != "" {
			s.MinItems = new(1)
		}
		s.UniqueItems = l.unique
		return s
	}, func(p place, n *source.Node) ([]T, bool) {
		items, ok := p.items(n, p.field)
		switch {
		case !ok && source.PlainText(n) && l.line != nil:
			p.problems[len(p.problems)-1].Hint = l.line(n.Value)
		case ok && len(items) == 0 && l.empty != "":
			p.report(n, CodeValue, "%s is an empty list", p.field).Hint = l.empty
			return nil, false
		}
		var all, seen []T
		twice := false
		for i, item := range items {
			f := index(p.field, i)
			p.a.nodes[f] = item
			t, good := v.read(p.at(f), item)
			if all, ok = append(all, t), ok && good; !good {
				continue
			}
			if l.unique && !twice && slices.Contains(seen, t) {
				p.report(n, CodeValue, "%s names %q twice", p.field, any(t))
				twice = true
			}
			seen = append(seen, t)
		}
		if !ok && !l.whole && len(all) > 0 {
			p.a.unread = append(p.a.unread, p.field)
			return all, true
		}
		return all, ok
	}}
}

// named makes a map whose keys the author chooses. Values that cannot be read are left out.
//
//go:noinline
func named[T any](v value[T]) value[map[string]T] {
	return value[map[string]T]{func() shape { return schema.MapOf(v.shape()) },
		func(p place, n *source.Node) (map[string]T, bool) {
			ps, ok := p.pairs(n, p.field)
			if !ok {
				p.hint(assignment(n))
			}
			m := make(map[string]T, len(ps))
			for _, e := range ps {
				f := p.field + "." + e.key
				p.a.nodes[f], p.a.nodes["key of "+f] = e.value, e.at
				if t, good := v.read(p.at(f), e.value); good {
					m[e.key] = t
				}
			}
			return m, true
		}}
}

// parts describes a map of known keys, which becomes an S.
type parts[S any] struct {
	rows    []row[S]
	or      string          // the part that a value is which is no map; "true" is a map with nothing in it
	form    string          // what the value must be, in words; "" leaves it to the part
	some    string          // the hint for a map with nothing in it; "" if it may be empty
	instead string          // the hint for a value that is no map; "" if there is none
	settled func(place, *S) // a rule about the parts together
	keep    bool            // what can be read counts though the rest cannot
	what    string          // what the map is, in words; "" is the name of its field
	has     string          // the hint for an unknown part; "" lists the parts
	also    func(shape)     // adds to the shape what it says about several parts; nil adds nothing
}

func (of parts[S]) value() value[*S] { return value[*S]{of.shape, of.read} }

// inPlace makes the map a kind of value that is never nil.
func (of parts[S]) inPlace() value[S] {
	return value[S]{of.shape, func(p place, n *source.Node) (v S, ok bool) {
		s, ok := of.read(p, n)
		if s != nil {
			v = *s
		}
		return v, ok
	}}
}

func (of parts[S]) shape() shape {
	var entries []schema.Entry
	var needed []string
	for _, w := range of.rows {
		entries = append(entries, schema.Named(w.Name, w.Doc, w.shape()))
		if w.needed {
			needed = append(needed, w.Name)
		}
	}
	s := schema.Settings(entries, needed...)
	if of.some != "" {
		s.MinProperties = new(1)
	}
	if of.also != nil {
		of.also(s)
	}
	switch of.or {
	case "":
		return s
	case "true":
		return schema.Either(schema.YesNo(), s)
	}
	w, _ := of.row(of.or)
	short := w.shape()
	short.Default = nil
	return schema.Either(short, s)
}

func (of parts[S]) row(name string) (w row[S], ok bool) {
	i := slices.IndexFunc(of.rows, func(w row[S]) bool { return w.Name == name })
	if i < 0 {
		return w, false
	}
	return of.rows[i], true
}

// unknown reports a part that the map cannot have.
func (of parts[S]) unknown(p place, e pair) {
	names := of.names()
	otherwise := cmp.Or(of.has, "there are "+strings.Join(names, ", "))
	what := cmp.Or(of.what, p.field)
	problem := p.report(e.at, CodeField, "unknown field %q of %s", e.key, what)
	if problem.Hint = meant.Advice[what+"."+e.key]; problem.Hint == "" {
		problem.suggest(meant.Hint(e.key, names, otherwise))
	}
}

func (of parts[S]) names() []string { return rowNames(of.rows) }

func rowNames[S any](rows []row[S]) (all []string) {
	for _, w := range rows {
		all = append(all, w.Name)
	}
	return all
}

func (of parts[S]) read(p place, n *source.Node) (*S, bool) {
	s := new(S)
	switch {
	case n.Kind == source.Scalar && of.or == "true":
		on, ok := p.boolean(n, p.field)
		if !on {
			return nil, ok
		}
		return s, true
	case of.form != "" && n.Kind != source.Map && !source.PlainText(n):
		p.wrong(n, p.field, of.form)
		return nil, false
	case n.Kind == source.Scalar && of.or != "":
		p.a.nodes[p.field+"."+of.or] = n
		w, _ := of.row(of.or)
		return s, w.reads(p, n, s)
	}
	before, given := len(p.problems), make(map[string]bool)
	ps, ok := p.pairs(n, p.field)
	if n.Kind != source.Map {
		p.hint(of.instead)
	}
	for _, e := range ps {
		w, known := of.row(e.key)
		if !known {
			of.unknown(p, e)
			continue
		}
		f := p.field + "." + e.key
		p.a.nodes[f], given[e.key] = e.value, true
		w.reads(p.at(f), e.value, s)
	}
	ok = ok && len(p.problems) == before
	if ok {
		ok = of.complete(p, n, given)
	}
	if of.settled != nil {
		of.settled(p, s)
	}
	return s, ok || of.keep && n.Kind == source.Map
}

// complete reports the required parts that are missing.
func (of parts[S]) complete(p place, n *source.Node, given map[string]bool) bool {
	ok := true
	for _, w := range of.rows {
		if w.needed && !given[w.Name] {
			p.report(n, CodeMissing, "%s needs %s: %s", p.field, w.Name, w.Doc)
			ok = false
		}
	}
	if of.some != "" && len(given) == 0 {
		p.report(n, CodeValue, "%s sets no limit", p.field).Hint = of.some
		ok = false
	}
	return ok
}

// shape is the JSON Schema of a value.
type shape = schema.Shape

func conditionRef() shape { return schema.By("condition") }

// SchemaID is where the newest schema is kept, for an editor that is told by
//
//	# yaml-language-server: $schema=https://raw.githubusercontent.com/refrain-dev/refrain/main/definition/schema.json
const SchemaID = "https://raw.githubusercontent.com/refrain-dev/refrain/main/definition/schema.json"

// Schema returns the JSON Schema of a definition, draft 2020-12, made from the same table as [Fields]. Editors
// complete and check files with it. The schema describes the structure: fields, and the types and ranges of their
// values. It accepts mistakes that only [Load] can find, such as a key that no agent writes.
func Schema() []byte {
	d := &schema.Document{ID: SchemaID, Title: "Definition", Description: "A loop of agents in a file, for refrain run.",
		Asking: asking, Asker: string(TypeLLM), BesideRef: besideRef}
	for _, f := range fields {
		of := schema.Field{Name: f.Name, Doc: f.Doc, Root: f.Root, Tells: len(f.Types) == 1 && !alsoMeant(f.Name),
			Shape: shapes()[f.Name], Own: make(map[string]shape)}
		for _, t := range f.Types {
			of.Types = append(of.Types, string(t))
			if own, ok := shapes()[string(t)+" "+f.Name]; ok {
				of.Own[string(t)] = own
			}
		}
		d.Fields = append(d.Fields, of)
	}
	var tool shape
	for _, k := range kinds {
		t := schema.AgentType{Name: string(k.is), Tells: k.tells}
		switch field, needed := needs[k.is]; {
		case needed:
			t.Needs = []string{field}
		case k.is.Workflow():
			t.Needs = []string{"sub_agents"}
		case k.is == TypeExpression:
			t.Some = []shape{schema.Has("set", &jsonschema.Schema{MinProperties: new(1)}), schema.Has("value", nil), schema.Has("exit_when", nil)}
		}
		if k.is == TypeHuman { // a default is the answer at the deadline
			t.Some = []shape{{Not: schema.Has("default", nil)}, schema.Has("deadline", nil)}
		}
		if d.Types = append(d.Types, t); k.is == TypeCommand {
			tool = d.Agent(&t, false)
		}
	}
	schema.Set(tool, "parameters", &jsonschema.Schema{
		Ref: "#/$defs/answer", Description: "what the model gives: {{NAME}} in the command, or JSON on standard input",
		Properties: map[string]*jsonschema.Schema{"type": {Enum: []any{"object"}}},
	})
	d.Parts = map[string]shape{"condition": conditionSchema(), "tool": toolSchema(), "tool.command": tool, "mcp": mcpParts.shape(),
		"callback": callbackParts.shape(), "answer": schema.Answer()}
	return d.JSON()
}
