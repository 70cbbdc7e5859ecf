// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/backtest"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	past "github.com/refrain-dev/refrain/internal/history/progress/backtest"
)

// backtestFlags are the flags of refrain backtest.
type backtestFlags struct {
	store, loop    string
	sets, policies []string
	file           string
	sweep          string
	json           bool
}

func NewBacktest(e *term.Env) *cobra.Command {
	var f backtestFlags
	cmd := &cobra.Command{
		Use:   "backtest RUN|FILE...",
		Short: "Replay a run under other stop policies",
		Long: `Replay a run under other stop policies. The run is in the store, or in a file that
refrain export or refrain run --record has written. For each policy, the table shows
where the run would have stopped, why, with which result, and how much the policy would
have saved. No step runs and no model is asked. If a policy would have continued after
the end of the run, the result is shown as unknown. For a run with a workspace the
table also shows the hash of the files that the policy would have handed back.

A policy changes fields of the recorded plan, by their JSON names: max_iterations,
score.target, score.min_delta_percent, score.patience, stop_when, timeout,
budget.tokens, no_progress.repeats, steps.NAME.on_error and others. The value null
removes a field. --json shows the whole plan.

A run that was made by an earlier version of the rules about a judge's scores is shown
under both: as it was decided, and by today's rules. Without a policy, that is all.

A back-test has the answers of the run and no others. If another rule would have asked
the judge again, or made another version, the result is unknown, or the table says
which answer is missing.

--sweep tries one field with every value that would have changed the end of a run, and
shows for each value how many results would have been lost.`,
		Example: `  refrain backtest last --set plan.max_iterations=3
  refrain backtest run.jsonl --policy 'strict: score.target=9' --policy 'early: score.min_delta_percent=10, score.patience=1'
  refrain backtest run.jsonl --policies policies.yaml --loop story/refine
  refrain backtest runs/*.jsonl --sweep score.min_delta_percent`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.sweep != "" && (f.sets != nil || f.policies != nil || f.file != ""):
				return term.UsageError(errors.New("--sweep tries the values of one field; leave it out, or " +
					"leave out --set, --policy and --policies"))
			case f.sweep != "":
				return runSweep(cmd.Context(), e, f, args)
			case len(args) > 1:
				return term.UsageError(errors.New("several runs need --sweep FIELD; without --sweep, give one run"))
			}
			return runBacktest(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.loop, "loop", "", "`address` of the loop (default: the only outermost loop)")
	fl.StringArrayVar(&f.sets, "set", nil, "change a field of the plan, as `plan.field=value`; all --set flags "+
		"together are one policy")
	fl.StringArrayVar(&f.policies, "policy", nil, "a policy, as `'NAME: field=value, field=value'`; repeat the flag "+
		"for more policies")
	fl.StringVar(&f.file, "policies", "", "`file` with more policies, in YAML or JSON: NAME: {field: value}")
	fl.StringVar(&f.sweep, "sweep", "", "try one `field` of the plan with every value that changes the end of a run, for all runs")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	return cmd
}

// runSweep varies one field of the plans of recorded runs.
func runSweep(ctx context.Context, e *term.Env, f backtestFlags, names []string) error {
	var runs []*past.Recording
	for _, name := range names {
		rec, err := openRecording(ctx, e, f, name)
		if err != nil {
			return err
		}
		runs = append(runs, rec)
	}
	s, err := past.NewSweep(runs, f.sweep)
	if err != nil {
		return term.UsageError(fmt.Errorf("--sweep: %w", err))
	}
	return term.Report(e, f.json, s, func(w io.Writer) error { return backtest.PrintSweep(w, s) })
}

// openRecording reads the recording of a loop. name is the ID of a run or a file, as for refrain show.
func openRecording(ctx context.Context, e *term.Env, f backtestFlags, name string) (*past.Recording, error) {
	run, err := runstore.Open(ctx, e, f.store, name)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return recordingOf(run, f, name)
}

func recordingOf(run *runstore.Run, f backtestFlags, name string) (*past.Recording, error) {
	rec, err := backtest.Recording(slices.Collect(run.Events()), f.loop)
	if err = cmp.Or(run.Wholes.Err, err); err != nil {
		return nil, term.Failure(fmt.Errorf("%s: %w", name, err))
	}
	return rec, nil
}

func runBacktest(ctx context.Context, e *term.Env, f backtestFlags, name string) error {
	policies, err := backtest.Policies(f.sets, f.policies, f.file)
	if err != nil {
		return err
	}
	run, err := runstore.Open(ctx, e, f.store, name)
	if err != nil {
		return err
	}
	defer run.Close()
	rec, err := recordingOf(run, f, name)
	if err != nil {
		return err
	}
	rows, err := backtest.Compare(rec, policies)
	if err != nil {
		return err
	}
	backtest.AddTrees(rows, func(iteration int) string {
		seq := progress.IterationSeq(run.Current(), rec.Loop, iteration)
		if seq == 0 {
			return ""
		}
		hash, _ := runfiles.Value(run.StateAfter(seq)[runfiles.Key])
		return string(hash)
	})
	return term.Report(e, f.json, map[string]any{"loop": rec.Loop, "policies": rows}, func(w io.Writer) error {
		return backtest.Print(w, rec, rows, run.ID)
	})
}
