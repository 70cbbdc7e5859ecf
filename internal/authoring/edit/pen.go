// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// pen writes values in the way of a file.
type pen struct {
	brk  string // how lines end
	step int    // how far maps are indented in maps
	list int    // how far lists are indented in maps
	json bool   // the file is JSON
}

// newPen looks how a file is written.
func newPen(s *sheet) pen {
	p := pen{brk: "\n", step: 0, list: -1}
	if end := s.LineEnd(0); len(s.Starts) > 1 {
		if p.brk = s.Text[end:s.Starts[1]]; p.brk != "\r\n" && p.brk != "\r" {
			p.brk = "\n"
		}
	}
	if root := s.root; root.Style&yaml.FlowStyle != 0 && len(root.Content) > 0 {
		p.json = root.Content[0].Style&yaml.DoubleQuotedStyle != 0
	}
	p.look(s.root)
	if p.step == 0 {
		p.step = 2
	}
	if p.list < 0 {
		p.list = p.step
	}
	return p
}

// look finds the first map in a map, and the first list in one, of those that have
// lines of their own.
func (p *pen) look(n *yaml.Node) {
	for i, c := range n.Content {
		if p.step > 0 && p.list >= 0 {
			return
		}
		if n.Kind == yaml.MappingNode && i%2 == 1 && c.Style&yaml.FlowStyle == 0 && c.Line > n.Content[i-1].Line {
			in := c.Column - n.Content[i-1].Column
			switch {
			case c.Kind == yaml.MappingNode && p.step == 0 && in > 0:
				p.step = in
			case c.Kind == yaml.SequenceNode && p.list < 0 && in >= 0:
				p.list = in
			}
		}
		p.look(c)
	}
}

// manner is what is known of how a value should be written.
type manner struct {
	style  yaml.Style // of what stands there
	flow   bool       // in brackets, as what is around it or what stands there
	block  bool       // on lines of its own
	indent int        // of the lines of a text behind | or >; 0 for the usual
	lines  []string   // those that stand there
	quotes bool       // no text behind | or >
}

// write writes a value that comes behind a key or a dash. Column is that of the key or
// the dash. What has several lines goes on behind a break.
func (p pen) write(n *yaml.Node, column int, dash bool, m manner) string {
	switch {
	case n.Kind == yaml.ScalarNode:
		return p.scalar(n, column, m)
	case len(n.Content) == 0 || m.flow || !m.block && p.fits(n):
		return p.flow(n)
	case dash:
		text := p.entries(n, column+2)
		return strings.TrimLeft(strings.TrimPrefix(text, "\n"), " ")
	case n.Kind == yaml.SequenceNode:
		return p.entries(n, column+p.list)
	}
	return p.entries(n, column+p.step)
}

// entries writes a collection on lines of its own; each comes behind a break.
func (p pen) entries(n *yaml.Node, column int) string {
	var b strings.Builder
	for i, c := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			b.WriteString("\n" + strings.Repeat(" ", column) + "-")
			b.WriteString(apart(p.write(c, column, true, manner{block: c.Kind == yaml.MappingNode})))
		case i%2 == 0:
			b.WriteString("\n" + strings.Repeat(" ", column) + p.key(c))
		default:
			b.WriteString(":" + apart(p.write(c, column, false, manner{})))
		}
	}
	return b.String()
}

// apart puts a space before what goes on in the line.
func apart(text string) string {
	if text == "" || text[0] == '\n' {
		return text
	}
	return " " + text
}

// widest is how long a small map or list can be and still stand on one line.
const widest = 60

// fits reports whether a collection is small.
func (p pen) fits(n *yaml.Node) bool {
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool {
		return c.Kind != yaml.ScalarNode || strings.Contains(c.Value, "\n") || len(c.Value) > widest
	}) && utf8.RuneCountInString(p.flow(n)) <= widest
}

// flow writes a value on one line.
func (p pen) flow(n *yaml.Node) string {
	var parts []string
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			parts = append(parts, p.flow(c))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, p.key(n.Content[i])+": "+p.flow(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return p.scalar(n, 0, manner{flow: true})
}

// key writes a key; it can stand in brackets too.
func (p pen) key(n *yaml.Node) string {
	return p.scalar(n, 0, manner{flow: true})
}

// scalar writes a text, a number or the like.
func (p pen) scalar(n *yaml.Node, column int, m manner) string {
	switch {
	case source.IsNull(n):
		return "null"
	case n.ShortTag() != "!!str":
		return n.Value
	case !m.flow && !m.quotes && n.Value != "" && (m.style&blockStyle != 0 || strings.Contains(n.Value, "\n")):
		if text, ok := p.lines(n.Value, column, m); ok {
			return text
		}
	}
	switch {
	case p.json || m.style&yaml.DoubleQuotedStyle != 0:
	case m.style&yaml.SingleQuotedStyle != 0 && hasInk(n.Value):
		return "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
	case bare(n.Value, m.flow):
		return n.Value
	case strings.ContainsAny(n.Value, "\"\\") && hasInk(n.Value) && !strings.Contains(n.Value, "'"):
		return "'" + n.Value + "'" // where escapes would stand in double quotes
	}
	return quotedText(n.Value)
}

// hasInk reports whether a text shows as it is, on one line.
func hasInk(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != ' ' && !unicode.IsGraphic(r) || r > 0x7f && unicode.IsSpace(r) || r == 0xfeff
	})
}

// reserved are words that readers of YAML take for true, false and null.
var reserved = map[string]bool{
	"y": true, "yes": true, "n": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true,
}

// bare reports whether a text can stand without quotes. Where people may doubt it,
// it cannot.
func bare(s string, flow bool) bool {
	switch {
	case s == "" || strings.TrimSpace(s) != s || !hasInk(s) || strings.IndexByte("-?:,[]{}#&*!|>'\"%@`=~<", s[0]) >= 0:
		return false
	case strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || strings.ContainsAny(s, "#{}[]") ||
		strings.HasPrefix(s, "..."):
		return false
	case flow && strings.ContainsAny(s, ",:"), reserved[strings.ToLower(s)]:
		return false
	case strings.IndexByte("0123456789.+", s[0]) < 0:
		return true
	}
	var n yaml.Node
	return yaml.Unmarshal([]byte(s), &n) == nil && n.Content[0].ShortTag() == "!!str"
}

// quotedText writes a text in double quotes, as YAML and JSON read it.
func quotedText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r != ' ' && !unicode.IsGraphic(r) && r <= 0xffff, r > 0x7f && unicode.IsSpace(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
