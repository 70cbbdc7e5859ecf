// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"strings"
	"text/scanner"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// parseSDK reads a flow as Robomotion's SDK writes it in main.ts, with calls of node, then and edge that have plain
// values. parseSDK runs no code, and reports an error for a value that would need it.
//
//	f.node('a1', 'Robomotion.Agents.Agent.LoopAgent', 'Loop Agent', { optMaxIterations: 3 })
//	f.edge('a1', 0, 'b2', 0)
func (r *robomotionReader) parseSDK(file string, data []byte) (value, bool) {
	if !r.fits(file, data) {
		return value{}, false
	}
	s := newSDKScanner(strings.ToValidUTF8(string(data), "\uFFFD"))
	var nodes, edges []*yaml.Node
	last := ""
	for call := s.nextCall(); call != ""; call = s.nextCall() {
		at := place{File: file, Line: s.line, Column: s.column}
		args, ok := s.list(')', 0)
		if !ok {
			r.fail(place{File: file, Line: s.line, Column: s.column}, "", "", "this is not a plain value, and a flow is not run: %s",
				s.why)
			return value{}, false
		}
		if call == "edge" {
			edges = append(edges, collection(yaml.SequenceNode, at, args))
			continue
		}
		if len(args) < 3 || len(args) > 4 || args[0].Kind != yaml.ScalarNode {
			r.fail(at, "", "", "%s wants an ID, a type, a name and options", call)
			return value{}, false
		}
		if call == "then" && last != "" {
			edges = append(edges, collection(yaml.SequenceNode, at, []*yaml.Node{node(last), node(0), args[0], node(0)}))
		}
		last = args[0].Value
		fields := []*yaml.Node{node("id"), args[0], node("type"), args[1], node("name"), args[2]}
		if len(args) == 4 {
			fields = append(fields, node("properties"), args[3])
		}
		nodes = append(nodes, collection(yaml.MappingNode, at, fields))
	}
	all := collection(yaml.MappingNode, place{File: file, Line: 1, Column: 1}, []*yaml.Node{
		node("nodes"), collection(yaml.SequenceNode, place{}, nodes), node("edges"), collection(yaml.SequenceNode, place{}, edges),
	})
	return r.taken(r.texts[file], all, source.Take(r.texts[file], all, &r.importer.nodes))
}

// collection returns a map or a list with a place.
func collection(kind yaml.Kind, at place, content []*yaml.Node) *yaml.Node {
	tag := "!!seq"
	if kind == yaml.MappingNode {
		tag = "!!map"
	}
	return &yaml.Node{Kind: kind, Tag: tag, Content: content, Line: at.Line, Column: at.Column}
}

// sdkScanner reads the part of TypeScript that flows use. tok is the current token, and word its text. A string in
// quotes is a token of the kind scanner.String, with its content in word.
type sdkScanner struct {
	in           scanner.Scanner
	src          string
	tok          rune
	word         string
	line, column int
	why          string // the first error
}

func newSDKScanner(src string) *sdkScanner {
	s := &sdkScanner{src: src}
	s.in.Init(strings.NewReader(src))
	s.in.Mode = scanner.ScanIdents | scanner.ScanFloats | scanner.ScanComments | scanner.SkipComments
	s.in.IsIdentRune = func(r rune, n int) bool {
		return unicode.IsLetter(r) || r == '_' || r == '$' || n > 0 && unicode.IsDigit(r)
	}
	s.in.Error = func(*scanner.Scanner, string) {} // the invalid value is reported
	s.next()
	return s
}

// next reads the next token.
func (s *sdkScanner) next() {
	s.tok = s.in.Scan()
	s.word, s.line, s.column = s.in.TokenText(), s.in.Line, s.in.Column
	if s.tok == '\'' || s.tok == '"' || s.tok == '`' {
		quote := s.tok
		s.tok = scanner.EOF
		if text, ok := s.text(quote); ok {
			s.tok, s.word = scanner.String, text
		}
	}
}

// take skips the current token if it is tok, and reports whether it is.
func (s *sdkScanner) take(tok rune) bool {
	if s.tok != tok {
		return false
	}
	s.next()
	return true
}

func (s *sdkScanner) fail(why string) bool {
	if s.why == "" {
		s.why = why
	}
	return false
}

var jsEscapes = map[rune]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': ""}

// text reads a string up to its closing quote.
func (s *sdkScanner) text(quote rune) (string, bool) {
	var b strings.Builder
	for {
		rest := s.src[s.in.Pos().Offset:]
		switch c := s.in.Next(); {
		case c == scanner.EOF:
			return "", s.fail("a text is not closed")
		case c == quote:
			return b.String(), true
		case c == '$' && quote == '`' && s.in.Peek() == '{':
			return "", s.fail("a text has an expression in it")
		case c != '\\':
			b.WriteRune(c)
			continue
		}
		if r, n := unicodeEscape(rest); n > 0 {
			b.WriteString(r)
			for range n - 1 {
				s.in.Next()
			}
			continue
		}
		e := s.in.Next()
		if text, ok := jsEscapes[e]; ok {
			b.WriteString(text)
		} else if e != scanner.EOF {
			b.WriteRune(e)
		}
	}
}

// unicodeEscape decodes \xhh, \uhhhh, a pair of these for one character, and \u{h…}. n is 0 if s begins with none of them.
func unicodeEscape(s string) (r string, n int) {
	hex := func(from, to int) (rune, bool) {
		if len(s) < to {
			return 0, false
		}
		v, err := strconv.ParseUint(s[from:to], 16, 32)
		return rune(v), err == nil
	}
	switch {
	case strings.HasPrefix(s, `\x`):
		if v, ok := hex(2, 4); ok {
			return string(v), 4
		}
	case source.Surrogate(s) > 0:
		return string(source.Surrogate(s)), 12
	case strings.HasPrefix(s, `\u{`):
		if end := strings.IndexByte(s, '}'); end > 3 && end < 11 {
			if v, ok := hex(3, end); ok {
				return string(v), end + 1
			}
		}
	case strings.HasPrefix(s, `\u`):
		if v, ok := hex(2, 6); ok {
			return string(v), 6
		}
	}
	return "", 0
}

// nextCall reads up to the arguments of the next call of node, then or edge, and returns its name. It returns "" at the end.
func (s *sdkScanner) nextCall() string {
	for s.tok != scanner.EOF {
		if !s.take('.') {
			s.next()
			continue
		}
		if name := s.word; s.tok == scanner.Ident && (name == "node" || name == "then" || name == "edge") {
			if s.next(); s.take('(') {
				return name
			}
		}
	}
	return ""
}

// list reads values up to a closing bracket.
func (s *sdkScanner) list(end rune, depth int) (out []*yaml.Node, ok bool) {
	for !s.take(end) {
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
		if !s.take(',') && s.tok != end {
			return nil, s.fail("a comma or " + string(end) + " was expected")
		}
	}
	return out, true
}

// value reads a plain value: a string, perhaps joined by +, a number, true, false, null, a list, a map, or one of
// these in a call of Custom and similar functions.
func (s *sdkScanner) value(depth int) (*yaml.Node, bool) {
	if depth > source.MaxDepth {
		return nil, s.fail("it is nested too deep")
	}
	line, column := s.line, s.column
	n, ok := s.plain(depth)
	if ok {
		n.Line, n.Column = line, column
	}
	return n, ok
}

func (s *sdkScanner) plain(depth int) (*yaml.Node, bool) {
	switch {
	case s.tok == scanner.EOF:
		return nil, s.fail("the file ends here")
	case s.tok == scanner.String:
		return s.joined()
	case s.take('['):
		items, ok := s.list(']', depth)
		return collection(yaml.SequenceNode, place{}, items), ok
	case s.take('{'):
		return s.object(depth)
	case s.tok == '-' || s.tok == scanner.Int || s.tok == scanner.Float:
		return s.number()
	case s.tok != scanner.Ident:
		return nil, s.fail("it begins with " + strconv.QuoteRune(s.tok))
	}
	word := s.word
	s.next()
	switch word {
	case "true", "false":
		return node(word == "true"), true
	case "null", "undefined":
		return node(nil), true
	}
	if !s.take('(') {
		return nil, s.fail(word + " is a name")
	}
	args, ok := s.list(')', depth)
	if !ok || len(args) > 1 {
		return nil, s.fail(word + " is called with several values")
	}
	inner := node(nil)
	if len(args) == 1 {
		inner = args[0]
	}
	return collection(yaml.MappingNode, place{}, []*yaml.Node{node("scope"), node(word), node("name"), inner}), true
}

func (s *sdkScanner) number() (*yaml.Node, bool) {
	text := ""
	if s.take('-') {
		text = "-"
	}
	text += s.word
	s.next()
	if _, err := strconv.Atoi(text); err == nil {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: text}, true
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return nil, s.fail("it is no number")
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: text}, true
}

// joined reads a string, or several with + between them.
func (s *sdkScanner) joined() (*yaml.Node, bool) {
	var b strings.Builder
	for s.tok == scanner.String {
		b.WriteString(s.word)
		if s.next(); !s.take('+') {
			return node(b.String()), true
		}
	}
	return nil, s.fail("a text is joined with something else")
}

func (s *sdkScanner) object(depth int) (*yaml.Node, bool) {
	n := collection(yaml.MappingNode, place{}, nil)
	for !s.take('}') {
		k := node(s.word)
		k.Line, k.Column = s.line, s.column
		named := (s.tok == scanner.Ident || s.tok == scanner.String) && s.word != ""
		if s.next(); !named || !s.take(':') {
			return nil, s.fail("a key and : were expected")
		}
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		n.Content = append(n.Content, k, v)
		if !s.take(',') && s.tok != '}' {
			return nil, s.fail("a comma or } was expected")
		}
	}
	return n, true
}
