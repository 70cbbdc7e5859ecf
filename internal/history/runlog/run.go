// SPDX-License-Identifier: Apache-2.0

// Package runlog reads the log of a run, in a store or in a file. From the log it computes a row of a list, a report, the
// state after any event, and an export with hashes. It also checks whether the log was changed.
//
//	run, err := runlog.Read(ctx, store, lease.Key{AppName: "app", UserID: "ana", SessionID: id})
//	if err != nil {
//		return err
//	}
//	state := run.StateAfter(117)
//	_, err = run.Export(w, runlog.ExportOptions{})
package runlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// ErrNoEvents means that a session has no events, so its run has not begun.
var ErrNoEvents = errors.New("the run has no events")

// Run is the log of one run. Its session may have had other runs before.
type Run struct {
	ID    string
	Store session.Service // nil for a file
	Key   lease.Key       // the key of the session in Store
	File  *File           // nil for a store
	// FileEvents is a log in memory; nil for a store and a file. All and Log read each of them.
	FileEvents []*session.Event
	Wholes     Wholes
	// Initial has the keys of the session's initial state that no event in the log wrote.
	Initial map[string]any

	view        *session.View // the session when its log was read; nil without a store
	log         []*session.Event
	first, last *session.Event
	n           int
	added       []*session.Event // the events that Import has added
}

// Read reads the log of a run in a store. Errors to expect are [session.ErrNotFound] and
// [ErrNoEvents].
func Read(ctx context.Context, store session.Service, key lease.Key) (*Run, error) {
	r := &Run{ID: key.SessionID, Store: store, Key: key}
	view, err := r.fetch(ctx)
	if err != nil {
		return nil, err
	}
	r.Wholes.Fetch, r.Wholes.view, r.view = r.fetch, view, view
	r.Initial = statekey.OwnState(view.State())
	for ev := range view.Log().Outline() {
		if r.n++; r.first == nil {
			r.first = ev
		}
		r.last = ev
		for key := range ev.Actions.StateDelta {
			delete(r.Initial, key)
		}
	}
	if err := view.Err(); err != nil {
		return nil, err
	}
	if r.n == 0 {
		return nil, fmt.Errorf("read run %q: %w", r.ID, ErrNoEvents)
	}
	return r, nil
}

func (r *Run) fetch(ctx context.Context) (*session.View, error) {
	got, err := r.Store.Get(ctx, &session.GetRequest{AppName: r.Key.AppName, UserID: r.Key.UserID,
		SessionID: r.Key.SessionID})
	if err != nil {
		return nil, err
	}
	return session.ViewOf(got.Session), nil
}

// All yields the events of the log. From a store it reads their outline page by page, because a log can be larger than the
// memory; Wholes reads the complete events. If the store or the file cannot be read, All stops, and [Run.Err] returns
// the error.
func (r *Run) All() iter.Seq[*session.Event] {
	if r.view == nil {
		return r.imported
	}
	return func(yield func(*session.Event) bool) {
		for ev := range r.view.Log().Outline() {
			if ev.Seq > r.last.Seq || !yield(ev) {
				return
			}
		}
	}
}

// Events yields the events of the log, as All does, but with all their texts.
func (r *Run) Events() iter.Seq[*session.Event] {
	if r.view == nil {
		return r.All()
	}
	return func(yield func(*session.Event) bool) {
		for ev := range r.view.Log().All() {
			if ev.Seq > r.last.Seq || !yield(ev) {
				return
			}
		}
	}
}

// Log returns the events of All in a slice, which r keeps in memory. Use All if you need one event at a time.
func (r *Run) Log() []*session.Event {
	switch {
	case r.log != nil:
	case r.view == nil:
		r.log = slices.Collect(r.All())
	default:
		for ev := range r.All() {
			r.log = append(r.log, ev.Outlined())
		}
	}
	return r.log
}

// imported yields the events of a file, or of a log in memory, and those that Import has added.
func (r *Run) imported(yield func(*session.Event) bool) {
	log := slices.Values(r.FileEvents)
	if r.File != nil {
		log = r.File.All()
	}
	for _, evs := range []iter.Seq[*session.Event]{log, slices.Values(r.added)} {
		for ev := range evs {
			if !yield(ev) {
				return
			}
		}
	}
}

// Len returns the number of events in the log.
func (r *Run) Len() int {
	switch {
	case r.view != nil:
		return r.n
	case r.File != nil:
		return r.File.n + len(r.added)
	}
	return len(r.FileEvents) + len(r.added)
}

// First returns the first event of the log's outline; nil if there is none.
func (r *Run) First() *session.Event {
	switch {
	case r.view != nil:
		return r.first
	case r.File != nil:
		return r.File.first
	case len(r.FileEvents) > 0:
		return r.FileEvents[0]
	}
	return nil
}

// Last returns the last event of the log's outline; nil if there is none.
func (r *Run) Last() *session.Event {
	switch {
	case r.view != nil:
		return r.last
	case len(r.added) > 0:
		return r.added[len(r.added)-1]
	case r.File != nil:
		return r.File.last
	case len(r.FileEvents) > 0:
		return r.FileEvents[len(r.FileEvents)-1]
	}
	return nil
}

// Current yields the events of the last run in the log that are not superseded.
func (r *Run) Current() iter.Seq[*session.Event] {
	superseded := r.superseded()
	return func(yield func(*session.Event) bool) {
		for ev := range r.newest() {
			if !superseded.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}

// newest yields the events of the last run in the log.
func (r *Run) newest() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		last := r.Last()
		for ev := range r.All() {
			if ev.InvocationID == last.InvocationID && !yield(ev) {
				return
			}
		}
	}
}

// superseded returns the spans of the superseded events.
func (r *Run) superseded() (spans mark.Spans) {
	if r.view != nil {
		return r.view.Log().Superseded()
	}
	if r.File != nil {
		return r.File.gone
	}
	for _, ev := range r.FileEvents {
		if s := ev.Mark.Supersedes(); s != nil {
			spans = spans.Union(s)
		}
	}
	return spans
}

// Err returns the error with which events or their texts could not be read; nil if there was none.
func (r *Run) Err() error {
	switch {
	case r.Wholes.Err != nil:
		return r.Wholes.Err
	case r.File != nil:
		return r.File.err
	case r.view == nil:
		return nil
	}
	return r.view.Err()
}

// Summary returns the summary of the last run in the log.
func (r *Run) Summary() *progress.Summary { return progress.SummarizeAll(r.Current()) }

// View returns the session as it was when the log was read; nil for a file.
func (r *Run) View() *session.View { return r.view }

// StateAfter returns the state after the event with the sequence number seq.
func (r *Run) StateAfter(seq int64) map[string]any {
	return progress.StateAfter(r.Initial, r.All(), seq, r.shared)
}

// shared returns an event with all its texts. If a text in its delta is still the value in the session's state, the
// event shares this text with the state, so that a large state is in memory only once.
func (r *Run) shared(ev *session.Event) *session.Event {
	whole := r.Wholes.Of(ev)
	if whole == ev || r.view == nil {
		return whole
	}
	short := *whole
	short.Actions.StateDelta = maps.Clone(whole.Actions.StateDelta)
	state := r.view.State()
	for key, val := range short.Actions.StateDelta {
		if text, ok := val.(string); !ok {
			continue
		} else if has, err := state.Get(key); err == nil && has == any(text) {
			short.Actions.StateDelta[key] = has
		}
	}
	return &short
}

// Status returns the present status of the run, and the process that drives it; nil if no process does. by is the run's
// status in the log. A run in a file that is running according to its log is interrupted. dead reports whether the owner
// of a lease is known to have died; it may be nil.
func (r *Run) Status(ctx context.Context, by mark.RunStatus, dead func(string) bool) (string, *lease.HeldError, error) {
	if r.Store == nil && by == mark.RunRunning {
		return StatusInterrupted, nil, nil
	}
	return PresentStatus(ctx, r.Store, r.Key, by, dead)
}

// StatusInterrupted is the status of a run that is running according to its log, but that no process drives. It can
// be resumed.
const StatusInterrupted = "interrupted"

// StatusNotBegun is the status of a run that has no events and that no process drives. The process that created its
// session ended before it wrote an event. A store.Starter has such a run only if an older version has created it.
const StatusNotBegun = "not_begun"

// AllStatuses returns every status that [PresentStatus] or [RowOf] can return.
func AllStatuses() []string {
	return []string{
		string(mark.RunRunning), string(mark.RunIsPaused), string(mark.RunWaiting), string(mark.RunCompleted),
		string(mark.RunFailed), string(mark.RunCanceled), StatusInterrupted, StatusNotBegun,
	}
}

// PresentStatus returns the present status of a run in a store, and the process that drives it; nil if no process does. The
// status is that of the log, or [StatusInterrupted]. See [Run.Status].
func PresentStatus(ctx context.Context, store session.Service, key lease.Key, by mark.RunStatus,
	dead func(string) bool) (string, *lease.HeldError, error) {
	leaser, ok := store.(lease.Leaser)
	if by != mark.RunRunning || !ok {
		return string(by), nil, nil
	}
	held, err := leaser.Holder(ctx, key)
	switch {
	case err != nil:
		return "", nil, err
	case held != nil && (dead == nil || !dead(held.Owner)):
		return string(by), held, nil
	}
	// The run may have ended after the caller read its status, so read it again.
	got, err := store.Get(ctx, &session.GetRequest{AppName: key.AppName, UserID: key.UserID,
		SessionID: key.SessionID, NumRecentEvents: 1, Brief: true})
	if err != nil {
		return "", nil, err
	}
	if r := session.RunOf(got.Session); r != nil && r.Status != mark.RunRunning {
		return string(r.Status), nil, nil
	}
	return StatusInterrupted, nil, nil
}
