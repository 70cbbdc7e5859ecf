// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/definition"
)

func newValidate(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a definition without running it",
		Long: `Check a definition and report every problem in it, with its place in the file
and what to do about it. Exit code 0 if there is none, 2 otherwise.`,
		Example: "  refrain validate loop.yaml",
		Args:    between(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			def, err := definition.Load(args[0])
			if err != nil {
				return &exitError{exitUsage, err}
			}
			def.Warnings().Format(e.stderr)
			fmt.Fprintf(e.stderr, "%s: %s is valid\n", args[0], def.Name)
			return nil
		},
	}
}
