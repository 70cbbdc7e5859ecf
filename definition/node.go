// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// reader reads the values of one file.
type reader struct {
	*loader
	src *source.Source
	def *Definition
}

// pair is one entry of a map.
type pair struct {
	key   string
	at    *yaml.Node // the key
	value *yaml.Node
}

// pairs lists the entries of a map, those that "<<" merges in after its own. Of
// keys given twice the first counts.
func (r *reader) pairs(n *yaml.Node, what string) (ps []pair, ok bool) {
	n = source.Deref(n)
	if n.Kind != yaml.MappingNode {
		r.wrong(n, what, "a map")
		return nil, false
	}
	seen := make(map[string]*yaml.Node)
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := source.Deref(n.Content[i]), source.Deref(n.Content[i+1])
		switch {
		case k.ShortTag() == "!!merge":
			merged = append(merged, v)
			continue
		case k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str":
			r.report(r.src.Of(k), CodeValue, "a key of %s must be text, got %s", what, source.Describe(k)).Hint = source.Unquoted(k)
			continue
		}
		if first, twice := seen[k.Value]; twice {
			r.report(r.src.Of(k), CodeDuplicate, "%q is given twice, first in line %d", k.Value, first.Line)
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
	n = source.Deref(n)
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, what, "a list")
		r.hint(listHint(n, what))
		return nil, false
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		out[i] = source.Deref(c)
	}
	return out, true
}

// listHint is how a value that is to be a list is written.
func listHint(n *yaml.Node, what string) string {
	switch {
	case n.Kind == yaml.MappingNode && what == "sub_agents":
		return "each agent begins with - name:"
	case n.Kind == yaml.ScalarNode && !source.IsNull(n) && len(n.Value) < 60 && !strings.ContainsAny(n.Value, "[]{}\n"):
		return "write [" + n.Value + "]"
	}
	return ""
}

// wrong reports a value that is not what it must be.
func (r *reader) wrong(n *yaml.Node, what, must string) {
	r.report(r.src.Of(n), CodeValue, "%s must be %s, got %s", what, must, source.Describe(n)).Hint = source.Unquoted(n)
}

func article(t Type) string {
	switch t {
	case TypeHTTP, TypeExpression, TypeLLM, TypeA2A:
		return "an " + string(t)
	}
	return "a " + string(t)
}
