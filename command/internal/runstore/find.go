// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Run is the run that a command is about: one of a store, or in a file. Close it.
type Run struct {
	*runlog.Run
	Close func() error
}

// Open opens the run that somebody means: by a file's name, by - for stdin, or as
// Find does. Close it.
func Open(ctx context.Context, e *term.Env, spec, word string) (*Run, error) {
	if info, err := os.Stat(word); word == "-" || err == nil && !info.IsDir() {
		log, err := OpenLog(e, word)
		if err != nil {
			return nil, err
		}
		r := log.Run()
		r.ID = cmp.Or(r.ID, word)
		return &Run{Run: r, Close: func() error { return nil }}, nil
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
	switch {
	case errors.Is(err, runlog.ErrNoEvents):
		return nil, unbegun(ctx, store, id)
	case err != nil:
		return nil, term.Failure(err)
	}
	return r, nil
}

// beginAgain says how a run begins that has not begun.
func beginAgain(id string) string {
	return fmt.Sprintf("begin it with refrain run FILE --session %s, or remove it with refrain rm %s --yes", id, id)
}

// unbegun is the error of a command about a run that has no event.
func unbegun(ctx context.Context, store session.Service, id string) error {
	status, held, err := Standing(ctx, store, id, mark.RunRunning)
	switch {
	case err != nil:
		return err
	case held != nil || status != runlog.StatusInterrupted:
		return term.UsageError(fmt.Errorf("nothing has happened in run %s yet", id))
	}
	return term.UsageError(fmt.Errorf("run %s never began, so there is nothing in it: %s", id, beginAgain(id)))
}

// Standing is how a run stands, by its log and by its lease.
func Standing(ctx context.Context, store session.Service, id string,
	by mark.RunStatus) (string, *lease.HeldError, error) {
	status, held, err := runlog.Standing(ctx, store, KeyOf(id), by, OwnerIsDead)
	if err != nil {
		err = term.Failure(err)
	}
	return status, held, err
}

// Find is the ID of the run that somebody means: that ID, the beginning of
// the only ID that begins so, or last, the newest.
func Find(ctx context.Context, store session.Service, word string) (string, error) {
	if word == "" {
		return "", term.UsageError(errors.New("no run is named; refrain runs lists the runs, and last is the newest"))
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
		return "", term.UsageError(fmt.Errorf("no run %q: there are no runs yet", word))
	case word == "last":
		return ids[0], nil
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", term.UsageError(fmt.Errorf("%q is the beginning of %d runs: %s", word, len(fit), term.Listed(fit)))
	}
	hint := "list the runs with refrain runs"
	if near := expr.Nearest(word, ids); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return "", term.UsageError(fmt.Errorf("no run %q (%s)", word, hint))
}

// get fetches the session of a run, with its most recent events; 0 means all.
func get(ctx context.Context, store session.Service, id string, recent int) (*session.View, error) {
	got, err := store.Get(ctx, &session.GetRequest{AppName: AppName, UserID: UserName, SessionID: id, NumRecentEvents: recent})
	if err != nil {
		return nil, err
	}
	return session.ViewOf(got.Session), nil
}

// List are the sessions of all runs, the newest first, without their logs.
func List(ctx context.Context, store session.Service) ([]session.Session, error) {
	all, err := runlog.List(ctx, store, AppName, UserName)
	if err != nil {
		return nil, term.Failure(err)
	}
	return all, nil
}
