// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"cmp"
	"reflect"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/deep"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// candidates has the results of iterations that the loop may hand back. The candidate of an
// iteration is the last output of a step that makes something, outside parallel agents. If no step does so,
// it is the output of a parallel agent. If no step makes anything, it is the output of a step that judges.
type candidates struct {
	steps                             []stepOutput   // by index in the plan
	producers                         int            // the number of steps that have made something
	hasOutput                         bool           // something was made outside parallel agents
	current, last, best, conditionMet candidate      // last is of the last complete iteration that made something
	lastEnded, lastComplete           candidate      // of the last iteration, and of the last complete one, even if they made nothing
	start                             candidate      // the state before the first iteration, if it has a score
	atStop                            candidate      // the values of Config.HandBack before the finalizer ran
	parallelOutput, judgeOutput       *session.Event // in this iteration: the outputs of a parallel agent and of a judging step
}

// candidate is the candidate of an iteration: an output, or the value of Config.Result.
type candidate struct {
	number   int
	output   *session.Event
	value    any
	handBack map[string]any // the keys of Config.HandBack
}

// isPresent reports whether the iteration made anything.
func (c *candidate) isPresent() bool { return c.output != nil || c.value != nil }

// stepOutput has the facts about a step's outputs.
type stepOutput struct {
	output       *session.Event // the last output; nil if there is none
	writesState  bool           // the step has changed the state
	changesInput bool           // the step has changed a value that was there before it
	produces     bool           // the step has made something, and does not only judge
}

func (c *candidates) begin(iteration int) {
	c.current, c.parallelOutput, c.judgeOutput = candidate{number: iteration}, nil, nil
}

// ofIteration returns the candidate of the current iteration.
func (c *candidates) ofIteration() candidate {
	now := c.current
	if now.output == nil && !c.hasOutput {
		now.output = c.parallelOutput
	}
	if now.output == nil && c.producers == 0 {
		now.output = c.judgeOutput
	}
	return now
}

// end records the candidate of an iteration that has ended. value is that of Config.Result, and kept are those of
// Config.HandBack.
func (c *candidates) end(it *loop.IterationRecord, value any, kept map[string]any) {
	now := c.ofIteration()
	now.value, now.handBack = value, kept
	c.current = now
	if c.lastEnded = now; it.Complete {
		c.lastComplete = now
	}
	if it.Complete && now.isPresent() { // an iteration without output does not replace an earlier result
		c.last = now
	}
	if it.Best {
		c.best = now
	}
	if it.Met {
		c.conditionMet = now
	}
}

// handBackValues returns the current values of Config.HandBack; nil if there are no such keys.
func (r *run) handBackValues() map[string]any {
	if len(r.cfg.HandBack) == 0 {
		return nil
	}
	state := r.state(r.loop.IterationAddress)
	kept := make(map[string]any, len(r.cfg.HandBack))
	for _, k := range r.cfg.HandBack {
		kept[k] = deep.Copy(state[k])
	}
	return kept
}

// handBack returns the changes of the state that give the keys of Config.HandBack the values of the
// result's iteration. It returns nil if the result is the finalizer's, because the finalizer got these values before it ran
// and may have changed them.
func (r *run) handBack(rec *loop.StopRecord, from loop.Result) map[string]any {
	if rec.Reason == loop.ReasonCanceled || rec.Reason == loop.ReasonError || from.Source == loop.FromFinalizer {
		return nil
	}
	return r.deltaToValues(from.Iteration)
}

// giveFinalizerValues gives the finalizer the values of the iteration whose result it works on.
func (r *run) giveFinalizerValues(rec *loop.StopRecord) bool {
	if len(r.cfg.HandBack) == 0 {
		return true
	}
	r.results.candidates.atStop = candidate{number: rec.Result.Iteration, handBack: r.handBackValues()}
	n := rec.BestIteration
	switch rec.Reason {
	case loop.ReasonTarget:
		n = rec.Result.Iteration
	case loop.ReasonCondition:
		n = r.results.candidates.conditionMet.number
	}
	ev := &session.Event{}
	if ev.Actions.StateDelta = r.deltaToValues(n); ev.Actions.StateDelta == nil {
		return true
	}
	r.noteChangedKeys(ev)
	return r.yield(ev, nil)
}

// deltaToValues returns the changes of the state that give the keys of Config.HandBack the values that they
// had at the end of an iteration; nil if there are none, or for an iteration that is not remembered.
func (r *run) deltaToValues(iteration int) (delta map[string]any) {
	c := &r.results.candidates
	all := []candidate{c.lastEnded, c.best, c.conditionMet, c.lastComplete, c.atStop}
	i := slices.IndexFunc(all, func(c candidate) bool { return c.number == iteration && c.handBack != nil })
	switch {
	case iteration == 0 && c.start.handBack != nil:
		all[0], i = c.start, 0
	case iteration == 0 || i < 0:
		return nil // the state already has the values of the result
	}
	for k, now := range r.handBackValues() {
		if was := all[i].handBack[k]; !reflect.DeepEqual(now, was) {
			if delta == nil {
				delta = make(map[string]any)
			}
			delta[k] = deep.Copy(was)
		}
	}
	return delta
}

// recordOutput records the output of a step, if any. The output of a step that leaves the loop is no
// candidate if the step changed the state in earlier iterations and not in this one. Its earlier
// output then stays the candidate, as it does if the step leaves without output.
func (r *run) recordOutput(step int, res *drive.StepResult) {
	output := res.Output
	if output != nil {
		r.results.lastOutput = res.LastOutput
	}
	if r.phase.finalizing {
		if output != nil {
			r.results.finalizer = output
		}
		return
	}
	s := &r.results.candidates.steps[step]
	first := s.output == nil
	if r.exits.accepted != nil && (output == nil || s.writesState && len(r.writes.ofStep) == 0) {
		output = s.output
	} else if output != nil {
		s.output = output
	}
	s.writesState = s.writesState || len(r.writes.ofStep) > 0
	switch {
	case output == nil:
	case r.isJudge(step, first):
		r.results.candidates.judgeOutput = output
	default:
		if output.Branch == r.ctx.Branch() {
			r.results.candidates.current.output, r.results.candidates.hasOutput = output, true
		} else {
			r.results.candidates.parallelOutput = output
		}
		if !s.produces {
			s.produces = true
			r.results.candidates.producers++
		}
	}
}

// isJudge reports whether a step only judges the output of other steps. It does if it is the judge;
// if it has written only keys that decide whether the loop stops; or if it leaves the loop, or
// alone may leave it, and runs after another step has made something. first says that this is the
// step's first output.
func (r *run) isJudge(step int, first bool) bool {
	name := r.plan.Steps[step].Name
	if s := r.plan.Score; s != nil && s.Judge != nil && s.Judge.Step == name {
		return true
	}
	if keys := r.writes.ofStep; len(keys) > 0 && !r.writes.readsAll &&
		!slices.ContainsFunc(keys, func(k string) bool { return !slices.Contains(r.writes.reads, k) }) {
		return true
	}
	s := &r.results.candidates.steps[step]
	others := r.results.candidates.producers
	if s.produces {
		others--
	}
	return others > 0 && !s.changesInput && (r.isOnlyExiter(step) || r.exits.accepted != nil && (s.writesState || first))
}

// isOnlyExiter reports whether a step may leave the loop while at least one other step may not.
func (r *run) isOnlyExiter(step int) bool {
	if r.plan.CanExit == nil || !r.plan.MayExit(r.plan.Steps[step].Name) {
		return false
	}
	return slices.ContainsFunc(r.plan.Steps, func(s loop.Step) bool { return !s.Finalizer && !r.plan.MayExit(s.Name) })
}

// textNothingBetter is the text of the result if no iteration was better than the state before the first one, and that state has
// no value for Config.Result.
const textNothingBetter = "No iteration was better than the start, which stays."

// value returns the current value of Config.Result, or nil.
func (r *run) value() any {
	if r.cfg.Result == "" {
		return nil
	}
	return r.state(r.loop.IterationAddress)[r.cfg.Result]
}

// result returns the loop's result as an event, and its origin. If the iteration made nothing, the
// result is that of an earlier iteration. The event is nil without a result.
func (r *run) result(from loop.Result) (*session.Event, loop.Result) {
	switch {
	case from.Source == loop.FromFinalizer && r.results.finalizer != nil:
		return r.results.finalizer, from
	case from.Source == loop.FromBest && from.Iteration == 0:
		ev := &session.Event{}
		ev.Content = genai.NewContentFromText(cmp.Or(drive.TextOf(r.results.candidates.start.value), textNothingBetter), genai.RoleModel)
		return ev, from
	}
	now := r.results.candidates.ofIteration()
	if r.tally.Ended.Number == 0 {
		now.value = r.value()
	}
	all := []candidate{r.results.candidates.best, r.results.candidates.conditionMet, r.results.candidates.last, now}
	chosen := candidate{}
	if i := slices.IndexFunc(all, func(c candidate) bool { return c.number == from.Iteration }); i >= 0 {
		chosen = all[i]
	}
	switch last := r.results.candidates.last; {
	case chosen.isPresent():
	case last.isPresent():
		chosen, from = last, loop.Result{Source: loop.FromLast, Iteration: last.number}
	case now.isPresent():
		chosen, from = now, loop.Result{Source: loop.FromPartial, Iteration: now.number}
	}
	if text := drive.TextOf(chosen.value); text != "" {
		ev := &session.Event{}
		ev.Content = genai.NewContentFromText(text, genai.RoleModel)
		return ev, from
	}
	return chosen.output, from
}
