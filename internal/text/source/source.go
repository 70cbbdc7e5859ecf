// SPDX-License-Identifier: Apache-2.0

// Package source reads files as YAML or JSON, within limits, and knows the position of each value in a file. Packages
// definition, edit and dialect interpret the values.
//
//	src := source.New("loop.yaml", "loop.yaml", 0, "")
//	n, faults := source.Read(file, src, new(int))
//	at := src.Of(n) // line and column
package source

import (
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/process/credential"
)

// Source is the text of one file.
type Source struct {
	Name   string // for people
	Path   string // in the file system of the definition, with slashes
	Index  int    // in the order of loading
	Text   string // without a byte order mark
	Starts []int  // offsets in bytes at which lines begin, as YAML splits lines

	marks  map[int][]int // for each long line, by its number from 0: the offset of each markEvery-th character
	inside *yaml.Node    // the scalar of the last call of [Source.Inside]
	pieces []Piece       // the pieces of that scalar

	Secrets []string       // values that are masked in every excerpt
	shown   map[int]string // masked lines, by number
}

// Span is a range of characters in a source.
type Span struct {
	Src                  *Source
	Line, Column, Length int
}

// New returns a source with a text. People see the name; the path is the place in the file system of the definition.
func New(name, path string, index int, text string) *Source {
	s := &Source{Name: name, Path: path, Index: index}
	s.says(text)
	return s
}

// says sets the text of the file.
func (s *Source) says(text string) {
	s.Text, s.Starts, s.marks, s.inside = text, []int{0}, make(map[int][]int), nil
	for i, r := range text {
		if isBreak(r) && (r != '\r' || !strings.HasPrefix(text[i+1:], "\n")) {
			s.Starts = append(s.Starts, i+utf8.RuneLen(r))
		}
	}
	for line := range s.Starts {
		if row := s.Row(line); len(row) > 4*markEvery {
			s.marks[line] = marksOf(row)
		}
	}
}

// isBreak reports whether a character ends a line in YAML.
func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// IsSpace reports whether YAML may fold, drop or add a character when it reads a text. All other characters are in
// the file in the same order as in the value.
func IsSpace(r rune) bool { return r == ' ' || r == '\t' || isBreak(r) }

// markEvery is the number of characters between two marks of a long line. Marks make positions fast to find, because
// a JSON file is often one line with many nodes.
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

// LineOf returns the number, from 0, of the line with an offset.
func (s *Source) LineOf(offset int) int {
	return sort.Search(len(s.Starts), func(i int) bool { return s.Starts[i] > offset }) - 1
}

// LineEnd returns the offset at which a line ends, before its line break; lines count from 0.
func (s *Source) LineEnd(line int) int {
	if line+1 >= len(s.Starts) {
		return len(s.Text)
	}
	start := s.Starts[line]
	return start + len(strings.TrimRightFunc(s.Text[start:s.Starts[line+1]], isBreak))
}

// Row returns the text of a line, without its line break; lines count from 0.
func (s *Source) Row(line int) string { return s.Text[s.Starts[line]:s.LineEnd(line)] }

// Line returns the text of a line, counted from 1, or "" if there is no such line.
func (s *Source) Line(n int) string {
	if n < 1 || n > len(s.Starts) {
		return ""
	}
	return s.Row(n - 1)
}

// Offset returns the byte offset of a line and a column. Both count from 1, the column in characters.
func (s *Source) Offset(line, column int) int {
	if line < 1 || line > len(s.Starts) {
		return len(s.Text)
	}
	at := s.Starts[line-1]
	if marks := s.marks[line-1]; marks != nil && column > 1 {
		m := min((column-1)/markEvery, len(marks)-1)
		at, column = at+marks[m], column-m*markEvery
	}
	for ; column > 1 && at < len(s.Text); column-- {
		_, n := utf8.DecodeRuneInString(s.Text[at:])
		at += n
	}
	return at
}

// Place returns the line and the column of an offset, as [Source.Offset] counts them.
func (s *Source) Place(offset int) (line, column int) {
	line = s.LineOf(offset)
	at := s.Starts[line]
	if marks := s.marks[line]; marks != nil {
		m := sort.Search(len(marks), func(i int) bool { return marks[i] > offset-at }) - 1
		at, column = at+marks[m], m*markEvery
	}
	return line + 1, column + utf8.RuneCountInString(s.Text[at:offset]) + 1
}

// from returns the text of a line from a column on.
func (s *Source) from(line, column int) string {
	at := s.Offset(line, column)
	if line > len(s.Starts) {
		return ""
	}
	return s.Text[at:max(at, s.LineEnd(line-1))]
}

// Excerpt returns the text of a line with its secrets masked.
func (s *Source) Excerpt(n int) string {
	text, known := s.shown[n]
	if !known && n >= 1 && n <= len(s.Starts) {
		if text = credential.Mask(s.Row(n-1), s.Secrets); s.shown == nil {
			s.shown = make(map[int]string)
		}
		s.shown[n] = text
	}
	return text
}

// maxSecrets limits how many secrets of a file are kept.
const maxSecrets = 1000

// conceal collects the values to mask in excerpts. These are the values of fields whose names mark a secret, and the
// values that the arguments of a command give to such an option. name is the field or the option.
func (s *Source) conceal(n *yaml.Node, name string) {
	before := ""
	for i, c := range n.Content {
		inner := name
		switch {
		case n.Kind == yaml.MappingNode && i%2 == 0:
			continue
		case n.Kind == yaml.MappingNode && secretField(n.Content[i-1].Value):
			inner = n.Content[i-1].Value
		case n.Kind == yaml.SequenceNode && SecretOption(before):
			inner = before
		}
		s.conceal(c, inner)
		before = c.Value
	}
	if n.Kind != yaml.ScalarNode || strings.Contains(n.Value, "{{") {
		return
	}
	least := 4
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		least = 8 // budget: {token: 5000} is no secret
	}
	if name != "" && n.ShortTag() != "!!bool" && utf8.RuneCountInString(n.Value) >= least {
		s.secret(n.Value)
	}
	if option, value, given := strings.Cut(n.Value, "="); name == "" && given && len(value) >= 4 &&
		!strings.Contains(option, " ") && credential.Named(option) {
		s.secret(value) // --token=…
	}
}

func (s *Source) secret(text string) {
	if len(s.Secrets) < maxSecrets {
		s.Secrets = append(s.Secrets, text)
	}
}

func secretField(key string) bool {
	return credential.Named(key) && !strings.HasSuffix(key, "_env") || strings.EqualFold(key, "credentials")
}

// SecretOption reports whether an argument of a command is an option whose value, the next argument, is a secret.
func SecretOption(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && credential.Named(arg)
}

// Of returns the place of a node.
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

// Runes returns at most the first most characters of a text.
func Runes(text string, most int) string {
	for i := range text {
		if most--; most < 0 {
			return text[:i]
		}
	}
	return text
}
