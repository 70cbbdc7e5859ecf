// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// An append to a database is a commit, which costs much more than an event. A runner
// therefore holds events that can wait, and stores them with the one after them:
//
//   - a mark that joins (see [mark.Mark.Joins]): the end of a step and of an iteration, where
//     the start of the next step follows. The end of a step that does more than compute waits
//     for that start and no longer, as a process that dies would make the step again;
//   - the start of a step that asks a model, where the mark of its request follows at once;
//   - an event of an agent that only computes (see drive.Brief), such as a step that sets keys
//     of the state.
//
// In a branch of a parallel agent the runner holds nothing, because the other branches may wait for
// a pause, or act on what the branch has written.
//
// The run's view of the session has held events at once. Nobody outside the run sees them before
// they are stored, and no step that has an effect starts before. If the process dies, the log lacks
// only events that the next process computes again.

// The most that a run holds.
const (
	maxHeld      = 64                   // events
	maxHeldTime  = 5 * time.Millisecond // since the first of them
	maxHeldBytes = 64 << 10             // of one event; a larger one is stored at once
)

// holding are the events of a run that are not stored yet.
type holding struct {
	bulk store.Committer // nil if nothing is held
	at   session.Address // of the step under way whose words can wait; empty if there is none
	done bool            // the end of a step that does more than compute is held
	held []*session.Event

	stored []*session.Event // were held, and are in the log now; nobody has seen them yet
}

// holding is empty. It holds nothing for a store in which each append costs little.
func (r *Runner) holding() holding {
	if c, ok := r.cfg.SessionService.(store.Committer); ok && c.Commits() {
		return holding{bulk: c}
	}
	return holding{}
}

// joins reports whether an event can wait for the next one. Call it once for each event, in order,
// because it notes which step is under way.
func (r *run) joins(ev *session.Event) bool {
	joins, asks := ev.Mark == nil && ev.Address == r.at && r.at != "", false
	if ev.Mark != nil {
		joins, asks, ev.Mark.Joins, ev.Mark.Asks = ev.Mark.Joins, ev.Mark.Asks, false, false
	}
	if r.bulk == nil || ev.Partial || ev.Branch != "" {
		return false
	}
	if ev.Mark != nil {
		switch {
		case ev.Mark.Kind == mark.KindStepFinished:
			r.done = r.done || joins && ev.Address != r.at
		case ev.Mark.Kind != mark.KindStepStarted:
		case asks:
			r.at = ""
		case joins:
			r.at, joins = ev.Address, !r.done
		default:
			r.at = ""
		}
	}
	if !joins || len(r.held) >= maxHeld || ev.Weight() > maxHeldBytes {
		return false
	}
	return len(r.held) == 0 || time.Since(r.held[0].Timestamp) < maxHeldTime
}

// hold takes an event into the run's view, with the number that it will have in the log.
func (r *run) hold(ev *session.Event) {
	r.retell(math.MaxInt64, nil)
	r.complete(ev)
	ev.Seq = r.view.LastSeq() + 1
	if ev.ID == "" {
		ev.ID = strconv.FormatInt(ev.Seq, 10)
	}
	if ev.Timestamp.IsZero() {
		ev.Timestamp = time.Now()
	}
	r.view.Hold(ev)
	r.held = append(r.held, ev)
}

// store appends an event to the log, behind those that are held. If the append fails, the held
// events stay held.
func (r *run) store(ev *session.Event) error {
	if len(r.held) == 0 {
		return r.service.AppendEvent(r.ctx, r.view, ev)
	}
	if err := r.bulk.AppendEvents(r.ctx, r.view, append(slices.Clip(r.held), ev)); err != nil {
		return err
	}
	r.release()
	return nil
}

// flush stores the held events.
func (r *run) flush() error {
	if len(r.held) == 0 {
		return nil
	}
	if err := r.bulk.AppendEvents(r.ctx, r.view, r.held); err != nil {
		return &agent.LogError{Err: fmt.Errorf("append event by %q: %w", r.held[0].Author, err)}
	}
	r.release()
	return nil
}

func (r *run) release() {
	r.view.Stored()
	r.held, r.done, r.stored = nil, false, append(r.stored, r.held...)
}

// show shows the events that were held, and are in the log now.
func (r *run) show(yield func(*session.Event) bool) bool {
	for len(r.stored) > 0 {
		ev := r.stored[0]
		r.stored = r.stored[1:]
		if !yield(ev) {
			return false
		}
	}
	return true
}
