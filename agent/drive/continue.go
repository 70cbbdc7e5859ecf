// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Reopen lets the stopped loops at some addresses continue. The events of the replay end with
// their last iterations.
func (r *Replay) Reopen(at ...session.Address) {
	r.continuedLoops = slices.Clone(at)
}

// Continued reports whether the loop, which had stopped, continues at this point of a resumed
// run. The loop then yields a [mark.KindLoopContinued], and ignores its earlier stop.
func (p Place) Continued() bool {
	inv := p.inv
	if inv == nil || inv.logged == nil {
		return false
	}
	r := inv.run.Replay
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := r.event(inv.logged.firstUnreplayed()); next != nil {
		return next.Address == inv.address && next.Mark != nil && next.Mark.Kind == mark.KindLoopContinued
	}
	i := slices.Index(r.continuedLoops, inv.address)
	if i < 0 {
		return false
	}
	r.continuedLoops = slices.Delete(r.continuedLoops, i, i+1)
	return true
}

// isPlan reports whether an event has the plan by which a loop runs.
func isPlan(ev *session.Event) bool {
	return ev.Mark != nil && (ev.Mark.Kind == mark.KindLoopStarted || ev.Mark.Kind == mark.KindLoopContinued)
}

// StoppedLoops returns the addresses of the loops that ended a run and can continue with the
// limits that they have in tree. Such a loop is the root, the last loop of a sequence that is the
// root, or the last loop of each branch of a parallel agent in one of these places. In a race it is
// only the loop that continued after the race. events are the events of the run that are not
// superseded, in order. gone are the sequence numbers of the events after the loops had stopped,
// which the caller must supersede. StoppedLoops returns an error if there is no such loop, or if
// a step after it must not run twice.
//
// A loop inside another loop cannot continue, because the outer loop has used its result. The
// error says what to do instead.
func StoppedLoops(events session.Events, tree *Tree) (loops []session.Address, gone mark.Spans, err error) {
	s := loopStops{events: events, tree: tree, stops: make(map[session.Address]int),
		plans: make(map[session.Address]*mark.Mark), races: make(map[session.Address]mark.RaceDecided)}
	var root session.Address
	i := -1
	for ev := range events.All() {
		if i++; ev.Address == "" {
			continue
		}
		if root == "" {
			root = ev.Address
		}
		if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped {
			s.stops[ev.Address] = i
		}
		if isPlan(ev) {
			s.plans[ev.Address] = ev.Mark
		}
		if ev.Mark != nil && ev.Mark.Kind == mark.KindRaceDecided {
			var d mark.RaceDecided
			if err := ev.Mark.Decode(&d); err != nil {
				return nil, nil, err
			}
			s.races[ev.Address] = d
		}
	}
	found := s.finalSteps(root)
	if len(found) == 0 {
		return nil, nil, s.withHint(fmt.Errorf("the run of %q did not end with a loop: only a root loop, or the last "+
			"loop in a sequence or in each branch, can continue with a higher limit", root.Agent()), "")
	}
	for _, at := range found {
		switch stays := s.checkContinue(at); {
		case stays == nil:
			loops = append(loops, at)
		case err == nil:
			err = s.withHint(stays, at)
		}
	}
	if len(loops) == 0 {
		return nil, nil, err
	}
	gone, err = s.eventsAfter(loops)
	return loops, gone, err
}

// loopStops holds the ends of loops in a log.
type loopStops struct {
	events session.Events
	tree   *Tree
	stops  map[session.Address]int // index of the stop record in events
	plans  map[session.Address]*mark.Mark
	races  map[session.Address]mark.RaceDecided // by the agent that runs the loops
}

// finalSteps returns the stopped loops at the end of the step at an address. It follows the last steps of sequences,
// and all branches of parallel agents.
func (s *loopStops) finalSteps(at session.Address) (loops []session.Address) {
	a := s.tree.Find(at.Agent())
	if a == nil {
		return nil
	}
	switch agent.TypeOf(a) {
	case agent.TypeLoop:
		if _, ok := s.stops[at]; ok {
			return []session.Address{at}
		}
	case agent.TypeSequential:
		for _, sub := range slices.Backward(a.SubAgents()) {
			if loops = s.finalSteps(at + "/" + session.Address(sub.Name())); len(loops) > 0 {
				return loops
			}
		}
	case agent.TypeParallel:
		race, decided := s.races[at]
		for _, sub := range a.SubAgents() {
			if decided && !(race.Continues && race.Winner == sub.Name()) { // the branch has lost the race
				continue
			}
			loops = append(loops, s.finalSteps(at+"/"+session.Address(sub.Name()))...)
		}
	}
	return loops
}

// checkContinue returns an error if a loop would stop again at once by its present limits.
func (s *loopStops) checkContinue(at session.Address) error {
	l, ok := s.tree.Find(at.Agent()).(Reopener)
	if !ok || s.plans[at] == nil {
		return nil
	}
	return l.GoesOn(s.events.At(s.stops[at]).Mark, s.plans[at])
}

// withHint adds advice to an error, if a limit has stopped a loop inside another agent. It looks below the address
// within, or everywhere if that is empty.
func (s *loopStops) withHint(err error, within session.Address) error {
	inner, where := session.Address(""), -1
	for at, i := range s.stops {
		if at != within && (within == "" || at.Under(within)) && i > where && s.stoppedByLimit(at) {
			inner, where = at, i
		}
	}
	if inner == "" {
		return err
	}
	return fmt.Errorf("%w; %s reached a limit, but the agents around it have used its result: fork the run at an "+
		"earlier iteration (refrain fork RUN --at-iteration N) or event, and resume the fork with a definition that "+
		"has a higher limit", err, inner)
}

// stoppedByLimit reports whether a limit has stopped a loop.
func (s *loopStops) stoppedByLimit(at session.Address) bool {
	var rec struct {
		Reason string `json:"reason"`
	}
	if s.events.At(s.stops[at]).Mark.Decode(&rec) != nil {
		return false
	}
	return slices.Contains(limits, rec.Reason)
}

// limits lists the stop reasons of a loop that are limits of its plan. They are names of package loop, which this
// package cannot import.
var limits = []string{"max_iterations", "timeout", "budget"}

// eventsAfter returns the sequence numbers of the events after the last iterations of the loops: those of the
// finalizers, the stop records, and all later events. It returns an error if one of them belongs to a call that must
// not be made twice.
func (s *loopStops) eventsAfter(loops []session.Address) (mark.Spans, error) {
	var gone []int64
	for _, at := range loops {
		n := s.stops[at]
		for ; n > 0 && (isFinalizerEvent(s.events.At(n-1), at) || s.inOtherBranch(s.events.At(n-1).Address, at)); n-- {
		}
		for ; n < s.events.Len(); n++ {
			ev := s.events.At(n)
			if ev.Address == "" || s.inOtherBranch(ev.Address, at) {
				continue
			}
			gone = append(gone, ev.Seq)
			if ev.Mark == nil || ev.Address == at || ev.Mark.Kind != mark.KindStepStarted &&
				ev.Mark.Kind != mark.KindDispatched {
				continue
			}
			if ev.Mark.Kind == mark.KindDispatched || TraitsOf(s.tree.Find(ev.Address.Agent()), true).Effect == agent.AtMostOnce {
				return nil, fmt.Errorf("%s took place after %s and must not be done twice: fork the run at an "+
					"earlier point, or start a new one", ev.Address, at)
			}
		}
	}
	return mark.SpansOf(gone...), nil
}

// inOtherBranch reports whether a step and a loop are in different branches of a parallel agent. Such a step does not
// come after the loop.
func (s *loopStops) inOtherBranch(step, loop session.Address) bool {
	for branch := loop; branch.Parent() != ""; branch = branch.Parent() {
		p := branch.Parent()
		if a := s.tree.Find(p.Agent()); a != nil && agent.TypeOf(a) == agent.TypeParallel && step != p &&
			step.Under(p) && !step.Under(branch) {
			return true
		}
	}
	return false
}

// isFinalizerEvent reports whether an event can belong to the finalizer of a loop. Its address is then directly below
// that of the loop, and in no iteration. An event about the whole run has no address and counts too, because it can
// be anywhere.
func isFinalizerEvent(ev *session.Event, loop session.Address) bool {
	return ev.Address == "" || strings.HasPrefix(string(ev.Address), string(loop)+"/")
}
