// SPDX-License-Identifier: Apache-2.0

package definition

// Starts returns the field of the agent that starts a program, and what that is, such as "a command"; both are empty
// if nothing does. It skips sub-agents.
func (a *Agent) Starts() (field, what string) {
	switch {
	case a.Command != nil:
		return "command", "a command"
	case a.Reconcile != nil && a.Reconcile.Command != nil:
		return "effect", "a command in reconcile"
	}
	for _, all := range a.Callbacks {
		for _, cb := range all {
			if cb.Command != nil {
				return "callbacks", "a callback that is a command"
			}
		}
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.MCP != nil && len(t.MCP.Command) > 0 {
				return "tools", "a tool server that is a command"
			}
		}
	}
	return "", ""
}
