// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A source is a Go file as tokens, without comments.
type source struct {
	lines  []string // each with its line break
	starts []int    // where each line begins, in bytes
	tokens []tok
	pairs  map[int]int // index of the matching bracket, in both directions

	imports  []imported
	named    map[string]string // path of an imported package by its name, see [imported]
	uses     bool              // the file imports ADK or Refrain
	edits    []edit            // in the order of the file
	findings []*Finding
}

type tok struct {
	at   int // in bytes
	kind token.Token
	text string
}

// imported is a line in an import declaration.
type imported struct {
	path  string // relative to ADK's or our prefix, or the whole path of another package
	token int    // index of the token with the path
	of    origin
}

// origin tells who provides a package.
type origin int

const (
	other origin = iota
	fromADK
	ours
)

// edit replaces some bytes of a line with a text.
type edit struct {
	at, length int
	text       string
}

// read reads a file. A file that is not Go, or imports neither ADK nor Refrain, has no edits.
func read(text []byte) *source {
	s := &source{lines: strings.SplitAfter(string(text), "\n"), pairs: map[int]int{}, named: map[string]string{}}
	at := 0
	for _, line := range s.lines {
		s.starts = append(s.starts, at)
		at += len(line)
	}
	wrong := s.scan(text)
	s.readImports()
	switch {
	case !s.uses:
	case wrong != nil:
		line, column := s.position(wrong.at)
		s.edits, s.findings = nil, []*Finding{{Line: line, Column: column, Breaks: true,
			Text: wrong.text + "; this file was not changed"}}
	default:
		s.inspect()
	}
	return s
}

// scan fills tokens and pairs. It returns the first token that is not valid Go.
func (s *source) scan(text []byte) (wrong *tok) {
	file := token.NewFileSet().AddFile("", 1, len(text))
	fail := func(at int, text string) {
		if wrong == nil {
			wrong = &tok{at: at, text: text}
		}
	}
	var sc scanner.Scanner
	sc.Init(file, text, func(p token.Position, msg string) { fail(p.Offset, msg) }, 0)
	var open []int
	for {
		pos, kind, lit := sc.Scan()
		n := len(s.tokens)
		s.tokens = append(s.tokens, tok{file.Offset(pos), kind, lit})
		switch kind {
		case token.LPAREN, token.LBRACK, token.LBRACE:
			open = append(open, n)
		case token.RPAREN, token.RBRACK, token.RBRACE:
			if len(open) == 0 || s.tokens[open[len(open)-1]].kind+5 != kind { // a closing bracket is five after its opening one
				fail(file.Offset(pos), "brackets do not match")
				return wrong
			}
			s.pairs[n], s.pairs[open[len(open)-1]] = open[len(open)-1], n
			open = open[:len(open)-1]
		case token.EOF:
			if len(open) > 0 {
				fail(s.tokens[open[len(open)-1]].at, "this bracket is not closed")
			}
			return wrong
		}
	}
}

// readImports fills imports and named, and plans the edits of the import paths.
func (s *source) readImports() {
	i := 0
	for ; s.is(i, token.PACKAGE, token.IDENT, token.SEMICOLON); i += 3 {
	}
	for s.kind(i) == token.IMPORT {
		end := i + 1
		if s.kind(end) == token.LPAREN {
			end = s.pairs[end]
		}
		for i++; i <= end || s.kind(i) != token.SEMICOLON && s.kind(i) != token.EOF; i++ {
			if s.kind(i) == token.STRING {
				s.readImport(i)
			}
		}
		i++
	}
}

func (s *source) readImport(i int) {
	whole, err := strconv.Unquote(s.tokens[i].text)
	if err != nil {
		return
	}
	im := imported{path: whole, token: i}
	if below, is := strings.CutPrefix(whole, adk+"/"); is {
		below = strings.TrimPrefix(below, "v2/")
		im.path, im.of = below, fromADK
		if _, known := lookup(below); known {
			s.edits = append(s.edits, edit{s.tokens[i].at, len(s.tokens[i].text), strconv.Quote(Module + "/" + below)})
		}
	} else if below, is := strings.CutPrefix(whole, Module+"/"); is {
		im.path, im.of = below, ours
	}
	s.uses = s.uses || im.of != other
	s.imports = append(s.imports, im)
	name := path.Base(im.path)
	if v, is := strings.CutPrefix(name, "v"); is && v != "" && strings.Trim(v, "0123456789") == "" {
		name = path.Base(path.Dir(im.path))
	}
	if s.kind(i-1) == token.IDENT {
		name = s.tokens[i-1].text
	}
	s.named[name] = im.path
}

// moved returns the new text of each line.
func (s *source) moved() []string {
	out := slices.Clone(s.lines)
	for _, e := range slices.Backward(s.edits) { // from the end, because an edit moves the bytes after it
		n, column := s.position(e.at)
		line := &out[n-1]
		*line = (*line)[:column-1] + e.text + (*line)[column-1+e.length:]
	}
	if len(s.edits) > 0 {
		s.sortImports(out)
	}
	return out
}

// sortImports sorts imports in out as gofmt does: adjacent lines by path.
func (s *source) sortImports(out []string) {
	paths := map[int]string{} // by line
	for _, im := range s.imports {
		n, column := s.position(s.tokens[im.token].at)
		before, _, _ := strings.Cut(strings.TrimLeft(s.lines[n-1][:column-1], "\t "), " ")
		alone := s.tokens[im.token+1].text == "\n" && !strings.Contains(s.lines[n-1], "/*")
		switch name := s.tokens[im.token-1]; {
		case !alone || before != "" && before != name.text && before != name.kind.String():
		case im.of == other:
			paths[n-1] = im.path
		default:
			paths[n-1] = Module + "/" + im.path
		}
	}
	type row struct{ path, text string } // sorted as pointers, because another instance of sort makes the command larger
	for i := 0; i < len(out); i++ {
		var run []*row
		for paths[i+len(run)] != "" {
			run = append(run, &row{paths[i+len(run)], out[i+len(run)]})
		}
		slices.SortFunc(run, func(a, b *row) int { return strings.Compare(a.path+"\n"+a.text, b.path+"\n"+b.text) })
		for k, r := range run {
			out[i+k] = r.text
		}
		i += len(run)
	}
}

// position returns the line and the column of a byte offset, both from 1.
func (s *source) position(at int) (line, column int) {
	n, exact := slices.BinarySearch(s.starts, at)
	if exact {
		n++
	}
	return n, at - s.starts[n-1] + 1
}

// kind is that of a token, EOF outside of the file.
//
//go:noinline
func (s *source) kind(i int) token.Token {
	if i < 0 || i >= len(s.tokens) {
		return token.EOF
	}
	return s.tokens[i].kind
}

// ident is the name at a token, empty if it is none.
//
//go:noinline
func (s *source) ident(i int) string {
	if s.kind(i) == token.IDENT {
		return s.tokens[i].text
	}
	return ""
}

// is reports whether the tokens from i on have these kinds.
func (s *source) is(i int, kinds ...token.Token) bool {
	for n, k := range kinds {
		if s.kind(i+n) != k {
			return false
		}
	}
	return true
}

// written is the text of some tokens, without spaces.
func (s *source) written(from, to int) string {
	var b strings.Builder
	for _, t := range s.tokens[from:to] {
		if t.kind.IsOperator() {
			b.WriteString(t.kind.String())
		} else {
			b.WriteString(t.text)
		}
	}
	return b.String()
}

// list returns the beginning and the end of each part of a comma-separated list between two brackets.
func (s *source) list(open int) [][2]int {
	var parts [][2]int
	from := open + 1
	for i := from; i <= s.pairs[open]; i++ {
		switch k := s.kind(i); {
		case i == s.pairs[open] || k == token.COMMA:
			if i > from {
				parts = append(parts, [2]int{from, i})
			}
			from = i + 1
		case k == token.LPAREN || k == token.LBRACK || k == token.LBRACE:
			i = s.pairs[i]
		}
	}
	return parts
}
