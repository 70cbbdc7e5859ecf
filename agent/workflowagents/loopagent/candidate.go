// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"cmp"
	"reflect"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/deep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// candidates has the results of iterations that the loop may hand back. The candidate of an
// iteration is the last output of a step that makes something, outside parallel agents. Without
// such a step it is the output of a parallel agent, or else the last output.
type candidates struct {
	steps                []spoken // by index in the plan
	makers               int      // how many of them have made something
	told                 bool     // something was made outside parallel agents
	cur, last, best, met candidate
	ended, whole         candidate      // of the last iteration that ended, and of the last complete one, silent or not
	start                candidate      // what was there before the first iteration, if it has a score
	cut                  candidate      // the values of Config.HandBack before the finalizer ran
	beside, verdict      *session.Event // in this iteration: what was made in a parallel agent, and said of what was made
}

// candidate is the candidate of an iteration: an output, or the value of Config.Result.
type candidate struct {
	number int
	words  *session.Event
	value  any
	kept   map[string]any // the keys of Config.HandBack
}

// made reports whether the iteration made anything.
func (c *candidate) made() bool { return c.words != nil || c.value != nil }

// spoken has the facts about a step's outputs.
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
func (c *candidates) end(it *loop.IterationRecord, value any, kept map[string]any) {
	now := c.open()
	now.value, now.kept = value, kept
	c.cur = now
	if c.ended = now; it.Complete {
		c.whole = now
	}
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

// kept returns the current values of Config.HandBack; nil if there are no such keys.
func (r *run) kept() map[string]any {
	if len(r.cfg.HandBack) == 0 {
		return nil
	}
	state := r.state(r.loop.Pass)
	kept := make(map[string]any, len(r.cfg.HandBack))
	for _, k := range r.cfg.HandBack {
		kept[k] = deep.Copy(state[k])
	}
	return kept
}

// handBack returns the changes of the state that give the keys of Config.HandBack the values of the
// result's iteration. A finalizer has them since before it ran, and may have changed them.
func (r *run) handBack(rec *loop.StopRecord, from loop.Result) map[string]any {
	if rec.Reason == loop.ReasonCanceled || rec.Reason == loop.ReasonError || from.Source == loop.FromFinalizer {
		return nil
	}
	return r.valuesOf(from.Iteration)
}

// handOn gives the finalizer the values of the iteration whose result it works on.
func (r *run) handOn(rec *loop.StopRecord) bool {
	if len(r.cfg.HandBack) == 0 {
		return true
	}
	r.made.cut = candidate{number: rec.Result.Iteration, kept: r.kept()}
	n := rec.BestIteration
	switch rec.Reason {
	case loop.ReasonTarget:
		n = rec.Result.Iteration
	case loop.ReasonCondition:
		n = r.made.met.number
	}
	ev := &session.Event{}
	if ev.Actions.StateDelta = r.valuesOf(n); ev.Actions.StateDelta == nil {
		return true
	}
	r.touch(ev)
	return r.yield(ev, nil)
}

// valuesOf returns the changes of the state that give the keys of Config.HandBack the values that they
// had at the end of an iteration; nil if there are none, or for an iteration that is not remembered.
func (r *run) valuesOf(iteration int) (delta map[string]any) {
	c := &r.made
	all := []candidate{c.ended, c.best, c.met, c.whole, c.cut}
	i := slices.IndexFunc(all, func(c candidate) bool { return c.number == iteration && c.kept != nil })
	switch {
	case iteration == 0 && c.start.kept != nil:
		all[0], i = c.start, 0
	case iteration == 0 || i < 0:
		return nil // the state is that of the result
	}
	for k, now := range r.kept() {
		if was := all[i].kept[k]; !reflect.DeepEqual(now, was) {
			if delta == nil {
				delta = make(map[string]any)
			}
			delta[k] = deep.Copy(was)
		}
	}
	return delta
}

// heard records the output of a step, if any. The output of a step that leaves the loop is no
// candidate if the step changed the state in earlier iterations and not in this one. Its earlier
// output then stays the candidate, as it does if the step leaves without output.
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

// judges reports whether a step only judges the output of other steps. It does if it is the judge;
// if it has written only keys that decide whether the loop stops; or if it leaves the loop, or
// alone may leave it, and runs after another step has made something. first says that this is the
// step's first output.
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

// nothingBetter is the result of a loop that hands back what was there before its first iteration.
const nothingBetter = "No iteration was better than the start, which stays."

// value returns the current value of Config.Result, or nil.
func (r *run) value() any {
	if r.cfg.Result == "" {
		return nil
	}
	return r.state(r.loop.Pass)[r.cfg.Result]
}

// result returns the loop's result as an event, and its origin. If the iteration made nothing, the
// result is that of an earlier iteration. The event is nil without a result.
func (r *run) result(from loop.Result) (*session.Event, loop.Result) {
	switch {
	case from.Source == loop.FromFinalizer && r.final != nil:
		return r.final, from
	case from.Source == loop.FromBest && from.Iteration == 0:
		ev := &session.Event{}
		ev.Content = genai.NewContentFromText(cmp.Or(drive.TextOf(r.made.start.value), nothingBetter), genai.RoleModel)
		return ev, from
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
	if text := drive.TextOf(chosen.value); text != "" {
		ev := &session.Event{}
		ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		return ev, from
	}
	return chosen.words, from
}
