// SPDX-License-Identifier: Apache-2.0

package parallelagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Race says how loops that run at the same time are compared.
type Race struct {
	// Iterations and Budget limit each loop until the best is known, in addition to its own limits; 0 and the zero
	// value set no limit.
	Iterations uint
	Budget     budget.Limits
	// Continue lets the best loop go on after that with its own limits alone.
	Continue bool
	// LowerIsBetter says that a lower score is better.
	LowerIsBetter bool
	// WinnerKey is the state key that gets the name of the best loop; empty for none.
	WinnerKey string
}

// check returns an error for a sub-agent that is no loop.
func (c *Race) check(subs []agent.Agent) error {
	if c == nil {
		return nil
	}
	for _, sub := range subs {
		if agent.TypeOf(sub) != agent.TypeLoop {
			return fmt.Errorf("%q is no loop, so it cannot race; make it a loop with a score", sub.Name())
		}
	}
	return nil
}

// losable reports whether a loop that fails with an error only loses the race.
func losable(err error) bool { return !drive.Overall(err) && !errors.Is(err, budget.ErrExceeded) }

// race compares the loops of one run. The goroutine of the agent owns it. A nil race compares nothing.
type race struct {
	*Race
	me      drive.Place
	lanes   []*lane
	waiting chan arrival
	decided bool
}

// lane is a loop of a race.
type lane struct {
	name     string
	at       session.Address
	limit    *drive.RaceLimit
	standing *mark.Standing // nil until the loop has ended, or waits
	waits    bool           // at the end of its slice
	done     bool           // the loop has ended
	err      error          // how it failed
	goesOn   chan bool      // answers the loop that waits

	// What follows belongs to the goroutine of the loop.

	continues bool           // the loop has won and goes on
	last      *mark.Standing // how it ended
}

// arrival reports that a loop waits at the end of its slice.
type arrival struct {
	lane     *lane
	standing mark.Standing
}

// end reports that a sub-agent has ended. lost says that its error only loses a race.
type end struct {
	lane     *lane          // nil without a race
	standing *mark.Standing // nil if the sub-agent ended before its loop did
	err      error
	lost     bool
}

// turn is the place of a sub-agent among those that run at once.
type turn struct {
	slots    chan struct{}
	branches *drive.Branches
	working  bool
	left     bool
}

// end gives the place to another sub-agent.
func (t *turn) end() {
	if t.working {
		t.branches.End()
		t.working = false
	}
	if !t.left {
		<-t.slots
		t.left = true
	}
}

func newRace(cfg *Race, me drive.Place, subs []agent.Agent) *race {
	if cfg == nil {
		return nil
	}
	r := &race{Race: cfg, me: me, waiting: make(chan arrival)}
	for _, sub := range subs {
		r.lanes = append(r.lanes, &lane{name: sub.Name(), at: me.Address() + "/" + session.Address(sub.Name()), goesOn: make(chan bool, 1)})
	}
	return r
}

// lane returns the lane of a sub-agent, with the slice that limits it.
func (r *race) lane(i int, t *turn) *lane {
	if r == nil {
		return nil
	}
	l := r.lanes[i]
	l.limit = &drive.RaceLimit{Loop: l.name, Iterations: r.Iterations, Budget: r.Budget,
		OnStop: func(s mark.Standing) { l.last = &s }}
	if r.Continue {
		l.limit.OnLimit = func(ctx context.Context, s mark.Standing) bool { return r.wait(ctx, l, t, s) }
	}
	return l
}

// wait waits until the race is decided, and reports whether the loop goes on. Meanwhile the loop does not work.
func (r *race) wait(ctx context.Context, l *lane, t *turn, s mark.Standing) bool {
	t.end()
	select {
	case r.waiting <- arrival{l, s}:
	case <-ctx.Done():
		return false
	}
	select {
	case l.continues = <-l.goesOn:
	case <-ctx.Done():
		return false
	}
	if l.continues {
		t.branches.Begin()
		t.working = true
	}
	return l.continues
}

// under returns the context of the loop.
func (l *lane) under(ctx agent.InvocationContext) agent.InvocationContext {
	if l == nil {
		return ctx
	}
	return ctx.WithContext(drive.WithRaceLimit(ctx, l.limit))
}

// end reports how the loop ended, with the error err or without one.
func (l *lane) end(ctx context.Context, err error) end {
	if l == nil {
		return end{err: err}
	}
	return end{lane: l, standing: l.last, err: err, lost: l.loses(ctx, err)}
}

// loses reports whether an error of the loop only loses the race. A loop that goes on alone cannot lose.
func (l *lane) loses(ctx context.Context, err error) bool {
	return err != nil && !l.continues && ctx.Err() == nil && losable(err)
}

func (r *race) arrivals() <-chan arrival {
	if r == nil {
		return nil
	}
	return r.waiting
}

// hear reads the standing of a loop that ended in an earlier part of the run.
func (r *race) hear(ev *session.Event) {
	if r == nil || r.decided || ev.Mark == nil || ev.Mark.Kind != mark.KindLoopStopped {
		return
	}
	for _, l := range r.lanes {
		if l.at != ev.Address || l.standing != nil {
			continue
		}
		var rec struct {
			Reason        string   `json:"reason"`
			Detail        string   `json:"detail"`
			Iterations    int      `json:"iterations"`
			BestScore     *float64 `json:"best_score"`
			BestError     float64  `json:"best_error"`
			BestIteration int      `json:"best_iteration"`
		}
		if ev.Mark.Decode(&rec) != nil {
			return
		}
		l.standing = &mark.Standing{Loop: l.name, Score: rec.BestScore, Error: rec.BestError, Best: rec.BestIteration,
			Iterations: rec.Iterations, Stop: rec.Reason}
		if rec.Reason == "error" {
			l.standing.Failure = rec.Detail
		}
	}
}

// endLoop records that a loop of the race has ended, or that it was lost.
func (r *race) endLoop(e end) {
	if l := e.lane; l != nil {
		l.done = true
		l.standing = cmp.Or(e.standing, l.standing)
		if e.lost {
			l.err = e.err
		}
	}
}

// decides reports whether the race is to be decided now.
func (r *race) decides() bool {
	if r == nil || r.decided {
		return false
	}
	for _, l := range r.lanes {
		if !l.done && !l.waits {
			return false
		}
	}
	return r.failure() == nil
}

// failure returns the first error if all loops have failed.
func (r *race) failure() error {
	if r == nil {
		return nil
	}
	var first error
	for _, l := range r.lanes {
		if l.err == nil {
			return nil
		}
		first = cmp.Or(first, l.err)
	}
	return first
}

// decide yields which loop is the best, and lets it go on. The decision of the log counts, if there is one.
func (r *race) decide(yield func(*session.Event, error) bool) bool {
	r.decided = true
	d := r.standings()
	if known := r.me.Recorded(); known != nil && known.Mark != nil && known.Mark.Kind == mark.KindRaceDecided {
		d = mark.RaceDecided{}
		if err := known.Mark.Decode(&d); err != nil {
			yield(nil, err)
			return false
		}
	}
	ev := &session.Event{}
	if r.WinnerKey != "" {
		ev.Actions.StateDelta = map[string]any{r.WinnerKey: d.Winner}
	}
	if r.me.Marks() {
		m, err := mark.New(mark.KindRaceDecided, d)
		if err != nil {
			yield(nil, err)
			return false
		}
		ev.Mark = m
	}
	if (ev.Mark != nil || ev.Actions.StateDelta != nil) && !yield(ev, nil) {
		return false
	}
	for _, l := range r.lanes {
		if l.waits {
			l.goesOn <- d.Continues && l.name == d.Winner
		}
	}
	return true
}

// standings compares the loops: the best score wins, of equal ones the first. A loop that has failed loses to the
// others, and a loop without a score to those that have one.
func (r *race) standings() mark.RaceDecided {
	var d mark.RaceDecided
	best := -1
	for i, l := range r.lanes {
		s := mark.Standing{Loop: l.name}
		if l.standing != nil {
			s = *l.standing
		}
		if l.err != nil && s.Failure == "" {
			s.Failure = l.err.Error()
		}
		d.Standings = append(d.Standings, s)
		if l.err == nil && (best < 0 || r.beats(&s, &d.Standings[best])) {
			best = i
		}
	}
	won := &d.Standings[best]
	d.Winner, d.Continues = won.Loop, r.lanes[best].waits
	for i := range d.Standings {
		s := &d.Standings[i]
		if i != best && s.Failure == "" && s.Score != nil && loop.WithinNoise(*won.Score, won.Error, *s.Score, s.Error) {
			d.Ties = append(d.Ties, s.Loop)
		}
	}
	switch {
	case won.Score != nil:
		d.Reason = "the best score, " + strconv.FormatFloat(*won.Score, 'f', -1, 64)
	case len(r.lanes) == 1:
		d.Reason = "the only loop"
	default:
		d.Reason = "no loop has a score; the first that has not failed"
	}
	return d
}

// beats reports whether s is better than a standing of a loop before it.
func (r *race) beats(s, before *mark.Standing) bool {
	switch {
	case s.Score == nil || before.Score == nil:
		return s.Score != nil && before.Score == nil
	case r.LowerIsBetter:
		return *s.Score < *before.Score
	}
	return *s.Score > *before.Score
}
