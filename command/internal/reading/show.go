// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/show"
	"github.com/refrain-dev/refrain/command/internal/term"
)

func NewShow(e *term.Env) *cobra.Command {
	var f show.Options
	var transcript bool
	cmd := &cobra.Command{
		Use:   "show RUN|FILE [STEP...]",
		Short: "Show what a run did and why it stopped",
		Long: `Show a run: its iterations with scores and steps, the answer, and why it stopped, with
every condition that could have stopped it.

--iteration shows what the steps of one iteration said, --state the state at its end, and
--diff how the state changed between two iterations, by key and word by word. Iteration 0
is the state before the first iteration. --files lists the files of a workspace that
differ from its start; with --diff it writes the change of the files between the two
iterations as a patch. --prompt shows the request that a step sent to its model. show
rebuilds the request from the events, because the log does not contain it; no model is
asked. --resources shows time, model calls, tokens, cost and state sizes. CPU time and
memory are only in the last line of refrain run --json.

Of a loop with more than 50 iterations, show writes the first ten and the last ten; --all
writes them all, as --json does.

--transcript prints what coding agents said and did: their messages, the calls of their tools
and the results, of the steps of these names or addresses, or in iterations of these numbers.

The iterations are those of the outermost loop; --loop chooses another loop by its
address, such as story[2]/polish.`,
		Example: `  refrain show last
  refrain show r_1f0c --iteration 3 --state
  refrain show last --diff 3..4
  refrain show last --diff 3..4 --files > changes.patch
  refrain show last --prompt writer --iteration 3
  refrain show last --transcript 3
  refrain show run.jsonl --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if transcript {
				return show.Transcripts(cmd.Context(), e, f.Store, args[0], args[1:])
			}
			if len(args) > 1 {
				return term.UsageError(errors.New("STEP is for --transcript; add it, or name one run"))
			}
			f.One = cmd.Flags().Changed("iteration")
			return show.Run(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.Store)
	fl.IntVar(&f.Iteration, "iteration", 0, "show what the steps of iteration `N` said")
	fl.BoolVar(&f.State, "state", false, "show the state at the end, or after --iteration")
	fl.BoolVar(&f.Resources, "resources", false, "show what the run used: time, model calls, tokens, cost, state sizes")
	fl.StringVar(&f.Diff, "diff", "", "show how the state changed between two iterations `N..M`, such as 3..4")
	fl.BoolVar(&f.Files, "files", false, "show the changed files of a workspace; with --diff, as a patch")
	fl.StringVar(&f.Prompt, "prompt", "", "show what `STEP` sent to its model: a name, or an address such as refine[3]/writer")
	fl.BoolVar(&transcript, "transcript", false, "show what coding agents said and did; behind the run, STEP names those to show")
	fl.StringVar(&f.Loop, "loop", "", "`address` of the loop whose iterations to show")
	fl.BoolVar(&f.All, "all", false, "show all iterations of a long loop")
	fl.BoolVar(&f.JSON, "json", false, "write JSON")
	return cmd
}

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
