// SPDX-License-Identifier: Apache-2.0

// Package source reads the files of a definition as YAML, within limits, and knows where in
// them each value stands. It does not know what the values mean: packages definition
// and definition/edit do.
//
//	src := source.New("loop.yaml", "loop.yaml", 0, "")
//	n, faults := source.Read(file, src, new(int))
//	at := src.Of(n) // line and column
package source

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/credential"
)

// Source is the text of one file.
type Source struct {
	Name  string // for people
	Path  string // in the file system of the definition, with slashes
	Index int    // in the order of loading
	lines []string
	marks map[int][]int // of the long lines, by number: where each markEvery-th character is
	last  *cursor       // of [Source.Within]

	Secrets []string       // values that no excerpt shows
	shown   map[int]string // lines without them, by number
}

// Span is a place in a source, some characters long.
type Span struct {
	Src                  *Source
	Line, Column, Length int
}

// New is a source of a text. The name is for people, and the path is the place in the
// file system of the definition.
func New(name, path string, index int, text string) *Source {
	s := &Source{Name: name, Path: path, Index: index}
	s.says(text)
	return s
}

// says sets the text of the file.
func (s *Source) says(text string) {
	s.lines, s.marks = splitLines(text), nil
	for i, line := range s.lines {
		if len(line) > 4*markEvery {
			if s.marks == nil {
				s.marks = make(map[int][]int)
			}
			s.marks[i+1] = marksOf(line)
		}
	}
}

// markEvery is how many characters are between two marks of a long line: JSON often
// is one line, and each of its nodes is looked for there.
const markEvery = 64

func marksOf(line string) (marks []int) {
	n := 0
	for i := range line {
		if n%markEvery == 0 {
			marks = append(marks, i)
		}
		n++
	}
	return marks
}

// splitLines splits where YAML does.
func splitLines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	return strings.Split(text, "\n")
}

// Line is the text of a line; empty if there is no such line.
func (s *Source) Line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// Excerpt is the text of a line without the secrets in it.
func (s *Source) Excerpt(n int) string {
	text, known := s.shown[n]
	if !known && n >= 1 && n <= len(s.lines) {
		if text = credential.Mask(s.lines[n-1], s.Secrets); s.shown == nil {
			s.shown = make(map[int]string)
		}
		s.shown[n] = text
	}
	return text
}

// conceal notes the values of fields that are called like a secret.
func (s *Source) conceal(n *yaml.Node) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 {
			if key := n.Content[i-1].Value; credential.Named(key) && !strings.HasSuffix(key, "_env") {
				s.secret(c)
			}
		}
		s.conceal(c)
	}
}

// secret notes a value, or those in a list, that no excerpt shows.
func (s *Source) secret(n *yaml.Node) {
	if n.Kind == yaml.SequenceNode {
		for _, c := range n.Content {
			s.secret(c)
		}
	}
	least := 4
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		least = 8 // budget: {token: 5000} is none
	}
	if n.Kind == yaml.ScalarNode && len(n.Value) >= least && n.ShortTag() != "!!bool" &&
		!strings.Contains(n.Value, "{{") {
		s.Secrets = append(s.Secrets, n.Value)
	}
}

// from is the text of a line from a column on, in characters.
func (s *Source) from(line, column int) string {
	text := s.Line(line)
	if marks := s.marks[line]; marks != nil && column > 1 {
		m := min((column-1)/markEvery, len(marks)-1)
		text, column = text[marks[m]:], column-m*markEvery
	}
	for ; column > 1 && text != ""; column-- {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	return text
}

// Of is the place of a node.
func (s *Source) Of(n *yaml.Node) Span {
	sp := Span{Src: s, Line: n.Line, Column: n.Column, Length: 1}
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return sp
	}
	length := utf8.RuneCountInString(n.Value)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		length += 2
	}
	rest := strings.TrimRight(s.from(n.Line, n.Column), " ")
	if end := Runes(rest, length); length > 0 && utf8.RuneCountInString(end) == length {
		sp.Length = length
	}
	return sp
}

// Runes returns the first characters of a text, no more than most.
func Runes(text string, most int) string {
	for i := range text {
		if most--; most < 0 {
			return text[:i]
		}
	}
	return text
}
