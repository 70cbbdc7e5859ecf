// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Node is a value in a file. Package definition reads values only as nodes; how YAML is parsed is internal to this package.
type Node = yaml.Node

// The kinds of nodes.
const (
	Scalar = yaml.ScalarNode
	Map    = yaml.MappingNode
	List   = yaml.SequenceNode
	Alias  = yaml.AliasNode
)

// InFlow reports whether a map or a list is written with braces or brackets.
func InFlow(n *Node) bool { return n.Style&yaml.FlowStyle != 0 }

// Deref follows an alias to its value.
func Deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// Pair is an entry of a map. Merged is the key "<<" that merged the entry into the map; nil for the map's own entries.
type Pair struct{ Key, Value, Merged *Node }

// Pairs returns the entries of a map whose keys are scalars. The entries that "<<" merges in follow the map's own
// entries, except those whose key the map has itself. Pairs returns nil for other values. It resolves aliases of
// keys, and returns every entry of a key that is given twice.
func Pairs(n *Node) []Pair {
	if n = Deref(n); n.Kind != Map {
		return nil
	}
	var own, merged []Pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := Deref(n.Content[i]), n.Content[i+1]
		if k.Kind == Scalar && k.ShortTag() != "!!merge" {
			own = append(own, Pair{k, v, nil})
			continue
		}
		from := []*Node{v}
		if list := Deref(v); k.Kind != Scalar {
			from = nil
		} else if list.Kind == List {
			from = list.Content
		}
		for _, m := range from {
			for _, p := range Pairs(m) {
				merged = append(merged, Pair{p.Key, p.Value, k})
			}
		}
	}
	if merged == nil {
		return own
	}
	has := make(map[string]bool)
	for _, p := range own {
		has[p.Key.Value] = true
	}
	for _, p := range merged {
		if !has[p.Key.Value] {
			has[p.Key.Value] = true
			own = append(own, p)
		}
	}
	return own
}

// IsNull reports whether a value is null or left out.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Describe returns the kind of a value in words.
func Describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case IsNull(n):
		return "nothing"
	case n.ShortTag() == "!!str":
		text := []rune(n.Value)
		if len(text) > 60 {
			return fmt.Sprintf("%q…", string(text[:60]))
		}
		return fmt.Sprintf("%q", n.Value)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return fmt.Sprintf("%s %q", n.ShortTag(), n.Value)
	}
	return brief.Printable(n.Value)
}

// Unquoted returns the hint for a placeholder that YAML reads as a map.
func Unquoted(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle == 0 || len(n.Content) < 2 {
		return ""
	}
	k := n.Content[0]
	if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 && len(k.Content) == 2 {
		return fmt.Sprintf(`a text that begins with {{ needs quotes: "{{%s}}"`, k.Content[0].Value)
	}
	if len(n.Content) == 2 && IsNull(n.Content[1]) && k.Kind == yaml.ScalarNode {
		return fmt.Sprintf(`a text that begins with { needs quotes: "{%s}"`, k.Value)
	}
	return ""
}

// PlainText reports whether a node is read as a string. Unquoted timestamps and << are read as strings too.
func PlainText(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	tag := n.ShortTag()
	return tag == "!!str" || tag == "!!timestamp" || tag == "!!merge"
}
