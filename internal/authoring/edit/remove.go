// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// Remove removes a field from its map, or a value from its list, with its comments. An emptied map or list becomes {}
// or [].
func (e *Editor) Remove(path string) error {
	return e.do("remove", path, func(bool) (attempt, error) { return e.sheet.remove(path) })
}

func (s *sheet) remove(path string) (attempt, error) {
	p, err := s.find(path)
	switch {
	case err != nil:
		return attempt{}, err
	case len(p.hops) == 0:
		return attempt{}, errors.New("it needs a path to a field, such as max_iterations")
	case p.node == nil:
		return attempt{}, s.fail(p.in(), "there is no %s", p.last().key)
	}
	if err := s.alone(p.node); err != nil {
		return attempt{}, err
	}
	c := p.in()
	for i := 0; i+1 < len(c.Content) && c.Kind == yaml.MappingNode; i += 2 {
		if k := c.Content[i]; k.Kind == yaml.AliasNode || k.ShortTag() == "!!merge" {
			return attempt{}, s.fail(k, "%s merges in another value of this name, which would then apply; edit the file by hand", describeKey(k))
		}
	}
	slots, err := s.slots(c)
	if err != nil {
		return attempt{}, err
	}
	content := slices.Delete(slices.Clone(c.Content), p.at(), p.at()+1)
	if c.Kind == yaml.MappingNode {
		content = slices.Delete(slices.Clone(c.Content), 2*p.at(), 2*p.at()+2)
	}
	want := s.with(p.up(), among(c, content))
	switch {
	case len(slots) == 1:
		pieces, err := s.emptied(p, slots)
		return attempt{pieces, want}, err
	case c.Style&yaml.FlowStyle != 0:
		return attempt{s.pull(c, slots, p.at()), want}, nil
	}
	return attempt{s.cut(c, slots, p.at()), want}, nil
}

// emptied writes a collection that has nothing in it any more.
func (s *sheet) emptied(p *spot, slots []slot) ([]splice, error) {
	c, up := p.in(), p.up()
	text := "{}"
	if c.Kind == yaml.SequenceNode {
		text = "[]"
	}
	e := s.spans[c]
	if c.Style&yaml.FlowStyle != 0 {
		return []splice{{e.body, e.to, text}}, nil
	}
	if up.in() == nil {
		return []splice{{e.body, s.strips(c, slots)[0].to, text}}, nil
	}
	around, err := s.slots(up.in())
	if err != nil {
		return nil, err
	}
	st, mark := s.strips(c, slots)[0], around[up.at()].mark
	if st.inline {
		return []splice{{st.from, st.to, text}}, nil
	}
	first := s.LineOf(st.from)
	for first-1 > s.LineOf(mark) && strings.TrimSpace(s.Row(first-1)) == "" {
		first--
	}
	return []splice{{mark, mark, " " + text}, {s.LineEnd(first - 1), st.to, ""}}, nil
}

// cut takes the lines of an entry out of a collection that has others, and one of the
// gaps around it if there are two.
func (s *sheet) cut(c *yaml.Node, slots []slot, index int) []splice {
	strips := s.strips(c, slots)
	st := strips[index]
	if st.inline {
		at := s.LineEnd(s.LineOf(st.to))
		for at < len(s.Text) && source.IsSpace(rune(s.Text[at])) {
			at++
		}
		return []splice{{st.from, at, ""}}
	}
	first, last := s.LineOf(st.from), s.LineOf(st.to)
	before, behind := first, last // the empty lines around
	for before > 0 && (index == 0 || before-1 > s.LineOf(strips[index-1].to)) && strings.TrimSpace(s.Row(before-1)) == "" {
		before--
	}
	for behind+1 < len(s.Starts) && strings.TrimSpace(s.Row(behind+1)) == "" {
		behind++
	}
	over := behind == len(s.Starts)-1 // nothing comes behind it
	if before < first && (behind > last || over) {
		first = before
	}
	if last+1 < len(s.Starts) {
		return []splice{{s.Starts[first], s.Starts[last+1], ""}}
	}
	return []splice{{s.LineEnd(first - 1), len(s.Text), ""}}
}
