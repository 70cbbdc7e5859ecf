// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// rank is how the entries of a collection in brackets stand on lines of their own:
// each with the comments above it, and one behind it.
type rank struct {
	from  int // the beginning of the lines
	comma int // behind the comma; where the value ends if there is none
	to    int // the end of the line
}

// ranks are the lines of the entries; nil if they share some.
func (s *sheet) ranks(c *yaml.Node, slots []slot) []rank {
	all := make([]rank, len(slots))
	before := s.LineOf(s.spans[c].body)
	for i, sl := range slots {
		first := s.LineOf(sl.from)
		if first <= before || strings.TrimSpace(s.Text[s.Starts[first]:sl.from]) != "" {
			return nil
		}
		r := rank{comma: sl.to}
		if at := s.blanks(sl.to); strings.HasPrefix(s.Text[at:], ",") {
			r.comma = at + 1
		}
		before = s.LineOf(r.comma)
		r.to = s.LineEnd(before)
		if rest := s.Text[s.blanks(r.comma):r.to]; rest != "" && rest[0] != '#' {
			return nil
		}
		stop := s.LineOf(s.spans[c].body)
		if i > 0 {
			stop = s.LineOf(all[i-1].to)
		}
		for first-1 > stop {
			if _, ok := s.remark(first - 1); !ok {
				break
			}
			first--
		}
		r.from = s.Starts[first]
		all[i] = r
	}
	return all
}

// between puts an entry before the one at an index of a collection in brackets.
func (s *sheet) between(c *yaml.Node, slots []slot, index int, text string) []splice {
	n := len(slots)
	ranks := s.ranks(c, slots)
	if ranks == nil {
		if index < n {
			return []splice{{slots[index].from, slots[index].from, text + ", "}}
		}
		return []splice{{slots[n-1].to, slots[n-1].to, ", " + text}}
	}
	margin := s.Text[s.Starts[s.LineOf(slots[0].from)]:slots[0].from]
	if index < n {
		return []splice{{ranks[index].from, ranks[index].from, margin + text + "," + s.pen.brk}}
	}
	last := ranks[n-1]
	if last.comma > slots[n-1].to {
		return []splice{{last.to, last.to, s.pen.brk + margin + text + ","}}
	}
	return []splice{{last.comma, last.comma, ","}, {last.to, last.to, s.pen.brk + margin + text}}
}

// pull takes an entry out of a collection in brackets that has others.
func (s *sheet) pull(c *yaml.Node, slots []slot, index int) []splice {
	n := len(slots)
	sl := slots[index]
	if ranks := s.ranks(c, slots); ranks != nil {
		r := ranks[index]
		out := []splice{{r.from, s.Starts[min(s.LineOf(r.to)+1, len(s.Starts)-1)], ""}}
		if before := max(index-1, 0); index == n-1 && r.comma == sl.to {
			return append([]splice{{slots[before].to, ranks[before].comma, ""}}, out...)
		}
		return out
	}
	if index < n-1 {
		return []splice{{sl.from, slots[index+1].from, ""}}
	}
	before := slots[index-1].to
	comma := s.Skip(before)
	if gap := s.Text[comma+1 : sl.from]; strings.Contains(s.Text[before:comma]+gap, "#") {
		return []splice{{comma, comma + 1, ""}, {sl.from, sl.to, ""}}
	}
	return []splice{{before, sl.to, ""}}
}

// swap writes the entries of a list in brackets in another order: at each place the
// one that comes from another.
func (s *sheet) swap(c *yaml.Node, slots []slot, from []int) ([]splice, error) {
	ranks := s.ranks(c, slots)
	var out []splice
	if ranks == nil {
		if commented := s.remarks(slots); commented {
			return nil, s.fail(c, "it is unclear to which value the comments between the values belong; move it "+
				"by hand")
		}
		for i, sl := range slots {
			if o := slots[from[i]]; i != from[i] {
				out = append(out, splice{sl.from, sl.to, s.Text[o.from:o.to]})
			}
		}
		return out, nil
	}
	for i, sl := range slots {
		if i == from[i] {
			continue
		}
		r, o, or := ranks[i], slots[from[i]], ranks[from[i]]
		out = append(out, splice{r.from, sl.to, s.Text[or.from:o.to]}, splice{r.comma, r.to, s.Text[or.comma:or.to]})
	}
	return out, nil
}

// remarks reports whether there are comments between entries in brackets.
func (s *sheet) remarks(slots []slot) bool {
	for i := 1; i < len(slots); i++ {
		if strings.Contains(s.Text[slots[i-1].to:slots[i].from], "#") {
			return true
		}
	}
	return false
}
