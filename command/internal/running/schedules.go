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
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/runs/scheduler"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/lease"
)

// scheduleFlags are the flags of refrain schedules.
type scheduleFlags struct {
	store, dir string
	json       bool
}

func NewSchedules(e *term.Env) *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "schedules",
		Short: "List, try, pause and continue the schedules of refrain serve",
		Long: `List the schedules in the file schedules.yaml of a folder, with the next and the last start
of each, and how its last run ended and why. refrain serve starts their runs. LAST leaves out
the runs of refrain schedules try, which refrain runs lists.`,
		Example: `  refrain schedules
  refrain schedules try nightly
  refrain schedules pause nightly
  refrain schedules continue nightly`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd.Context(), e, func(list []*schedule.Schedule, records *scheduler.Records) error {
				return errors.Join(f.list(cmd.Context(), e.Stdout, list, records), f.checkAll(e, list))
			})
		},
	}
	fl := cmd.PersistentFlags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.dir, "dir", ".", "`folder` with schedules.yaml, as for refrain serve")
	cmd.Flags().BoolVar(&f.json, "json", false, "write one line of JSON for each schedule")
	cmd.AddCommand(f.newTry(e))
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
				if _, err := scheduleOf(list, name); err != nil {
					return err
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

// scheduleOf returns the schedule with a name.
func scheduleOf(list []*schedule.Schedule, name string) (*schedule.Schedule, error) {
	i := slices.IndexFunc(list, func(s *schedule.Schedule) bool { return s.Name == name })
	if i < 0 {
		return nil, term.UsageError(errors.New("no schedule " + schedule.Missing(name, list)))
	}
	return list[i], nil
}

// read reads the schedules of the folder.
func (f *scheduleFlags) read() ([]*schedule.Schedule, error) {
	list, err := schedule.Read(f.dir)
	if _, problems := errors.AsType[definition.Problems](err); err != nil && !problems {
		err = fmt.Errorf("read the schedules: %w; --dir names another folder", err)
	}
	if err != nil {
		return nil, term.UsageError(err)
	}
	return list, nil
}

// with calls do with the schedules of the folder and what the store has about them.
func (f *scheduleFlags) with(ctx context.Context, e *term.Env, do func([]*schedule.Schedule, *scheduler.Records) error) error {
	list, err := f.read()
	if err != nil {
		return err
	}
	s, err := runstore.MakeStock(ctx, e, f.store, "")
	if err != nil {
		return err
	}
	defer s.Close()
	return do(list, &scheduler.Records{Service: s.Service, AppName: runstore.AppName, UserID: runstore.UserName})
}

func (f *scheduleFlags) list(ctx context.Context, to io.Writer, list []*schedule.Schedule, records *scheduler.Records) error {
	w, lines := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0), progress.NewJSON(to)
	if !f.json {
		fmt.Fprintln(w, "NAME\tDEFINITION\tTIMES\tA DAY, AT MOST\tNEXT\tLAST")
	}
	now := time.Now()
	for _, s := range list {
		st, err := records.Status(ctx, s, now)
		if err != nil {
			return term.Failure(err)
		}
		if f.json {
			if err := lines.Encode(st); err != nil {
				return term.Failure(err)
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", s.Name, s.Definition, s.Rule(), st.MostADay, nextStart(st, s.Location), lastStart(st))
	}
	return term.Failure(w.Flush())
}

// checkAll prints which schedules can start no run, and why.
func (f *scheduleFlags) checkAll(e *term.Env, list []*schedule.Schedule) error {
	folder, err := operations.OpenFolder(&operations.Config{Dir: f.dir, Code: e.Code})
	if err != nil {
		return term.Failure(err)
	}
	for _, s := range list {
		if err := folder.CheckSchedule(s); err != nil {
			term.PrintError(e.Stderr, fmt.Errorf("%s: schedule %q can start no run: %w", s.At.String(), s.Name, err))
		}
	}
	return folder.Close()
}

// nextStart says when a schedule starts its next run, and what delays it.
func nextStart(st *scheduler.Status, in *time.Location) string {
	text := "never"
	if !st.Next.IsZero() {
		text = st.Next.In(in).Format(time.DateTime + " MST")
	}
	switch {
	case !st.Paused.IsZero():
		text += ", but paused by " + st.PausedBy
	case !st.Queued.IsZero():
		text = "when the earlier run has ended; then " + text
	case !st.Delayed.IsZero():
		text += ", delayed by jitter"
	}
	return text
}

// lastStart says what happened at the last time of a schedule, and how its run ended; "-" if no time has passed.
func lastStart(st *scheduler.Status) string {
	last := st.Last
	switch {
	case last == nil:
		return "-"
	case last.Outcome == scheduler.Started && st.RunWhy != "":
		return fmt.Sprintf("%s %s: %s", last.Run, st.RunStatus, brief.Line(st.RunWhy, 100))
	case last.Outcome == scheduler.Started:
		return last.Run + " " + st.RunStatus
	}
	return fmt.Sprintf("%s %s: %s", last.Time.UTC().Format(time.RFC3339), last.Outcome, brief.Line(last.Why, 100))
}
