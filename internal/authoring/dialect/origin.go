// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

// origins maps the nodes of a definition to their places in the imported file, because people edit the imported file.
type origins map[*yaml.Node]origin

// origin is the place of a value and the values that it was made of. A text may be made of several.
type origin struct {
	at    place
	parts []value
}

// put records the origin of a value and of the values in it.
func (o origins) put(n *yaml.Node, from ...value) {
	from = slices.DeleteFunc(slices.Clone(from), func(v value) bool { return v.Node == nil })
	if len(from) == 0 {
		return
	}
	o[n] = origin{from[0].at(), from}
	if len(from) > 1 {
		return
	}
	v := from[0]
	switch {
	case n.Kind == yaml.MappingNode && v.isMap():
		for k := 0; k+1 < len(n.Content); k += 2 {
			for _, p := range v.pairs() {
				if p.key == n.Content[k].Value {
					o[n.Content[k]] = origin{at: p.at}
					o.put(n.Content[k+1], p.value)
				}
			}
		}
	case n.Kind == yaml.SequenceNode && v.isList() && len(n.Content) == len(v.Content):
		for k, item := range v.items() {
			o.put(n.Content[k], item)
		}
	}
}

// spot is the position of a node in the text of a definition, and its origin.
type spot struct {
	line, column int
	origin
}

// spots is in the order of the text.
type spots []spot

// spots lists the nodes of a definition with their positions in its text. made is the definition with its origins,
// and read is the same definition parsed from its text. A node without an origin gets the one of the node around it.
func (o origins) spots(made, read *yaml.Node, around origin, list spots) spots {
	if own, ok := o[made]; ok {
		around = own
	}
	list = append(list, spot{read.Line, read.Column, around})
	for k := range made.Content {
		list = o.spots(made.Content[k], read.Content[k], around, list)
	}
	return list
}

// trace gives the problems of a definition their places in the imported file, and hints that help there.
func (i *importer) trace(problems definition.Problems) {
	for _, p := range problems {
		if p.Line > 0 {
			p.File, p.Line, p.Column, p.Length, p.Excerpt = i.traced(p)
		}
		p.Hint = i.hint(p)
	}
	slices.SortStableFunc(problems, func(p, q *definition.Problem) int {
		return cmp.Or(slices.Index(i.files, p.File)-slices.Index(i.files, q.File), p.Line-q.Line, p.Column-q.Column)
	})
}

// traced returns the place of a problem in the imported file.
func (i *importer) traced(p *definition.Problem) (file string, line, column, length int, excerpt string) {
	s := i.spots.at(p.Line, p.Column)
	at, length := s.at, 1
	if len(s.parts) > 0 {
		length = i.texts[at.File].Of(s.parts[0].Node).Length
	}
	if word, nth := i.word(p, s); word != "" {
		if there, ok := i.search(s.parts, word, nth, nil); ok {
			at, length = there, utf8.RuneCountInString(word)
		}
	}
	text := i.shownLine(at)
	if rest := utf8.RuneCountInString(text) - at.Column + 1; length > rest {
		length = 1
	}
	return at.File, at.Line, at.Column, length, text
}

// at returns the last spot that begins at or before a place of the definition.
func (list spots) at(line, column int) spot {
	n, found := slices.BinarySearchFunc(list, 0, func(s spot, _ int) int {
		return cmp.Or(s.line-line, s.column-column)
	})
	if !found {
		n--
	} else {
		for n+1 < len(list) && list[n+1].line == line && list[n+1].column == column {
			n++ // a map has the same place as its first key
		}
	}
	return list[max(n, 0)]
}

// word returns the word of a text that a problem is about, and how often the word occurs in the text before that.
// word is empty if the problem is about the whole text.
func (i *importer) word(p *definition.Problem, s spot) (word string, nth int) {
	if p.Line == s.line && p.Column == s.column {
		return "", 0
	}
	made := i.texts[importName(i.report.File)]
	from, to := made.Offset(s.line, s.column), made.Offset(p.Line, p.Column)
	rest := strings.TrimLeft(made.Text[to:], "{#^/& ")
	end := strings.IndexFunc(rest, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	if end < 0 {
		end = len(rest)
	}
	return rest[:end], strings.Count(made.Text[from:to], rest[:end])
}

// search finds a word in texts of the imported file. YAML, JSON and TypeScript fold lines and have escapes, but a
// word is the same in all of them. search returns the nth occurrence, from 0, of those for which accept is true.
func (i *importer) search(parts []value, word string, nth int, accept func(before string) bool) (place, bool) {
	for _, v := range parts {
		src := i.texts[v.file]
		if !v.isScalar() || src == nil || word == "" {
			continue
		}
		at := src.Offset(v.Line, v.Column)
		for range strings.Count(v.Value, word) {
			n := strings.Index(src.Text[at:], word)
			if n < 0 {
				break
			}
			if at += n; accept == nil || accept(src.Text[max(0, at-20):at]) {
				if nth == 0 {
					line, column := src.Place(at)
					return place{File: v.file, Line: line, Column: column}, true
				}
				nth--
			}
			at += len(word)
		}
	}
	return place{}, false
}
