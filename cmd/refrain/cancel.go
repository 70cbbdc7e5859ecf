// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/supervisor"
)

func newCancel(e *env) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run now",
		Long: `End a run at once, whichever process drives it, or nobody does. What it has done is
kept: refrain show shows it, and refrain resume goes on with it all the same.`,
		Example: `  refrain cancel last
  refrain cancel r_1f0c3a2b --reason "wrong input"`,
		Args:              between(1, 1),
		ValidArgsFunction: completeRuns(e, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ask(cmd.Context(), e, args[0], func(sup *supervisor.Supervisor, id string) error {
				return sup.Cancel(cmd.Context(), id, f.reason)
			})
		},
	}
	fl := cmd.Flags()
	storeFlag(fl, &f.store)
	fl.StringVar(&f.reason, "reason", "", "`why`, for the log")
	return cmd
}
