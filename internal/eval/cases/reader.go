// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// most is the largest number of problems that a reader reports.
const most = 200

// reader reads the values of one file.
type reader struct {
	src        *source.Source
	row        int // the line of the file before the text of src, for a text that is one line of it
	problems   *definition.Problems
	references map[*string]reference
}

// report reports a mistake at a value.
func (r *reader) report(n *source.Node, code, format string, args ...any) *definition.Problem {
	return r.at(r.src.Of(n), code, format, args...)
}

func (r *reader) at(s source.Span, code, format string, args ...any) *definition.Problem {
	p := &definition.Problem{File: r.src.Name, Line: s.Line, Column: s.Column, Length: s.Length, Severity: definition.SeverityError, Code: code,
		Message: fmt.Sprintf(format, args...)}
	if s.Line > 0 {
		p.Excerpt = r.src.Excerpt(s.Line)
		p.Line += r.row
	}
	if len(*r.problems) < most {
		*r.problems = append(*r.problems, p)
	}
	return p
}

// faults reports why a text cannot be read.
func (r *reader) faults(faults []*source.Fault) {
	for _, f := range faults {
		code := definition.CodeSyntax
		if f.OfFile {
			code = definition.CodeFile
		}
		r.at(f.At, code, "%s", f.Message).Hint = f.Hint
	}
}

// field reads the value of one key of a map.
type field struct {
	name string
	read func(*source.Node)
}

// fields are those of a map, in the order in which a hint lists them.
type fields []field

// index returns the place of a name; -1 if there is none.
func (fs fields) index(name string) int {
	return slices.IndexFunc(fs, func(f field) bool { return f.name == name })
}

// read reads a map of known fields. It returns the values by name; nil if n is no map.
func (r *reader) read(n *source.Node, what string, of fields) map[string]*source.Node {
	pairs, ok := r.pairs(n, what)
	if !ok {
		return nil
	}
	given := make(map[string]*source.Node)
	for _, p := range pairs {
		i := of.index(p.Key.Value)
		if i < 0 {
			var names []string
			for _, f := range of {
				names = append(names, f.name)
			}
			r.report(p.Key, definition.CodeField, "unknown field %q of %s", p.Key.Value, what).Hint = suggest.Hint(p.Key.Value, names)
			continue
		}
		v := source.Deref(p.Value)
		given[p.Key.Value] = v
		if !source.IsNull(v) && of[i].read != nil {
			of[i].read(v)
		}
	}
	return given
}

// pairs returns the entries of a map, without those whose key is given twice.
func (r *reader) pairs(n *source.Node, what string) ([]source.Pair, bool) {
	n = source.Deref(n)
	if n.Kind != source.Map {
		r.wrong(n, what, "a map")
		return nil, false
	}
	lines := make(map[string]int)
	return slices.DeleteFunc(source.Pairs(n), func(p source.Pair) bool {
		if first := lines[p.Key.Value]; first > 0 {
			r.report(p.Key, definition.CodeDuplicate, "%q is given twice, first in line %d", p.Key.Value, first+r.row)
			return true
		}
		lines[p.Key.Value] = p.Key.Line
		return false
	}), true
}

// wrong reports a value of the wrong type.
func (r *reader) wrong(n *source.Node, what, must string) *definition.Problem {
	p := r.report(n, definition.CodeValue, "%s must be %s, got %s", what, must, source.Describe(n))
	p.Hint = source.Unquoted(n)
	return p
}

// list returns the elements of a list.
func (r *reader) list(n *source.Node, what string) []*source.Node {
	n = source.Deref(n)
	if n.Kind != source.List {
		r.wrong(n, what, "a list")
		return nil
	}
	all := make([]*source.Node, len(n.Content))
	for i, c := range n.Content {
		all[i] = source.Deref(c)
	}
	return all
}

// text reads a text, or a number or boolean as the text that the file has.
func (r *reader) text(n *source.Node, what string) string {
	if n.Kind != source.Scalar || source.IsNull(n) {
		r.wrong(n, what, "text")
		return ""
	}
	return n.Value
}

// texts reads a text or a list of texts.
func (r *reader) texts(n *source.Node, what string) []string {
	if n.Kind != source.List {
		return []string{r.text(n, what)}
	}
	all := make([]string, 0, len(n.Content))
	for i, c := range r.list(n, what) {
		all = append(all, r.text(c, fmt.Sprintf("%s[%d]", what, i)))
	}
	if len(all) == 0 {
		r.report(n, definition.CodeValue, "%s is an empty list", what)
	}
	return all
}

// choice reads one of several words.
func (r *reader) choice(n *source.Node, what string, words []string) string {
	text := r.text(n, what)
	if text != "" && !slices.Contains(words, text) {
		r.report(n, definition.CodeValue, "%s cannot be %q", what, text).Hint = suggest.Hint(text, words)
		return ""
	}
	return text
}

func (r *reader) boolean(n *source.Node, what string) (v bool) {
	if n.Kind != source.Scalar || n.ShortTag() != "!!bool" || n.Load(&v) != nil {
		r.wrong(n, what, "true or false")
	}
	return v
}

// number reads a finite number that is at least least, or above it.
func (r *reader) number(n *source.Node, what string, least float64, above bool) float64 {
	var v float64
	if tag := n.ShortTag(); n.Kind != source.Scalar || tag != "!!int" && tag != "!!float" || n.Load(&v) != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		r.wrong(n, what, "a number")
		return 0
	}
	switch {
	case above && v <= least:
		r.report(n, definition.CodeValue, "%s must be above %v, got %s", what, least, n.Value)
	case v < least:
		r.report(n, definition.CodeValue, "%s must be at least %v, got %s", what, least, n.Value)
	}
	return v
}

// whole reads a whole number in a range.
func (r *reader) whole(n *source.Node, what string, low, high int64) int64 {
	var v int64
	if n.Kind != source.Scalar || n.ShortTag() != "!!int" || n.Load(&v) != nil {
		r.wrong(n, what, "a whole number")
		return low
	}
	if v < low || v > high {
		r.report(n, definition.CodeValue, "%s must be between %d and %d, got %s", what, low, high, n.Value)
		return low
	}
	return v
}

// duration reads a time such as 90s or 5m, or a number of seconds.
func (r *reader) duration(n *source.Node, what string) time.Duration {
	const longest = 1e9 // seconds
	d, err := time.ParseDuration(n.Value)
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		var f float64
		if err = n.Load(&f); err == nil && math.Abs(f) <= longest {
			d = time.Duration(f * float64(time.Second))
		}
	}
	if n.Kind != source.Scalar || err != nil || d <= 0 {
		r.wrong(n, what, "a time above zero, such as 90s or 5m")
		return 0
	}
	return d
}

// value reads a value of any type: text, bool, int64, float64, nil, []any or map[string]any.
func (r *reader) value(n *source.Node, what string) any {
	n = source.Deref(n)
	switch n.Kind {
	case source.List:
		all := make([]any, 0, len(n.Content))
		for i, c := range n.Content {
			all = append(all, r.value(c, fmt.Sprintf("%s[%d]", what, i)))
		}
		return all
	case source.Map:
		return r.object(n, what)
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return r.boolean(n, what)
	case "!!int":
		var v int64
		if n.Load(&v) == nil {
			return v
		}
		return r.number(n, what, math.Inf(-1), false)
	case "!!float":
		return r.number(n, what, math.Inf(-1), false)
	}
	return n.Value
}

// object reads a map of values.
func (r *reader) object(n *source.Node, what string) map[string]any {
	pairs, ok := r.pairs(n, what)
	if !ok {
		return nil
	}
	m := make(map[string]any, len(pairs))
	for _, p := range pairs {
		m[p.Key.Value] = r.value(p.Value, what+"."+p.Key.Value)
	}
	return m
}

// path reads the name of a file inside the folder of the file.
func (r *reader) path(n *source.Node, what string) (string, bool) {
	name := r.text(n, what)
	if !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`) {
		r.report(n, definition.CodeOutside, "%s must be a path inside the folder of this file, got %s", what, strconv.Quote(name)).
			Hint = "copy the file into this folder, and separate folders with /"
		return "", false
	}
	return name, true
}

// sortProblems returns the problems in the order of the files and of their text; nil if there are none.
func sortProblems(ps definition.Problems) error {
	if len(ps) == 0 {
		return nil
	}
	files := make(map[string]int)
	for i, p := range ps {
		if _, seen := files[p.File]; !seen {
			files[p.File] = i
		}
	}
	slices.SortStableFunc(ps, func(a, b *definition.Problem) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}
