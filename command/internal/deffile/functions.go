// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"fmt"
	"io"

	"github.com/refrain-dev/refrain/definition"
)

// NoteFunctions says which functions a definition needs of the Go program that
// runs it. That is no problem of the definition, but refrain run has none.
func NoteFunctions(w io.Writer, def *definition.Definition, from Origin) {
	for a := range def.Root.All {
		if a.Func != "" {
			fmt.Fprintf(w, "%s: note: %q is the Go agent %q, which a program has to give: refrain run has none\n",
				from.At(a.Position()).String(), a.Name, a.Func)
		}
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func != "" {
				fmt.Fprintf(w, "%s: note: %q has the Go function %q, which a program has to give: refrain run "+
					"has none\n", from.At(a.Position()).String(), a.Name, t.Func)
			}
		}
	}
}
