// SPDX-License-Identifier: Apache-2.0

// Package reading has the verbs about stored runs: list, show, follow, verify, back-test and remove. NewVERB makes
// the verb.
package reading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/clusters"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// runsFlags are the flags of refrain runs.
type runsFlags struct {
	clusters.Flags
	store, status string
	limit         int
	json, all     bool
}

// statuses are the values of --status.
var statuses = runlog.AllStatuses()

func NewRuns(e *term.Env) *cobra.Command {
	var f runsFlags
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List runs",
		Long: `List the runs of a store, newest first, with status, iteration, score, request, and the
reason why each run has stopped or waits. A narrow terminal shows fewer columns. The status "interrupted" means that the run was cut
off; you can resume an interrupted run like a paused run. The status "not_begun" means
that the run was cut off before its first event.

A run of a Temporal cluster is shown with its task queue. With --temporal the list shows
which of these runs have lost their workflow, for example because somebody terminated
the workflow. refrain resume RUN --temporal ADDRESS starts a new workflow for the run.

Other commands take a run's ID, the beginning of its ID, or "last" for the newest run.`,
		Example: `  refrain runs
  refrain runs --status interrupted
  refrain runs --limit 100 --json
  refrain runs --all`,
		RunE: func(cmd *cobra.Command, _ []string) error { return runs(cmd.Context(), e, f) },
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	f.AddTo(cmd, e, "`host:port` of the Temporal server that has the workflows of runs; the rest is set by the "+
		"variables TEMPORAL_*")
	fl.StringVar(&f.status, "status", "", "only runs with this status: `"+strings.Join(statuses, "|")+"`")
	fl.IntVar(&f.limit, "limit", 20, "show at most this many runs; 0 shows all")
	fl.BoolVar(&f.all, "all", false, "also show the case-runs of refrain eval")
	fl.BoolVar(&f.json, "json", false, "write one line of JSON for each run")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// listedRun is one row of the list.
type listedRun struct {
	runlog.Row
	// Workflow says why a run of a cluster has no workflow, such as terminated.
	Workflow    string `json:"workflow,omitempty"`
	howToResume string
}

func runs(ctx context.Context, e *term.Env, f runsFlags) error {
	if f.status != "" && !slices.Contains(statuses, f.status) {
		return fmt.Errorf("--status %q: use one of %s", f.status, strings.Join(statuses, ", "))
	}
	if f.limit < 0 {
		return fmt.Errorf("--limit %d: give a number of runs, or 0 for all", f.limit)
	}
	store, closeStore, err := runstore.OpenService(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer closeStore()
	all, err := runstore.ListAll(ctx, store)
	if err != nil {
		return err
	}
	cases := 0
	if n := len(all); !f.all {
		all = runlog.WithoutCases(all)
		cases = n - len(all)
	}
	rows, err := listRows(ctx, store, all, f)
	if err != nil {
		return err
	}
	if err := f.workflows(ctx, e, rows); err != nil {
		return err
	}
	if err := printRuns(e, rows, f.json); err != nil {
		return term.Failure(fmt.Errorf("write the list: %w", err))
	}
	if len(rows) == 0 && !f.json {
		fmt.Fprintln(e.Stderr, "No such run.")
	}
	if cases > 0 {
		fmt.Fprintf(e.Stderr, "The list leaves out %s of evals; show them with --all, and the evals with: %s\n", brief.Count(cases, "run"),
			e.Hint("refrain eval list"+runstore.InHint(f.store)))
	}
	return nil
}

// workflows finds out which runs of a cluster have lost their workflow.
func (f *runsFlags) workflows(ctx context.Context, e *term.Env, rows []listedRun) error {
	if !f.On {
		return nil
	}
	c, err := f.Dial(ctx, e)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range rows {
		r := &rows[i]
		if _, theirs := runstore.QueueOf(r.Driver); !theirs || mark.RunStatus(r.Status).IsFinal() {
			continue
		}
		if r.Workflow, err = c.Workflow(ctx, r.ID, r.Driver); err != nil {
			return term.Failure(err)
		}
	}
	return nil
}

// listRows returns the rows of the selected runs. A run that was removed since the list was read has no row.
func listRows(ctx context.Context, store session.Service, all []session.Session,
	f runsFlags) (rows []listedRun, err error) {
	for _, s := range all {
		if f.limit > 0 && len(rows) == f.limit {
			break
		}
		if r := session.RunOf(s); r != nil && f.status != "" && !runlog.MayHave(r.Status, f.status) {
			continue
		}
		row, err := listOne(ctx, store, s)
		switch {
		case errors.Is(err, session.ErrNotFound):
		case err != nil:
			return nil, err
		case f.status == "" || row.Status == f.status:
			rows = append(rows, *row)
		}
	}
	return rows, nil
}

// listOne returns the row of a run.
func listOne(ctx context.Context, store session.Service, s session.Session) (*listedRun, error) {
	row, err := runlog.RowOf(ctx, store, s, lease.Dead)
	if err != nil {
		return nil, term.Failure(err)
	}
	r := &listedRun{Row: *row}
	if r.Status == runlog.StatusInterrupted {
		r.howToResume = runstore.HowToResumeIn(ctx, store, s.ID())
	}
	return r, nil
}

func printRuns(e *term.Env, rows []listedRun, asJSON bool) error {
	if asJSON {
		enc := progress.NewJSON(e.Stdout)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return nil
	}
	table := [][]string{{"RUN", "NAME", "STATUS", "ITERATION", "SCORE", "STARTED", "TOOK", "REQUEST", "WHY"}}
	for _, r := range rows {
		iteration, score := "-", "-"
		if r.Iteration > 0 {
			iteration = strconv.Itoa(r.Iteration)
		}
		if r.Score != nil {
			score = brief.Score(*r.Score)
		}
		took := brief.Clock(time.Duration(r.Seconds * float64(time.Second)))
		table = append(table, []string{term.Cell(r.ID, runstore.MaxID), term.Cell(r.Name, 30), r.Status, iteration,
			score, r.started(), took, term.Cell(r.Input, 40), term.Cell(r.why(), 70)})
	}
	const name, iteration, score, started, took, request = 1, 3, 4, 5, 6, 7
	return term.PrintTable(e.Stdout, table, term.Layout{Drop: []int{took, started, iteration, score, name}, Cut: []int{request}})
}

func (r *listedRun) started() string {
	if r.Started.IsZero() {
		return "-"
	}
	return r.Started.Local().Format("2006-01-02 15:04")
}

// why returns the reason for the status of the run.
func (r *listedRun) why() string {
	switch {
	case r.Workflow != "":
		return "no workflow: " + r.Workflow
	case r.Status == string(mark.RunWaiting) && len(r.Waits) > 0:
		q := r.Waits[0]
		s := "waits for: " + cmp.Or(q.Text, string(q.Kind))
		if n := len(r.Waits) - 1; n > 0 {
			s += fmt.Sprintf(" (and %d more)", n)
		}
		return s
	case r.DrivenBy != "" && r.Driver != "":
		return runstore.DriverText(r.Driver) + ", by " + runstore.OwnerText(r.DrivenBy)
	case r.DrivenBy != "":
		return "by " + r.DrivenBy
	case r.Status == runlog.StatusInterrupted && r.Driver != "":
		return runstore.NoWorker(r.Driver)
	case r.Status == runlog.StatusInterrupted:
		return r.howToResume
	case r.Status == runlog.StatusNotBegun:
		return "the run never began; begin it with: refrain run FILE --session " + r.ID
	}
	stop := r.StopReason
	if loop.StopReason(stop).Limit() {
		stop = "stopped by a limit: " + stop
	}
	return cmp.Or(runstore.OwnerText(r.Paused), progress.PlainError(r.Error), stop, "-")
}
