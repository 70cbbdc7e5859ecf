// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// stepRun is one run of a step as the log records it. A resumed run consumes the events of the step, and the runs of
// the steps below it, as it reaches them.
type stepRun struct {
	log     *replayLog
	parent  *stepRun // nil for the one above the root
	address session.Address
	attempt int

	from, to      int32     // indexes in the log: of its first event, and of the mark of its end; equal while it has no such mark
	listIndex     int32     // its index in the parent's list
	end           runEnd    // how the run ended
	started       bool      // false if the step was not run, and only its end is in the log
	skipped       bool      // the mark of its start says that the step was not run
	interruptible bool      // after its last event it works on its result, and does not rest: see isInterruptible and [Place.WaitIdle]
	interruptions int32     // how often it was cut off at work, and then resumed
	usage         *runUsage // nil if nothing in the run, nor below it, has used anything
	*entries                // nil for a finished run whose entries are not needed
}

// runEnd is the end of a run as the log records it.
type runEnd byte

const (
	running    runEnd = iota // the log has no end of the run
	finished                 // the log has the mark of its end
	canceled                 // the mark of its end says that it was canceled
	superseded               // it was cut off, and its events do not count
)

// entries has the events and the inner runs of a run that a resumed run can reach.
type entries struct {
	list      []entry
	firstLeft int         // index of the first entry that was not consumed
	nextEvent int         // the first event of the step that was not consumed is here or later
	nextRun   int         // the first inner run that was not consumed is here or later
	index     *entryIndex // nil in most runs
}

// entry is an event that a step has yielded, or the beginning of a run of a step below it.
type entry struct {
	run          *stepRun // nil for an event
	event        int32    // index in the log; for a run the index of its first event
	consumed     bool
	otherAddress bool // the event has another address than the step
	onCancel     bool // the step yielded the event because it was canceled
	hasUsage     bool // the event can be an answer of a model
}

// entryIndex has fields that few runs need. The ints in the first two maps are indexes in the list of entries.
type entryIndex struct {
	otherAddresses map[session.Address][]int // events of the step at other addresses
	runsByAddress  map[session.Address][]int // all inner runs; nil until one is looked up out of order
	superseded     map[session.Address]int   // how many runs at an address are superseded
}

// runUsage is the usage of a run.
type runUsage struct {
	reported    *budget.Usage // by the mark of its end; nil if the mark has no usage
	unaccounted budget.Usage  // usage that is in no entry of the run
	charged     bool          // all of it was booked
}

// isClosed reports whether the run has ended, so that later events are not part of it.
func (r *stepRun) isClosed() bool { return r.end != running }

// isWithin reports whether r is outer, or a run inside it.
func (r *stepRun) isWithin(outer *stepRun) bool {
	for ; r != nil; r = r.parent {
		if r == outer {
			return true
		}
	}
	return false
}

// markUsage records that the run and the runs around it have usage, and returns the usage of the run.
func (r *stepRun) markUsage() *runUsage {
	for a := r; a != nil && a.usage == nil; a = a.parent {
		a.usage = new(runUsage)
	}
	return r.usage
}

// replayLog is an index of the log of a run, by steps. It does not keep the events, because a log may be long.
type replayLog struct {
	events         eventPages                   // in the order of the log
	root           *stepRun                     // above the runs of the root agent
	agent          string                       // the root agent's name; empty if it has not begun
	lastRun        map[session.Address]*stepRun // by address the last run, unless it has finished
	failedAt       map[session.Address]bool     // addresses at which a step has failed, even if the failure is superseded
	supersededRuns map[session.Address]int      // by address how many runs have an end that is superseded
	superseded     []*stepRun                   // runs that are superseded
	usageOf        func(*session.Event) budget.Usage
	readEvent      func(seq int64) *session.Event
	requests       map[session.Address]*requestUsage // the last request of each step, without its answer or the step's end

	endMark mark.StepFinished // data of the end mark that is read now
	runs    []stepRun         // allocated for later calls of newRun
	free    []*entries        // of finished runs, for reuse

	mu sync.Mutex // guards the runs while a replay consumes their entries
}

// addSupersededRun counts a run whose end is superseded.
func (x *replayLog) addSupersededRun(at session.Address) {
	if x.supersededRuns == nil {
		x.supersededRuns = make(map[session.Address]int)
	}
	x.supersededRuns[at]++
}

// newReplayLog returns an empty log. Of superseded events it counts only the runs and the usage. used returns the
// usage of an answer.
func newReplayLog(used func(*session.Event) budget.Usage) *replayLog {
	x := &replayLog{lastRun: make(map[session.Address]*stepRun), failedAt: make(map[session.Address]bool), usageOf: used}
	x.root = x.newRun(nil, "", 0)
	return x
}

// newRun returns a new run, whose entries may be those of a finished run.
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
	next := int32(x.events.n)
	*r = stepRun{log: x, parent: parent, address: at, attempt: attempt, from: next, to: next, entries: c}
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

// add adds the next event of a step. gone reports that the event is superseded.
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
	case kind == mark.KindRequested: // a resumed step does not yield this mark again
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

// withRoom returns a list with room for one more element. It doubles the capacity, because append adds only a quarter
// to a long list, and would copy it often.
func withRoom[T any](list []T) []T {
	if len(list) == cap(list) {
		return slices.Grow(list, max(len(list), 8))
	}
	return list
}

// beginRun adds a run that begins with an event. gone reports that the event is superseded.
func (x *replayLog) beginRun(ev *session.Event, gone bool) *stepRun {
	parent := x.enclosingRun(ev.Address)
	if x.agent == "" && ev.Address.Parent() == "" {
		x.agent = ev.Address.Agent()
	}
	r := x.newRun(parent, ev.Address, ev.Attempt)
	if open := x.lastRun[ev.Address]; gone && open != nil && !open.isClosed() {
		return r // the earlier run of the step is still open, and continues
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

// markInterrupted counts an interruption of each run that was at work when its process ended.
func (x *replayLog) markInterrupted() {
	x.chargeUnanswered()
	for _, r := range x.lastRun {
		if !r.isClosed() && r.started && r.interruptible {
			r.interruptions++
		}
	}
}

// finishRun ends a run. The next event that is added is the mark of its end.
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
	if r.usage == nil || r.usage.reported != nil { // its entries are not needed any more
		clear(r.list)
		*r.entries = entries{list: r.list[:0]}
		x.free, r.entries = append(x.free, r.entries), nil
	}
}

// countSuperseded counts a superseded run at an address.
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

// appendEvent adds the next event of the log to the run.
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

// isInterruptible reports whether a step works on its result after an event of its own. It does not work after its
// answer, while it rests, or while it asks a person.
func isInterruptible(ev *session.Event) bool {
	return ev.Mark != nil && ev.Mark.Kind != mark.KindLimited && ev.Mark.Kind != mark.KindAsked
}

// consume marks the entry at an index as taken.
func (r *stepRun) consume(place int) {
	r.list[place].run = nil // so that the memory of the run can be freed
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

// firstUnconsumed returns the first index in the list at an address that was not consumed; -1 if all were consumed.
func (c *entries) firstUnconsumed(of map[session.Address][]int, at session.Address) int {
	for places := of[at]; len(places) > 0; places = places[1:] {
		if of[at] = places; !c.list[places[0]].consumed {
			return places[0]
		}
	}
	delete(of, at)
	return -1
}

// nextEventAt returns the index of the next event of the step at an address; -1 if there is none.
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

// entryOf returns an index of an entry; -1 if the event of the entry was delivered already.
func (r *stepRun) entryOf(place int) int {
	if place < 0 || r.log.events.at(r.list[place].event).owner == nil {
		return -1
	}
	return place
}

// firstUnreplayed returns the index in the log of the first event of the run that was not consumed; -1 if there is
// none.
func (r *stepRun) firstUnreplayed() int32 {
	if r.entries == nil || r.firstLeft == len(r.list) || r.entryOf(r.firstLeft) < 0 {
		return -1
	}
	return r.list[r.firstLeft].event
}
