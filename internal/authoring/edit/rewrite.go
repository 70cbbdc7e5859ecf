// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/vocabulary"
)

// rewriting is a change of words in scalars that stay as they are written.
type rewriting struct {
	sheet  *sheet
	values map[*yaml.Node]string // what they are then
	pieces []splice
}

// rename puts another name in place of one in a scalar.
func (r *rewriting) rename(n naming, found []mention, from, to string) error {
	found = slices.DeleteFunc(slices.Clone(found), func(m mention) bool { return m.name != from })
	if _, done := r.values[n.node]; done || len(found) == 0 || from == to {
		return nil
	}
	s := r.sheet
	if n.shared != nil {
		return s.fail(n.node, "%s names it, and an anchor uses that value elsewhere too; rename it "+
			"by hand", n.path)
	}
	if len(found) == 1 && found[0].to-found[0].from == len(n.node.Value) && n.role != roleTask &&
		n.role != roleCondition {
		return r.whole(n.node, to)
	}
	places := s.Inside(n.node)
	if places == nil {
		return s.fail(n.node, "it is unclear where %s names it; rename it by hand", n.path)
	}
	var b strings.Builder
	at := 0
	for _, m := range found {
		if m.odd {
			return s.fail(n.node, "%s names it in an ambiguous way; rename it by hand", n.path)
		}
		if m.word && !vocabulary.CelName(to) {
			return s.fail(n.node, "%s names it after a dot, where %q is not allowed; write state[%q] there first",
				n.path, to, from)
		}
		b.WriteString(n.node.Value[at:m.from] + to)
		at = m.to
		r.pieces = append(r.pieces, splice{places[m.from].From, places[m.to-1].To, to})
	}
	r.values[n.node] = b.String() + n.node.Value[at:]
	return nil
}

// sameKeys makes sure that what was renamed is read as the new name, and all else as
// before.
func (r *rewriting) sameKeys(n naming, found []mention, from, to string) error {
	text, ok := r.values[n.node]
	if !ok {
		return nil
	}
	was := n
	n.node = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	now, _, err := n.keys()
	same := err == nil && slices.EqualFunc(found, now, func(a, b mention) bool {
		return b.name == a.name || a.name == from && b.name == to
	})
	if !same {
		return r.sheet.fail(was.node, "with the name %q, %s would mean something else; rename it by hand", to, n.path)
	}
	return nil
}

// whole puts another text in place of a scalar.
func (r *rewriting) whole(n *yaml.Node, text string) error {
	s := r.sheet
	if n.Style&blockStyle != 0 {
		return s.fail(n, "the name is on its own line; rename it by hand")
	}
	e := s.spans[n]
	written := s.pen.scalar(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}, 0,
		manner{flow: true, style: n.Style})
	r.pieces = append(r.pieces, splice{e.body, e.to, written})
	r.values[n] = text
	return nil
}

// attempt is the change of all that was renamed.
func (r *rewriting) attempt() (attempt, error) {
	slices.SortFunc(r.pieces, func(a, b splice) int { return a.from - b.from })
	return attempt{r.pieces, r.tree(r.sheet.root)}, nil
}

// tree is a value with what was renamed in it.
func (r *rewriting) tree(n *yaml.Node) *yaml.Node {
	if text, ok := r.values[n]; ok {
		out := *n
		out.Value = text
		return &out
	}
	var content []*yaml.Node
	for i, c := range n.Content {
		if changed := r.tree(c); changed != c {
			if content == nil {
				content = slices.Clone(n.Content)
			}
			content[i] = changed
		}
	}
	if content == nil {
		return n
	}
	return among(n, content)
}
