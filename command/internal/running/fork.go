// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/supervisor"
)

// forkFlags are the flags of refrain fork.
type forkFlags struct {
	resumeFlags
	iteration  int
	event      int64
	first, run bool
}

func NewFork(e *term.Env) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork RUN",
		Short: "Start a new run from a checkpoint of another run",
		Long: `Start a new run from a checkpoint of another run. The checkpoint is the end of an
iteration of the outermost loop (by default the last complete iteration), or an event.
The new run has the same log, state and files up to the checkpoint, and a link to the
old run. The old run does not change. An event at the end of a loop that has lost a
race continues with that loop.

The ID of the new run goes to stdout. The new run is paused; continue it with refrain
resume, or at once with --run.`,
		Example: `  refrain fork last --at-iteration 2
  refrain fork last --at-iteration 2 --run
  refrain fork r_1f0c3a2b --at-event 117`,
		RunE: func(cmd *cobra.Command, args []string) error {
			fl := cmd.Flags()
			switch {
			case fl.Changed("at-iteration") && fl.Changed("at-event"):
				return errors.New("--at-iteration and --at-event: give one of them")
			case f.iteration < 0:
				return errors.New("--at-iteration: give the number of an iteration, or 0 to fork before the first iteration")
			case fl.Changed("at-event") && f.event < 1:
				return errors.New("--at-event: give a number of at least 1")
			}
			f.first = fl.Changed("at-iteration") && f.iteration == 0
			if err := f.check(fl); err != nil {
				return err
			}
			if err := f.shown.Choose(e); err != nil {
				return err
			}
			if f.run {
				if _, err := term.Mode(e, f.shown.Mode); err != nil {
					return err
				}
			}
			return forkRun(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.IntVar(&f.iteration, "at-iteration", 0, "fork after this `iteration` of the outermost loop; 0 forks before the first")
	fl.Int64Var(&f.event, "at-event", 0, "fork after the event with this `number`; refrain events shows the numbers")
	fl.BoolVar(&f.run, "run", false, "resume the new run at once")
	fl.StringVar(&f.definition, "definition", "", "with --run: use the definition in this `FILE` from here on")
	f.shown.Add(fl, "with --run: ")
	graceFlag(fl, &f.grace)
	return cmd
}

// check returns an error for flags that have no effect, or that contradict each other.
func (f *forkFlags) check(fl *pflag.FlagSet) error {
	if !f.run {
		for _, name := range []string{"definition", "progress", "json", "grace", "exit-zero-on-limit"} {
			if fl.Changed(name) {
				return fmt.Errorf("--%s applies only to a fork that starts at once; add --run", name)
			}
		}
	}
	return f.resumeFlags.check(fl)
}

func forkRun(ctx context.Context, e *term.Env, f forkFlags, word string) error {
	s, sup, id, err := runstore.OpenSupervised(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer s.Close()
	var p *program.Program
	var def *definition.Definition
	if f.definition != "" {
		run, _, err := s.View(ctx, id)
		if err != nil {
			return term.Failure(err)
		}
		if p, err = program.Of(run); err != nil {
			return term.UsageError(fmt.Errorf("run %s: %w", id, err))
		}
		if def, err = deffile.Read(e, p, f.definition); err != nil {
			return term.UsageError(err)
		}
	}
	at := supervisor.Checkpoint{Iteration: f.iteration, First: f.first, Seq: f.event}
	fork, err := operations.ForkFitting(ctx, sup, id, at, e.Code, p, def)
	if diverged, ok := errors.AsType[*agent.DivergedError](err); ok {
		return term.UsageError(fmt.Errorf("fork run %q: %s does not fit what the run has done: %s", id, f.definition,
			operations.Misfit(diverged)))
	}
	if err != nil {
		return term.Failure(err)
	}
	if f.run {
		fmt.Fprintf(e.Stderr, "run %s is a fork of %s\n", fork, id)
		return resumeIn(ctx, e, s, f.resumeFlags, fork)
	}
	fmt.Fprintf(e.Stderr, "run %s is a fork of %s, and paused\n%s\n", fork, id,
		runstore.HowToResumeIn(ctx, s.Service, fork))
	_, err = fmt.Fprintln(e.Stdout, fork)
	return term.Failure(err)
}
