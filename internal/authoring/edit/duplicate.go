// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/vocabulary"
)

// Duplicate inserts a copy of a value of a list after it, with its comments and notation. The copy of an agent gets
// the name; agents inside it get names that are not taken, such as write_2, and so does the copy if the name is
// empty. References to agents within the copy follow the new names. All other values are the same in both, such as
// the keys that they write.
func (e *Editor) Duplicate(path, name string) error {
	return e.do("duplicate", path, func(bool) (attempt, error) { return e.sheet.duplicate(path, name) })
}

func (s *sheet) duplicate(path, name string) (attempt, error) {
	p, err := s.find(path)
	if err != nil {
		return attempt{}, err
	}
	if len(p.hops) == 0 || p.last().keyed {
		return attempt{}, errors.New("the value is not in a list; only a value of a list can be duplicated")
	}
	if err := s.alone(p.node); err != nil {
		return attempt{}, err
	}
	c := p.in()
	slots, err := s.slots(c)
	if err != nil {
		return attempt{}, err
	}
	r, err := s.renamed(p, name)
	if err != nil {
		return attempt{}, err
	}
	copied := r.tree(p.node)
	want := s.with(p.up(), among(c, slices.Insert(slices.Clone(c.Content), p.at()+1, copied)))
	sl := slots[p.at()]
	if c.Style&yaml.FlowStyle != 0 {
		ranks := s.ranks(c, slots)
		if ranks == nil {
			return attempt{s.between(c, slots, p.at()+1, r.text(sl.from, sl.to)), want}, nil
		}
		k := ranks[p.at()]
		pieces := []splice{{k.to, k.to, s.pen.brk + r.text(k.from, k.to)}}
		if k.comma == sl.to {
			pieces = append([]splice{{sl.to, sl.to, ","}}, pieces...)
		}
		return attempt{pieces, want}, nil
	}
	st := s.strips(c, slots)[p.at()]
	lines := r.text(st.from, st.to)
	if st.inline {
		lines = strings.Repeat(" ", s.columnOf(sl.from)) + lines
	}
	return attempt{s.lay(c, slots, p.at()+1, lines), want}, nil
}

// text is a part of the text with what was renamed in it.
func (r *rewriting) text(from, to int) string {
	slices.SortFunc(r.pieces, func(a, b splice) int { return a.from - b.from })
	return r.sheet.part(from, to, r.pieces)
}

// renamed gives the agents of a copy names of their own.
func (s *sheet) renamed(p *spot, name string) (*rewriting, error) {
	r := &rewriting{sheet: s, values: make(map[*yaml.Node]string)}
	within := make(map[*yaml.Node]bool)
	collect(p.node, within)
	taken := make(map[string]bool)
	var all []naming
	for _, n := range s.namings() {
		if n.role == roleAgent {
			taken[n.node.Value] = true
		}
		if within[n.node] {
			all = append(all, n)
		}
	}
	names := make(map[string]string) // the new ones
	own := p.path + ".name"
	for _, n := range all {
		if n.role != roleAgent {
			continue
		}
		fresh := freshName(n.node.Value, taken)
		if n.path == own && name != "" {
			if problem := vocabulary.AgentName(name); problem != "" {
				return nil, errors.New(problem)
			}
			if taken[name] {
				return nil, s.fail(n.node, "another agent is called %q; choose another name", name)
			}
			fresh = name
		}
		taken[fresh] = true
		names[n.node.Value] = fresh
	}
	if len(names) == 0 && name != "" {
		return nil, s.fail(p.node, "only the copy of an agent can get a name")
	}
	for _, n := range all {
		found, _, _ := n.agents()
		if fresh, ok := names[n.node.Value]; ok && len(found) > 0 {
			if err := r.rename(n, found, n.node.Value, fresh); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func collect(n *yaml.Node, into map[*yaml.Node]bool) {
	into[n] = true
	for _, c := range n.Content {
		collect(c, into)
	}
}

// freshName is a name like another one that is not taken.
func freshName(name string, taken map[string]bool) string {
	stem := name
	if i := strings.LastIndexByte(name, '_'); i > 0 {
		if _, err := strconv.ParseUint(name[i+1:], 10, 32); err == nil {
			stem = name[:i]
		}
	}
	for i := 2; ; i++ {
		if fresh := stem + "_" + strconv.Itoa(i); !taken[fresh] {
			return fresh
		}
	}
}
