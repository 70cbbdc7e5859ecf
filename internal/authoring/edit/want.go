// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/text/source"
)

// with is the tree with another collection at a spot. Nodes are shared with the one
// before, but for those on the way.
func (s *sheet) with(p *spot, c *yaml.Node) *yaml.Node {
	for i := len(p.above) - 1; i >= 0; i-- {
		up, at := *p.above[i], p.ats[i]
		if up.Kind == yaml.MappingNode {
			at = 2*at + 1
		}
		up.Content = slices.Clone(up.Content)
		up.Content[at] = c
		c = &up
	}
	return c
}

// among is a collection with other content.
func among(c *yaml.Node, content []*yaml.Node) *yaml.Node {
	out := *c
	out.Content = content
	return &out
}

// differs compares what was wanted with what is: the place of the first difference,
// nil if there is none.
func differs(want, is *yaml.Node) *yaml.Node {
	switch {
	case want.Kind != is.Kind || want.Anchor != is.Anchor || len(want.Content) != len(is.Content):
		return is
	case want.Kind == yaml.AliasNode || want.Kind == yaml.ScalarNode:
		if source.IsNull(want) && source.IsNull(is) {
			return nil
		}
		if want.Value != is.Value || want.Kind == yaml.ScalarNode && want.ShortTag() != is.ShortTag() {
			return is
		}
		return nil
	case want.ShortTag() != is.ShortTag():
		return is
	}
	for i, c := range want.Content {
		if at := differs(c, is.Content[i]); at != nil {
			return at
		}
	}
	return nil
}
