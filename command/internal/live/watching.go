// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Watching follows a run that another process drives. It keeps no events.
type Watching struct {
	store session.Service
	id    string
	seen  int64          // number of the last event
	last  *session.Event // outline of the last event
	fold  progress.SummaryFold
	owned bool  // the process that started the run records its status
	after int64 // the run continues after this event, whatever its status was
}

// NewWatching begins to follow a run of a store, after the events that the run has.
func NewWatching(r *runstore.Run) *Watching {
	w := &Watching{store: r.Store, id: r.ID, last: new(session.Event)}
	for ev := range r.Current() {
		w.take(ev)
	}
	if last := r.Last(); last != nil {
		w.last, w.seen = last.Outlined(), last.Seq
	}
	return w
}

func (w *Watching) take(ev *session.Event) {
	w.fold.Add(ev)
	w.owned = w.owned || ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted
}

// Add adds the next event of the log.
func (w *Watching) Add(ctx context.Context, ev *session.Event) error {
	begins := w.last.InvocationID != ev.InvocationID
	w.seen, w.last = ev.Seq, ev.Outlined()
	if !begins && ev.Mark.Supersedes() == nil {
		w.take(ev)
		return nil
	}
	w.fold = progress.SummaryFold{}
	if begins {
		w.owned = false
		w.take(ev)
		return nil
	}
	for old, err := range w.until(ctx, ev) {
		if err != nil {
			return err
		}
		w.take(old)
	}
	return nil
}

// until yields the events of the run up to one of them, without those that were superseded by then.
func (w *Watching) until(ctx context.Context, ev *session.Event) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		key := runstore.KeyOf(w.id)
		got, err := w.store.Get(ctx, &session.GetRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID})
		if err != nil {
			yield(nil, err)
			return
		}
		view := session.ViewOf(got.Session)
		for old := range currentOf(view, ev.InvocationID, ev.Seq) {
			if !yield(old, nil) {
				return
			}
		}
		if err := view.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// currentOf yields the outline of a run up to an event, without the events that were superseded by then.
func currentOf(view *session.View, invocation string, upTo int64) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		var gone mark.Spans
		if view.Log().Superseded() != nil {
			for ev := range view.Log().OutlineByKind(mark.KindRunResumed) {
				if ev.InvocationID == invocation && ev.Seq <= upTo {
					gone = gone.Union(ev.Mark.Supersedes())
				}
			}
		}
		for ev := range view.Log().Outline() {
			if ev.Seq > upTo || ev.InvocationID == invocation && !gone.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}

// treeOf returns the tree of a run with its last iterations.
func treeOf(events iter.Seq[*session.Event]) *progress.Tree {
	live := progress.Live{Most: 1024}
	for ev := range events {
		live.AddOnce(ev, true)
	}
	return live.Tree()
}

// Over reports whether the run has ended or is paused, so that nothing more happens by itself. If the process that started the
// run records its status, the end of the last step is not yet the end of the run.
func (w *Watching) Over() bool { return w.seen > w.after && w.stands() }

// stands reports the same from the log alone.
func (w *Watching) stands() bool {
	if w.last.Mark == nil {
		return false
	}
	switch w.last.Mark.Kind {
	case mark.KindRunEnded:
		return true
	case mark.KindRunPaused:
		return !w.handedOver() && !w.moves()
	case mark.KindStepFinished:
		return !w.owned && w.Summary().Status.IsFinal()
	}
	return false
}

// handedOver reports whether the run was paused only to continue in the background.
func (w *Watching) handedOver() bool { return handsOver(w.last) }

// handsOver reports whether an event pauses its run only to continue in the background.
func handsOver(ev *session.Event) bool {
	var d mark.RunPaused
	return ev.Mark != nil && ev.Mark.Kind == mark.KindRunPaused && ev.Mark.Decode(&d) == nil && d.Reason == toBackground
}

// moves reports whether the run was paused only so that another worker of its cluster continues it.
func (w *Watching) moves() bool {
	s := w.Summary()
	return s.Driver != "" && s.HandOver
}

// Summary returns the status of the run.
func (w *Watching) Summary() *progress.Summary { return w.fold.Summary() }

// GoneError is returned when the process that drove the run has died.
type GoneError struct{ id, owner, next string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("run %s is interrupted: %s has died. %s", e.id, cmp.Or(e.owner, "the process that drove it"), e.next)
}

// lookEvery is the interval at which Follow checks that the driver is alive, and absent the number of successive checks that
// must fail.
const (
	lookEvery = time.Second
	absent    = 2
	alone     = 10 // the same number for a run of a cluster
)

// Follow passes the events of the run to each until the run is over. alive may be nil; otherwise Follow calls it from time to
// time with the owner of the run's lease, or with nil if the cluster has not found a worker for the run. Follow fails with a
// [*GoneError] if no process drives the run any more, and with the cause of ctx.
func (w *Watching) Follow(ctx context.Context, each func(*session.Event) error, alive func(*lease.HeldError)) error {
	watcher, ok := w.store.(store.Watcher)
	leaser, leases := w.store.(lease.Leaser)
	if !ok || !leases {
		return fmt.Errorf("the store cannot report new events; use a store such as sqlite.Open")
	}
	inner, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	type item struct {
		ev  *session.Event
		err error
	}
	items := make(chan item)
	wg.Go(func() {
		for ev, err := range watcher.Watch(inner, runstore.KeyOf(w.id), w.seen) {
			select {
			case items <- item{ev, err}:
			case <-inner.Done():
				return
			}
		}
	})
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	gone, owner := 0, ""
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case it := <-items:
			if it.err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return term.Failure(it.err)
			}
			gone = 0
			if err := w.Add(ctx, it.ev); err != nil {
				return term.Failure(err)
			}
			if err := each(it.ev); err != nil || w.Over() {
				return err
			}
		case <-tick.C:
			held, err := leaser.Holder(ctx, runstore.KeyOf(w.id))
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				return term.Failure(err)
			case held != nil && lease.Dead(held.Owner):
				return &GoneError{w.id, held.Owner, runstore.HowToResumeIn(ctx, w.store, w.id)}
			case held != nil:
				if gone, owner = 0, held.Owner; alive != nil {
					alive(held)
				}
				continue
			}
			gone++
			late, clustered := gone >= int(soon/lookEvery), w.Summary().Driver != ""
			switch {
			case late && clustered && w.stands():
				return nil // the run will not continue
			case clustered:
				if gone%alone == 0 && alive != nil {
					alive(nil)
				}
			case w.handedOver():
				if late {
					return nil // the process could not continue the run, which is paused
				}
			case gone >= absent:
				return &GoneError{w.id, owner, runstore.HowToResumeIn(ctx, w.store, w.id)}
			}
		}
	}
}
