// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
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
//   - a mark that may share a batch (see [mark.Mark.Batch]): the end of a step and of an iteration, where
//     the start of the next step follows. The end of a step that does more than compute waits
//     only for that start, because a process that dies before it is stored repeats the step;
//   - the start of a step that asks a model, where the mark of its request follows at once;
//   - an event of an agent that only computes (see drive.Traits.ComputesOnly), such as a step that sets keys
//     of the state.
//
// In a branch of a parallel agent the runner holds nothing, because the other branches may wait for
// a pause, or act on what the branch has written.
//
// The run's view of the session has held events at once. Code outside the run sees them only after
// they are stored, and a step with an effect starts only after that. If the process dies, the log
// lacks only events that the next process computes again.

// Limits of the events that a run holds.
const (
	maxBatch      = 64                   // events
	maxBatchTime  = 5 * time.Millisecond // since the first of them
	maxBatchBytes = 64 << 10             // of one event; a larger one is stored at once
)

// batch has the events of a run that are held: they are not stored yet.
type batch struct {
	committer store.Committer // nil if the run holds no events
	step      session.Address // the step under way whose events can wait; empty if there is none
	hasEffect bool            // one of the events is the end of a step that does more than compute
	events    []*session.Event

	committed []*session.Event // were held and are stored now, but not yielded yet
}

// newBatch returns an empty batch. It never holds events for a store whose appends are cheap.
func (r *Runner) newBatch() batch {
	if c, ok := r.cfg.SessionService.(store.Committer); ok && c.Commits() {
		return batch{committer: c}
	}
	return batch{}
}

// mayBatch reports whether an event can wait for the next one. Call it once for each event, in order,
// because it notes which step is under way.
func (r *run) mayBatch(ev *session.Event) bool {
	batches, asks := ev.Mark == nil && ev.Address == r.step && r.step != "", false
	if ev.Mark != nil {
		batches, asks, ev.Mark.Batch, ev.Mark.Asks = ev.Mark.Batch, ev.Mark.Asks, false, false
	}
	if r.committer == nil || ev.Partial || ev.Branch != "" {
		return false
	}
	if ev.Mark != nil {
		switch {
		case ev.Mark.Kind == mark.KindStepFinished:
			r.hasEffect = r.hasEffect || batches && ev.Address != r.step
		case ev.Mark.Kind != mark.KindStepStarted:
		case asks:
			r.step = ""
		case batches:
			r.step, batches = ev.Address, !r.hasEffect
		default:
			r.step = ""
		}
	}
	if !batches || len(r.events) >= maxBatch || ev.Weight() > maxBatchBytes {
		return false
	}
	return len(r.events) == 0 || time.Since(r.events[0].Timestamp) < maxBatchTime
}

// addToBatch holds an event. It applies the event to the run's view, with the sequence number that the event will
// have in the log.
func (r *run) addToBatch(ev *session.Event) {
	r.completeEvent(ev)
	ev.Seq = r.view.LastSeq() + 1
	if ev.ID == "" {
		ev.ID = strconv.FormatInt(ev.Seq, 10)
	}
	if ev.Timestamp.IsZero() {
		ev.Timestamp = time.Now()
	}
	r.view.Pending().Apply(ev)
	r.events = append(r.events, ev)
}

// store appends an event to the log after the held events. If the append fails, the held events stay held.
func (r *run) store(ev *session.Event) error {
	if len(r.events) == 0 {
		return r.service.AppendEvent(r.ctx, r.view, ev)
	}
	if err := r.committer.AppendEvents(r.ctx, r.view, append(slices.Clip(r.events), ev)); err != nil {
		return err
	}
	r.commitBatch()
	return nil
}

// flush stores the held events.
func (r *run) flush() error {
	if len(r.events) == 0 {
		return nil
	}
	if err := r.committer.AppendEvents(r.ctx, r.view, r.events); err != nil {
		return &agent.LogError{Err: fmt.Errorf("append event by %q: %w", r.events[0].Author, err)}
	}
	r.commitBatch()
	return nil
}

func (r *run) commitBatch() {
	r.view.Pending().Commit()
	r.events, r.hasEffect, r.committed = nil, false, append(r.committed, r.events...)
}

// yieldCommitted yields the events that were held and are stored now. It returns false if the consumer has stopped.
func (r *run) yieldCommitted(yield func(*session.Event) bool) bool {
	for len(r.committed) > 0 {
		ev := r.committed[0]
		r.committed = r.committed[1:]
		if !yield(ev) {
			return false
		}
	}
	return true
}
