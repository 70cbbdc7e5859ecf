// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"encoding/json"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// candidates are what the iterations have made, as far as it may be handed back. The
// candidate of an iteration is what was said last in it by a step that makes
// something, and not in a parallel agent; where none does, it is what a parallel agent
// made, or else what was said last.
type candidates struct {
	steps                []spoken // by index in the plan
	makers               int      // how many of them have made something
	told                 bool     // something was made outside parallel agents
	cur, last, best, met candidate
	beside, verdict      *session.Event // in this iteration: what was made in a parallel agent, and said of what was made
}

// candidate is that of an iteration: what was said, or the value of Config.Result.
type candidate struct {
	number int
	words  *session.Event
	value  any
}

// made reports whether the iteration made anything.
func (c *candidate) made() bool { return c.words != nil || c.value != nil }

// spoken is what is known of a step.
type spoken struct {
	words  *session.Event // the last; nil if there are none
	writes bool           // it has changed the state
	works  bool           // it has changed what was there before it
	makes  bool           // it has made something
}

func (c *candidates) begin(iteration int) {
	c.cur, c.beside, c.verdict = candidate{number: iteration}, nil, nil
}

// open is the candidate of the iteration under way.
func (c *candidates) open() candidate {
	now := c.cur
	if now.words == nil && !c.told {
		now.words = c.beside
	}
	if now.words == nil && c.makers == 0 {
		now.words = c.verdict
	}
	return now
}

// end takes down the candidate of an iteration that has ended.
func (c *candidates) end(it *loop.IterationRecord, value any) {
	now := c.open()
	now.value = value
	c.cur = now
	if it.Complete && now.made() { // silence does not take back what was said
		c.last = now
	}
	if it.Best {
		c.best = now
	}
	if it.Met {
		c.met = now
	}
}

// heard takes down what a step has said, if anything. What a step says as it
// leaves is no candidate if it has changed the state before, and does not now: then
// its earlier words stand, as they do if it leaves in silence.
func (r *run) heard(step int, res *drive.StepResult) {
	words := res.Answer
	if words != nil {
		r.said = res.Said
	}
	if r.finalizing {
		if words != nil {
			r.final = words
		}
		return
	}
	s := &r.made.steps[step]
	first := s.words == nil
	if r.exit != nil && (words == nil || s.writes && len(r.written.keys) == 0) {
		words = s.words
	} else if words != nil {
		s.words = words
	}
	s.writes = s.writes || len(r.written.keys) > 0
	switch {
	case words == nil:
	case r.judges(step, first):
		r.made.verdict = words
	default:
		if words.Branch == r.ctx.Branch() {
			r.made.cur.words, r.made.told = words, true
		} else {
			r.made.beside = words
		}
		if !s.makes {
			s.makes = true
			r.made.makers++
		}
	}
}

// judges reports whether what a step says values what the others make: it is the
// judge, or has written nothing but what decides whether the loop stops, or it leaves,
// or alone may leave, and comes in after another has made something. These may be its
// first words.
func (r *run) judges(step int, first bool) bool {
	name := r.plan.Steps[step].Name
	if s := r.plan.Score; s != nil && s.Judge != nil && s.Judge.Step == name {
		return true
	}
	if keys := r.written.keys; len(keys) > 0 && !r.written.readsAll &&
		!slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(r.written.reads, k) }) {
		return true
	}
	s := &r.made.steps[step]
	others := r.made.makers
	if s.makes {
		others--
	}
	return others > 0 && !s.works && (r.alone(step) || r.exit != nil && (s.writes || first))
}

// alone reports whether a step may leave the loop, and another may not.
func (r *run) alone(step int) bool {
	if r.plan.CanExit == nil || !r.plan.MayExit(r.plan.Steps[step].Name) {
		return false
	}
	return slices.ContainsFunc(r.plan.Steps, func(s loop.Step) bool { return !s.Finalizer && !r.plan.MayExit(s.Name) })
}

// value is that of Config.Result now; nil if there is none.
func (r *run) value() any {
	if r.cfg.Result == "" {
		return nil
	}
	return r.state(r.loop.Pass)[r.cfg.Result]
}

// result returns what the loop hands back, as an event that says it, and where that
// comes from: an iteration that made nothing hands back what an earlier one made. The
// event is nil if there is nothing.
func (r *run) result(from loop.Result) (*session.Event, loop.Result) {
	if from.Source == loop.FromFinalizer && r.final != nil {
		return r.final, from
	}
	now := r.made.open()
	if r.tally.Ended.Number == 0 {
		now.value = r.value()
	}
	all := []candidate{r.made.best, r.made.met, r.made.last, now}
	chosen := candidate{}
	if i := slices.IndexFunc(all, func(c candidate) bool { return c.number == from.Iteration }); i >= 0 {
		chosen = all[i]
	}
	switch last := r.made.last; {
	case chosen.made():
	case last.made():
		chosen, from = last, loop.Result{Source: loop.FromLast, Iteration: last.number}
	case now.made():
		chosen, from = now, loop.Result{Source: loop.FromPartial, Iteration: now.number}
	}
	if text := textOf(chosen.value); text != "" {
		ev := &session.Event{}
		ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		return ev, from
	}
	return chosen.words, from
}

// textOf is a value of the state in words.
func textOf(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	}
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
