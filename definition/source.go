// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// Position is a place in a file. Line and Column count from 1, Column in
// characters.
type Position struct {
	File         string
	Line, Column int
}

// String is file:line:column.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// source is the text of one file.
type source struct {
	name  string // for people
	path  string // in the loader's file system, with slashes
	index int    // in the order of loading
	lines []string
}

// span is a place in a source, some characters long.
type span struct {
	src                  *source
	line, column, length int
}

func (s span) position() Position { return Position{s.src.name, s.line, s.column} }

func newSource(name, path string, index int, text string) *source {
	return &source{name: name, path: path, index: index, lines: splitLines(text)}
}

// splitLines splits where YAML does.
func splitLines(text string) []string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text)
	return strings.Split(text, "\n")
}

// line is the text of a line; empty if there is no such line.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// from is the text of a line from a column on, in characters.
func (s *source) from(line, column int) string {
	text := s.line(line)
	for ; column > 1 && text != ""; column-- {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	return text
}

// of is the place of a node.
func (s *source) of(n *yaml.Node) span {
	sp := span{src: s, line: n.Line, column: n.Column, length: 1}
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return sp
	}
	length := utf8.RuneCountInString(n.Value)
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		length += 2
	}
	if rest := utf8.RuneCountInString(strings.TrimRight(s.from(n.Line, n.Column), " ")); length > 0 && length <= rest {
		sp.length = length
	}
	return sp
}
