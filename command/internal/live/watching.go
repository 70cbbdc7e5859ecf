// SPDX-License-Identifier: Apache-2.0

package live

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Watching follows a run that another process drives.
type Watching struct {
	store session.Service
	id    string
	seen  int64            // number of the last event
	log   []*session.Event // outline of the last run
	owned bool             // the process that started the run records its status
	after int64            // the run continues after this event, whatever its status was
}

// NewWatching begins to follow a run of a store.
func NewWatching(r *runstore.Run) *Watching { return &Watching{store: r.Store, id: r.ID} }

// Add adds the next event of the log.
func (w *Watching) Add(ev *session.Event) {
	w.seen = ev.Seq
	if len(w.log) > 0 && w.log[0].InvocationID != ev.InvocationID {
		w.log, w.owned = nil, false
	}
	w.log = append(w.log, ev.Outlined())
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted {
		w.owned = true
	}
}

// Over reports whether the run has ended or is paused, so that nothing more happens by itself. If the process that started the
// run records its status, the end of the last step is not yet the end of the run.
func (w *Watching) Over() bool { return w.seen > w.after && w.stands() }

// stands reports the same from the log alone.
func (w *Watching) stands() bool {
	if len(w.log) == 0 {
		return false
	}
	ev := w.log[len(w.log)-1]
	if ev.Mark == nil {
		return false
	}
	switch ev.Mark.Kind {
	case mark.KindRunEnded:
		return true
	case mark.KindRunPaused:
		return !w.handedOver() && !w.moves()
	case mark.KindStepFinished:
		return !w.owned && w.Summary().Status.Over()
	}
	return false
}

// handedOver reports whether the run was paused only to continue in the background.
func (w *Watching) handedOver() bool {
	if len(w.log) == 0 {
		return false
	}
	var d mark.RunPaused
	last := w.log[len(w.log)-1].Mark
	return last != nil && last.Kind == mark.KindRunPaused && last.Decode(&d) == nil && d.Reason == toBackground
}

// moves reports whether the run was paused only so that another worker of its cluster continues it.
func (w *Watching) moves() bool {
	s := w.Summary()
	return s.Driver != "" && s.HandOver
}

// Summary returns the status of the run.
func (w *Watching) Summary() *progress.Summary { return progress.Summarize(w.log) }

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
			w.Add(it.ev)
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
