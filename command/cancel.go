// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/cluster"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
)

func newCancel(e *term.Env) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run now",
		Long: `Cancel a run at once, even if another process is driving it. The log keeps what the run
has done: refrain show displays it, and refrain resume can still continue the run.`,
		Example: `  refrain cancel last
  refrain cancel r_1f0c3a2b --reason "wrong input"`,
		Args:              term.Args(1, 1),
		ValidArgsFunction: runstore.Complete(e, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ask(cmd, e, args[0], cluster.AskCancel)
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	f.flags(fl, temporalFlag)
	fl.StringVar(&f.reason, "reason", "", "`text` that the log keeps as the reason")
	return cmd
}
