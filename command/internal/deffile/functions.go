// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"fmt"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

// NoteFunctions prints which Go agents and functions of a definition the program lacks. They are not problems of the
// definition, because another program may have them.
func NoteFunctions(e *term.Env, def *definition.Definition, from Origin) {
	name := "refrain run"
	if e.Code.Name != "" {
		name = e.Code.Name
	}
	note := func(a *definition.Agent, has, what string) {
		fmt.Fprintf(e.Stderr, "%s: note: %q %s, which only a Go program that adds it can run; %s does not have it\n",
			from.At(a.Position()).String(), a.Name, fmt.Sprintf(has, what), name)
	}
	for a := range def.Root.All {
		if a.Func != "" && e.Code.Agents[a.Func] == nil {
			note(a, "is the Go agent %q", a.Func)
		}
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func != "" && !e.Code.HasTool(t.Func) {
				note(a, "has the Go function %q", t.Func)
			}
		}
	}
}
