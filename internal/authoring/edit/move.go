// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Move moves a value of a list to another index; the values between move up or down. Notation and comments do not
// change; the empty lines between values stay where they are.
func (e *Editor) Move(list string, from, to int) error {
	return e.do("move", list, func(bool) (attempt, error) { return e.sheet.move(list, from, to) })
}

func (s *sheet) move(list string, from, to int) (attempt, error) {
	p, err := s.list(list)
	if err != nil {
		return attempt{}, err
	}
	c := p.node
	for _, at := range []int{from, to} {
		if at < 0 || at >= len(c.Content) {
			return attempt{}, s.fail(c, "there is no index %d in a list of %d", at, len(c.Content))
		}
	}
	if from == to {
		return attempt{want: s.root}, nil
	}
	if err := s.alone(c.Content[from]); err != nil {
		return attempt{}, err
	}
	slots, err := s.slots(c)
	if err != nil {
		return attempt{}, err
	}
	order := make([]int, len(slots)) // which value comes to each place
	for i := range order {
		order[i] = i
	}
	order = slices.Insert(slices.Delete(order, from, from+1), to, from)
	content := make([]*yaml.Node, len(order))
	for i, o := range order {
		content[i] = c.Content[o]
	}
	want := s.with(p, among(c, content))
	if c.Style&yaml.FlowStyle != 0 {
		pieces, err := s.swap(c, slots, order)
		return attempt{pieces, want}, err
	}
	return attempt{s.shuffle(c, slots, order), want}, nil
}

// shuffle writes the entries of a list with lines of its own in another order.
func (s *sheet) shuffle(c *yaml.Node, slots []slot, order []int) []splice {
	strips := s.strips(c, slots)
	margin := strings.Repeat(" ", s.columnOf(slots[0].from))
	var out []splice
	for i, st := range strips {
		o := strips[order[i]]
		if i == order[i] {
			continue
		}
		text := s.Text[o.from:o.to]
		switch {
		case o.inline && !st.inline:
			text = margin + text
		case st.inline && !o.inline:
			text = strings.TrimPrefix(text, margin)
		}
		out = append(out, splice{st.from, st.to, text})
	}
	return out
}
