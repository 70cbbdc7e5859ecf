// SPDX-License-Identifier: Apache-2.0

package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// sides finds the keys that a loop reads and no agent writes. If agents of the loop have Go
// functions as tools, a function may write the key: the last such agent writes it in the rehearsal.
func (c *Cast) sides(r *reading, n *needs) {
	for _, l := range c.Loops {
		by := c.lastWithFunctions(l)
		if by == nil {
			continue
		}
		waits := ExpressionsOf(l.Loop.StopWhen)
		if s := l.Loop.Score; s != nil {
			waits = append(waits, s.Expr)
		}
		for _, src := range waits {
			for _, key := range SortedKeys(keysIn(src)) {
				if c.written(key) || slices.ContainsFunc(c.Def.Inputs,
					func(in definition.Input) bool { return in.Name == key }) {
					continue
				}
				if n.Side[by.Name] == nil {
					n.Side[by.Name] = make(map[string]*need)
				}
				if n.Side[by.Name][key] == nil {
					own := &need{}
					n.Side[by.Name][key] = own
					r.keys[key] = append(r.keys[key], own)
				}
			}
		}
	}
}

// lastWithFunctions is the last agent of a loop that has Go functions as tools; nil if there is
// none.
func (c *Cast) lastWithFunctions(l *definition.Agent) *definition.Agent {
	var last *definition.Agent
	for _, a := range c.Steps(l) {
		if a.LLM != nil && slices.ContainsFunc(a.LLM.Tools, func(t definition.Tool) bool { return t.Func != "" }) {
			last = a
		}
	}
	return last
}

// written reports whether an agent writes a key.
func (c *Cast) written(key string) bool {
	for a := range c.Def.Root.All {
		sets := false
		if a.Expression != nil {
			_, sets = a.Expression.Set[key]
		}
		if sets || a.OutputKey == key || a.ResultKey == key {
			return true
		}
	}
	return false
}

// SideNotes lists the keys that functions are assumed to write.
func (c *Cast) SideNotes() []string {
	var all []string
	for _, name := range SortedKeys(c.Needs.Side) {
		var tools []string
		for _, t := range c.Agents[name].LLM.Tools {
			if t.Func != "" {
				tools = append(tools, t.Func)
			}
		}
		all = append(all, fmt.Sprintf("no agent writes %s: the rehearsal assumes that %s writes it",
			strings.Join(SortedKeys(c.Needs.Side[name]), ", "), strings.Join(tools, " or ")))
	}
	return all
}
