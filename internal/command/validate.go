// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/internal/command/internal/deffile"
	"github.com/refrain-dev/refrain/internal/command/internal/term"
)

func newValidate(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a definition without running it",
		Long: `Check a definition, and report every problem with its place in the file and how to fix
it. Exit code 0 if there is none, 2 otherwise. refrain check also shows what a run can
come to.`,
		Example: "  refrain validate loop.yaml",
		Args:    term.Args(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			def, from, err := deffile.LoadWithOrigin(e, args[0])
			if err != nil {
				return term.UsageError(err)
			}
			from.Problems(def.Warnings()).Format(e.Stderr)
			deffile.NoteFunctions(e.Stderr, def, from)
			fmt.Fprintf(e.Stderr, "%s: %s is valid\n", args[0], def.Name)
			return nil
		},
	}
}
