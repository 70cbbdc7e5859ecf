// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/events"
	"github.com/refrain-dev/refrain/command/internal/live"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// eventsFlags are the flags of refrain events.
type eventsFlags struct {
	store, agent              string
	iteration                 int
	errors, follow, all, json bool
}

func NewEvents(e *term.Env) *cobra.Command {
	var f eventsFlags
	cmd := &cobra.Command{
		Use:   "events RUN|FILE",
		Short: "List the events of a run",
		Long: `List the events of a run, one line each: number, time, step, and what happened.
--json writes the whole events, one line of JSON each.

Attempts that were cut off and repeated, and earlier runs of the same session, are left
out unless you give --all.`,
		Example: `  refrain events last
  refrain events r_1f0c --errors
  refrain events last --agent critic --iteration 3
  refrain events last --follow --json | jq .author`,
		RunE: func(cmd *cobra.Command, args []string) error {
			fl := cmd.Flags()
			switch {
			case fl.Changed("iteration") && f.iteration < 1:
				return fmt.Errorf("--iteration %d: give a number of at least 1", f.iteration)
			case fl.Changed("agent") && f.agent == "":
				return errors.New("--agent is empty; give the name of an agent")
			}
			return listEvents(cmd.Context(), e, f, args[0])
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.BoolVar(&f.errors, "errors", false, "only failures, refused exits, and loops or runs that ended with an error")
	fl.StringVar(&f.agent, "agent", "", "only events of the agent with this `name`")
	fl.IntVar(&f.iteration, "iteration", 0, "only events of iteration `N` of the outermost loop")
	fl.BoolVar(&f.all, "all", false, "include attempts that were repeated, and earlier runs")
	fl.BoolVarP(&f.follow, "follow", "f", false, "follow the run until it ends")
	fl.BoolVar(&f.json, "json", false, "write one line of JSON for each event")
	return cmd
}

func listEvents(ctx context.Context, e *term.Env, f eventsFlags, word string) error {
	run, err := runstore.Open(ctx, e, f.store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	if f.follow && run.Store == nil {
		return fmt.Errorf("--follow: %s is a file, and a file gets no new events; leave out --follow", word)
	}
	shown := run.All()
	if !f.all {
		shown = run.Current()
	}
	summary, coming := run.Summary, false
	var w *live.Watching
	if f.follow {
		w = live.NewWatching(run)
		summary, coming = w.Summary, !w.Over()
	}
	if err := events.Findable(run, shown, f.agent, f.iteration, coming); err != nil {
		return term.UsageError(err)
	}
	out := bufio.NewWriter(e.Stdout)
	for ev := range shown {
		if err := f.print(out, ev, run.Wholes.Of); err != nil {
			return err
		}
	}
	if err := cmp.Or(run.Err(), out.Flush()); err != nil {
		return term.Failure(fmt.Errorf("write the events: %w", err))
	}
	if coming {
		err = w.Follow(ctx, func(ev *session.Event) error { return f.print(e.Stdout, ev, run.Wholes.Of) }, nil)
		if gone, ok := errors.AsType[*live.GoneError](err); ok {
			return &term.Exit{Code: term.ExitInterrupted, Err: gone}
		}
		if err != nil {
			return err
		}
	}
	return f.note(ctx, e, run, summary)
}

// note tells why a run has stopped before its end, and how to continue it. An interruption is not an error.
func (f *eventsFlags) note(ctx context.Context, e *term.Env, run *runstore.Run, summary func() *progress.Summary) error {
	if f.json || run.Store == nil {
		return nil
	}
	sum := summary()
	status, _, err := run.Status(ctx, sum.Status, lease.Dead)
	if err != nil {
		return term.Failure(err)
	}
	var lines []string
	switch status {
	case string(mark.RunWaiting):
		lines = append([]string{"run " + run.ID + " " + runstore.WaitsForPerson}, runstore.Asks(run.ID, sum)...)
	case string(mark.RunIsPaused), runlog.StatusInterrupted:
		lines = []string{"run " + run.ID + " is " + status, run.HowToResume()}
	}
	for _, l := range lines {
		fmt.Fprintln(e.Stderr, brief.Clean(l))
	}
	return nil
}

// print writes an event if the flags select it.
func (f *eventsFlags) print(w io.Writer, ev *session.Event, whole progress.Whole) error {
	if f.errors && runlog.ProblemIn(ev) == "" || f.agent != "" && ev.Address.Agent() != f.agent && ev.Author != f.agent ||
		f.iteration > 0 && events.OutermostIteration(ev) != f.iteration {
		return nil
	}
	ev = whole(ev)
	var line []byte
	if f.json {
		text, err := progress.MarshalJSON(ev)
		if err != nil {
			return term.Failure(fmt.Errorf("event %d: %w", ev.Seq, err))
		}
		line = text
	} else {
		line = []byte(events.Line(ev))
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return term.Failure(fmt.Errorf("write the events: %w", err))
	}
	return nil
}
