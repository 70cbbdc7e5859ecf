// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// replayStep takes the result of a step from the log of a resumed run, without delays and time limits. known reports that
// the log has the end of the step. more reports whether the loop continues.
func (r *run) replayStep(d *loop.Decision) (known, more bool) {
	if r.steps.cache != nil {
		r.setCacheKey(d)
	}
	res, known := r.directStep(d.Step).Replay(&drive.StepRun{Address: r.address(d), Attempt: d.Attempt}, r.steps.onEvent)
	if !known || res.ConsumerLeft {
		return known, false
	}
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step}
	if res.Recorded == nil { // the context was canceled during the replay
		r.outcome(&o, d, res.Err, returned)
	} else if err := readOutcome(res.Recorded.Outcome, &o); err != nil {
		r.yield(nil, fmt.Errorf("read the recorded outcome of %s: %w", r.current.address, err))
		return true, false
	}
	return true, r.addReplayed(d, &o, res)
}

// readOutcome decodes an outcome from the log. It keeps all digits of the numbers in the outcome's state.
func readOutcome(data json.RawMessage, o *loop.Outcome) error {
	if err := json.Unmarshal(data, o); err != nil || o.State == nil {
		return err
	}
	var kept struct {
		State json.RawMessage `json:"state"`
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	state, err := session.PlainJSON(kept.State)
	o.State, _ = state.(map[string]any)
	return err
}

// addReplayed adds the logged outcome of a step from an earlier part of the run to the tally, and yields its last mark.
func (r *run) addReplayed(d *loop.Decision, o *loop.Outcome, res *drive.StepResult) bool {
	if over := r.current.endMark; over != nil {
		if r.current.endMark = nil; !r.yieldMark(over) {
			return false
		}
	}
	if !r.scoresStart(d) {
		r.recordOutput(d.Step, res)
	}
	if o.Exit != nil && r.exits.accepted == nil {
		r.exits.refused = new(session.Exit)
	}
	if r.steps.cache != nil && !o.Cached {
		r.storeInCache(d, res, o.Finished)
	}
	if r.readsState() {
		o.State = r.recordedKeys.restoredState(r.stateForDecision(), o.State)
	}
	if res.Err != nil && o.Failure != nil {
		r.failures.current = res.Err
		if _, ok := errors.AsType[*agent.StepError](res.Err); !ok {
			r.failures.current = r.stepError(d, res.Err)
		}
		spent, _ := errors.AsType[*budget.ExceededError](res.Err)
		if spent != nil && o.Failure.Kind == loop.BudgetSpent && spent.Budget != r.Name() && r.loop.Outer != nil {
			r.failures.outer = res.Err
		}
	}
	r.add(d, o, res.Err)
	r.loop.Started = r.now().Add(-r.tally.Active) // the time between the parts of the run does not count
	return true
}

// GoesOn returns nil if the loop, with its present plan, can continue where a loop with an earlier
// plan has stopped. Runners call it before they resume. The error is a [*loop.StoppedError], or
// reports a mark that cannot be read.
func (a *Agent) GoesOn(stopped, plan *mark.Mark) error {
	if a.plan == nil {
		return errors.New("the loop was not made by New")
	}
	var rec loop.StopRecord
	var old loop.Plan
	if err := stopped.Decode(&rec); err != nil {
		return err
	}
	if err := plan.Decode(&old); err != nil {
		return err
	}
	return a.plan.Lifts(&rec, &old)
}

// continueWithPlan reports whether the loop follows another plan from here on than before. This happens when a stopped loop
// continues, and when a loop that was cut off has new limits. If the new limits end the loop at this point, it
// stops because of them.
func (r *run) continueWithPlan() bool {
	if !r.mode.resumed {
		return false
	}
	replays := r.place.IsReplay()
	reopened := r.place.Continued()
	switch {
	case !reopened && (!r.phase.planChanged || replays):
		return false
	case r.reopen():
		return true
	case reopened && !replays:
		return false
	}
	r.phase.notContinued = nil
	r.comparePlans()
	return true
}

// reopen continues a stopped loop, or a loop whose plan has changed. If the old reason to stop still
// holds, it reports false, and the loop stops as before.
func (r *run) reopen() bool {
	t := r.tally
	t.Bounds = nil // they come from the present plan, because the outcomes were added again with it
	if err := r.plan.Reopen(&t); err != nil {
		r.phase.notContinued = err
		return false
	}
	r.tally, r.phase.finalizing = t, false
	r.comparePlans()
	r.loop.Started = r.now().Add(-r.tally.Active)
	return true
}

// useLoggedRules sets the plan's version of the rules to the version with which the log was written. It also takes the
// baseline and the scorers from the logged plan.
func (r *run) useLoggedRules() {
	var was loop.Plan
	known := r.place.Recorded()
	if known == nil || known.Mark == nil || known.Mark.Kind != mark.KindLoopStarted || known.Mark.Decode(&was) != nil {
		return
	}
	own := *r.plan
	own.Version = was.Version
	if s := own.Score; s != nil && was.Score != nil && (s.Baseline != was.Score.Baseline || !slices.Equal(s.Scorers, was.Score.Scorers)) {
		score := *s
		score.Baseline, score.Scorers = was.Score.Baseline, was.Score.Scorers
		own.Score = &score
	}
	r.plan = &own
}

// comparePlans notes whether the mark to be replayed has another plan than the loop has now. If so,
// the loop writes a mark with its own plan when it continues.
func (r *run) comparePlans() {
	r.phase.planChanged = false
	known := r.place.Recorded()
	if known == nil || known.Mark == nil || known.Mark.Kind != mark.KindLoopStarted &&
		known.Mark.Kind != mark.KindLoopContinued {
		return
	}
	now, err := json.Marshal(r.plan)
	var was, is any
	if err == nil && json.Unmarshal(known.Mark.Data, &was) == nil && json.Unmarshal(now, &is) == nil {
		r.phase.planChanged = !reflect.DeepEqual(was, is)
	}
}

// readsState reports whether the loop's decisions depend on the state.
func (r *run) readsState() bool {
	return r.plan.StopWhen != nil || r.plan.Score != nil || r.plan.NoProgress != nil || r.plan.StateLimit > 0 || r.plan.Watch != nil
}

// stateForDecision returns the values of the state that the loop's decisions depend on, or nil.
func (r *run) stateForDecision() map[string]any {
	if len(r.reads) == 0 && !r.readsAll && !r.stateDecides() {
		return nil
	}
	return r.place.StateMap(r.loop.IterationAddress, r.reads, r.readsAll)
}
