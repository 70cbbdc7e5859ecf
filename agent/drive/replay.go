// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Replay answers the steps of a resumed run from its log, while the same tree runs again. A
// step that has finished does not run: the replay yields its events, and its result. A step
// that runs other steps, or a [Continuer], runs again and must do the same as before. Any other
// step starts again.
//
// It is for runners, and safe for concurrent use.
type Replay struct {
	recording  *recording
	origins    origins
	tree       *Tree
	superseded mark.Spans
	whole      func(*session.Event) *session.Event
	err        atomic.Pointer[error]
	answers    map[string]*mark.Answer // by the question's ID
	reopened   []session.Address       // loops that go on from here

	mu      *sync.Mutex              // the recording's
	seqs    []int64                  // of the recording's events, in order
	next    int                      // where the next event is likely to be
	pending int                      // how many events are still to be taken
	read    map[int64]*session.Event // those of an outline that were read, until they are taken
}

// NewReplay reads the events of one run, in order. superseded are the events of the session
// that do not count any more; what they used is counted at these prices. If the events are an
// outline, whole reads an event in full when the run needs it. NewReplay returns an
// [*agent.DivergedError] if the tree does not fit the events, and an error for events that it
// cannot read.
func NewReplay(events []*session.Event, superseded mark.Spans, tree *Tree, whole func(*session.Event) *session.Event,
	prices budget.Prices) (*Replay, error) {
	x, err := newRecording(events, superseded, usedIn(tree, whole, prices))
	if err != nil {
		return nil, err
	}
	if err := x.fits(tree); err != nil {
		return nil, err
	}
	answers, err := answersIn(events)
	if err != nil {
		return nil, err
	}
	r := &Replay{mu: &x.mu, answers: answers, tree: tree, recording: x, superseded: x.supersede(tree), whole: whole,
		seqs: make([]int64, len(x.events)), read: make(map[int64]*session.Event)}
	for i, ev := range x.events {
		if r.seqs[i] = ev.Seq; x.owners[i] != nil {
			r.pending++
		}
	}
	r.origins, err = originsOf(events)
	return r, err
}

// Recall tells each [Recaller] of the tree what it has said in the run.
func (r *Replay) Recall() {
	all := make(map[string]Recaller)
	for _, name := range r.tree.Names() {
		if a, ok := r.tree.Find(name).(Recaller); ok {
			all[name] = a
		}
	}
	if len(all) == 0 {
		return
	}
	for i, ev := range r.recording.events {
		if r.recording.owners[i] == nil {
			continue
		}
		if a := all[ev.Author]; a != nil {
			if ev.Omitted > 0 {
				ev = r.whole(ev)
			}
			a.Recall(ev)
		}
	}
}

// Superseded returns the sequence numbers of the events to supersede when the run continues:
// those of steps that start again.
func (r *Replay) Superseded() mark.Spans { return r.superseded }

// Root returns the name of the agent that the run began with, or "".
func (r *Replay) Root() string { return r.recording.agent }

// Take reports whether an event that the run yields is in its log already. It reports that once
// for each event.
func (r *Replay) Take(ev *session.Event) bool {
	if r == nil || ev.Seq == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.waits(ev)
	if i < 0 {
		return false
	}
	r.recording.events[i] = nil // a log may be long
	r.next = i + 1
	r.pending--
	delete(r.read, ev.Seq)
	return true
}

// waits is the place of an event, as the log or its outline has it, that is still to be
// taken; -1 if it is not. r.mu is held.
func (r *Replay) waits(ev *session.Event) int {
	i := r.next
	if i >= len(r.seqs) || r.seqs[i] != ev.Seq {
		var found bool
		if i, found = slices.BinarySearch(r.seqs, ev.Seq); !found {
			return -1
		}
	}
	known := r.recording.events[i]
	if known == nil || r.recording.owners[i] == nil || known != ev && r.read[ev.Seq] != ev {
		return -1
	}
	return i
}

// event is an event of the recording with all its texts. r.mu is held.
func (r *Replay) event(ev *session.Event) *session.Event {
	if ev == nil || ev.Omitted == 0 {
		return ev
	}
	if whole := r.read[ev.Seq]; whole != nil {
		return whole
	}
	whole := r.whole(ev)
	r.read[ev.Seq] = whole
	return whole
}

// handed is event for one that is handed on.
func (r *Replay) handed(ev *session.Event) *session.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.event(ev)
}

// comes reports whether an event of the log is still to be taken.
func (r *Replay) comes(ev *session.Event) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waits(ev) >= 0
}

// Over reports whether the run has reached the end of its log.
func (r *Replay) Over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending == 0
}

// Err returns an [*agent.DivergedError] if the run has done something else than its log says,
// or nil. Store nothing of such a run.
func (r *Replay) Err() error {
	if r == nil {
		return nil
	}
	if err := r.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (r *Replay) diverge(err error) error {
	r.err.CompareAndSwap(nil, &err)
	return r.Err()
}

// run takes the next run of a step out of a record. Again is how many at that
// address do not count, and skipped what came before it and is still there.
func (r *Replay) run(of *record, at session.Address) (next *record, again int, skipped *session.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := of.unread()
	if next = of.next(at); next != nil {
		if first == next.from {
			first = -1
		}
		of.take(int(next.place))
	}
	return next, of.again(at), r.eventAt(first)
}

// eventAt is an event of the recording; nil for a place of -1. r.mu is held.
func (r *Replay) eventAt(i int32) *session.Event {
	if i < 0 {
		return nil
	}
	return r.recording.events[i]
}

// ended reports whether the next run of a step has come to its end.
func (r *Replay) ended(of *record, at session.Address) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := of.next(at)
	return next != nil && next.end == finished
}

// unread is the first event of a step's record that the run has not come to.
func (r *Replay) unread(of *record) *session.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.eventAt(of.unread())
}

// replays reports whether a step's record has an event that the run has not come to.
func (r *Replay) replays(of *record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return of.unread() >= 0
}

// again is the event as the log has it; the event itself if it is new. In order
// says that nothing may be skipped.
func (r *Replay) again(of *record, ev *session.Event, inOrder bool) (*session.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	place, at := of.word(ev.Address), int32(-1)
	if place >= 0 {
		at = of.order[place].at
	}
	if next := of.unread(); inOrder && next != at {
		first := r.eventAt(next)
		return nil, &agent.DivergedError{Address: first.Address, Recorded: describe(first), Said: describe(ev)}
	}
	if place < 0 {
		return ev, nil
	}
	known := r.event(r.eventAt(at))
	if known != ev && !(isPlan(known) && isPlan(ev)) { // by what it decides one sees whether it fits
		if err := compare(known, ev); err != nil {
			return nil, err
		}
	}
	of.take(place)
	return known, nil
}

// Recorded returns the event that the step yielded next, at its own address, before its run was
// cut off. It returns nil if there is none, or in a new run. A [Continuer] yields that event
// instead of making a new one.
func (p Place) Recorded() *session.Event {
	inv := p.inv
	if inv == nil || inv.record == nil {
		return nil
	}
	r := inv.run.Replay
	r.mu.Lock()
	defer r.mu.Unlock()
	if place := inv.record.word(inv.address); place >= 0 {
		return r.event(r.eventAt(inv.record.order[place].at))
	}
	return nil
}

// Replays reports whether the log has events of the step that the resumed run has not reached
// yet.
func (p Place) Replays() bool {
	inv := p.inv
	if inv == nil || inv.record == nil {
		return false
	}
	return inv.run.Replay.replays(inv.record)
}

// Replaying reports whether the run was resumed and has not come to the end of its log yet.
func (p Place) Replaying() bool {
	return p.inv != nil && p.inv.run.Replay != nil && !p.inv.run.Replay.Over()
}

// Again is for an agent that yields an event at the address of a step below it, in place of the
// step. In a resumed run it returns the recorded event instead of ev, if there is one. If ev
// differs from it, the run ends with an [*agent.DivergedError].
func (p Place) Again(ev *session.Event) *session.Event {
	inv := p.inv
	if inv == nil || inv.record == nil {
		return ev
	}
	known, err := inv.run.Replay.again(inv.record, ev, inv.agent != nil && serial(inv.agent))
	if err != nil {
		if inv.Err() == nil {
			_ = inv.run.Replay.diverge(err)
		}
		return ev
	}
	return known
}
