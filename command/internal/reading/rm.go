// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/eval"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// rmFlags are the flags of refrain rm.
type rmFlags struct {
	store, olderThan, status string
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

An eval is named by its ID, such as ev_3f2a1c. It is removed with the runs of its cases;
last is always a run.`,
		Example: `  refrain rm r_1f0c --yes
  refrain rm ev_3f2a1c --yes
  refrain rm --older-than 30d --status completed
  refrain rm --older-than 30d --status completed --yes`,
		Args: cobra.ArbitraryArgs, // none with --older-than or --status
		RunE: func(cmd *cobra.Command, args []string) error { return remove(cmd.Context(), e, f, args) },
	}
	fl := cmd.Flags()
	runstore.Flag(fl, &f.store)
	fl.StringVar(&f.olderThan, "older-than", "", "only runs without an event for this `duration`, such as 30d or 12h")
	fl.StringVar(&f.status, "status", "", "only runs with this status: `"+strings.Join(statuses, "|")+"`")
	fl.BoolVar(&f.yes, "yes", false, "remove the runs")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// parseAge reads a duration, which may be in days or weeks.
func parseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	for unit, d := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			n, err := strconv.ParseFloat(number, 64)
			if err == nil && n > 0 && n < 1e5 {
				return time.Duration(n * float64(d)), nil
			}
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("--older-than %q: write a time such as 30d, 2w or 12h", s)
	}
	return d, nil
}

func remove(ctx context.Context, e *term.Env, f rmFlags, words []string) error {
	age, err := parseAge(f.olderThan)
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
	files, closeFiles, err := openFiles(runstore.ArtifactsDir(e, f.store))
	if err != nil {
		return term.Failure(err)
	}
	defer closeFiles()
	for _, r := range chosen {
		err := removeWorkspace(ctx, e, f.store, store, r.ID)
		shared := ""
		if err == nil {
			shared, err = sharing(ctx, e, f.store, files, r.ID)
		}
		if err == nil && shared != "" {
			fmt.Fprintf(e.Stderr, "the saved files of %s also belong to the run of that ID in %s, and were not removed; if that store is "+
				"gone, remove them from %s\n", term.Cell(r.ID, 64), brief.Clean(shared), brief.Clean(runstore.ArtifactsDir(e, f.store)))
		}
		if err == nil {
			err = removeRun(ctx, store, files, shared != "", r.ID)
		}
		if err == nil && shared == "" {
			err = removeMessages(e, f.store, r.ID)
		}
		if err != nil {
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

// sharing returns the name of another store that the saved files of a run belong to, or "" if they belong to the store of spec.
func sharing(ctx context.Context, e *term.Env, spec string, files *disk.Service, id string) (string, error) {
	if files != nil {
		owner, err := files.Store(runstore.AppName, runstore.UserName, id)
		if err != nil || owner != "" && owner != runstore.Owner(e, spec) {
			return owner, err
		}
	}
	return runstore.Neighbor(ctx, e, spec, id)
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

// removeMessages removes what a run had to say in the background, and the file that people follow.
func removeMessages(e *term.Env, spec, id string) error {
	for _, name := range []string{
		filepath.Join(runstore.MessagesDir(e, spec), runstore.MessagesName(e, spec, id)), filepath.Join(runstore.DiaryPlace(e, spec, id)),
	} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeWorkspace removes the files of a run with a workspace, if they are on this machine. The log of a run that came from
// elsewhere may name the files of another run, or of the run of that ID in another store; they stay.
func removeWorkspace(ctx context.Context, e *term.Env, spec string, store session.Service, id string) error {
	got, err := store.Get(ctx, &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if err != nil {
		return err
	}
	p, err := program.Of(got.Session)
	if err != nil || p.Nearby() != nil {
		return nil // it has no definition, or its folder is not here
	}
	files := runfiles.Store(p.Root)
	if _, err := os.Stat(files); err != nil {
		return nil
	}
	owner, err := workspace.Owner(files, id)
	if err != nil {
		return err
	}
	if owner != "" && owner != runfiles.Owner(p.Root, runstore.Name(e, spec)) && !runfiles.OwnerGone(p.Root, owner) {
		fmt.Fprintf(e.Stderr, "the files that %s has for %s belong to the run of that ID in the store %s, and were not removed\n",
			brief.Clean(files), term.Cell(id, 64), brief.Clean(owner))
		return nil
	}
	var trees []workspace.Hash
	for ev := range got.Session.Events().All() {
		trees = append(trees, runfiles.Trees(ev.Actions.StateDelta)...)
	}
	switch its, err := workspace.Has(ctx, files, id, trees); {
	case err != nil:
		return err
	case !its:
		fmt.Fprintf(e.Stderr, "the files that %s has for %s belong to another run, and were not removed\n",
			brief.Clean(files), term.Cell(id, 64))
		return nil
	}
	return workspace.Remove(ctx, files, id)
}

// removeRun removes a run and what is its own, the log last: until then the run
// can be removed again. Shared files stay.
func removeRun(ctx context.Context, store session.Service, files *disk.Service, shared bool, id string) error {
	if leaser, ok := store.(lease.Leaser); ok { // goes with the session
		held, err := lease.Take(ctx, leaser, runstore.KeyOf(id), lease.Process(), time.Minute)
		if err != nil {
			return err
		}
		defer leaser.Release(context.WithoutCancel(ctx), held)
	}
	if files != nil && !shared {
		got, err := files.List(ctx, &artifact.ListRequest{AppName: runstore.AppName, UserID: runstore.UserName,
			SessionID: id})
		if err != nil {
			return err
		}
		for _, name := range got.FileNames {
			if strings.HasPrefix(name, artifact.KeyPrefixUser) {
				continue // other runs share it
			}
			if err := files.Delete(ctx, &artifact.DeleteRequest{AppName: runstore.AppName, UserID: runstore.UserName,
				SessionID: id, FileName: name}); err != nil {
				return err
			}
		}
	}
	return supervisor.Remove(ctx, store, runstore.KeyOf(id))
}
