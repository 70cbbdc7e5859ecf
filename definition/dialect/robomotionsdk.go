// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strconv"
	"strings"
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
			r.fail(place{file, s.line, s.column()}, "", "", "this is no plain value, and a flow is not run: %s", s.why)
			return value{}, false
		}
		if call == "edge" {
			edges.Content = append(edges.Content, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: args, Line: at.line, Column: at.column})
			continue
		}
		if len(args) < 3 || len(args) > 4 || args[0].Kind != yaml.ScalarNode {
			r.fail(at, "", "", "%s wants an ID, a type, a name and options", call)
			return value{}, false
		}
		if call == "then" && last != "" {
			edge := []*yaml.Node{node(last), node(0), args[0], node(0)}
			edges.Content = append(edges.Content, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: edge, Line: at.line, Column: at.column})
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
		r.fail(place{file: file}, "", "", "the flow has more than %d values, or they are nested deeper than %d", maxNodes, maxDepth)
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
	case surrogates.MatchString(s[:min(len(s), 12)]):
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
