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
	now           bool
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
Ctrl-C ends the command; the run still pauses.`,
		Example: `  refrain pause last
  refrain pause r_1f0c3a2b --reason "the test machine is needed"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			do := cluster.AskPause
			if f.now {
				do = cluster.AskPauseNow
			}
			return f.ask(cmd.Context(), e, args[0], do)
		},
	}
	f.add(cmd, e)
	cmd.Flags().BoolVar(&f.now, "now", false, "cut off the steps that are running")
	return cmd
}

// ask pauses or cancels a run, and waits until the run has stopped.
func (f *askFlags) ask(ctx context.Context, e *term.Env, word, do string) error {
	s, sup, id, err := runstore.OpenSupervised(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer s.Close()
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
		if !run.Status.Over() {
			fmt.Fprintln(e.Stderr, runstore.HowToResumeIn(ctx, s.Service, id))
		}
		return nil
	}
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
