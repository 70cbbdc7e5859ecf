// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Replay answers the steps of a resumed run from its log, while the same tree runs again. A
// step that has finished does not run: the replay yields its events, and its result. A step
// that runs other steps, or whose agent continues (see [Traits]), runs again and must do the same as
// before. Any other step starts again.
//
// It is for runners, and safe for concurrent use.
type Replay struct {
	log               *replayLog
	scopes            callScopes
	tree              *Tree
	alreadySuperseded mark.Spans // events of the session that were superseded before this resumption
	superseded        mark.Spans
	err               atomic.Pointer[error]
	answers           map[string]*mark.Answer // by the question's ID
	answered          []*mark.Answer          // the same, in the order of the log
	continuedLoops    []session.Address       // stopped loops that continue now

	mu       *sync.Mutex      // the log's
	next     int32            // where the next event is likely to be
	pending  int              // how many events of the log were not consumed
	inFlight []*session.Event // events that a step has got and Consume has not taken; they are few
}

// NewReplay returns a replay of a run: give it all events of the run by Add, and then call Begin.
// superseded are the events of the session that no longer count; their usage is counted at these
// prices.
func NewReplay(superseded mark.Spans, tree *Tree, prices budget.Prices) *Replay {
	r := &Replay{tree: tree, alreadySuperseded: superseded}
	r.log = newReplayLog(usageReader(tree, func(ev *session.Event) *session.Event { return r.log.readEvent(ev.Seq) }, prices))
	r.mu = &r.log.mu
	return r
}

// Add reads the next event of the run, in the order of the log. The event may come from an outline, without long
// texts, and Add does not keep it. whole reads events in full, by their sequence numbers. Add returns an error for an
// event that it cannot read.
func (r *Replay) Add(ev *session.Event, whole func(seq int64) *session.Event) error {
	r.log.readEvent = whole
	if ev.Address != "" {
		return r.log.add(ev, r.alreadySuperseded.Has(ev.Seq))
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRunResumed {
		r.log.markInterrupted()
	}
	if err := r.addAnswer(ev); err != nil {
		return err
	}
	return r.scopes.observe(ev)
}

// Begin ends the reading. From now on whole reads an event when the run comes to it. Begin returns
// an [*agent.DivergedError] if the tree does not fit the events.
func (r *Replay) Begin(whole func(seq int64) *session.Event) error {
	x := r.log
	x.readEvent, x.free = whole, nil
	if err := x.checkTree(r.tree); err != nil {
		return err
	}
	x.chargeUnanswered()
	x.addEarlierInterruptions(r.tree)
	r.superseded = x.supersedeInterrupted(r.tree)
	for _, e := range x.events.all() {
		if e.owner != nil {
			r.pending++
		}
	}
	r.scopes.readBegins(x)
	return nil
}

// Recall gives each [Recaller] of the tree its own events of the run.
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
	for _, e := range r.log.events.all() {
		if e.owner == nil {
			continue
		}
		if ev := r.log.readEvent(e.seq); all[ev.Author] != nil {
			all[ev.Author].Recall(ev)
		}
	}
}

// Superseded returns the sequence numbers of the events to supersede when the run continues:
// those of steps that start again.
func (r *Replay) Superseded() mark.Spans { return r.superseded }

// Root returns the name of the agent that the run began with, or "".
func (r *Replay) Root() string { return r.log.agent }

// Consume reports whether an event that the run yields is in its log already. It reports that once
// for each event.
func (r *Replay) Consume(ev *session.Event) bool {
	if r == nil || ev.Seq == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.inFlightIndex(ev)
	if i < 0 {
		return false
	}
	r.log.events.at(i).owner = nil
	r.inFlight = slices.DeleteFunc(r.inFlight, func(h *session.Event) bool { return h == ev })
	r.next = i + 1
	if r.pending--; r.pending == 0 {
		r.log.readEvent, r.log.events.pages = nil, nil // they can hold much memory
	}
	return true
}

// inFlightIndex returns the index in the log of an event that a step has got and Consume has not taken; -1 for any
// other event. The caller holds r.mu.
func (r *Replay) inFlightIndex(ev *session.Event) int32 {
	if !slices.Contains(r.inFlight, ev) {
		return -1
	}
	all := &r.log.events
	i := r.next
	if int(i) >= all.n || all.at(i).seq != ev.Seq {
		i = int32(sort.Search(all.n, func(i int) bool { return all.at(int32(i)).seq >= ev.Seq }))
	}
	if all.at(i).owner == nil {
		return -1
	}
	return i
}

// event returns the event at an index in the log with all its texts, and adds it to inFlight. It returns nil for -1.
// The caller holds r.mu.
func (r *Replay) event(i int32) *session.Event {
	if i < 0 {
		return nil
	}
	seq := r.log.events.at(i).seq
	for _, ev := range r.inFlight {
		if ev.Seq == seq {
			return ev
		}
	}
	ev := r.log.readEvent(seq)
	r.inFlight = append(r.inFlight, ev)
	return ev
}

// deliver returns the event at an index in the log, if it belongs to a run or to a run inside it. It returns nil for
// any other event, and for one that was consumed.
func (r *Replay) deliver(of *stepRun, i int32) *session.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.log.events.at(i).owner.isWithin(of) {
		return nil
	}
	return r.event(i)
}

// isPending reports whether a step has got an event from the log and Consume has not taken it.
func (r *Replay) isPending(ev *session.Event) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inFlightIndex(ev) >= 0
}

// Done reports whether the run has reached the end of its log.
func (r *Replay) Done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending == 0
}

// Err returns an [*agent.DivergedError] if the run has diverged from its log, or nil. Store
// nothing of such a run.
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

// beginRun consumes the next run of a step inside another run, and returns it, or nil. superseded is how many runs at that
// address are superseded. skipped is the first event of the outer run that comes before the next run and was not
// consumed, or nil.
func (r *Replay) beginRun(of *stepRun, at session.Address) (next *stepRun, superseded int, skipped *session.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := of.firstUnreplayed()
	if next = of.nextRunAt(at); next != nil {
		if first == next.from {
			first = -1
		}
		of.consume(int(next.listIndex))
	}
	return next, of.supersededCount(at), r.event(first)
}

// hasEnded reports whether the log has the end of the next run of a step.
func (r *Replay) hasEnded(of *stepRun, at session.Address) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := of.nextRunAt(at)
	return next != nil && next.end == finished
}

// firstUnreplayed returns the first logged event of a run that the resumed run has not reached, or nil.
func (r *Replay) firstUnreplayed(of *stepRun) *session.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.event(of.firstUnreplayed())
}

// hasUnreplayed reports whether a run has a logged event that the resumed run has not reached.
func (r *Replay) hasUnreplayed(of *stepRun) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return of.firstUnreplayed() >= 0
}

// match returns the logged event that matches ev, or ev if it is new. If inOrder is true the step may skip no logged
// event. The error is an [*agent.DivergedError].
func (r *Replay) match(of *stepRun, ev *session.Event, inOrder bool) (*session.Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	place, at := of.nextEventAt(ev.Address), int32(-1)
	if place >= 0 {
		at = of.list[place].event
	}
	if next := of.firstUnreplayed(); inOrder && next != at {
		first := r.event(next)
		return nil, &agent.DivergedError{Address: first.Address, Want: describe(first), Got: describe(ev)}
	}
	if place < 0 {
		return ev, nil
	}
	known := r.event(at)
	if known != ev && !(isPlan(known) && isPlan(ev)) { // plans may differ; the decisions of the loop must not
		if err := compareReplayed(known, ev); err != nil {
			return nil, err
		}
	}
	of.consume(place)
	return known, nil
}

// Recorded returns the next event that the step yielded at its own address before its run was
// cut off. It returns nil if there is none, or in a new run. An agent that continues yields that event
// instead of making a new one.
func (p Place) Recorded() *session.Event {
	inv := p.inv
	if inv == nil || inv.logged == nil {
		return nil
	}
	r := inv.run.Replay
	r.mu.Lock()
	defer r.mu.Unlock()
	if place := inv.logged.nextEventAt(inv.address); place >= 0 {
		return r.event(inv.logged.list[place].event)
	}
	return nil
}

// Resumed reports whether the step continues its work of an earlier part of the run. If not, IsReplay and Continued
// stay false until it ends.
func (p Place) Resumed() bool { return p.inv != nil && p.inv.logged != nil }

// IsRepeat reports whether an earlier part of the run has begun the step. If its process was killed, programs that
// the step has started may still run.
func (p Place) IsRepeat() bool {
	return p.Began() || p.inv != nil && p.inv.attempt > p.inv.countedAttempt
}

// IsReplay reports whether the log has events of the step that the resumed run has not reached
// yet.
func (p Place) IsReplay() bool { return p.Resumed() && p.inv.run.Replay.hasUnreplayed(p.inv.logged) }

// LogRemains reports whether the run was resumed and has not reached the end of its log yet.
func (p Place) LogRemains() bool {
	return p.inv != nil && p.inv.run.Replay != nil && !p.inv.run.Replay.Done()
}

// Match returns ev or, in a resumed run, the recorded event instead of ev, if there is one. It is for an agent that
// yields an event at the address of a step below it, in place of the step. If ev differs from the recorded event, the
// run ends with an [*agent.DivergedError].
func (p Place) Match(ev *session.Event) *session.Event {
	inv := p.inv
	if inv == nil || inv.logged == nil {
		return ev
	}
	known, err := inv.run.Replay.match(inv.logged, ev, inv.agent != nil && isSequential(inv.agent))
	if err != nil {
		if inv.Err() == nil {
			_ = inv.run.Replay.diverge(err)
		}
		return ev
	}
	return known
}
