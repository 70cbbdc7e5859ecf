// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/check"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/session"
)

// newTry returns the command that starts the run of a schedule now.
func (f *scheduleFlags) newTry(e *term.Env) *cobra.Command {
	run := runFlags{fresh: true}
	dry := false
	cmd := &cobra.Command{
		Use:   "try NAME",
		Short: "Run what a schedule starts, once and now",
		Long: `Run what a schedule starts, once and now, as refrain run does: with the schedule's request
and set, in the folder of --dir. The ID of the run says the schedule and the present time,
so the schedule's rules for overlaps and for removing runs hold for it too. Its regular
times stay, also if the schedule is paused.

--dry-run starts nothing. It says which run would start, the next times, and what a day of
the schedule costs at most. Exit code 2 if the schedule can start no run.`,
		Example: `  refrain schedules try nightly
  refrain schedules try nightly --dry-run`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(checkGrace(run.grace), run.shown.Choose(e)); err != nil {
				return err
			}
			list, err := f.read()
			if err != nil {
				return err
			}
			s, err := scheduleOf(list, args[0])
			if err != nil {
				return err
			}
			return f.try(cmd.Context(), e, s, run, dry)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "start nothing, and say what would start")
	run.shown.Add(cmd.Flags(), "")
	graceFlag(cmd.Flags(), &run.grace)
	notifyFlag(cmd.Flags(), &run.notify, "the run")
	return cmd
}

// try runs what a schedule starts, or says what it would run.
func (f *scheduleFlags) try(ctx context.Context, e *term.Env, s *schedule.Schedule, run runFlags, dry bool) (err error) {
	folder, err := operations.OpenFolder(&operations.Config{Dir: f.dir, Code: e.Code})
	if err != nil {
		return term.UsageError(err)
	}
	defer folder.Close()
	file, _, err := folder.Read(s.Definition)
	if err != nil {
		return term.UsageError(fmt.Errorf("%s: schedule %q: %w", s.At.String(), s.Name, err))
	}
	if _, own := folder.Own(s.Definition); own {
		file = s.Definition
	} else {
		file = filepath.Join(f.dir, file)
	}
	if dry {
		return dryRun(e.Stdout, e, s, file)
	}
	if run.set, err = operations.AsTexts(s.Set); err != nil {
		return term.UsageError(err)
	}
	run.session, run.store, run.root = s.RunID(time.Now()), f.store, f.dir
	if err = runFile(ctx, e, run, file, s.Request); errors.Is(err, session.ErrExists) {
		return term.Failure(fmt.Errorf("schedule %q: a run of this second exists; try again", s.Name))
	}
	return err
}

// nextTimes is how many times --dry-run lists.
const nextTimes = 3

// dryRun says what a schedule would start.
func dryRun(w io.Writer, e *term.Env, s *schedule.Schedule, file string) error {
	def, _, err := deffile.LoadWithOrigin(e, file)
	if err != nil {
		return term.UsageError(err)
	}
	now := time.Now()
	fmt.Fprintf(w, "now %s: %s\n", s.RunID(now), file)
	if request := cmp.Or(s.Request, def.Query); request != "" {
		fmt.Fprintf(w, "request %s\n", strconv.Quote(request))
	}
	values, err := operations.AsTexts(s.Set)
	if err != nil {
		return term.UsageError(err)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(w, "set %s=%s\n", key, strconv.Quote(values[key]))
	}
	var next []string
	for t := s.NextDue(now); !t.IsZero() && len(next) < nextTimes; t = s.Next(t) {
		next = append(next, s.Due(t).In(s.Location).Format(time.DateTime+" MST"))
	}
	fmt.Fprintf(w, "next %s\n", cmp.Or(strings.Join(next, ", "), "never"))
	day := check.DayOf(s, def, definition.Assumed{Model: e.Getenv("REFRAIN_MODEL")})
	problem := day.Problem
	day.Problem = ""
	fmt.Fprintln(w, day)
	if problem != "" {
		return term.UsageError(fmt.Errorf("%s: schedule %q can start no run: %s", s.At.String(), s.Name, problem))
	}
	return nil
}
