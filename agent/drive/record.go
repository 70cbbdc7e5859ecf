// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"encoding/json"
	"iter"
	"sync"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// record is one run of a step as the log has it. What the step said itself, and
// the runs of other steps under it, are taken out of the record as a resumed run
// comes to them.
type record struct {
	of      *recording
	parent  *record // nil for the one above the root
	address session.Address
	attempt int

	started  *session.Event  // nil if the step was not run, and only its end is in the log
	finished *session.Event  // the mark of its end; nil if it did not come to that
	usage    json.RawMessage // of that mark
	canceled *session.Event  // the mark that says so
	lost     bool            // it was cut off, and does not count
	from, to int             // its events are between these in the recording

	// A log has a record of each run of a step, and most are short. The maps are nil where they
	// would be empty.
	words  []int                         // what it said at its own address
	beside map[session.Address][]int     // and at others
	runs   map[session.Address][]*record // of steps under it, those that count
	again  map[session.Address]int       // how many at an address do not count

	wasted budget.Usage // what the run used that nothing in the record accounts for
	booked bool         // all that it used was booked

	order []int        // of words and runs, where they begin
	head  int          // the first in it that is in the record
	taken map[int]bool // of those behind, what is not
}

// closed reports whether what comes after is not of this run.
func (r *record) closed() bool { return r.finished != nil || r.canceled != nil || r.lost }

func (r *record) within(outer *record) bool {
	for ; r != nil; r = r.parent {
		if r == outer {
			return true
		}
	}
	return false
}

// events are all of a run, in their order, but for those that were taken.
func (r *record) events() iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := r.from; i <= r.to; i++ {
			if !r.of.owners[i].within(r) {
				continue
			}
			if ev := r.of.at(i); ev != nil && !yield(ev) {
				return
			}
		}
	}
}

// recording is the log of a run, by steps.
type recording struct {
	events []*session.Event // nil for one that a replay has taken
	owners []*record        // nil for an event that does not count
	root   *record          // whose one run is that of the root agent
	latest map[session.Address]*record
	failed map[session.Address]bool // where a step has failed, whether or not that counts
	used   func(*session.Event) budget.Usage

	fin mark.StepFinished // the one that is read

	mu sync.Mutex // guards the records and the events while a replay takes them
}

// at is an event, as long as it was not taken.
func (x *recording) at(i int) *session.Event {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.events[i]
}

// newRecording reads the events of one run. Of those that are superseded, only how
// often steps were run and what they used is of interest; used says that of an answer.
func newRecording(events []*session.Event, superseded mark.Spans,
	used func(*session.Event) budget.Usage) (*recording, error) {
	x := &recording{latest: make(map[session.Address]*record), failed: make(map[session.Address]bool), used: used,
		events: make([]*session.Event, 0, len(events)), owners: make([]*record, 0, len(events))}
	x.root = x.newRecord(nil, "", 0)
	for _, ev := range events {
		if ev.Address == "" {
			continue // the user's, or about the whole run
		}
		if err := x.add(ev, superseded.Has(ev.Seq)); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *recording) newRecord(parent *record, at session.Address, attempt int) *record {
	return &record{of: x, parent: parent, address: at, attempt: attempt, from: len(x.events), to: len(x.events)}
}

// around is the run under way that an address is in.
func (x *recording) around(at session.Address) *record {
	for at = at.Parent(); at != ""; at = at.Parent() {
		if r := x.latest[at]; r != nil && !r.closed() {
			return r
		}
	}
	return x.root
}

func (x *recording) add(ev *session.Event, gone bool) error {
	at := ev.Address
	r := x.latest[at]
	kind := mark.Kind("")
	if ev.Mark != nil {
		kind = ev.Mark.Kind
	}
	fin := &x.fin
	*fin = mark.StepFinished{}
	if kind == mark.KindStepFinished {
		if err := ev.Mark.Decode(fin); err != nil {
			return err
		}
		if fin.Error != "" && !fin.Canceled {
			x.failed[at] = true
		}
	}
	switch {
	case kind == mark.KindStepStarted:
		if r = x.begin(ev, gone); gone {
			r = nil
		}
	case gone:
		x.forget(ev, fin)
		r = nil
	case kind == mark.KindStepFinished:
		if r == nil || r.closed() { // it was not run
			r = x.begin(ev, false)
		}
		r.to = len(x.events)
		if fin.Canceled {
			r.canceled = ev
		} else {
			r.finished, r.usage = ev, fin.Usage
		}
	case r == nil || r.closed():
		r = x.around(at)
		fallthrough
	default:
		r.say(at, len(x.events))
	}
	x.events, x.owners = append(x.events, ev), append(x.owners, r)
	return nil
}

// begin opens a run.
func (x *recording) begin(ev *session.Event, lost bool) *record {
	parent := x.around(ev.Address)
	r := x.newRecord(parent, ev.Address, ev.Attempt)
	if open := x.latest[ev.Address]; lost && open != nil && !open.closed() {
		return r // the run was ended before it came to that step again, which goes on
	}
	x.latest[ev.Address] = r
	if ev.Mark.Kind == mark.KindStepStarted {
		r.started = ev
		r.say(ev.Address, len(x.events))
	}
	if r.lost = lost; lost {
		parent.repeat(ev.Address)
		return r
	}
	if parent.runs == nil {
		parent.runs = make(map[session.Address][]*record)
	}
	parent.runs[ev.Address] = append(parent.runs[ev.Address], r)
	parent.order = append(parent.order, r.from)
	return r
}

// repeat counts a run at an address that does not count.
func (r *record) repeat(at session.Address) {
	if r.again == nil {
		r.again = make(map[session.Address]int)
	}
	r.again[at]++
}

// say adds a word.
func (r *record) say(at session.Address, i int) {
	r.setWords(at, append(r.wordsAt(at), i))
	r.order = append(r.order, i)
}

// wordsAt is what the step said at an address.
func (r *record) wordsAt(at session.Address) []int {
	if at == r.address {
		return r.words
	}
	return r.beside[at]
}

func (r *record) setWords(at session.Address, words []int) {
	switch {
	case at == r.address:
		r.words = words
	case len(words) == 0:
		delete(r.beside, at)
	default:
		if r.beside == nil {
			r.beside = make(map[session.Address][]int)
		}
		r.beside[at] = words
	}
}

// take takes what begins at a place out of the record.
func (r *record) take(i int) {
	if r.order[r.head] != i {
		if r.taken == nil {
			r.taken = make(map[int]bool)
		}
		r.taken[i] = true
		return
	}
	for r.head++; r.head < len(r.order) && r.taken[r.order[r.head]]; r.head++ {
		delete(r.taken, r.order[r.head])
	}
}

// next is the next run at an address; nil if there is none.
func (r *record) next(at session.Address) *record {
	if runs := r.runs[at]; len(runs) > 0 {
		return runs[0]
	}
	return nil
}

// begun takes a run that is next out of the record.
func (r *record) begun(run *record) {
	r.take(run.from)
	if runs := r.runs[run.address]; len(runs) > 1 {
		r.runs[run.address] = runs[1:]
	} else {
		delete(r.runs, run.address)
	}
}

// word is what the step said next at an address; nil if it said no more.
func (r *record) word(at session.Address) *session.Event {
	if words := r.wordsAt(at); len(words) > 0 {
		return r.of.events[words[0]]
	}
	return nil
}

// said takes the next word at an address out of the record.
func (r *record) said(at session.Address) {
	words := r.wordsAt(at)
	r.take(words[0])
	r.setWords(at, words[1:])
}

// unread is the first event that is still in the record; nil if there is none.
func (r *record) unread() *session.Event {
	if r.head == len(r.order) {
		return nil
	}
	return r.of.events[r.order[r.head]]
}
