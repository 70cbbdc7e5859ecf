// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"fmt"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
)

// NoteFunctions says which Go agents and functions a definition names that the program does not have. That is no problem of
// the definition: another program may have them.
func NoteFunctions(e *term.Env, def *definition.Definition, from Origin) {
	name := "refrain run"
	if e.Code.Name != "" {
		name = e.Code.Name
	}
	note := func(a *definition.Agent, has, what string) {
		fmt.Fprintf(e.Stderr, "%s: note: %q %s, which a program has to give: %s has none\n", from.At(a.Position()).String(),
			a.Name, fmt.Sprintf(has, what), name)
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
