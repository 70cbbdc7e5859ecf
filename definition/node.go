// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// reader reads the values of one file.
type reader struct {
	*loader
	src *source
	def *Definition
}

// pair is one entry of a map.
type pair struct {
	key   string
	at    *yaml.Node // the key
	value *yaml.Node
}

// deref follows an alias to its value.
func deref(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// pairs lists the entries of a map, those that "<<" merges in after its own. Of
// keys given twice the first counts.
func (r *reader) pairs(n *yaml.Node, what string) (ps []pair, ok bool) {
	n = deref(n)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, what, "a map")
		return nil, false
	}
	seen := make(map[string]*yaml.Node)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := deref(n.Content[i]), deref(n.Content[i+1])
		switch {
		case k.ShortTag() == "!!merge":
			merged = append(merged, v)
			continue
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			r.report(r.src.of(k), CodeValue, "a key of %s must be text, got %s", what, describe(k)).Hint = unquoted(k)
			continue
		}
		if first, twice := seen[k.Value]; twice {
			r.report(r.src.of(k), CodeDuplicate, "%q is given twice, first in line %d", k.Value, first.Line)
			continue
		}
		seen[k.Value] = k
		ps = append(ps, pair{k.Value, k, v})
	}
	for _, m := range merged {
		for _, p := range r.merge(m) {
			if _, own := seen[p.key]; !own {
				seen[p.key] = p.at
				ps = append(ps, p)
			}
		}
	}
	return ps, true
}

// merge lists what "<<" stands for: the entries of a map or of a list of maps.
func (r *reader) merge(n *yaml.Node) []pair {
	if n.Kind != yaml.SequenceNode {
		ps, _ := r.pairs(n, "<<")
		return ps
	}
	var all []pair
	for _, c := range n.Content {
		ps, _ := r.pairs(c, "<<")
		all = append(all, ps...)
	}
	return all
}

// items lists the elements of a list.
func (r *reader) items(n *yaml.Node, what string) ([]*yaml.Node, bool) {
	n = deref(n)
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, what, "a list")
		r.hint(listHint(n, what))
		return nil, false
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out[i] = deref(c)
	}
	return out, true
}

// listHint is how a value that is to be a list is written.
func listHint(n *yaml.Node, what string) string {
	switch {
	case n.Kind == yaml.MappingNode && what == "sub_agents":
		return "each agent begins with - name:"
	case n.Kind == yaml.ScalarNode && !isNull(n) && len(n.Value) < 60 && !strings.ContainsAny(n.Value, "[]{}\n"):
		return "write [" + n.Value + "]"
	}
	return ""
}

// wrong reports a value that is not what it must be.
func (r *reader) wrong(n *yaml.Node, what, must string) {
	r.report(r.src.of(n), CodeValue, "%s must be %s, got %s", what, must, describe(n)).Hint = unquoted(n)
}

// describe says what a value is.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
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
	return printable(n.Value)
}

// unquoted is the hint for a placeholder that YAML takes for a map.
func unquoted(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode || n.Style&yaml.FlowStyle == 0 || len(n.Content) < 2 {
		return ""
	}
	k := n.Content[0]
	if k.Kind == yaml.MappingNode && k.Style&yaml.FlowStyle != 0 && len(k.Content) == 2 {
		return fmt.Sprintf(`a text that begins with {{ needs quotes: "{{%s}}"`, k.Content[0].Value)
	}
	if len(n.Content) == 2 && isNull(n.Content[1]) && k.Kind == yaml.ScalarNode {
		return fmt.Sprintf(`a text that begins with { needs quotes: "{%s}"`, k.Value)
	}
	return ""
}

// plainText reports whether a node is a text, and not a number or the like that
// only looks like one.
func plainText(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return false
	}
	tag := n.ShortTag()
	return tag == "!!str" || tag == "!!timestamp" || tag == "!!merge"
}

func article(t Type) string {
	switch t {
	case TypeHTTP, TypeExpression, TypeLLM, TypeA2A:
		return "an " + string(t)
	}
	return "a " + string(t)
}
