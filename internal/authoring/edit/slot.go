// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// slot is one entry of a map or a list as it stands in the text.
type slot struct {
	key, value *yaml.Node // key is nil in a list
	from       int        // where the dash or the key is; in a list in brackets, the value
	mark       int        // behind the dash or the colon, or the key if there is no colon
	to         int        // where the value ends
	colon      bool       // there is one, or a dash
}

// slots are the entries of a collection.
func (s *sheet) slots(c *yaml.Node) ([]slot, error) {
	var all []slot
	unclear := func(n *yaml.Node) error {
		return s.fail(n, "the editor does not support this notation; edit the file by hand")
	}
	flow, at := c.Style&yaml.FlowStyle != 0, s.spans[c].body
	if flow {
		if at >= len(s.Text) || s.Text[at] != opening(c) {
			return nil, unclear(c)
		}
		at++
	}
	step := 1
	if c.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i+step <= len(c.Content); i += step {
		value := c.Content[i+step-1]
		sl := slot{value: value}
		at = s.Skip(at)
		if flow && i > 0 {
			if !strings.HasPrefix(s.Text[at:], ",") {
				return nil, unclear(value)
			}
			at = s.Skip(at + 1)
		}
		switch {
		case c.Kind == yaml.MappingNode:
			sl.key = c.Content[i]
			e := s.spans[sl.key]
			if e.from != at || e.unclear { // such as ? before it
				return nil, unclear(sl.key)
			}
			sl.from, sl.mark = at, e.to
			if colon := s.Skip(e.to); strings.HasPrefix(s.Text[colon:], ":") && (flow || s.blanks(e.to) == colon) {
				sl.mark, sl.colon = colon+1, true
			} else if !flow {
				return nil, unclear(sl.key)
			}
		case flow:
			sl.from, sl.mark = s.spans[value].from, s.spans[value].from
		default:
			if !strings.HasPrefix(s.Text[at:], "-") {
				return nil, unclear(value)
			}
			sl.from, sl.mark, sl.colon = at, at+1, true
		}
		e := s.spans[value]
		if e.unclear {
			return nil, unclear(value)
		}
		sl.to = max(sl.mark, e.to)
		if e.from == e.to && e.to > sl.mark { // nothing stands there: the parser gives the next place
			sl.to = sl.mark
		}
		all = append(all, sl)
		at = sl.to
	}
	return all, nil
}

// strip is the lines of an entry of a block collection, with the comments that are
// its own: those right above it, and behind it those that are indented deeper. It
// is from the beginning of a line to the end of one, before the break.
type strip struct {
	from, to int
	inline   bool // it begins within a line, behind the dash around it
}

// strips are the lines of the entries of a block collection.
func (s *sheet) strips(c *yaml.Node, slots []slot) []strip {
	all := make([]strip, len(slots))
	before := -1 // the last line of the entry before
	for i, sl := range slots {
		column := s.columnOf(sl.from)
		first, last := s.LineOf(sl.from), s.LineOf(sl.to)
		st := strip{from: s.Starts[first]}
		if strings.TrimSpace(s.Text[s.Starts[first]:sl.from]) != "" {
			st.from, st.inline = sl.from, true
		}
		for !st.inline && (i > 0 || c != s.root) && first-1 > before {
			if indent, ok := s.remark(first - 1); !ok || i > 0 && indent > column {
				break
			}
			first--
			st.from = s.Starts[first]
		}
		for line := last + 1; line < len(s.Starts); line++ {
			indent, ok := s.remark(line)
			if !ok && strings.TrimSpace(s.Row(line)) != "" || ok && indent <= column {
				break
			}
			if ok {
				last = line
			}
		}
		st.to = max(sl.to, s.LineEnd(last))
		before = s.LineOf(st.to)
		all[i] = st
	}
	return all
}

// remark reports whether there is nothing but a comment in a line, and how far that
// is indented.
func (s *sheet) remark(line int) (indent int, ok bool) {
	row := s.Row(line)
	bare := strings.TrimLeft(row, " \t")
	return len(row) - len(bare), strings.HasPrefix(bare, "#")
}

// splice is a piece of the text that is replaced.
type splice struct {
	from, to int
	text     string
}

// part returns a part of the text with pieces replaced; they are in order and do not overlap.
func (s *sheet) part(from, to int, pieces []splice) string {
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(s.Text[from:p.from] + p.text)
		from = p.to
	}
	return b.String() + s.Text[from:to]
}

// opening returns the bracket that a collection in brackets begins with.
func opening(c *yaml.Node) byte {
	if c.Kind == yaml.MappingNode {
		return '{'
	}
	return '['
}
