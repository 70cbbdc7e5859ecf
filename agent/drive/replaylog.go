// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// stepRun is one run of a step as the log has it. A resumed run takes the step's own events, and
// the runs of steps under it, out of the record as it reaches them.
type stepRun struct {
	log     *replayLog
	parent  *stepRun // nil for the one above the root
	address session.Address
	attempt int

	from, to      int32     // its events are between these in the recording; to is the mark of its end if it has finished
	listIndex     int32     // where it is in the order of its parent
	end           runEnd    // how the log has its end
	started       bool      // false if the step was not run, and only its end is in the log
	skipped       bool      // its start says so
	interruptible bool      // it has not said its result by its last event, and does not rest: see isInterruptible and [Place.WaitIdle]
	interruptions int32     // how often it was cut off at work, and then resumed
	usage         *runUsage // nil if nothing in the run, nor below it, has used anything
	*entries                // nil if nobody comes to it: the run has finished
}

// runEnd is the end of a run as the log records it.
type runEnd byte

const (
	running    runEnd = iota // it did not come to that
	finished                 // there is the mark of its end
	canceled                 // there is a mark that says so
	superseded               // it was cut off, and does not count
)

// entries is what a resumed run can reach in a record.
type entries struct {
	list      []entry
	firstLeft int         // the first that was not taken
	nextEvent int         // likewise of the step's own words, or one before it
	nextRun   int         // likewise of the runs
	index     *entryIndex // nil in most
}

// entry is an event that a step has yielded, or the beginning of a run of a step below it.
type entry struct {
	run          *stepRun // nil: an event
	event        int32    // in the recording
	consumed     bool
	otherAddress bool // said at another address than the step's own
	onCancel     bool // said because the step was canceled
	hasUsage     bool // perhaps an answer of a model
}

// entryIndex has fields that few records need. It says where in the order they are.
type entryIndex struct {
	otherAddresses map[session.Address][]int // what the step said at other addresses
	runsByAddress  map[session.Address][]int // all runs; nil until somebody asks for one out of order
	superseded     map[session.Address]int   // how many runs at an address do not count
}

// runUsage is the usage of a run.
type runUsage struct {
	reported    *budget.Usage // by the mark of its end; nil if that does not say
	unaccounted budget.Usage  // what nothing in the record accounts for
	charged     bool          // all of it was booked
}

// isClosed reports whether what comes after is not of this run.
func (r *stepRun) isClosed() bool { return r.end != running }

func (r *stepRun) isWithin(outer *stepRun) bool {
	for ; r != nil; r = r.parent {
		if r == outer {
			return true
		}
	}
	return false
}

// markUsage notes that something was used in the run.
func (r *stepRun) markUsage() *runUsage {
	for a := r; a != nil && a.usage == nil; a = a.parent {
		a.usage = new(runUsage)
	}
	return r.usage
}

// replayLog is the log of a run, by steps. It has no events: a log may be long.
type replayLog struct {
	events         eventPages                   // in the order of the log
	root           *stepRun                     // whose one run is that of the root agent
	agent          string                       // the root agent's name; empty if it has not begun
	lastRun        map[session.Address]*stepRun // by address the last run, unless that has finished
	failedAt       map[session.Address]bool     // where a step has failed, whether or not that counts
	supersededRuns map[session.Address]int      // how many runs came to an end that does not count any more
	superseded     []*stepRun                   // runs that do not count any more
	usageOf        func(*session.Event) budget.Usage
	readEvent      func(seq int64) *session.Event
	requests       map[session.Address]*requestUsage // the last request of each step, without its answer or the step's end

	endMark mark.StepFinished // the one that is read
	runs    []stepRun         // those are not in use yet
	free    []*entries        // of runs that have finished

	mu sync.Mutex // guards the records while a replay takes what is in them
}

// addSupersededRun counts a run that has come to an end which does not count any more.
func (x *replayLog) addSupersededRun(at session.Address) {
	if x.supersededRuns == nil {
		x.supersededRuns = make(map[session.Address]int)
	}
	x.supersededRuns[at]++
}

// newReplayLog is empty. Of the events that are superseded, only how often steps were run and what
// they used is of interest; used says that of an answer.
func newReplayLog(used func(*session.Event) budget.Usage) *replayLog {
	x := &replayLog{lastRun: make(map[session.Address]*stepRun), failedAt: make(map[session.Address]bool), usageOf: used}
	x.root = x.newRun(nil, "", 0)
	return x
}

// newRun makes a record, whose content may be one that was used before.
func (x *replayLog) newRun(parent *stepRun, at session.Address, attempt int) *stepRun {
	if len(x.runs) == 0 {
		x.runs = make([]stepRun, 64)
	}
	r, c := &x.runs[0], (*entries)(nil)
	x.runs = x.runs[1:]
	if n := len(x.free); n > 0 {
		c, x.free = x.free[n-1], x.free[:n-1]
	} else {
		c = new(entries)
	}
	here := int32(x.events.n)
	*r = stepRun{log: x, parent: parent, address: at, attempt: attempt, from: here, to: here, entries: c}
	return r
}

// enclosingRun returns the run under way that contains an address.
func (x *replayLog) enclosingRun(at session.Address) *stepRun {
	for at = at.Parent(); at != ""; at = at.Parent() {
		if r := x.lastRun[at]; r != nil && !r.isClosed() {
			return r
		}
	}
	return x.root
}

// add adds the next event of a step.
func (x *replayLog) add(ev *session.Event, gone bool) error {
	at := ev.Address
	r := x.lastRun[at]
	kind := mark.Kind("")
	if ev.Mark != nil {
		kind = ev.Mark.Kind
	}
	fin := &x.endMark
	*fin = mark.StepFinished{}
	if kind == mark.KindStepFinished {
		if err := ev.Mark.Decode(fin); err != nil {
			return err
		}
		if fin.Error != "" && !fin.Canceled {
			x.failedAt[at] = true
		}
		if gone && !fin.Canceled {
			x.addSupersededRun(at)
		}
	}
	x.settleRequests(ev, fin)
	switch {
	case kind == mark.KindRequested: // a resumed step does not send that one again
		if err := x.addRequest(ev); err != nil {
			return err
		}
		r = nil
	case kind == mark.KindStepStarted:
		if r = x.beginRun(ev, gone); gone {
			r = nil
		}
	case gone:
		x.addSuperseded(ev, fin)
		r = nil
	case kind == mark.KindStepFinished:
		if r == nil || r.isClosed() { // it was not run
			r = x.beginRun(ev, false)
		}
		x.finishRun(r, fin)
	case r == nil || r.isClosed():
		r = x.enclosingRun(at)
		r.appendEvent(x, ev)
	default:
		r.appendEvent(x, ev)
	}
	x.events.add(loggedEvent{ev.Seq, r})
	return nil
}

// withRoom is a list with room for one more: for as many as it has, since append makes room for a
// quarter where it is long, and a long log would be copied often.
func withRoom[T any](list []T) []T {
	if len(list) == cap(list) {
		return slices.Grow(list, max(len(list), 8))
	}
	return list
}

// beginRun opens a run.
func (x *replayLog) beginRun(ev *session.Event, gone bool) *stepRun {
	parent := x.enclosingRun(ev.Address)
	if x.agent == "" && ev.Address.Parent() == "" {
		x.agent = ev.Address.Agent()
	}
	r := x.newRun(parent, ev.Address, ev.Attempt)
	if open := x.lastRun[ev.Address]; gone && open != nil && !open.isClosed() {
		return r // the run was ended before it came to that step again, which goes on
	}
	x.lastRun[ev.Address] = r
	if ev.Mark.Kind == mark.KindStepStarted {
		r.started, r.skipped = true, ev.CustomMetadata[mark.MetadataNotRun] == true
		r.appendEvent(x, ev)
	}
	if gone {
		r.end = superseded
		x.superseded = append(x.superseded, r)
		parent.countSuperseded(ev.Address)
		return r
	}
	r.listIndex = int32(len(parent.list))
	parent.list = append(withRoom(parent.list), entry{event: r.from, run: r})
	return r
}

// markInterrupted notes that all runs that have not ended were cut off.
func (x *replayLog) markInterrupted() {
	x.chargeUnanswered()
	for _, r := range x.lastRun {
		if !r.isClosed() && r.started && r.interruptible {
			r.interruptions++
		}
	}
}

// finishRun ends a run with the next event.
func (x *replayLog) finishRun(r *stepRun, fin *mark.StepFinished) {
	r.to = int32(x.events.n)
	if fin.Usage != nil {
		used := decodeUsage(fin.Usage)
		r.markUsage().reported = &used
	}
	if r.end = finished; fin.Canceled {
		r.end = canceled
		return
	}
	delete(x.lastRun, r.address)
	if r.usage == nil || r.usage.reported != nil { // nobody asks what is in it
		clear(r.list)
		*r.entries = entries{list: r.list[:0]}
		x.free, r.entries = append(x.free, r.entries), nil
	}
}

// countSuperseded counts a run at an address that does not count.
func (r *stepRun) countSuperseded(at session.Address) {
	m := r.ensureIndex()
	if m.superseded == nil {
		m.superseded = make(map[session.Address]int)
	}
	m.superseded[at]++
}

func (c *entries) ensureIndex() *entryIndex {
	if c.index == nil {
		c.index = new(entryIndex)
	}
	return c.index
}

// supersededCount returns how many runs at an address are superseded.
func (r *stepRun) supersededCount(at session.Address) int {
	if r.entries == nil || r.index == nil {
		return 0
	}
	return r.index.superseded[at]
}

// appendEvent adds the next event of the recording as a word.
func (r *stepRun) appendEvent(x *replayLog, ev *session.Event) {
	w := entry{event: int32(x.events.n), otherAddress: ev.Address != r.address, onCancel: isCancellationEvent(ev)}
	if !w.otherAddress {
		r.interruptible = isInterruptible(ev)
	} else {
		all := &r.ensureIndex().otherAddresses
		if *all == nil {
			*all = make(map[session.Address][]int)
		}
		(*all)[ev.Address] = append((*all)[ev.Address], len(r.list))
	}
	if w.hasUsage = Answers(ev); w.hasUsage {
		r.markUsage()
	}
	r.list = append(r.list, w)
}

// isInterruptible reports whether a step is at work on its result after an event of its own. While it rests, or asks a
// person, it is not.
func isInterruptible(ev *session.Event) bool {
	return ev.Mark != nil && ev.Mark.Kind != mark.KindLimited && ev.Mark.Kind != mark.KindAsked
}

// consume takes what is at a place in the order out of the record.
func (r *stepRun) consume(place int) {
	r.list[place].run = nil // a long log has many, which are garbage when their events were taken too
	for r.list[place].consumed = true; r.firstLeft < len(r.list) && r.list[r.firstLeft].consumed; r.firstLeft++ {
	}
}

// nextRunAt returns the next run at an address; nil if there is none.
func (r *stepRun) nextRunAt(at session.Address) *stepRun {
	if r.entries == nil {
		return nil
	}
	for r.nextRun = max(r.nextRun, r.firstLeft); r.nextRun < len(r.list); r.nextRun++ {
		if w := &r.list[r.nextRun]; w.run != nil && !w.consumed {
			break
		}
	}
	switch {
	case r.nextRun == len(r.list):
		return nil
	case r.list[r.nextRun].run.address == at:
		return r.list[r.nextRun].run
	}
	m := r.ensureIndex()
	if m.runsByAddress == nil {
		m.runsByAddress = make(map[session.Address][]int)
		for i := r.nextRun; i < len(r.list); i++ {
			if run := r.list[i].run; run != nil {
				m.runsByAddress[run.address] = append(m.runsByAddress[run.address], i)
			}
		}
	}
	if i := r.firstUnconsumed(m.runsByAddress, at); i >= 0 {
		return r.list[i].run
	}
	return nil
}

// firstUnconsumed returns the first place of an address that was not taken; -1 if all were taken.
func (c *entries) firstUnconsumed(of map[session.Address][]int, at session.Address) int {
	for places := of[at]; len(places) > 0; places = places[1:] {
		if of[at] = places; !c.list[places[0]].consumed {
			return places[0]
		}
	}
	delete(of, at)
	return -1
}

// nextEventAt is the place in the order of what the step said next at an address; -1 if it said no more.
func (r *stepRun) nextEventAt(at session.Address) int {
	switch {
	case r.entries == nil:
		return -1
	case at != r.address && (r.index == nil || r.index.otherAddresses == nil):
		return -1
	case at != r.address:
		return r.entryOf(r.firstUnconsumed(r.index.otherAddresses, at))
	}
	for r.nextEvent = max(r.nextEvent, r.firstLeft); r.nextEvent < len(r.list); r.nextEvent++ {
		if w := &r.list[r.nextEvent]; w.run == nil && !w.otherAddress && !w.consumed {
			return r.entryOf(r.nextEvent)
		}
	}
	return -1
}

// entryOf is a place in the order; -1 if its event was handed up without the step.
func (r *stepRun) entryOf(place int) int {
	if place < 0 || r.log.events.at(r.list[place].event).owner == nil {
		return -1
	}
	return place
}

// firstUnreplayed is the place in the recording of the first event that is still in the record; -1 if there is none.
func (r *stepRun) firstUnreplayed() int32 {
	if r.entries == nil || r.firstLeft == len(r.list) || r.entryOf(r.firstLeft) < 0 {
		return -1
	}
	return r.list[r.firstLeft].event
}
