// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
)

// parameter reports whether a name, or the name that it is a field of, is a parameter.
func (c *CommandConfig) parameter(name string) bool {
	head, _, _ := strings.Cut(name, ".")
	return slices.Contains(c.Parameters, head)
}

// withArguments returns lookup for a command that is a tool. The arguments of the call hide other values
// with the names of the tool's parameters. A parameter that the call leaves out has no value.
func (c *CommandConfig) withArguments(ctx agent.InvocationContext, lookup func(string) (any, bool)) func(string) (any, bool) {
	if len(c.Parameters) == 0 {
		return lookup
	}
	given := arguments(ctx)
	return func(name string) (any, bool) {
		if c.parameter(name) {
			v, ok := given[name]
			return v, ok
		}
		return lookup(name)
	}
}

// arguments returns the arguments of the agent's call, from its request in JSON.
func arguments(ctx agent.InvocationContext) map[string]any {
	asked := ctx.UserContent()
	if asked == nil {
		return nil
	}
	var ev session.Event
	ev.Content = asked
	v, err := session.PlainJSON([]byte(ev.Text()))
	if err != nil {
		return nil
	}
	given, _ := v.(map[string]any)
	return given
}
