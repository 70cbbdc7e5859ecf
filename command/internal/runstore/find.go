// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Run is the run that a command is about, from a store or a file. The caller must close it.
type Run struct {
	*runlog.Run
	Close func() error
}

// Open opens the run that word names: the name of a file, - for stdin, or a word that [Find] accepts. The caller must close the
// run.
func Open(ctx context.Context, e *term.Env, spec, word string) (*Run, error) {
	if info, err := os.Stat(word); word == "-" || err == nil && !info.IsDir() {
		log, err := OpenLog(e, word)
		if err != nil {
			return nil, err
		}
		r := log.Run()
		r.ID = cmp.Or(r.ID, word)
		return &Run{Run: r, Close: log.Close}, nil
	}
	store, closeStore, err := OpenService(ctx, e, spec)
	if none, ok := errors.AsType[noStore](err); ok && strings.ContainsAny(word, `./\`) {
		return nil, term.UsageError(fmt.Errorf("%s is not a file, and %w", word, none))
	}
	if err != nil {
		return nil, err
	}
	r := &Run{Close: closeStore}
	id, err := Find(ctx, store, word)
	if err == nil {
		r.Run, err = Read(ctx, store, id)
	}
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	return r, nil
}

// Read reads the log of a run in a store.
func Read(ctx context.Context, store session.Service, id string) (*runlog.Run, error) {
	r, err := runlog.Read(ctx, store, KeyOf(id))
	if errors.Is(err, runlog.ErrNoEvents) {
		return nil, unbegun(ctx, store, id)
	}
	return r, term.Failure(err)
}

// unbegun returns the error of a command about a run without events.
func unbegun(ctx context.Context, store session.Service, id string) error {
	status, held, err := runlog.PresentStatus(ctx, store, KeyOf(id), mark.RunRunning, lease.Dead)
	switch {
	case err != nil:
		return term.Failure(err)
	case held != nil || status != runlog.StatusInterrupted:
		return term.UsageError(fmt.Errorf("run %s has no event yet; try again in a moment", id))
	}
	return term.UsageError(fmt.Errorf("run %s never began, so it has no events; begin it with refrain run FILE --session %[1]s, or "+
		"remove it with refrain rm %[1]s --yes", id))
}

// Find returns the ID of the run that word names: the ID itself, a unique prefix of the ID, or last for the newest run.
func Find(ctx context.Context, store session.Service, word string) (string, error) {
	if word == "" {
		return "", term.UsageError(errors.New("no run is named; give a run's ID, which refrain runs lists, or last for the newest run"))
	}
	_, err := get(ctx, store, word, 1)
	if err == nil {
		return word, nil
	}
	if !errors.Is(err, session.ErrNotFound) {
		return "", term.Failure(err)
	}
	all, err := List(ctx, store)
	if err != nil {
		return "", err
	}
	var ids, fit []string
	for _, s := range all {
		ids = append(ids, s.ID())
		if strings.HasPrefix(s.ID(), word) || strings.HasPrefix(s.ID(), "r_"+word) {
			fit = append(fit, s.ID())
		}
	}
	switch {
	case len(all) == 0:
		return "", term.UsageError(fmt.Errorf("no run %q, because there are no runs yet; start a run with refrain run", word))
	case word == "last":
		return ids[0], nil
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", term.UsageError(fmt.Errorf("%q is the beginning of the IDs of %d runs: %s; give more of the ID", word, len(fit), term.Listed(fit)))
	}
	hint := "list the runs with refrain runs"
	if near := suggest.Nearest(word, ids); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return "", term.UsageError(fmt.Errorf("no run %q (%s)", word, hint))
}

// get returns the session of a run with its most recent events; 0 means all events.
func get(ctx context.Context, store session.Service, id string, recent int) (*session.View, error) {
	got, err := store.Get(ctx, &session.GetRequest{AppName: AppName, UserID: UserName, SessionID: id, NumRecentEvents: recent})
	if err != nil {
		return nil, err
	}
	return session.ViewOf(got.Session), nil
}

// List returns the sessions of all runs, the newest first, without their logs and without the case-runs of evals.
func List(ctx context.Context, store session.Service) ([]session.Session, error) {
	all, err := runlog.List(ctx, store, AppName, UserName)
	return all, term.Failure(err)
}

// ListAll returns what List returns, with the case-runs of evals.
func ListAll(ctx context.Context, store session.Service) ([]session.Session, error) {
	all, err := runlog.ListAll(ctx, store, AppName, UserName)
	return all, term.Failure(err)
}

// MaxID is the largest number of characters in a run's ID, so that the ID fits into a list.
const MaxID = 64

// CheckID returns an error for an ID that a person could not type later, in a command or copied from a list.
func CheckID(id string) error {
	switch n := utf8.RuneCountInString(id); {
	case id == "":
		return errors.New("the ID is empty; leave out the flag to get a new ID")
	case id == "last":
		return errors.New("last always means the newest run; choose another ID")
	case n > MaxID:
		return fmt.Errorf("the ID has %d characters; the limit is %d", n, MaxID)
	case strings.HasPrefix(id, "-"):
		return fmt.Errorf("the ID %q begins with a hyphen, as flags do; choose another one", id)
	case !utf8.ValidString(id) || strings.ContainsFunc(id, unseen):
		return fmt.Errorf("the ID %q has characters that cannot be seen or typed; use letters, digits and - _ . : @", id)
	case strings.ContainsAny(id, `/\`) || strings.Trim(id, ".") == "":
		return fmt.Errorf("the ID %q could name a folder; use letters, digits and - _ . : @", id)
	}
	return nil
}

// unseen reports whether a character cannot be read in a list, such as white space.
func unseen(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// Complete completes the first argument with the IDs of runs, the newest first, and with the names of files; all arguments, if the
// command takes several runs. It reports no errors, because a shell does not show them.
func Complete(e *term.Env) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveKeepOrder
		if len(args) > 0 && !strings.HasSuffix(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		spec := ""
		if fl := cmd.Flags().Lookup("store"); fl != nil {
			spec = fl.Value.String()
		}
		quiet := *e
		quiet.Stderr = io.Discard
		store, closeStore, err := OpenService(cmd.Context(), &quiet, spec)
		if err != nil {
			return nil, directive
		}
		defer closeStore()
		all, err := List(cmd.Context(), store)
		if err != nil {
			return nil, directive
		}
		words := make([]cobra.Completion, 0, len(all)+1)
		for _, s := range all {
			about := ""
			if r := session.RunOf(s); r != nil {
				about = fmt.Sprintf("%s, %s, %s", r.Name, r.Status, r.Started.Local().Format("2006-01-02 15:04"))
			}
			words = append(words, cobra.CompletionWithDesc(term.Cell(s.ID(), 80), term.Cell(about, 60)))
		}
		if len(all) > 0 {
			words = append(words, cobra.CompletionWithDesc("last", "the newest run"))
		}
		return words, directive
	}
}
