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
view as refrain run. When the run ends, watch prints the answer to stdout, and exits with
the exit code of the run. The exit code is 4 if the run is paused or waits for a person,
and 130 if the run was canceled or its process has died.

To stop watching, press d (exit code 0) or Ctrl-C (exit code 130). The run goes on.`,
		Example: `  refrain watch last
  refrain watch r_1f0c --progress json`,
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
