// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Commands lists the programs that a definition starts, for a person, one a line: the agent, and the command with its arguments
// as they are in the definition. It also lists the MCP servers that get environment variables over HTTP.
func Commands(def *definition.Definition) (lines []string) {
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
		add("workspace filters of git", def.Workspace.Filters)
	}
	for a := range def.Root.All {
		for _, p := range a.Programs() {
			add(a.Name+roles[p.Field], p.Args)
		}
		for _, m := range a.ServersWithVariables() {
			lines = append(lines, brief.Clean(a.Name+": sends "+strings.Join(m.Inherit, ", ")+" to "+m.String()))
		}
	}
	return lines
}

// roles says what a program is to its agent, by the field that names it, where the agent's name alone does not.
var roles = map[string]string{"effect": " reconcile", "callbacks": " callback", "tools": " tool server"}
