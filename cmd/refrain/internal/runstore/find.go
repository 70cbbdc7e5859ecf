// SPDX-License-Identifier: Apache-2.0

package runstore

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

	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/statekey"
)

// Run is the run that a command is about: one of a store, or in a file.
type Run struct {
	ID    string
	Store session.Service // nil for a file
	File  *LogFile        // nil for a store
	// Events is the log of its session, which may have had other runs before: an outline,
	// of which wholes has the texts.
	Events []*session.Event
	Wholes Wholes
	view   *session.View // of a store: the session as it was when its log was read
	// Initial has the state keys that the session was made with.
	Initial map[string]any
	Close   func() error
}

// Open opens the run that somebody means: by a file's name, or as Find
// does. Close it.
func Open(ctx context.Context, e *term.Env, spec, word string) (*Run, error) {
	if info, err := os.Stat(word); err == nil && !info.IsDir() {
		log, err := OpenLog(e, word)
		if err != nil {
			return nil, err
		}
		r := &Run{ID: word, File: log, Events: log.Events, Close: func() error { return nil }}
		if log.Head != nil {
			r.ID, r.Initial = log.Head.ID, log.Head.State
		}
		return r, nil
	}
	store, closeStore, err := OpenService(ctx, e, spec)
	if none, ok := errors.AsType[noStore](err); ok && strings.ContainsAny(word, `./\`) {
		return nil, term.UsageError(fmt.Errorf("%s is not a file, and %w", word, none))
	}
	if err != nil {
		return nil, err
	}
	r := &Run{Store: store, Close: closeStore}
	if r.ID, err = Find(ctx, store, word); err == nil {
		err = r.Read(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, closeStore())
	}
	return r, nil
}

func (r *Run) fetch(ctx context.Context) (*session.View, error) {
	got, err := r.Store.Get(ctx, &session.GetRequest{AppName: AppName, UserID: UserName, SessionID: r.ID})
	if err != nil {
		return nil, term.Failure(err)
	}
	return session.ViewOf(got.Session), nil
}

// Read fetches the log.
func (r *Run) Read(ctx context.Context) error {
	view, err := r.fetch(ctx)
	if err != nil {
		return err
	}
	r.Wholes.Fetch, r.Wholes.view, r.view = r.fetch, view, view
	for ev := range view.Outline() {
		r.Events = append(r.Events, ev.Outlined())
	}
	if err := view.Err(); err != nil {
		return term.Failure(err)
	}
	if len(r.Events) == 0 {
		return unbegun(ctx, r.Store, r.ID)
	}
	r.Initial = statekey.OwnState(view.State())
	for _, ev := range r.Events {
		for key := range ev.Actions.StateDelta {
			delete(r.Initial, key)
		}
	}
	return nil
}

// Status is how the run stands. Of one in a file nobody can say whether it is
// driven: it counts as interrupted if it has no end.
func (r *Run) Status(ctx context.Context, by mark.RunStatus) (string, *lease.HeldError, error) {
	if r.Store == nil && by == mark.RunRunning {
		return StatusInterrupted, nil, nil
	}
	return Standing(ctx, r.Store, r.ID, by)
}

// StatusInterrupted is how a run stands that is running by its log, and that
// nobody drives: it can be resumed.
const StatusInterrupted = "interrupted"

// StatusNotBegun is how a run stands that has no event, and that nobody drives: the process
// that made its session ended before it wrote one. Stores that are a store.Starter have
// none, unless an older version has left it.
const StatusNotBegun = "not_begun"

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
	case held != nil || status != StatusInterrupted:
		return term.UsageError(fmt.Errorf("nothing has happened in run %s yet", id))
	}
	return term.UsageError(fmt.Errorf("run %s never began, so there is nothing in it: %s", id, beginAgain(id)))
}

// Standing is how a run stands, by its log and by its lease.
func Standing(ctx context.Context, store session.Service, id string,
	by mark.RunStatus) (string, *lease.HeldError, error) {
	leaser, ok := store.(lease.Leaser)
	if by != mark.RunRunning || !ok {
		return string(by), nil, nil
	}
	held, err := leaser.Holder(ctx, KeyOf(id))
	switch {
	case err != nil:
		return "", nil, term.Failure(err)
	case held != nil && !OwnerIsDead(held.Owner):
		return string(by), held, nil
	}
	// It may have ended meanwhile.
	got, err := store.Get(ctx, &session.GetRequest{AppName: AppName, UserID: UserName, SessionID: id,
		NumRecentEvents: 1})
	if err != nil {
		return "", nil, term.Failure(err)
	}
	if r := session.RunOf(got.Session); r != nil && r.Status != mark.RunRunning {
		return string(r.Status), nil, nil
	}
	return StatusInterrupted, nil, nil
}

// Find is the ID of the run that somebody means: that ID, the beginning of
// the only ID that begins so, or last, the newest.
func Find(ctx context.Context, store session.Service, word string) (string, error) {
	if word == "" {
		return "", term.UsageError(errors.New("no run is named; refrain runs lists the runs, and last is the newest"))
	}
	_, err := store.Get(ctx, &session.GetRequest{AppName: AppName, UserID: UserName, SessionID: word,
		NumRecentEvents: 1})
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

// List are the sessions of all runs, the newest first, without their logs.
func List(ctx context.Context, store session.Service) ([]session.Session, error) {
	got, err := store.List(ctx, &session.ListRequest{AppName: AppName, UserID: UserName})
	if err != nil {
		return nil, term.Failure(err)
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

// StateAfter is the state after an event of the log.
func (r *Run) StateAfter(seq int64) map[string]any {
	return progress.StateAfter(maps.Clone(r.Initial), r.Events, seq, r.Wholes.Of)
}
