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

// recall answers a step from the log of a resumed run. known reports that the step has finished
// there. There are no delays and no time limits. more reports whether the loop continues.
func (r *run) recall(d *loop.Decision) (known, more bool) {
	if r.cache != nil {
		r.keyOf(d)
	}
	res, known := r.stepAt(d.Step).Replay(&drive.StepRun{Address: r.address(d), Attempt: d.Attempt}, r.onEv)
	if !known || res.Left {
		return known, false
	}
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step}
	if res.Recorded == nil { // the context was over on the way
		r.outcome(&o, d, res.Err, ended)
	} else if err := readOutcome(res.Recorded.Outcome, &o); err != nil {
		r.yield(nil, fmt.Errorf("read the recorded outcome of %s: %w", r.here, err))
		return true, false
	}
	return true, r.recalled(d, &o, res)
}

// readOutcome reads an outcome of the log, with all digits of the numbers in its state.
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

// recalled adds the outcome of a step from an earlier part of the run.
func (r *run) recalled(d *loop.Decision, o *loop.Outcome, res *drive.StepResult) bool {
	if over := r.over; over != nil {
		if r.over = nil; !r.pass(over) {
			return false
		}
	}
	if !r.scoresStart(d) {
		r.heard(d.Step, res)
	}
	if o.Exit != nil && r.exit == nil {
		r.refused = new(session.Exit)
	}
	if r.cache != nil && !o.Cached {
		r.keep(d, res, o.Finished)
	}
	if r.looksAtState() {
		o.State = r.apart.recorded(r.seen(), o.State)
	}
	if res.Err != nil && o.Failure != nil {
		r.err = res.Err
		if _, ok := errors.AsType[*agent.StepError](res.Err); !ok {
			r.err = r.stepError(d, res.Err)
		}
		spent, _ := errors.AsType[*budget.ExceededError](res.Err)
		if spent != nil && o.Failure.Kind == loop.BudgetSpent && spent.Budget != r.Name() && r.loop.Outer != nil {
			r.beyond = res.Err
		}
	}
	r.add(d, o, res.Err)
	r.loop.Started = r.now().Add(-r.tally.Active) // the time between is nobody's
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

// continues reports whether from here on the loop follows another plan than before: a stopped loop
// continues (LOOP 31), or a loop that was cut off has new limits. If the new limits end the loop
// here, it stops by them.
func (r *run) continues() bool {
	if !r.resumed {
		return false
	}
	replays := r.me.Replays()
	reopened := r.me.Continued()
	switch {
	case !reopened && (!r.changed || replays):
		return false
	case r.goOn():
		return true
	case reopened && !replays:
		return false
	}
	r.stays = nil
	r.otherPlan()
	return true
}

// goOn continues a stopped loop, or a loop whose plan has changed. If the old reason to stop still
// holds, it reports false, and the loop stops as before.
func (r *run) goOn() bool {
	t := r.tally
	t.Bounds = nil // they are those of now: the outcomes were added again
	if err := r.plan.Reopen(&t); err != nil {
		r.stays = err
		return false
	}
	r.tally, r.finalizing = t, false
	r.otherPlan()
	r.loop.Started = r.now().Add(-r.tally.Active)
	return true
}

// sameRules gives the loop the version of the rules that its log was made by, and a baseline only if it had one.
func (r *run) sameRules() {
	var was loop.Plan
	known := r.me.Recorded()
	if known == nil || known.Mark == nil || known.Mark.Kind != mark.KindLoopStarted || known.Mark.Decode(&was) != nil {
		return
	}
	own := *r.plan
	own.Rules = was.Rules
	if s := own.Score; s != nil && was.Score != nil && (s.Baseline != was.Score.Baseline || !slices.Equal(s.Scorers, was.Score.Scorers)) {
		score := *s
		score.Baseline, score.Scorers = was.Score.Baseline, was.Score.Scorers
		own.Score = &score
	}
	r.plan = &own
}

// otherPlan notes whether the mark to be replayed has another plan than the loop has now. If so,
// the loop writes a mark with its own plan when it continues.
func (r *run) otherPlan() {
	r.changed = false
	known := r.me.Recorded()
	if known == nil || known.Mark == nil || known.Mark.Kind != mark.KindLoopStarted &&
		known.Mark.Kind != mark.KindLoopContinued {
		return
	}
	now, err := json.Marshal(r.plan)
	var was, is any
	if err == nil && json.Unmarshal(known.Mark.Data, &was) == nil && json.Unmarshal(now, &is) == nil {
		r.changed = !reflect.DeepEqual(was, is)
	}
}

// looksAtState reports whether the loop's decisions depend on the state.
func (r *run) looksAtState() bool {
	return r.plan.StopWhen != nil || r.plan.Score != nil || r.plan.NoProgress != nil || r.plan.StateLimit > 0 || r.plan.Watch != nil
}

// seen returns the values of the state that the loop's decisions depend on, or nil.
func (r *run) seen() map[string]any {
	if len(r.reads) == 0 && !r.readsAll && !r.decides() {
		return nil
	}
	return r.me.StateMap(r.loop.Pass, r.reads, r.readsAll)
}
