// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Live builds the [Tree] of a run from its events, for a terminal or a page that shows the run
// while it continues. The same log always gives the same tree; times are those of the events. The
// zero value is ready to use. The run has to be durable. Live is not safe for concurrent use.
//
// For a run that was resumed, add its log first and then the new events.
type Live struct {
	// Whole reads an event of an outline in full; nil means that events are complete. Without it, a [Loop.Ledger]
	// cannot evaluate conditions on long texts of outlines.
	Whole Whole
	// Most bounds the steps in the tree; 0 means that the tree has all steps. Of a loop with too many it then has the first
	// iterations, the last ones and the best one: see [Loop.Left]. Only [Live.AddOnce] obeys it.
	Most int
	// Keep is an address, such as refine[3]: iterations at it and around it stay in the tree.
	Keep session.Address
	// Drop is called with each iteration that leaves the tree. The iteration has ended. Nil means that nobody needs it.
	Drop func(loop *Step, it *Iteration)

	tree       Tree
	invocation string
	clock      clock

	log   []*session.Event // an outline, whole at its end
	times []time.Duration  // of the events in log, on the run's clock
	heavy recent           // the events in log with long texts
	texts recent           // of the steps

	steps   map[session.Address]*Step
	unbegun map[session.Address]int // attempts in the log whose step did not run
	asked   map[string]*Step        // by question
	view    *session.View           // the state, for scores that are provisional
}

// TreeOf returns the tree of the events of a run.
func TreeOf(events []*session.Event) *Tree {
	var l Live
	for _, ev := range events {
		l.Add(ev)
	}
	return &l.tree
}

// Tree returns the tree of the events added so far. It belongs to l and changes with the next
// event.
func (l *Live) Tree() *Tree { return &l.tree }

// Add takes the next event. The first event decides which invocation l follows; Add ignores events of others. It also
// accepts pieces of a streamed answer.
func (l *Live) Add(ev *session.Event) {
	if !l.follows(ev) {
		return
	}
	now := l.now(ev)
	l.begins(ev)
	if ev.Partial {
		l.hear(ev)
		l.tree.Now = now
		return
	}
	l.keep(ev, now)
	if ev.Mark.Supersedes() == nil {
		l.fold(ev, now)
		return
	}
	// Some folded events no longer count, so the fold starts again without them.
	at, forked := l.tree.At, l.tree.Forked
	l.tree, l.steps, l.asked, l.view, l.texts = Tree{At: at, Forked: forked}, nil, nil, nil, recent{}
	counts := make(map[*session.Event]bool, len(l.log))
	for _, e := range session.Current(l.log) {
		counts[e] = true
	}
	for i, e := range l.log {
		if counts[e] {
			l.fold(e, l.times[i])
		}
	}
	l.tree.Now = now
}

// AddOnce takes the next event for a caller that knows whether the event counts. Of an event that a later one
// supersedes it takes only the time. l then keeps no events. When an event supersedes others, start again with a new
// Live.
func (l *Live) AddOnce(ev *session.Event, counts bool) {
	if !l.follows(ev) {
		return
	}
	now := l.now(ev)
	l.begins(ev)
	if counts {
		if l.fold(ev, now); ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished {
			l.trim(l.steps[ev.Address])
		}
	} else {
		l.tree.Now = now
	}
}

// begins counts the attempts that did not begin, also those that a later event supersedes: the number
// of the next attempt in the log counts them too.
func (l *Live) begins(ev *session.Event) {
	if ev.CustomMetadata[mark.MetadataNotRun] != true {
		return
	}
	if l.unbegun == nil {
		l.unbegun = make(map[session.Address]int)
	}
	l.unbegun[ev.Address]++
}

func (l *Live) follows(ev *session.Event) bool {
	l.invocation = cmp.Or(l.invocation, ev.InvocationID)
	return ev.InvocationID == l.invocation
}

// now takes the time of an event, and returns it on the run's own clock.
func (l *Live) now(ev *session.Event) time.Duration {
	now := l.clock.tick(ev)
	l.tree.At, l.tree.Forked = l.clock.last, l.clock.forked
	return now
}

func (l *Live) fold(ev *session.Event, now time.Duration) {
	l.tree.Now = now
	if l.view == nil {
		l.view = session.NewView(session.ViewConfig{State: make(map[string]any), StateOnly: true})
	}
	l.view.Apply(byWriter(ev))
	if ev.Mark != nil {
		l.run(ev.Mark)
	}
	if ev.Address == "" {
		return // the user's, or about the whole run
	}
	l.hear(ev)
	l.task(ev, now)
	if ev.Mark != nil {
		l.mark(ev, now)
	}
	l.provisional(ev)
}

// run takes a fact about the run as a whole.
func (l *Live) run(m *mark.Mark) {
	switch m.Kind {
	case mark.KindRunPaused:
		l.suspend()
	case mark.KindRunResumed:
		l.tree.Paused = false
	case mark.KindRunEnded:
		var ended mark.RunEnded
		if m.Decode(&ended) == nil {
			l.end(ended)
		}
	case mark.KindAnswered:
		var a mark.Answer
		if m.Decode(&a) == nil {
			l.answered(a)
		}
	}
}

// mark takes a fact about a step or a loop.
func (l *Live) mark(ev *session.Event, now time.Duration) {
	s := l.step(ev.Address, now)
	switch ev.Mark.Kind {
	case mark.KindStepStarted:
		l.start(s, ev, now)
	case mark.KindStepFinished:
		l.finish(s, ev, now)
	case mark.KindLoopStarted:
		p := new(loop.Plan)
		if ev.Mark.Decode(p) == nil {
			s.Loop = newLoop(p)
			s.Loop.account = newAccount(p)
		}
	case mark.KindLoopContinued:
		p := new(loop.Plan)
		if ev.Mark.Decode(p) == nil {
			s.loop().goOn(p)
		}
	case mark.KindIterationFinished:
		var rec loop.IterationRecord
		if ev.Mark.Decode(&rec) == nil && rec.Number > 0 {
			s.loop().pass(rec.Number, now).end(rec, now)
			s.Loop.state = rec.Number
			s.Loop.account.check(&rec)
			l.view.EndIteration(session.Address(passName(ev.Address, rec.Number)))
		}
	case mark.KindHinted:
		var m mark.Hinted
		if ev.Mark.Decode(&m) == nil && m.Iteration > 0 {
			s.loop().pass(m.Iteration, now).Hints = m.Hints
		}
	case mark.KindRolledBack:
		var back mark.RolledBack
		if ev.Mark.Decode(&back) == nil && back.Iteration > 0 {
			it := s.loop().pass(back.Iteration, now)
			it.RolledBack, it.BackTo, s.Loop.state = true, back.To, back.To
			s.Loop.account.add(s.Loop.Plan, loop.Outcome{Iteration: back.Iteration, Step: -1, RolledBack: true})
		}
	case mark.KindLegStarted:
		var leg mark.LegStarted
		if ev.Mark.Decode(&leg) == nil && leg.Iteration > 0 {
			s.loop().state = leg.To
			s.Loop.account.add(s.Loop.Plan, loop.Outcome{Iteration: leg.Iteration, Step: -1, RolledBack: true, Leg: leg.Leg})
		}
	case mark.KindLoopStopped:
		rec := new(loop.StopRecord)
		if ev.Mark.Decode(rec) == nil {
			s.loop().stop(rec, now)
		}
	case mark.KindRaceDecided:
		d := new(mark.RaceDecided)
		if ev.Mark.Decode(d) == nil {
			s.Race = d
		}
	case mark.KindLimited:
		var w mark.Limited
		if ev.Mark.Decode(&w) == nil {
			s.Limited, s.Doing, s.Line = w.Until, "", ""
		}
	case mark.KindLimitOver:
		s.Limited = time.Time{}
	case mark.KindAsked:
		var q mark.Question
		if ev.Mark.Decode(&q) == nil {
			l.asks(s, q)
		}
	}
}

// step returns the step at an address. A new step takes its pending place in the tree, or is appended after the steps
// that have begun.
func (l *Live) step(at session.Address, now time.Duration) *Step {
	if s := l.steps[at]; s != nil {
		return s
	}
	if l.steps == nil {
		l.steps = make(map[session.Address]*Step)
	}
	var s *Step
	name, n := lastOf(at)
	switch above := at.Parent(); {
	case above == "" && l.tree.Root == nil:
		s = &Step{Name: name}
		l.tree.Root = s
	case above == "":
		s = place(&l.tree.Root.Steps, name)
	default:
		p := l.step(above, now)
		switch {
		case n > 0:
			s = place(&p.loop().pass(n, now).Steps, name)
		case p.Loop != nil && p.Loop.Finalizer != nil && p.Loop.Finalizer.Name == name:
			s = p.Loop.Finalizer
		default:
			s = place(&p.Steps, name)
		}
	}
	s.Address, s.Attempt, s.Status, s.Began, s.Ended = at, 1, StatusRunning, now, now
	l.steps[at] = s
	return s
}

// lastOf returns the last name of an address, with a number if it is not the first of its name, and its iteration; 0
// outside loops.
func lastOf(at session.Address) (name string, iteration int) {
	s := string(at)
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return s, 0
	}
	name, above := s[i+1:], s[:i]
	if open := strings.LastIndexByte(above, '['); open > 0 && strings.HasSuffix(above, "]") {
		for _, d := range above[open+1 : len(above)-1] {
			if d < '0' || d > '9' || iteration > 1<<30 {
				return name, 0
			}
			iteration = 10*iteration + int(d-'0')
		}
	}
	return name, iteration
}

// place finds the place of a step among its siblings.
func place(steps *[]*Step, name string) *Step {
	end := len(*steps)
	for i, s := range *steps {
		if s.Status != StatusPending {
			continue
		}
		if s.Name == name {
			return s
		}
		end = min(end, i)
	}
	s := &Step{Name: name}
	*steps = append(*steps, nil)
	copy((*steps)[end+1:], (*steps)[end:])
	(*steps)[end] = s
	return s
}

// start begins a step, or an attempt of it. It removes the steps of the last attempt from the tree, but keeps their
// usage.
func (l *Live) start(s *Step, ev *session.Event, now time.Duration) {
	if s.Status != StatusRunning || s.Loop != nil || len(s.Steps) > 0 {
		for c := range s.Children() {
			l.forget(c)
		}
	}
	s.Steps, s.Loop = nil, nil
	s.Attempt, s.Status, s.Began, s.Ended = max(1, ev.Attempt-l.unbegun[s.Address]), StatusRunning, now, now
	s.Text, s.output, s.Activity, s.open, s.Exit, s.Cached, s.Again = "", "", Activity{}, nil, nil, false, false
}

func (l *Live) forget(s *Step) {
	delete(l.steps, s.Address)
	for c := range s.Children() {
		l.forget(c)
	}
}

// finish ends a step, and whatever is still open below it.
func (l *Live) finish(s *Step, ev *session.Event, now time.Duration) {
	var fin mark.StepFinished
	if ev.Mark.Decode(&fin) != nil {
		return
	}
	s.close(StatusCompleted, now)
	s.Error, s.Again = "", fin.Again
	switch {
	case fin.Canceled:
		s.Status = StatusCanceled
	case fin.Error != "":
		s.Status = StatusFailed
		if fin.At == "" || session.Address(fin.At) == ev.Address {
			s.Error = fin.Error
		}
	}
	var o loop.Outcome
	if len(fin.Outcome) > 0 && json.Unmarshal(fin.Outcome, &o) == nil {
		s.Cached = o.Cached
		l.outcome(ev.Address, &o, fin.Canceled)
	}
	addUsage(&s.used.ended, recordedUsage(fin.Usage))
	s.used.current = nil
}

// recordedUsage returns the usage in a mark.
func recordedUsage(data json.RawMessage) Usage {
	var u struct {
		Usage
		Cost  *float64 `json:"cost"`
		Known float64  `json:"known_cost"`
	}
	if len(data) == 0 || json.Unmarshal(data, &u) != nil {
		return Usage{}
	}
	if u.Cost != nil {
		u.Usage.Cost = *u.Cost
	} else {
		u.Usage.Cost, u.Unknown = max(0, u.Known), u.Calls > 0 || u.Tokens() > 0 || u.Known > 0
	}
	return u.Usage
}

// close ends a step, if it has begun, and what is below it.
func (s *Step) close(as Status, now time.Duration) {
	switch s.Status {
	case StatusPending:
		s.Status = StatusSkipped
		return
	case StatusRunning:
		s.Status, s.Ended, s.Activity = as, now, Activity{}
	}
	if s.Loop != nil {
		for _, it := range s.Loop.Iterations {
			it.close(StatusCanceled, now)
		}
		if s.Loop.Finalizer != nil {
			s.Loop.Finalizer.close(StatusCanceled, now)
		}
	}
	for _, c := range s.Steps {
		c.close(StatusCanceled, now)
	}
}
