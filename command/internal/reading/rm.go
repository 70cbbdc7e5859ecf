// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// rmFlags are the flags of refrain rm.
type rmFlags struct {
	store, olderThan, status string
	keep                     runstore.KeepFlags
	dir                      string
	yes                      bool
}

func NewRm(e *term.Env) *cobra.Command {
	var f rmFlags
	cmd := &cobra.Command{
		Use:   "rm RUN|EVAL...",
		Short: "Remove runs and evals",
		Long: `Remove runs with all their data: events, state, saved files, the files of a workspace,
messages, and background output. Without --yes the command only lists the runs.

Name runs, or choose them with --older-than and --status; if you do both, the flags
choose among the runs that you name. A run that a process is driving is never removed.
To keep a copy, use refrain export first.

With --keep, --keep-failed or --dir the command chooses the runs that refrain serve with these
flags would remove: ended runs, of no eval, and without a fork that stays. The file
schedules.yaml in the folder may have other times for the runs of a schedule.

An eval is named by its ID, such as ev_3f2a1c. It is removed with the runs of its cases;
last is always a run.`,
		Example: `  refrain rm r_1f0c --yes
  refrain rm ev_3f2a1c --yes
  refrain rm --older-than 30d --status completed
  refrain rm --older-than 30d --status completed --yes
  refrain rm --keep 30d --keep-failed 90d`,
		Args: cobra.ArbitraryArgs, // none with --older-than or --status
		RunE: func(cmd *cobra.Command, args []string) error {
			fl := cmd.Flags()
			if !fl.Changed("keep") && !fl.Changed("keep-failed") && !fl.Changed("dir") {
				return remove(cmd.Context(), e, f, args)
			}
			if len(args) > 0 || f.olderThan != "" || f.status != "" {
				return errors.New("--keep, --keep-failed and --dir choose the runs; leave out the names, --older-than and --status")
			}
			return clean(cmd.Context(), e, f)
		},
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.olderThan, "older-than", "", "only runs without an event for this `duration`, such as 30d or 12h")
	fl.StringVar(&f.status, "status", "", "only runs with this status: `"+strings.Join(statuses, "|")+"`")
	f.keep.Add(fl, "choose")
	fl.StringVar(&f.dir, "dir", ".", "`folder` with schedules.yaml, for --keep")
	fl.BoolVar(&f.yes, "yes", false, "remove the runs")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func remove(ctx context.Context, e *term.Env, f rmFlags, words []string) error {
	age, err := runstore.Age("--older-than", f.olderThan)
	switch {
	case err != nil:
		return err
	case len(words) == 0 && f.olderThan == "" && f.status == "":
		return errors.New("name the runs to remove, or choose them with --older-than or --status")
	case f.status != "" && !slices.Contains(statuses, f.status):
		return fmt.Errorf("--status %q: use one of %s", f.status, strings.Join(statuses, ", "))
	}
	store, closeStore, err := runstore.OpenWritable(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer closeStore()
	words, evals, err := findEvals(ctx, store, words)
	if err != nil {
		return err
	}
	if len(evals) > 0 && (f.olderThan != "" || f.status != "") {
		return term.UsageError(errors.New("--older-than and --status choose runs; name an eval without them"))
	}
	var chosen []listedRun
	if len(words) > 0 || len(evals) == 0 {
		if chosen, err = f.choose(ctx, store, words, age); err != nil {
			return err
		}
	}
	if !f.yes {
		for _, r := range chosen {
			fmt.Fprintf(e.Stdout, "would remove %s  %s  %s\n", term.Cell(r.ID, 64), term.Cell(r.Name, 30), r.Status)
		}
		for _, ev := range evals {
			fmt.Fprintf(e.Stdout, "would remove %s  %s  eval\n", ev.ID, term.Cell(ev.Versions[0].Name, 30))
		}
		switch {
		case len(evals) > 0:
			return term.UsageError(errors.New("nothing was removed; add --yes to remove them"))
		case len(chosen) > 0:
			return term.UsageError(errors.New("nothing was removed; add --yes to remove these runs"))
		}
		fmt.Fprintln(e.Stderr, "No such run.")
		return nil
	}
	for _, ev := range evals { // so that nobody continues it meanwhile
		key := eval.Key(runstore.AppName, runstore.UserName, ev.ID)
		held, err := lease.Take(ctx, store.(lease.Leaser), key, lease.Process(), time.Hour)
		if err != nil {
			return term.Failure(fmt.Errorf("remove eval %s: %w", ev.ID, err))
		}
		defer store.(lease.Leaser).Release(context.WithoutCancel(ctx), held)
	}
	remover, closeFiles, err := f.remover(e, store)
	if err != nil {
		return term.Failure(err)
	}
	defer closeFiles()
	for _, r := range chosen {
		if err := remover.Remove(ctx, r.ID); err != nil {
			return term.Failure(fmt.Errorf("remove run %s: %w", r.ID, err))
		}
		fmt.Fprintf(e.Stdout, "removed %s\n", term.Cell(r.ID, 64))
	}
	for _, ev := range evals {
		if err := supervisor.Remove(ctx, store, eval.Key(runstore.AppName, runstore.UserName, ev.ID)); err != nil {
			return term.Failure(fmt.Errorf("remove eval %s: %w", ev.ID, err))
		}
		fmt.Fprintf(e.Stdout, "removed %s\n", ev.ID)
	}
	return nil
}

// clean removes what a server with the flags would remove, or lists it.
func clean(ctx context.Context, e *term.Env, f rmFlags) error {
	rule, err := f.keep.Rule()
	if err != nil {
		return err
	}
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		return term.UsageError(fmt.Errorf("there is no folder %s", f.dir))
	}
	rules := retention.Rules{Rule: rule}
	if rules.Schedules, err = schedule.Read(f.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return term.UsageError(err)
	}
	store, closeStore, err := runstore.OpenWritable(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer closeStore()
	remover, closeFiles, err := f.remover(e, store)
	if err != nil {
		return term.Failure(err)
	}
	defer closeFiles()
	cleaner := &retention.Cleaner{Remover: *remover, Rules: func() (retention.Rules, error) { return rules, nil }}
	if f.yes {
		cleaner.Each = func(x *retention.Expired, err error) {
			if err == nil {
				fmt.Fprintf(e.Stdout, "removed %s\n", term.Cell(x.ID, 64))
			}
		}
		return term.Failure(cleaner.Clean(ctx))
	}
	list, err := cleaner.List(ctx)
	if err != nil {
		return term.Failure(err)
	}
	for _, x := range list {
		fmt.Fprintf(e.Stdout, "would remove %s  %s  %s, ended %s, is kept for %s\n", term.Cell(x.ID, 64), term.Cell(x.Name, 30), x.Status,
			x.Ended.Local().Format("2006-01-02 15:04"), x.Keep)
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Stderr, "No such run.")
		return nil
	}
	return term.UsageError(errors.New("nothing was removed; add --yes to remove these runs"))
}

// findEvals returns the evals among the words, and the other words with the case-runs of the evals. It fails if a process drives an
// eval.
func findEvals(ctx context.Context, store session.Service, words []string) (runs []string, evals []*eval.Record, err error) {
	cfg := eval.Config{Service: store, AppName: runstore.AppName, UserID: runstore.UserName}
	for _, word := range words {
		if !strings.HasPrefix(word, "ev_") || strings.Contains(word, ".") {
			runs = append(runs, word)
			continue
		}
		id, err := eval.Find(ctx, cfg, word)
		if err != nil {
			return nil, nil, term.UsageError(err)
		}
		rec, err := eval.Read(ctx, store, cfg.AppName, cfg.UserID, id)
		if err != nil {
			return nil, nil, term.Failure(err)
		}
		held, err := store.(lease.Leaser).Holder(ctx, eval.Key(cfg.AppName, cfg.UserID, id))
		if err != nil {
			return nil, nil, term.Failure(err)
		}
		if held != nil && !lease.Dead(held.Owner) {
			return nil, nil, term.Failure(fmt.Errorf("eval %s is driven by %s; end it first with Ctrl-C", id, held.Owner))
		}
		evals = append(evals, rec)
	}
	if len(evals) == 0 {
		return runs, nil, nil
	}
	all, err := runstore.ListAll(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range all {
		if slices.ContainsFunc(evals, func(ev *eval.Record) bool { return strings.HasPrefix(s.ID(), ev.ID+".") }) {
			runs = append(runs, s.ID())
		}
	}
	return runs, evals, nil
}

// choose returns the runs that the arguments and flags select.
func (f *rmFlags) choose(ctx context.Context, store session.Service, words []string,
	age time.Duration) ([]listedRun, error) {
	all, err := runstore.ListAll(ctx, store)
	if err != nil {
		return nil, err
	}
	var named []string
	for _, word := range words {
		id, err := runstore.Find(ctx, store, word)
		if err != nil {
			return nil, err
		}
		named = append(named, id)
	}
	var chosen []listedRun
	for _, s := range all {
		if len(words) > 0 && !slices.Contains(named, s.ID()) || age > 0 && time.Since(s.LastUpdateTime()) < age {
			continue
		}
		r, err := listOne(ctx, store, s)
		if err != nil {
			return nil, err
		}
		switch {
		case f.status != "" && r.Status != f.status:
		case r.DrivenBy == "":
			chosen = append(chosen, *r)
		case len(words) > 0:
			return nil, term.Failure(fmt.Errorf("run %s is driven by %s; end the run first with refrain cancel %s", r.ID,
				r.DrivenBy, r.ID))
		}
	}
	return chosen, nil
}

// remover returns the remover of the runs of a store.
func (f *rmFlags) remover(e *term.Env, store session.Service) (*retention.Remover, func() error, error) {
	files, closeFiles, err := openFiles(runstore.ArtifactsDir(e, f.store))
	if err != nil {
		return nil, nil, err
	}
	r := &retention.Remover{Service: store, StoreName: runstore.Name(e, f.store), AppName: runstore.AppName, UserID: runstore.UserName,
		Report: func(text string) { fmt.Fprintln(e.Stderr, text) }}
	if files != nil {
		r.Files = files
	}
	r.Beside, err = runstore.Beside(e, f.store, r.Files)
	return r, closeFiles, err
}

// openFiles opens the folder of saved files, if there is one.
func openFiles(dir string) (*disk.Service, func() error, error) {
	none := func() error { return nil }
	if dir == "" {
		return nil, none, nil
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, none, nil
	}
	files, err := disk.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	return files, files.Close, nil
}
