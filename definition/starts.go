// SPDX-License-Identifier: Apache-2.0

package definition

// Starts says what of the agent starts a program, such as "a command"; empty if nothing does. Sub-agents
// are not looked at.
func (a *Agent) Starts() string {
	switch {
	case a.Command != nil:
		return "a command"
	case a.Reconcile != nil && a.Reconcile.Command != nil:
		return "a command in reconcile"
	}
	for _, all := range a.Callbacks {
		for _, cb := range all {
			if cb.Command != nil {
				return "a callback that is a command"
			}
		}
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.MCP != nil && len(t.MCP.Command) > 0 {
				return "a tool server that is a command"
			}
		}
	}
	return ""
}
