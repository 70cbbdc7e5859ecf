// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// askFlags are the flags of refrain pause and refrain cancel.
type askFlags struct {
	clusters.Flags
	store, reason string
	now, edit     bool
}

// add adds the flags that both have.
func (f *askFlags) add(cmd *cobra.Command, e *term.Env) {
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	f.AddTo(cmd, e, clusters.AddressUsage)
	fl.StringVar(&f.reason, "reason", "", "`text` that the log keeps as the reason")
}

func NewPause(e *term.Env) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "pause RUN",
		Short: "Pause a run between two steps",
		Long: `Pause a run, even if another process is driving it. Running steps end first; --now cuts
them off, and refrain resume runs them again. The command waits until the run is paused.
Ctrl-C ends the command; the run still pauses.

--edit prints the folder with the copy of the files that a run with a workspace works on,
such as that of refrain loop --branch. Edit them there, and resume the run: it continues
with your changes, which --protect does not undo. It works for a paused run, too.`,
		Example: `  refrain pause last
  refrain pause last --edit
  refrain pause r_1f0c3a2b --reason "the test machine is needed"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			do := cluster.AskPause
			if f.edit && (f.now || f.On) {
				return term.UsageError(errors.New("--edit: the running steps must end first, in this program; leave out --now and --temporal"))
			}
			if f.now {
				do = cluster.AskPauseNow
			}
			return f.ask(cmd.Context(), e, args[0], do)
		},
	}
	f.add(cmd, e)
	cmd.Flags().BoolVar(&f.now, "now", false, "cut off the steps that are running")
	cmd.Flags().BoolVar(&f.edit, "edit", false, "print the folder of the run's files, to edit them before the run is resumed")
	return cmd
}

// ask pauses or cancels a run, and waits until the run has stopped.
func (f *askFlags) ask(ctx context.Context, e *term.Env, word, do string) error {
	s, sup, id, err := runstore.OpenSupervised(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.edit { // before the run is paused
		if _, err := filesOf(ctx, s, id); err != nil {
			return term.Failure(fmt.Errorf("--edit: %w", err))
		}
	}
	var c cluster.Client
	driver := ""
	if f.On {
		if c, driver, err = f.Of(ctx, e, sup, id); err != nil {
			return err
		}
		defer c.Close()
	}
	for {
		held, err := sup.Driver(ctx, id)
		if err != nil {
			return term.Failure(err)
		}
		if c != nil {
			err = clusters.AskFor(ctx, e, c, id, driver, cluster.Request{Do: do, Reason: f.reason})
		} else {
			tell := map[string]func(ctx context.Context, id, reason string) error{
				cluster.AskPause: sup.Pause, cluster.AskPauseNow: sup.PauseNow, cluster.AskCancel: sup.Cancel}
			if f.edit {
				tell[do] = sup.PauseToEdit
			}
			err = tell[do](ctx, id, f.reason)
		}
		if err != nil {
			return term.Failure(err)
		}
		if held != nil {
			fmt.Fprintf(e.Stderr, "run %s is driven by %s, which has the request; waiting for the run\n", id,
				runstore.OwnerText(held.Owner))
		}
		run, err := sup.Wait(ctx, id)
		if errors.Is(err, supervisor.ErrInterrupted) {
			continue // the driver died before it stopped the run; the next attempt records the stop
		}
		if err != nil {
			return term.Failure(fmt.Errorf("wait for run %s: %w", id, err))
		}
		fmt.Fprintf(e.Stderr, "run %s %s\n", id, standsNow(&run))
		if f.edit && !run.Status.IsFinal() {
			if err := editable(ctx, e, s, id); err != nil {
				return term.Failure(err)
			}
		}
		if !run.Status.IsFinal() {
			fmt.Fprintln(e.Stderr, runstore.HowToResumeIn(ctx, s.Service, id))
		}
		return nil
	}
}

// editable prints the folder of the files of a paused run to stdout.
func editable(ctx context.Context, e *term.Env, s *runstore.Stock, id string) error {
	r, err := filesOf(ctx, s, id)
	if err != nil {
		return err
	}
	if err := r.program.Nearby(); err != nil {
		return err
	}
	dir, err := r.def.Workspace.Editable(ctx, r.place(e), id, r.files)
	if err != nil {
		return fmt.Errorf("find the files of run %s: %w", id, err)
	}
	fmt.Fprintln(e.Stderr, "The files of the run are in the following folder. Edit them; the run continues with them.")
	fmt.Fprintln(e.Stdout, dir)
	return nil
}

// standsNow returns the status of a run as text.
func standsNow(r *mark.Run) string {
	switch r.Status {
	case mark.RunCompleted:
		return "had already completed"
	case mark.RunFailed:
		return "had already failed: " + r.Error
	case mark.RunWaiting:
		return "waits for a person"
	}
	return "is " + string(r.Status)
}

func NewCancel(e *term.Env) *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run now",
		Long: `Cancel a run at once, even if another process is driving it. The log keeps what the run
has done: refrain show displays it, and refrain resume can still continue the run.`,
		Example: `  refrain cancel last
  refrain cancel r_1f0c3a2b --reason "wrong input"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.ask(cmd.Context(), e, args[0], cluster.AskCancel)
		},
	}
	f.add(cmd, e)
	return cmd
}
