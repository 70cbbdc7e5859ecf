// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition"
)

func newValidate(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a definition without running it",
		Long: `Check a definition, and report every problem with its place in the file and how to fix
it. Exit code 0 if there is none, 2 otherwise. refrain check also shows what a run can
come to.`,
		Example: "  refrain validate loop.yaml",
		Args:    between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			def, from, err := loadAny(e, args[0])
			if err != nil {
				return &exitError{exitUsage, err}
			}
			from.problems(def.Warnings()).Format(e.stderr)
			noteFunctions(e.stderr, def, from)
			fmt.Fprintf(e.stderr, "%s: %s is valid\n", args[0], def.Name)
			return nil
		},
	}
}

// noteFunctions says which functions a definition needs of the Go program that
// runs it. That is no problem of the definition, but refrain run has none.
func noteFunctions(w io.Writer, def *definition.Definition, from origin) {
	for a := range def.Root.All {
		if a.Func != "" {
			fmt.Fprintf(w, "%s: note: %q is the Go agent %q, which a program has to give: refrain run has none\n", from.at(a.Position()).String(), a.Name, a.Func)
		}
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func != "" {
				fmt.Fprintf(w, "%s: note: %q has the Go function %q, which a program has to give: refrain run has none\n", from.at(a.Position()).String(), a.Name, t.Func)
			}
		}
	}
}
