// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"slices"
	"sort"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
)

// Order puts the fields of an agent, and of the agents in it, in the order in which people write them.
func Order(agent *yaml.Node) { orderNode(agent, nil) }

// orderNode puts the fields of the value at a path in order.
func orderNode(n *yaml.Node, path []hop) {
	if n.Kind != yaml.MappingNode {
		if n.Kind == yaml.SequenceNode {
			for i, c := range n.Content {
				orderNode(c, append(slices.Clone(path), hop{at: i}))
			}
		}
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		orderNode(n.Content[i+1], append(slices.Clone(path), hop{key: n.Content[i].Value, keyed: true}))
	}
	order := fieldOrder(path)
	if order == nil {
		return
	}
	type field struct{ key, value *yaml.Node }
	var all []field
	for i := 0; i+1 < len(n.Content); i += 2 {
		all = append(all, field{n.Content[i], n.Content[i+1]})
	}
	last := uint(len(order)) // also of what has no place
	at := func(i int) uint { return min(uint(fieldRank(order, all[i].key.Value)), last) }
	sort.SliceStable(all, func(i, k int) bool { return at(i) < at(k) }) // smaller than slices
	for i, f := range all {
		n.Content[2*i], n.Content[2*i+1] = f.key, f.value
	}
}

// fieldRank returns the place of a field in an order, -1 if it has none. Sub-agents come last, because they are long.
func fieldRank(order []string, field string) int {
	if field == "sub_agents" {
		return len(order)
	}
	return slices.Index(order, field)
}

// fieldOrder is the order of the fields of the map at a path; nil if it has none.
func fieldOrder(path []hop) []string {
	for len(path) > 0 {
		n := agentStep(path)
		if n == 0 {
			break
		}
		path = path[n:]
	}
	if len(path) == 0 {
		var names []string
		for _, f := range definition.Fields() {
			names = append(names, f.Name)
		}
		return names
	}
	if path[0].key == "stop_when" {
		return conditionOrder
	}
	var keys []string
	for _, h := range path {
		if !h.keyed {
			return nil
		}
		keys = append(keys, h.key)
	}
	return definition.Parts(keys...)
}

// conditionOrder is how people write a condition of several.
var conditionOrder = []string{"text", "of", "when", "any", "all", "not", "for"}

// agentStep is how many hops lead to the agent below: sub_agents[0], tools[0].agent,
// or tools[0], which may be a command; 0 if they do not.
func agentStep(path []hop) int {
	switch {
	case len(path) > 0 && path[0].keyed && path[0].key == "config":
		return 1
	case len(path) < 2 || !path[0].keyed || path[1].keyed:
		return 0
	case path[0].key == "sub_agents":
		return 2
	case path[0].key == "tools" && len(path) > 2 && path[2].keyed && path[2].key == "agent":
		return 3
	case path[0].key == "tools" && len(path) == 2:
		return 2
	}
	return 0
}
