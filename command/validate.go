// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
)

func newValidate(e *term.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE...",
		Short: "Check definitions without running them",
		Long: `Check definitions, and report every problem with its place in the file and how to fix
it. Exit code 0 if no file has an error, 2 otherwise. refrain check also shows what a
run can come to.`,
		Example: `  refrain validate loop.yaml
  refrain validate loops/*.yaml`,
		Args: term.Args(1, manyFiles),
		RunE: func(_ *cobra.Command, args []string) error {
			return eachFile(e, args, func(file string) error { return validateFile(e, file) })
		},
	}
}

// validateFile is refrain validate of one file.
func validateFile(e *term.Env, file string) error {
	def, from, err := deffile.LoadWithOrigin(e, file)
	if err != nil {
		return term.UsageError(err)
	}
	from.Problems(def.Warnings()).Format(e.Stderr)
	deffile.NoteFunctions(e, def, from)
	fmt.Fprintf(e.Stderr, "%s: %s is valid\n", file, def.Name)
	return nil
}
