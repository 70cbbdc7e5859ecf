// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
)

func NewWatch(e *term.Env) *cobra.Command {
	var f live.WatchOptions
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run that another process is driving",
		Long: `Follow a run that another process is driving, from the run's beginning, with the same
view as refrain run. watch ends with the run: the answer goes to stdout. The exit code is
that of the run, 4 if it is paused or waits for a person, and 130 if it was canceled or
its process is gone.

To stop watching, press d (exit code 0) or Ctrl-C (exit code 130). The run goes on.`,
		Example: `  refrain watch last
  refrain watch r_1f0c --progress json`,
		Args:              term.Args(1, 1),
		ValidArgsFunction: runstore.Complete(e, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Shown.Choose(e); err != nil {
				return err
			}
			return live.Watch(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.Store)
	f.Shown.Add(fl, "")
	return cmd
}
