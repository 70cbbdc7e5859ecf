// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/internal/shellword"
)

// Starts lists the programs that a definition starts, one a line: the agent, and the command with its arguments as they are in the
// definition.
func Starts(def *definition.Definition) (lines []string) {
	add := func(who string, args []string) {
		if len(args) == 0 {
			return
		}
		words := make([]string, len(args))
		for i, arg := range args {
			flag := len(arg) - len(strings.TrimLeft(arg, "-")) // shellword takes a word with a dash for the name of a file
			if words[i] = arg; flag == 0 || flag < len(arg) {
				words[i] = arg[:flag] + shellword.Of(arg[flag:])
			}
		}
		lines = append(lines, brief.Clean(who+": "+strings.Join(words, " ")))
	}
	if def.Workspace != nil {
		add("workspace setup", def.Workspace.Setup)
	}
	for a := range def.Root.All {
		agents := []*definition.Agent{a}
		if a.Reconcile != nil {
			agents = append(agents, a.Reconcile)
		}
		for _, a := range agents {
			if c := a.Command; c != nil {
				add(a.Name, c.Args)
				if c.CLI != nil {
					add(a.Name, c.CLI.ACP)
					if c.CLI.Program != "" {
						add(a.Name, []string{c.CLI.Program})
					}
				}
			}
		}
		for _, all := range a.Callbacks {
			for _, cb := range all {
				add(a.Name+" callback", cb.Command)
			}
		}
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.MCP != nil {
				add(a.Name+" tool server", t.MCP.Command)
			}
		}
	}
	return lines
}
