// SPDX-License-Identifier: Apache-2.0

// Package source reads files as YAML or JSON, within limits, and knows where in them each value
// stands. It does not know what the values mean: packages definition, definition/edit and dialect do.
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

	"github.com/refrain-dev/refrain/internal/credential"
)

// Source is the text of one file.
type Source struct {
	Name   string // for people
	Path   string // in the file system of the definition, with slashes
	Index  int    // in the order of loading
	Text   string // without a byte order mark
	Starts []int  // where its lines begin, in bytes, as YAML splits them

	marks  map[int][]int // of the long lines, by number from 0: where each markEvery-th character is
	inside *yaml.Node    // the scalar that [Source.Inside] was asked for last
	pieces []Piece       // of that scalar

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

// isBreak reports whether a line ends with a character, for YAML.
func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

// IsSpace reports what YAML folds, drops and adds when it reads a text: the rest stands in the file
// as in the value, in the same order.
func IsSpace(r rune) bool { return r == ' ' || r == '\t' || isBreak(r) }

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

// LineOf is the number, from 0, of the line that an offset is in.
func (s *Source) LineOf(offset int) int {
	return sort.Search(len(s.Starts), func(i int) bool { return s.Starts[i] > offset }) - 1
}

// LineEnd is where a line ends, before its break; lines count from 0.
func (s *Source) LineEnd(line int) int {
	if line+1 >= len(s.Starts) {
		return len(s.Text)
	}
	start := s.Starts[line]
	return start + len(strings.TrimRightFunc(s.Text[start:s.Starts[line+1]], isBreak))
}

// Row is the text of a line, without its break; lines count from 0.
func (s *Source) Row(line int) string { return s.Text[s.Starts[line]:s.LineEnd(line)] }

// Line is the text of a line, counted from 1; empty if there is no such line.
func (s *Source) Line(n int) string {
	if n < 1 || n > len(s.Starts) {
		return ""
	}
	return s.Row(n - 1)
}

// Offset is where a line and a column are in the text. Both count from 1, the column in characters.
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

// Place is the line and the column of an offset, as [Source.Offset] counts them.
func (s *Source) Place(offset int) (line, column int) {
	line = s.LineOf(offset)
	at := s.Starts[line]
	if marks := s.marks[line]; marks != nil {
		m := sort.Search(len(marks), func(i int) bool { return marks[i] > offset-at }) - 1
		at, column = at+marks[m], m*markEvery
	}
	return line + 1, column + utf8.RuneCountInString(s.Text[at:offset]) + 1
}

// from is the text of a line from a column on.
func (s *Source) from(line, column int) string {
	at := s.Offset(line, column)
	if line > len(s.Starts) {
		return ""
	}
	return s.Text[at:max(at, s.LineEnd(line-1))]
}

// Excerpt is the text of a line without the secrets in it.
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

// maxSecrets bounds how many secrets of a file are kept.
const maxSecrets = 1000

// conceal notes the values that no excerpt shows: those of fields that are called like a secret, and
// those that the arguments of a command give to an option that is. name is the field or the option.
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
		least = 8 // budget: {token: 5000} is none
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

// SecretOption reports whether an argument of a command says that the next one is a secret.
func SecretOption(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && credential.Named(arg)
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
