// SPDX-License-Identifier: Apache-2.0

package running

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/runs/scheduler"
	"github.com/refrain-dev/refrain/session/lease"
)

// scheduleFlags are the flags of refrain schedules.
type scheduleFlags struct{ store, dir string }

func NewSchedules(e *term.Env) *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "List, pause and continue the schedules of refrain serve",
		Long: `List the schedules in the file schedules.yaml of a folder, with the next and the last start
of each. refrain serve starts their runs.`,
		Example: `  refrain schedules
  refrain schedules pause nightly
  refrain schedules continue nightly`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd.Context(), e, func(list []*schedule.Schedule, records *scheduler.Records) error {
				return listSchedules(cmd.Context(), e.Stdout, list, records)
			})
		},
	}
	fl := cmd.PersistentFlags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.dir, "dir", ".", "`folder` with schedules.yaml, as for refrain serve")
	cmd.AddCommand(f.verb(e, "pause", "Start no runs of a schedule until it is continued",
		"Pause a schedule for all servers of the store. Runs that it has started go on.", "is paused", "was paused already",
		func(ctx context.Context, r *scheduler.Records, name string) (bool, error) {
			return r.Pause(ctx, name, lease.Process(), time.Now())
		}))
	cmd.AddCommand(f.verb(e, "continue", "Continue a paused schedule with its next time",
		"Continue a paused schedule with its next time. Times that passed during the pause start no runs.", "continues", "was not paused",
		func(ctx context.Context, r *scheduler.Records, name string) (bool, error) {
			return r.Continue(ctx, name, time.Now())
		}))
	return cmd
}

// verb returns a command that changes one schedule. changed and same say how the schedule is then.
func (f *scheduleFlags) verb(e *term.Env, verb, short, long, changed, same string,
	change func(ctx context.Context, r *scheduler.Records, name string) (bool, error)) *cobra.Command {
	return &cobra.Command{
		Use: verb + " NAME", Short: short, Long: long, Example: "  refrain schedules " + verb + " nightly", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			return f.with(cmd.Context(), e, func(list []*schedule.Schedule, records *scheduler.Records) error {
				if !slices.ContainsFunc(list, func(s *schedule.Schedule) bool { return s.Name == name }) {
					return term.UsageError(errors.New("no schedule " + schedule.Missing(name, list)))
				}
				ok, err := change(cmd.Context(), records, name)
				if err != nil {
					return term.Failure(err)
				}
				text := same
				if ok {
					text = changed
				}
				_, err = fmt.Fprintf(e.Stdout, "schedule %s %s\n", name, text)
				return term.Failure(err)
			})
		},
	}
}

// with calls do with the schedules of the folder and what the store has about them.
func (f *scheduleFlags) with(ctx context.Context, e *term.Env, do func([]*schedule.Schedule, *scheduler.Records) error) error {
	list, err := schedule.Read(f.dir)
	if _, problems := errors.AsType[definition.Problems](err); err != nil && !problems {
		err = fmt.Errorf("read the schedules: %w; --dir names another folder", err)
	}
	if err != nil {
		return term.UsageError(err)
	}
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	return do(list, &scheduler.Records{Service: s.Service, AppName: runstore.AppName, UserID: runstore.UserName})
}

func listSchedules(ctx context.Context, to io.Writer, list []*schedule.Schedule, records *scheduler.Records) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tDEFINITION\tTIMES\tA DAY, AT MOST\tNEXT\tLAST")
	now := time.Now()
	for _, s := range list {
		rec, progress, err := records.Read(ctx, s.Name)
		if err != nil {
			return term.Failure(err)
		}
		next := "paused by " + rec.By
		if rec.Paused.IsZero() {
			next = s.Due(s.Next(now)).In(s.Location).Format(time.DateTime + " MST")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", s.Name, s.Definition, s.Rule(), s.MostADay(now), next, lastStart(progress.Last))
	}
	return term.Failure(w.Flush())
}

// lastStart says what happened at the last time of a schedule; "-" if no time has passed.
func lastStart(last *scheduler.Last) string {
	switch {
	case last == nil:
		return "-"
	case last.Outcome == scheduler.Started:
		return last.Run
	}
	return fmt.Sprintf("%s: %s %s", last.Time.UTC().Format(time.RFC3339), last.Outcome, last.Why)
}
