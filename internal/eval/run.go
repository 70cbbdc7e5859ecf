// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Run runs the case-runs that are not over, as many at a time as the plan says, until all are over, the budget is spent, or a
// look has decided. It fails with the cause of ctx, or if the store fails; then the eval can be resumed.
func (e *Eval) Run(ctx context.Context) error {
	if e.isOver() {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.ctx, func() { cancel(context.Cause(e.ctx)) })()
	left := e.left()
	begun, err := e.begun(ctx, left)
	if err != nil {
		return err
	}
	pairs := e.pairs() // their runs were paid for
	q := &queue{e: e, left: append(pairs, left...), begun: len(pairs) + begun}
	q.decide()
	var workers sync.WaitGroup
	for range e.atOnce() {
		workers.Go(func() {
			for j := q.next(); j != nil && ctx.Err() == nil; j = q.next() {
				if err := e.one(ctx, q, j); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	over := *e.Record
	over.Ended = &q.ended
	delta, err := endedDelta(&e.Config, &over)
	if err == nil {
		err = e.append(markEnded, q.ended, delta, func() {})
	}
	if err != nil {
		return err
	}
	e.Record, err = recordOf(e.view)
	return err
}

// isOver reports whether the eval has ended for good.
func (r *Record) isOver() bool { return r.Ended != nil && r.Ended.Reason != EndedBudget }

// left returns the case-runs that are not over.
func (r *Record) left() (left []*job) {
	over := make(map[string]bool, len(r.Scored))
	for _, s := range r.Scored {
		over[s.Run] = true
	}
	jobs := r.jobs(r.ID)
	for i := range jobs {
		if !over[jobs[i].run] {
			left = append(left, &jobs[i])
		}
	}
	return left
}

// begun returns which of the case-runs that are left were cut off, and puts them first. Case-runs begin in order, and as many at a
// time as the plan says, so that the others have not begun.
func (e *Eval) begun(ctx context.Context, left []*job) (begun int, err error) {
	for i, j := range left[:min(len(left), e.atOnce())] {
		view, err := e.session(ctx, j.run)
		if err != nil {
			return 0, err
		}
		if view != nil {
			copy(left[begun+1:i+1], left[begun:i])
			left[begun] = j
			begun++
		}
	}
	return begun, nil
}

// atOnce returns how many case-runs work at a time.
func (p *Plan) atOnce() int { return max(1, p.Set.Parallel) }

// queue hands out the case-runs.
type queue struct {
	e *Eval

	mu     sync.Mutex
	left   []*job
	begun  int   // how many of the first of them are continued, whatever the budget and the looks say
	looked int   // how many looks have not decided
	ended  Ended // Reason is empty while case-runs may begin
}

// next returns the next case-run; nil if none begins any more.
func (q *queue) next() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.begun > 0:
		q.begun--
	case q.ended.Reason != "":
		return nil
	case len(q.left) == 0:
		q.ended.Reason = EndedComplete
		return nil
	case q.e.spent(&q.ended):
		q.ended.Reason = EndedBudget
		return nil
	}
	j := q.left[0]
	q.left = q.left[1:]
	return j
}

// decide ends the eval if a look decides: see [stats.Looks]. It looks at the first cases in order, so that the order in which
// case-runs end does not matter. q.mu is held.
func (q *queue) decide() {
	if !q.e.StopEarly || q.ended.Reason != "" {
		return
	}
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	of := q.e.ordered()
	looks := stats.Looks(len(of))
	for q.looked < len(looks) {
		look := looks[q.looked]
		if look.Cases == len(of) || !q.e.haveRun(of[:look.Cases]) {
			return // the last look is the report
		}
		q.looked++
		rep := q.e.reportOf(of[:look.Cases])
		rep.Alpha = look.Alpha
		if v := rep.Summary().Verdict; v == report.Better || v == report.Worse {
			q.ended = Ended{Reason: EndedEarly, Cases: look.Cases, Alpha: look.Alpha}
			return
		}
	}
}

// haveRun reports whether all case-runs of some cases are over. e.mu is held.
func (e *Eval) haveRun(of []*check.Case) bool {
	n := make(map[string]int)
	for i := range e.Scored {
		if s := &e.Scored[i]; e.Own(s) {
			n[s.Case]++
		}
	}
	if slices.ContainsFunc(of, func(c *check.Case) bool {
		return e.comparesPairs(c) && slices.ContainsFunc(e.Scored, func(s Scored) bool {
			if s.Case != c.ID {
				return false
			}
			a, _ := e.pair(c.ID, s.N)
			return a != nil
		})
	}) {
		return false
	}
	return !slices.ContainsFunc(of, func(c *check.Case) bool { return n[c.ID] < e.repeats(c)*len(e.sides) })
}

// spent reports whether the budget is spent. It is spent too if it limits the cost, and that of a case-run is unknown; ended gets
// the case-run.
func (e *Eval) spent(ended *Ended) bool {
	var cost float64
	var tokens, calls int64
	e.mu.Lock()
	defer e.mu.Unlock()
	judges := make(map[string]*Use) // by run
	for i := range e.Pairs {
		p := &e.Pairs[i]
		judges[runID(e.ID, SideA+SideB, p.Case, strconv.Itoa(p.N))] = p.Judges
	}
	for i := range e.Scored {
		s := &e.Scored[i]
		if !e.Own(s) {
			continue
		}
		judges[s.Run] = s.Judges
		tokens, calls = tokens+s.Tokens, calls+s.Calls
		switch {
		case s.Cost != nil:
			cost += *s.Cost
		case e.Set.Budget.Cost != nil:
			ended.Unpriced, ended.Models = s.Run, e.unpriced(s.Side)
			return true
		}
	}
	for run, u := range judges {
		switch {
		case u == nil:
			continue
		case u.Cost != nil:
			cost += *u.Cost
		case e.Set.Budget.Cost != nil:
			ended.Unpriced = run
			return true
		}
		tokens, calls = tokens+u.Tokens, calls+u.Calls
	}
	b := &e.Set.Budget
	return b.Cost != nil && cost >= *b.Cost || b.Tokens > 0 && tokens >= b.Tokens || b.Calls > 0 && calls >= b.Calls
}

// one plays a case-run and records its result.
func (e *Eval) one(ctx context.Context, q *queue, j *job) error {
	if j.compares {
		if err := e.compare(ctx, j.of, j.n); err != nil {
			return fmt.Errorf("case %q: %w", j.of.ID, err)
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.decide()
		return nil
	}
	why, err := e.play(ctx, j)
	if err != nil {
		return fmt.Errorf("case %q: %w", j.of.ID, err)
	}
	view, err := e.session(ctx, j.run)
	if err != nil {
		return err
	}
	s, err := e.score(ctx, j.of, view, why, e.panel(e.ID, j.side, j.of.ID, j.n))
	if err != nil {
		return err
	}
	s.Side, s.N, s.Run = j.side, j.n, j.run
	isPair := false // that both runs are over is seen once, by the later one
	err = e.append(markScored, s, nil, func() {
		e.Scored = append(e.Scored, *s)
		a, _ := e.pair(s.Case, s.N)
		isPair = a != nil && e.comparesPairs(j.of)
	})
	if err == nil && isPair {
		err = e.compare(ctx, j.of, j.n)
	}
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.decide()
	if e.OnScored != nil {
		e.OnScored(s)
	}
	return nil
}

// score returns the result of a case-run, for which p asks the judges; why says why it has no grade, if it has none. view is nil if it has not begun.
func (e *Eval) score(ctx context.Context, c *check.Case, view *session.View, why string, p *panel) (*Scored, error) {
	s := &Scored{Case: c.ID, Error: why, Cost: new(0.0)}
	if view == nil {
		return s, nil
	}
	subject, err := subjectOf(c, view)
	if err != nil {
		return nil, err
	}
	s.Seconds, s.Cost, s.Calls = subject.Time.Seconds(), subject.Usage.Cost, subject.Usage.Calls
	s.Tokens = subject.Usage.InputTokens + subject.Usage.OutputTokens
	if n := len(subject.Turns); n > 0 {
		s.Answer = subject.Turns[n-1].Answer
	}
	if why != "" {
		return s, nil
	}
	subject.Ask = p.ask
	s.Grade, err = e.grader.Grade(ctx, subject)
	if s.Judges = p.use; err == nil {
		s.Error, err = p.why()
	}
	if s.Error != "" {
		s.Grade = check.Grade{}
	}
	return s, err
}

// append records a mark with a change of state in the session of the eval, and then changes the record.
func (e *Eval) append(kind mark.Kind, data any, delta map[string]any, change func()) error {
	m, err := mark.New(kind, data)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.Service.AppendEvent(e.ctx, e.view, &session.Event{Author: author, Mark: m, Actions: session.EventActions{StateDelta: delta}}); err != nil {
		return errors.Join(err, context.Cause(e.ctx))
	}
	change()
	return nil
}
