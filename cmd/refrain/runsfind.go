// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// oneRun is the run that a command is about: one of a store, or in a file.
type oneRun struct {
	id    string
	store session.Service // nil for a file
	file  *logFile        // nil for a store
	// events is the log of its session, which may have had other runs before: an outline,
	// of which wholes has the texts.
	events []*session.Event
	wholes wholes
	view   *session.View // of a store: the session as it was when its log was read
	// initial has the state keys that the session was made with.
	initial map[string]any
	close   func() error
}

// openRun opens the run that somebody means: by a file's name, or as findRun
// does. Close it.
func openRun(ctx context.Context, e *env, spec, word string) (*oneRun, error) {
	if info, err := os.Stat(word); err == nil && !info.IsDir() {
		log, err := openLog(e, word)
		if err != nil {
			return nil, err
		}
		r := &oneRun{id: word, file: log, events: log.events, close: func() error { return nil }}
		if log.head != nil {
			r.id, r.initial = log.head.ID, log.head.State
		}
		return r, nil
	}
	store, closeStore, err := openRuns(ctx, e, spec)
	if none, ok := errors.AsType[noStore](err); ok && strings.ContainsAny(word, `./\`) {
		return nil, &exitError{exitUsage, fmt.Errorf("%s is no file, and %w", word, none)}
	}
	if err != nil {
		return nil, err
	}
	r := &oneRun{store: store, close: closeStore}
	if r.id, err = findRun(ctx, store, word); err == nil {
		err = r.read(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	return r, nil
}

func (r *oneRun) fetch(ctx context.Context) (*session.View, error) {
	got, err := r.store.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: r.id})
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	return session.ViewOf(got.Session), nil
}

// read fetches the log.
func (r *oneRun) read(ctx context.Context) error {
	view, err := r.fetch(ctx)
	if err != nil {
		return err
	}
	r.wholes.fetch, r.wholes.view, r.view = r.fetch, view, view
	for ev := range view.Outline() {
		r.events = append(r.events, session.Outlined(ev))
	}
	if err := view.Err(); err != nil {
		return &exitError{exitFailed, err}
	}
	if len(r.events) == 0 {
		return unbegun(ctx, r.store, r.id)
	}
	r.initial = session.OwnState(view.State())
	for _, ev := range r.events {
		for key := range ev.Actions.StateDelta {
			delete(r.initial, key)
		}
	}
	return nil
}

// status is how the run stands. Of one in a file nobody can say whether it is
// driven: it counts as interrupted if it has no end.
func (r *oneRun) status(ctx context.Context, by mark.RunStatus) (string, *session.HeldError, error) {
	if r.store == nil && by == mark.RunRunning {
		return statusInterrupted, nil, nil
	}
	return standing(ctx, r.store, r.id, by)
}

// statusInterrupted is how a run stands that is running by its log, and that
// nobody drives: it can be resumed.
const statusInterrupted = "interrupted"

// statusNotBegun is how a run stands that has no event, and that nobody drives: the process
// that made its session ended before it wrote one. Stores that are a session.Starter have
// none, unless an older version has left it.
const statusNotBegun = "not_begun"

// beginAgain says how a run begins that has not begun.
func beginAgain(id string) string {
	return fmt.Sprintf("refrain run FILE --session %s begins it, and refrain rm %s --yes removes it", id, id)
}

// unbegun is the error of a command about a run that has no event.
func unbegun(ctx context.Context, store session.Service, id string) error {
	status, held, err := standing(ctx, store, id, mark.RunRunning)
	switch {
	case err != nil:
		return err
	case held != nil || status != statusInterrupted:
		return &exitError{exitUsage, fmt.Errorf("nothing has happened in run %s yet", id)}
	}
	return &exitError{exitUsage, fmt.Errorf("run %s never began, so there is nothing in it: %s", id, beginAgain(id))}
}

// standing is how a run stands, by its log and by its lease.
func standing(ctx context.Context, store session.Service, id string, by mark.RunStatus) (string, *session.HeldError, error) {
	leaser, ok := store.(session.Leaser)
	if by != mark.RunRunning || !ok {
		return string(by), nil, nil
	}
	held, err := leaser.Holder(ctx, keyOf(id))
	switch {
	case err != nil:
		return "", nil, &exitError{exitFailed, err}
	case held != nil && !ownerIsDead(held.Owner):
		return string(by), held, nil
	}
	// It may have ended meanwhile.
	got, err := store.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: id, NumRecentEvents: 1})
	if err != nil {
		return "", nil, &exitError{exitFailed, err}
	}
	if r := session.RunOf(got.Session); r != nil && r.Status != mark.RunRunning {
		return string(r.Status), nil, nil
	}
	return statusInterrupted, nil, nil
}

// findRun is the ID of the run that somebody means: that ID, the beginning of
// the only ID that begins so, or last, the newest.
func findRun(ctx context.Context, store session.Service, word string) (string, error) {
	if word == "" {
		return "", &exitError{exitUsage, errors.New("no run is named; refrain runs lists them, and last is the newest")}
	}
	_, err := store.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: word, NumRecentEvents: 1})
	if err == nil {
		return word, nil
	}
	if !errors.Is(err, session.ErrNotFound) {
		return "", &exitError{exitFailed, err}
	}
	all, err := listRuns(ctx, store)
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
		return "", &exitError{exitUsage, fmt.Errorf("no run %q: there are no runs yet", word)}
	case word == "last":
		return ids[0], nil
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1:
		return "", &exitError{exitUsage, fmt.Errorf("%q is the beginning of %d runs: %s", word, len(fit), listed(fit))}
	}
	hint := "refrain runs lists them"
	if near := expr.Nearest(word, ids); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return "", &exitError{exitUsage, fmt.Errorf("no run %q (%s)", word, hint)}
}

// listRuns are the sessions of all runs, the newest first, without their logs.
func listRuns(ctx context.Context, store session.Service) ([]session.Session, error) {
	got, err := store.List(ctx, &session.ListRequest{AppName: appName, UserID: userName})
	if err != nil {
		return nil, &exitError{exitFailed, err}
	}
	began := make(map[string]time.Time, len(got.Sessions))
	for _, s := range got.Sessions {
		began[s.ID()] = s.LastUpdateTime()
		if r := session.RunOf(s); r != nil && !r.Started.IsZero() {
			began[s.ID()] = r.Started
		}
	}
	slices.SortFunc(got.Sessions, func(a, b session.Session) int {
		return cmp.Or(began[b.ID()].Compare(began[a.ID()]), cmp.Compare(a.ID(), b.ID()))
	})
	return got.Sessions, nil
}

// stateAfter is the state after an event of the log.
func (r *oneRun) stateAfter(seq int64) map[string]any {
	return progress.StateAfter(maps.Clone(r.initial), r.events, seq, r.wholes.of)
}
