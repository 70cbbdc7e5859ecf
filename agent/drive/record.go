// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// record is one run of a step as the log has it. A resumed run takes the step's own events, and
// the runs of steps under it, out of the record as it reaches them.
type record struct {
	of      *recording
	parent  *record // nil for the one above the root
	address session.Address
	attempt int

	from, to int32     // its events are between these in the recording; to is the mark of its end if it has finished
	place    int32     // where it is in the order of its parent
	end      end       // how the log has its end
	started  bool      // false if the step was not run, and only its end is in the log
	notRun   bool      // its start says so
	works    bool      // it has not said its result by its last event, and does not rest: see atWork and [Place.Rest]
	cuts     int32     // how often it was cut off at work, and then resumed
	spent    *spending // nil if nothing in the run, nor below it, has used anything
	*content           // nil if nobody comes to it: the run has finished
}

// end is the end of a run as the log records it.
type end byte

const (
	endless  end = iota // it did not come to that
	finished            // there is the mark of its end
	canceled            // there is a mark that says so
	lost                // it was cut off, and does not count
)

// content is what a resumed run can reach in a record.
type content struct {
	order []word
	head  int   // the first that was not taken
	own   int   // likewise of the step's own words, or one before it
	run   int   // likewise of the runs
	more  *more // nil in most
}

// word is an event that a step has yielded, or the beginning of a run of a step below it.
type word struct {
	run   *record // nil: an event
	at    int32   // in the recording
	taken bool
	aside bool // said at another address than the step's own
	late  bool // said because the step was canceled
	spent bool // perhaps an answer of a model
}

// more has fields that few records need. It says where in the order they are.
type more struct {
	aside map[session.Address][]int // what the step said at other addresses
	runs  map[session.Address][]int // all runs; nil until somebody asks for one out of order
	again map[session.Address]int   // how many runs at an address do not count
}

// spending is the usage of a run.
type spending struct {
	ended  *budget.Usage // by the mark of its end; nil if that does not say
	wasted budget.Usage  // what nothing in the record accounts for
	booked bool          // all of it was booked
}

// closed reports whether what comes after is not of this run.
func (r *record) closed() bool { return r.end != endless }

func (r *record) within(outer *record) bool {
	for ; r != nil; r = r.parent {
		if r == outer {
			return true
		}
	}
	return false
}

// spends notes that something was used in the run.
func (r *record) spends() *spending {
	for a := r; a != nil && a.spent == nil; a = a.parent {
		a.spent = new(spending)
	}
	return r.spent
}

// recording is the log of a run, by steps. It has no events: a log may be long.
type recording struct {
	seqs   []int64                     // of the events, in order
	owners []*record                   // nil for an event that does not count, or was taken
	root   *record                     // whose one run is that of the root agent
	agent  string                      // the root agent's name; empty if it has not begun
	latest map[session.Address]*record // by address the last run, unless that has finished
	failed map[session.Address]bool    // where a step has failed, whether or not that counts
	tries  map[session.Address]int     // how many runs came to an end that does not count any more
	gone   []*record                   // runs that do not count any more
	used   func(*session.Event) budget.Usage
	whole  func(seq int64) *session.Event
	asked  map[session.Address]*request // the last request of each step, without its answer or the step's end

	fin     mark.StepFinished // the one that is read
	records []record          // those are not in use yet
	spare   []*content        // of runs that have finished

	mu sync.Mutex // guards the records while a replay takes what is in them
}

// tried counts a run that has come to an end which does not count any more.
func (x *recording) tried(at session.Address) {
	if x.tries == nil {
		x.tries = make(map[session.Address]int)
	}
	x.tries[at]++
}

// newRecording is empty. Of the events that are superseded, only how often steps were run and what
// they used is of interest; used says that of an answer.
func newRecording(used func(*session.Event) budget.Usage) *recording {
	x := &recording{latest: make(map[session.Address]*record), failed: make(map[session.Address]bool), used: used}
	x.root = x.newRecord(nil, "", 0)
	return x
}

// newRecord makes a record, whose content may be one that was used before.
func (x *recording) newRecord(parent *record, at session.Address, attempt int) *record {
	if len(x.records) == 0 {
		x.records = make([]record, 64)
	}
	r, c := &x.records[0], (*content)(nil)
	x.records = x.records[1:]
	if n := len(x.spare); n > 0 {
		c, x.spare = x.spare[n-1], x.spare[:n-1]
	} else {
		c = new(content)
	}
	here := int32(len(x.seqs))
	*r = record{of: x, parent: parent, address: at, attempt: attempt, from: here, to: here, content: c}
	return r
}

// around returns the run under way that contains an address.
func (x *recording) around(at session.Address) *record {
	for at = at.Parent(); at != ""; at = at.Parent() {
		if r := x.latest[at]; r != nil && !r.closed() {
			return r
		}
	}
	return x.root
}

// add adds the next event of a step.
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
		if gone && !fin.Canceled {
			x.tried(at)
		}
	}
	x.settle(ev, fin)
	switch {
	case kind == mark.KindRequested: // a resumed step does not send that one again
		if err := x.request(ev); err != nil {
			return err
		}
		r = nil
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
		x.finish(r, fin)
	case r == nil || r.closed():
		r = x.around(at)
		r.say(x, ev)
	default:
		r.say(x, ev)
	}
	x.seqs, x.owners = append(doubled(x.seqs), ev.Seq), append(doubled(x.owners), r)
	return nil
}

// doubled is a list with room for one more: for as many as it has, since append makes room for a
// quarter where it is long, and a long log would be copied often.
func doubled[T any](list []T) []T {
	if len(list) == cap(list) {
		return slices.Grow(list, max(len(list), 8))
	}
	return list
}

// begin opens a run.
func (x *recording) begin(ev *session.Event, gone bool) *record {
	parent := x.around(ev.Address)
	if x.agent == "" && ev.Address.Parent() == "" {
		x.agent = ev.Address.Agent()
	}
	r := x.newRecord(parent, ev.Address, ev.Attempt)
	if open := x.latest[ev.Address]; gone && open != nil && !open.closed() {
		return r // the run was ended before it came to that step again, which goes on
	}
	x.latest[ev.Address] = r
	if ev.Mark.Kind == mark.KindStepStarted {
		r.started, r.notRun = true, ev.CustomMetadata[mark.MetadataNotRun] == true
		r.say(x, ev)
	}
	if gone {
		r.end = lost
		x.gone = append(x.gone, r)
		parent.repeat(ev.Address)
		return r
	}
	r.place = int32(len(parent.order))
	parent.order = append(doubled(parent.order), word{at: r.from, run: r})
	return r
}

// resumed notes that all runs that have not ended were cut off.
func (x *recording) resumed() {
	x.unanswered()
	for _, r := range x.latest {
		if !r.closed() && r.started && r.works {
			r.cuts++
		}
	}
}

// finish ends a run with the next event.
func (x *recording) finish(r *record, fin *mark.StepFinished) {
	r.to = int32(len(x.seqs))
	if fin.Usage != nil {
		used := usageOf(fin.Usage)
		r.spends().ended = &used
	}
	if r.end = finished; fin.Canceled {
		r.end = canceled
		return
	}
	delete(x.latest, r.address)
	if r.spent == nil || r.spent.ended != nil { // nobody asks what is in it
		clear(r.order)
		*r.content = content{order: r.order[:0]}
		x.spare, r.content = append(x.spare, r.content), nil
	}
}

// repeat counts a run at an address that does not count.
func (r *record) repeat(at session.Address) {
	m := r.rare()
	if m.again == nil {
		m.again = make(map[session.Address]int)
	}
	m.again[at]++
}

func (c *content) rare() *more {
	if c.more == nil {
		c.more = new(more)
	}
	return c.more
}

// again returns how many runs at an address are superseded.
func (r *record) again(at session.Address) int {
	if r.content == nil || r.more == nil {
		return 0
	}
	return r.more.again[at]
}

// say adds the next event of the recording as a word.
func (r *record) say(x *recording, ev *session.Event) {
	w := word{at: int32(len(x.seqs)), aside: ev.Address != r.address, late: ofCancel(ev)}
	if !w.aside {
		r.works = atWork(ev)
	} else {
		all := &r.rare().aside
		if *all == nil {
			*all = make(map[session.Address][]int)
		}
		(*all)[ev.Address] = append((*all)[ev.Address], len(r.order))
	}
	if w.spent = Answers(ev); w.spent {
		r.spends()
	}
	r.order = append(r.order, w)
}

// atWork reports whether a step is at work on its result after an event of its own. While it rests, or asks a
// person, it is not.
func atWork(ev *session.Event) bool {
	return ev.Mark != nil && ev.Mark.Kind != mark.KindLimited && ev.Mark.Kind != mark.KindAsked
}

// take takes what is at a place in the order out of the record.
func (r *record) take(place int) {
	for r.order[place].taken = true; r.head < len(r.order) && r.order[r.head].taken; r.head++ {
	}
}

// next returns the next run at an address; nil if there is none.
func (r *record) next(at session.Address) *record {
	if r.content == nil {
		return nil
	}
	for r.run = max(r.run, r.head); r.run < len(r.order); r.run++ {
		if w := &r.order[r.run]; w.run != nil && !w.taken {
			break
		}
	}
	switch {
	case r.run == len(r.order):
		return nil
	case r.order[r.run].run.address == at:
		return r.order[r.run].run
	}
	m := r.rare()
	if m.runs == nil {
		m.runs = make(map[session.Address][]int)
		for i := r.run; i < len(r.order); i++ {
			if run := r.order[i].run; run != nil {
				m.runs[run.address] = append(m.runs[run.address], i)
			}
		}
	}
	if i := r.first(m.runs, at); i >= 0 {
		return r.order[i].run
	}
	return nil
}

// first returns the first place of an address that was not taken; -1 if all were taken.
func (c *content) first(of map[session.Address][]int, at session.Address) int {
	for places := of[at]; len(places) > 0; places = places[1:] {
		if of[at] = places; !c.order[places[0]].taken {
			return places[0]
		}
	}
	delete(of, at)
	return -1
}

// word is the place in the order of what the step said next at an address; -1 if it said no more.
func (r *record) word(at session.Address) int {
	switch {
	case r.content == nil:
		return -1
	case at != r.address && (r.more == nil || r.more.aside == nil):
		return -1
	case at != r.address:
		return r.there(r.first(r.more.aside, at))
	}
	for r.own = max(r.own, r.head); r.own < len(r.order); r.own++ {
		if w := &r.order[r.own]; w.run == nil && !w.aside && !w.taken {
			return r.there(r.own)
		}
	}
	return -1
}

// there is a place in the order; -1 if its event was handed up without the step.
func (r *record) there(place int) int {
	if place < 0 || r.of.owners[r.order[place].at] == nil {
		return -1
	}
	return place
}

// unread is the place in the recording of the first event that is still in the record; -1 if there is none.
func (r *record) unread() int32 {
	if r.content == nil || r.head == len(r.order) || r.there(r.head) < 0 {
		return -1
	}
	return r.order[r.head].at
}
