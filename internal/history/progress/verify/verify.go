// SPDX-License-Identifier: Apache-2.0

// Package verify compares the hashes and the state that a session keeps with those that its events give.
//
//	log := verify.Of(slices.Values(events))
//	for _, s := range log.Runs() {
//		fmt.Println(s.Run, s.Problem)
//	}
package verify

import (
	"fmt"
	"iter"
	"slices"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Log compares the hashes of a log with its events, in one pass and without keeping the events. It reads the log again
// only where the hashes of that pass do not fit.
type Log struct {
	events iter.Seq[*session.Event]
	n      int        // how many events were added
	gone   mark.Spans // superseded by them
	loops  []LoopSeal
	chains seal.Chains
	open   seal.Open // for stop records of older versions
	runs   runs
	state  state
}

// New returns a Log to which no event was added. events yields the whole log of one session, oldest first and with all
// texts, whenever it is ranged.
func New(events iter.Seq[*session.Event]) *Log {
	l := &Log{events: events, runs: runs{events: events, known: make(map[string]bool)}}
	l.runs.chains = &l.chains
	return l
}

// Of returns the Log of all events.
func Of(events iter.Seq[*session.Event]) *Log {
	l := New(events)
	for ev := range events {
		data, _ := ev.AppendCanonical(nil) // without data it is read again, which says the error
		l.Add(ev, data)
	}
	return l
}

// Add adds the next event, and its [session.Event.AppendCanonical]; nil if it has none.
func (l *Log) Add(ev *session.Event, data []byte) {
	if s := ev.Mark.Supersedes(); s != nil {
		l.gone = l.gone.Union(s)
		l.open.Supersede(s)
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
		l.loops = append(l.loops, l.stopped(ev))
	}
	if !l.gone.Has(ev.Seq) {
		l.open.Add(ev, data)
	}
	l.runs.add(l.n, ev, data)
	l.chains.Add(ev, data)
	l.state.add(ev)
	l.n++
}

// LoopSeal is the result of comparing one stop record with the events that it summarizes.
type LoopSeal struct {
	// Loop is the loop's address, Seq the sequence number of its stop record.
	Loop session.Address `json:"loop"`
	Seq  int64           `json:"seq"`
	// Problem says what differs; empty if nothing does.
	Problem string `json:"problem,omitempty"`
	// Reason and Digest are those of the record.
	Reason string `json:"stop_reason,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Loops returns the comparison of every stop record with the events of its run up to it. An event that was changed, added or
// removed since is a problem of every later stop record of the run; in logs of older versions, of every loop around it.
// Somebody who can write the log can also write matching records: to notice that, keep the digest of the last one elsewhere.
func (l *Log) Loops() []LoopSeal { return l.loops }

// stopped compares a stop record, the next event.
func (l *Log) stopped(ev *session.Event) LoopSeal {
	one := LoopSeal{Loop: ev.Address, Seq: ev.Seq}
	var record stopRecord
	if err := ev.Mark.Decode(&record); err != nil {
		one.Problem = fmt.Sprintf("the record cannot be read: %v", err)
		return one
	}
	one.Reason, one.Digest = record.Reason, record.Digest
	switch {
	case seal.IsChained(record.Digest):
		if made, ok := l.chains.Stop(ev, record.Events); !ok || made != record.Digest {
			one.Problem = record.chainProblem(counting(l.events, l.n, nil), ev)
		}
	default:
		if made, ok := l.open.Loop(ev); !ok || made != record.Digest || record.Digest == "" {
			one.Problem = record.problem(counting(l.events, l.n, l.gone), ev)
		}
	}
	return one
}

// counting yields the first n events of a log without those that are superseded.
func counting(events iter.Seq[*session.Event], n int, gone mark.Spans) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		i := 0
		for ev := range events {
			if i++; i > n || !gone.Has(ev.Seq) && !yield(ev) {
				return
			}
		}
	}
}

// stopRecord is the part of a loop's stop record that a seal needs.
type stopRecord struct {
	Reason, Digest string
	Events         int64
}

// problem returns the difference between a stop record and its events; empty if there is none.
func (r *stopRecord) problem(before iter.Seq[*session.Event], stop *session.Event) string {
	if r.Digest == "" {
		return "the record has no digest"
	}
	switch made, n, err := seal.OfLoop(before, stop); {
	case err != nil:
		return err.Error()
	case made == r.Digest:
		return ""
	case r.Events != 0 && r.Events != int64(n):
		return fmt.Sprintf("the log has %d events of the loop, the record was made from %d", n, r.Events)
	}
	return "an event of the loop, or its stop record, was changed"
}

// chainProblem returns the difference between a stop record with a chained seal and the events before it; empty if there is
// none.
func (r *stopRecord) chainProblem(before iter.Seq[*session.Event], stop *session.Event) string {
	chain, later, err := seal.ChainOf(before, stop.InvocationID, r.Events)
	if err != nil {
		return err.Error()
	}
	made, err := seal.StopOf(chain, stop)
	switch {
	case err != nil:
		return err.Error()
	case chain.Events < r.Events:
		return fmt.Sprintf("the log has %d events of the run up to the record, which was made from %d", chain.Events, r.Events)
	case made != r.Digest:
		return "an event of the run up to the stop record, or the record itself, was changed"
	case slices.ContainsFunc(later, func(a session.Address) bool { return a.Under(stop.Address) }):
		return "an event of the loop was added before its stop record"
	}
	return ""
}
