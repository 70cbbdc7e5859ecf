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

// origins says of the nodes of a definition where they stand in the file that it
// was made of: people edit that one.
type origins map[*yaml.Node]origin

// origin is the place of a value, and what it was made of; a text may have been
// put together of several.
type origin struct {
	at    place
	parts []value
}

// put notes where a value comes from, with those in it.
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

// spot is where a node of a definition stands in its text, and its origin.
type spot struct {
	line, column int
	origin
}

// spots are in the order of the text.
type spots []spot

// spots lists the nodes of a definition as they stand in its text: there is the
// definition as it was made, and as it is read again. What has no origin has that
// of what is around it.
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

// trace gives problems of a definition the places in the file that it was made
// of, and hints that are of use there.
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

// traced is where a problem is in the file.
func (i *importer) traced(p *definition.Problem) (file string, line, column, length int, excerpt string) {
	s := i.spots.at(p.Line, p.Column)
	at, length := s.at, 1
	for _, v := range s.parts[:min(len(s.parts), 1)] {
		length = max(1, utf8.RuneCountInString(v.Value))
		if v.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			length += 2
		}
	}
	if word, nth := i.word(p, s); word != "" {
		if there, ok := i.search(s.parts, word, nth, nil); ok {
			at, length = there, utf8.RuneCountInString(word)
		}
	}
	text := i.shownLine(at)
	if rest := utf8.RuneCountInString(text) - at.column + 1; length > rest {
		length = 1
	}
	return at.file, at.line, at.column, length, text
}

// at is the last one that begins at or before a place of the definition.
func (list spots) at(line, column int) spot {
	n, found := slices.BinarySearchFunc(list, 0, func(s spot, _ int) int {
		return cmp.Or(s.line-line, s.column-column)
	})
	if !found {
		n--
	} else {
		for n+1 < len(list) && list[n+1].line == line && list[n+1].column == column {
			n++ // a map, and its first key
		}
	}
	return list[max(n, 0)]
}

// word is the word of a text that a problem is about, and how often it stands in
// the text before that; empty if the problem is about the whole of it.
func (i *importer) word(p *definition.Problem, s spot) (word string, nth int) {
	if p.Line == s.line && p.Column == s.column {
		return "", 0
	}
	made := i.texts[imported(i.report.File)]
	from, to := made.offset(s.line, s.column), made.offset(p.Line, p.Column)
	rest := strings.TrimLeft(made.text[to:], "{#^/& ")
	end := strings.IndexFunc(rest, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	if end < 0 {
		end = len(rest)
	}
	return rest[:end], strings.Count(made.text[from:to], rest[:end])
}

// search finds a word in the file, in texts that stand there: YAML and JSON fold
// lines and have escapes, but a word stays what it is. It is the nth, from 0, of
// those that are accepted for what is before them.
func (i *importer) search(parts []value, word string, nth int, accept func(before string) bool) (place, bool) {
	if word == "" {
		return place{}, false
	}
	for _, v := range parts {
		src := i.texts[v.file]
		if !v.isScalar() || src == nil {
			continue
		}
		at := src.offset(v.Line, v.Column)
		for range strings.Count(v.Value, word) {
			n := strings.Index(src.text[at:], word)
			if n < 0 {
				break
			}
			if accept == nil || accept(src.text[max(0, at+n-20):at+n]) {
				if nth == 0 {
					return src.place(v.file, at+n), true
				}
				nth--
			}
			at += n + len(word)
		}
	}
	return place{}, false
}

// source keeps the text of a file.
func (i *importer) source(file, text string) {
	if i.texts == nil {
		i.texts = make(map[string]*source) // Detect only looks
	}
	if i.texts[file] == nil {
		i.files = append(i.files, file)
	}
	i.texts[file] = newSource(text)
}

// source is the text of a file.
type source struct {
	text  string
	lines []int // where they begin
}

func newSource(text string) *source {
	s := &source{text: text, lines: []int{0}}
	for n, c := range text {
		if breaks(c) && (c != '\r' || !strings.HasPrefix(text[n+1:], "\n")) {
			s.lines = append(s.lines, n+utf8.RuneLen(c))
		}
	}
	return s
}

// offset is where a line and column, in characters, are in the text.
func (s *source) offset(line, column int) int {
	if line < 1 || line > len(s.lines) {
		return len(s.text)
	}
	at := s.lines[line-1]
	for ; column > 1 && at < len(s.text); column-- {
		_, n := utf8.DecodeRuneInString(s.text[at:])
		at += n
	}
	return at
}

// place is the line and column of an offset.
func (s *source) place(file string, at int) place {
	n, found := slices.BinarySearch(s.lines, at)
	if !found {
		n--
	}
	return place{file, n + 1, utf8.RuneCountInString(s.text[s.lines[n]:at]) + 1}
}

// line is the text of the line at a place.
func (i *importer) line(at place) string {
	s := i.texts[at.file]
	if s == nil || at.line < 1 || at.line > len(s.lines) {
		return ""
	}
	text := s.text[s.lines[at.line-1]:]
	if n := strings.IndexFunc(text, breaks); n >= 0 {
		text = text[:n]
	}
	return text
}

// breaks reports whether a line ends with a character, for YAML.
func breaks(r rune) bool { return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 }
