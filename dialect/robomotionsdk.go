// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// parseSDK reads a flow as Robomotion's SDK writes it in main.ts: calls of node,
// then and edge with plain values. Nothing of it is run; values that would have
// to be are errors.
//
//	f.node('a1', 'Robomotion.Agents.Agent.LoopAgent', 'Loop Agent', { optMaxIterations: 3 })
//	f.edge('a1', 0, 'b2', 0)
func (r *robomotionReader) parseSDK(file string, data []byte) (value, bool) {
	if len(data) > maxFile {
		r.fail(place{file: file}, "", "", "the file is larger than 1 MiB")
		return value{}, false
	}
	r.source(file, string(data))
	s := &sdkScanner{src: strings.ToValidUTF8(string(data), "\uFFFD"), line: 1, start: 0}
	nodes := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	edges := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	last := ""
	for {
		call := s.nextCall()
		if call == "" {
			break
		}
		at := place{file, s.line, s.column()}
		args, ok := s.arguments()
		if !ok {
			r.fail(place{file, s.line, s.column()}, "", "", "this is not a plain value, and a flow is not run: %s",
				s.why)
			return value{}, false
		}
		if call == "edge" {
			edges.Content = append(edges.Content, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: args,
				Line: at.line, Column: at.column})
			continue
		}
		if len(args) < 3 || len(args) > 4 || args[0].Kind != yaml.ScalarNode {
			r.fail(at, "", "", "%s wants an ID, a type, a name and options", call)
			return value{}, false
		}
		if call == "then" && last != "" {
			edge := []*yaml.Node{node(last), node(0), args[0], node(0)}
			edges.Content = append(edges.Content, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: edge,
				Line: at.line, Column: at.column})
		}
		last = args[0].Value
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.line, Column: at.column}
		n.Content = append(n.Content, node("id"), args[0], node("type"), args[1], node("name"), args[2])
		if len(args) == 4 {
			n.Content = append(n.Content, node("properties"), args[3])
		}
		nodes.Content = append(nodes.Content, n)
	}
	flow := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: 1, Column: 1}
	flow.Content = append(flow.Content, node("nodes"), nodes, node("edges"), edges)
	if !r.measure(flow, 0) {
		r.fail(place{file: file}, "", "", "the flow has more than %d values, or they are nested deeper than %d",
			maxNodes, maxDepth)
		return value{}, false
	}
	r.conceal(flow, "")
	v := value{flow, file, r.reads}
	if r.reads != nil {
		r.reads.files = append(r.reads.files, v)
	}
	return v, true
}

var jsEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': ""}

// text reads a text in quotes.
func (s *sdkScanner) text() (string, bool) {
	quote := s.src[s.at]
	s.advance(1)
	var b strings.Builder
	for s.at < len(s.src) {
		c := s.src[s.at]
		switch {
		case c == quote:
			s.advance(1)
			return b.String(), true
		case c == '$' && quote == '`' && strings.HasPrefix(s.src[s.at:], "${"):
			return "", s.fail("a text has an expression in it")
		case c != '\\':
			b.WriteByte(c)
			s.advance(1)
			continue
		}
		if s.at+1 >= len(s.src) {
			break
		}
		e := s.src[s.at+1]
		if text, ok := jsEscapes[e]; ok {
			b.WriteString(text)
			s.advance(2)
			continue
		}
		if r, n := unicodeEscape(s.src[s.at:]); n > 0 {
			b.WriteString(r)
			s.advance(n)
			continue
		}
		s.advance(1)
		_, n := utf8.DecodeRuneInString(s.src[s.at:])
		b.WriteString(s.src[s.at : s.at+n])
		s.advance(n)
	}
	return "", s.fail("a text is not closed")
}

// unicodeEscape reads \xhh, \uhhhh, also two of them for one character, and
// \u{h…}; n is 0 if it is none.
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
	case surrogates().MatchString(s[:min(len(s), 12)]):
		return paired([]byte(s[:12])), 12
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

// sdkScanner reads the little of TypeScript that a flow is written in.
type sdkScanner struct {
	src   string
	at    int
	line  int
	start int // of the line
	why   string
}

func (s *sdkScanner) column() int { return utf8.RuneCountInString(s.src[s.start:s.at]) + 1 }

// advance goes n bytes on.
func (s *sdkScanner) advance(n int) {
	for range n {
		if s.at >= len(s.src) {
			return
		}
		if s.src[s.at] == '\n' {
			s.line, s.start = s.line+1, s.at+1
		}
		s.at++
	}
}

// space goes past white space and comments.
func (s *sdkScanner) space() {
	for s.at < len(s.src) {
		rest := s.src[s.at:]
		switch {
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			s.advance(n)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				n = len(rest) - 2
			}
			s.advance(n + 2)
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r':
			s.advance(1)
		default:
			return
		}
	}
}

// nextCall goes past the bracket of the next call of node, then or edge, and
// returns which it is; empty at the end.
func (s *sdkScanner) nextCall() string {
	for s.at < len(s.src) {
		s.space()
		if s.at >= len(s.src) {
			return ""
		}
		switch c := s.src[s.at]; c {
		case '\'', '"', '`':
			if _, ok := s.text(); !ok {
				return ""
			}
		case '.':
			s.advance(1)
			s.space()
			name := s.word()
			s.space()
			if (name == "node" || name == "then" || name == "edge") && s.take('(') {
				return name
			}
		default:
			s.advance(1)
		}
	}
	return ""
}

func (s *sdkScanner) take(c byte) bool {
	if s.at < len(s.src) && s.src[s.at] == c {
		s.advance(1)
		return true
	}
	return false
}

func (s *sdkScanner) word() string {
	from := s.at
	for n, r := range s.src[s.at:] {
		if !unicode.IsLetter(r) && r != '_' && r != '$' && (n == 0 || !unicode.IsDigit(r)) {
			break
		}
		s.at = from + n + utf8.RuneLen(r)
	}
	return s.src[from:s.at]
}

// arguments reads values up to the closing bracket.
func (s *sdkScanner) arguments() ([]*yaml.Node, bool) { return s.list(')', 0) }

func (s *sdkScanner) list(end byte, depth int) ([]*yaml.Node, bool) {
	var out []*yaml.Node
	for {
		if s.space(); s.take(end) {
			return out, true
		}
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		out = append(out, v)
		s.space()
		if !s.take(',') && (s.at >= len(s.src) || s.src[s.at] != end) {
			return nil, s.fail("a comma or " + string(end) + " was expected")
		}
	}
}

func (s *sdkScanner) fail(why string) bool {
	if s.why == "" {
		s.why = why
	}
	return false
}

// value reads a plain value: text, perhaps joined by +, number, true, false,
// null, list, map, or one of these in the brackets of Custom and the like.
func (s *sdkScanner) value(depth int) (*yaml.Node, bool) {
	if depth > maxDepth {
		return nil, s.fail("it is nested too deep")
	}
	s.space()
	line, column := s.line, s.column()
	n, ok := s.plain(depth)
	if ok {
		n.Line, n.Column = line, column
	}
	return n, ok
}

func (s *sdkScanner) plain(depth int) (*yaml.Node, bool) {
	if s.at >= len(s.src) {
		return nil, s.fail("the file ends here")
	}
	switch c := s.src[s.at]; {
	case c == '\'' || c == '"' || c == '`':
		return s.joined()
	case c == '[':
		s.advance(1)
		items, ok := s.list(']', depth)
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: items}, ok
	case c == '{':
		s.advance(1)
		return s.object(depth)
	case c == '-' || c >= '0' && c <= '9':
		from := s.at
		for s.at < len(s.src) && strings.IndexByte("+-.eE0123456789", s.src[s.at]) >= 0 {
			s.advance(1)
		}
		text := s.src[from:s.at]
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return nil, s.fail("it is no number")
		}
		tag := "!!float"
		if _, err := strconv.Atoi(text); err == nil {
			tag = "!!int"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}, true
	}
	word := s.word()
	switch word {
	case "":
		return nil, s.fail("it begins with " + strconv.QuoteRune(rune(s.src[s.at])))
	case "true", "false":
		return node(word == "true"), true
	case "null", "undefined":
		return node(nil), true
	}
	if s.space(); !s.take('(') {
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
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{node("scope"), node(word),
		node("name"), inner}}, true
}

// joined reads a text, or several with + between them.
func (s *sdkScanner) joined() (*yaml.Node, bool) {
	var b strings.Builder
	for {
		text, ok := s.text()
		if !ok {
			return nil, false
		}
		b.WriteString(text)
		if s.space(); !s.take('+') {
			return node(b.String()), true
		}
		if s.space(); s.at >= len(s.src) || strings.IndexByte("'\"`", s.src[s.at]) < 0 {
			return nil, s.fail("a text is joined with something else")
		}
	}
}

func (s *sdkScanner) object(depth int) (*yaml.Node, bool) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for {
		if s.space(); s.take('}') {
			return n, true
		}
		line, column := s.line, s.column()
		key, ok := "", true
		if c := s.src[min(s.at, len(s.src)-1)]; c == '\'' || c == '"' {
			key, ok = s.text()
		} else {
			key = s.word()
		}
		if s.space(); !ok || key == "" || !s.take(':') {
			return nil, s.fail("a key and : were expected")
		}
		v, ok := s.value(depth + 1)
		if !ok {
			return nil, false
		}
		k := node(key)
		k.Line, k.Column = line, column
		n.Content = append(n.Content, k, v)
		s.space()
		if !s.take(',') && (s.at >= len(s.src) || s.src[s.at] != '}') {
			return nil, s.fail("a comma or } was expected")
		}
	}
}
