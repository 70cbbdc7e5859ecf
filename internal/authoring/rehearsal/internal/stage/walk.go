// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/history/progress/backtest"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// walk applies a loop's rules to the recorded outcomes of a run, with the time limits that the
// stage removes. Where the run was cut off, the outcomes of its last iteration repeat. The
// durations of the steps are made up.
type walk struct {
	*study.Cast
	loop   *definition.Agent
	plan   *loop.Plan
	stepOf time.Duration // how long a step takes
	take   *Take
	rec    *backtest.Recording

	// Hang says whether the attempt of a decision hangs, and for how long; 0 is for ever. A nil
	// Hang means that no attempt hangs.
	Hang  func(loop.Decision) (time.Duration, bool)
	outer bound // the time that the loops around leave

	Judging *Judging // replaces the recorded scores; may be nil
	Most    int      // end the walk after these iterations; 0 means no limit

	Tally   loop.Tally
	elapsed time.Duration
	seen    map[[2]int]int // by iteration and step
	calls   int64
}

// played returns the recorded outcomes of a step in an iteration or, if it has none there, in the last iteration before
// that has some.
func (w *walk) played(step, iteration int) (all []*loop.Outcome) {
	if w.rec == nil {
		return nil
	}
	last := 0
	for i := range w.rec.Outcomes {
		o := &w.rec.Outcomes[i]
		if o.Step != step || o.Canceled != "" || o.Iteration > iteration || o.Iteration < last {
			continue
		}
		if o.Iteration > last {
			last, all = o.Iteration, nil
		}
		all = append(all, o)
	}
	return all
}

// bound is a time limit around a loop.
type bound struct {
	time time.Duration // 0 means no limit
	name string
}

// Walked is the result of a walk.
type Walked struct {
	Stop  *loop.StopRecord // nil if the loop does not end by itself
	Fatal *loop.StepFailure
	// Guard names the limit outside of the loop that ended it; empty if none did.
	Guard      string
	Elapsed    time.Duration
	Iterations int
	// Records are the iterations that have ended, and Ended says when. Undone has those that were rolled
	// back, with the iterations whose state came back.
	Records []loop.IterationRecord
	Ended   []time.Duration
	Undone  map[int]int
	calls   int64
	Hangs   int // attempts that were cut off
	Failed  int
	Hung    bool // an attempt hung for ever
	far     bool // the walk was given up before the loop ended

	limit time.Duration // of the loop; the finalizer's share is part of it
	kept  float64
}

// maxWalk is the number of steps after which nothing ends a loop.
const maxWalk = 100_000

// begun is the time at which every walk begins.
var begun = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *walk) Run() Walked {
	w.seen = make(map[[2]int]int)
	limit := int64(w.Def.MaxModelCalls)
	if limit == 0 {
		limit = agent.DefaultMaxLLMCalls
	}
	out := Walked{limit: time.Duration(w.plan.Timeout), kept: w.plan.Share()}
	done := func() Walked {
		out.Elapsed, out.Iterations, out.calls, out.Fatal = w.elapsed, w.Tally.Iteration, w.calls, w.Tally.Fatal
		out.Failed = w.Tally.Failures
		return out
	}
	for range maxWalk {
		d := w.plan.Next(&w.Tally)
		if n := len(out.Records); d.Ended.Number > 0 && (n == 0 || out.Records[n-1].Number != d.Ended.Number) {
			out.Records, out.Ended = append(out.Records, d.Ended), append(out.Ended, w.elapsed)
		}
		switch d.Action {
		case loop.Stop:
			out.Stop = d.Stop
			return done()
		case loop.Rollback:
			if out.Undone == nil {
				out.Undone = make(map[int]int)
			}
			out.Undone[d.Iteration] = d.To
			w.plan.Add(&w.Tally, loop.Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true})
			continue
		case loop.BeginLeg:
			w.plan.Add(&w.Tally, loop.Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true, Leg: d.Leg})
			continue
		}
		if w.Most > 0 && d.Iteration > w.Most {
			break
		}
		o, hangs, ever := w.outcome(&d)
		if w.Judging != nil {
			w.Judging.mark(&o)
		}
		if hangs {
			out.Hangs++
		}
		spent := w.elapsed + o.Finished.Sub(o.Started)
		switch {
		case w.outer.time > 0 && (ever || spent >= w.outer.time):
			w.elapsed = w.outer.time
			out.Guard = w.outer.name
			return done()
		case ever:
			out.Hung = true
			return done()
		case limit > 0 && w.calls > limit:
			out.Guard = "max_model_calls: " + study.Decimal(float64(limit))
			if w.Def.MaxModelCalls == 0 {
				out.Guard += " (the default)"
			}
			return done()
		}
		w.elapsed = spent
		w.plan.Add(&w.Tally, o)
	}
	out.far = true
	switch n := w.plan.MaxIterations; { // a limit that the walk did not reach
	case n > 0:
		out.Guard = fmt.Sprintf("max_iterations: %d", n)
	case w.plan.Timeout > 0 && w.elapsed > 0:
		out.Guard = LimitName(w.loop, nil, loop.TotalTimeout, 0)
	}
	return done()
}

// outcome is the outcome of a decision. It reports whether the attempt hung, and whether nothing in
// the loop would have ended it.
func (w *walk) outcome(d *loop.Decision) (o loop.Outcome, hangs, ever bool) {
	o = loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: begun.Add(w.elapsed), Waited: d.Wait}
	var took time.Duration
	limited := false
	switch {
	case d.Refuse != nil:
		o.Failure = d.Refuse
	case w.Hang != nil:
		var own time.Duration
		if own, hangs = w.Hang(*d); !hangs {
			break
		}
		switch {
		case own > 0 && (d.Timeout == 0 || own < d.Timeout):
			took, o.Failure = own, &loop.Failure{Kind: loop.Failed, Message: "it did not end in its timeout"}
		case d.Timeout > 0:
			limited = true
		default:
			ever = true
		}
	}
	if !hangs && d.Refuse == nil {
		recorded, length := w.recorded(d)
		recorded.Iteration, recorded.Step, recorded.Started, recorded.Waited = o.Iteration, o.Step, o.Started, o.Waited
		recorded.Between = 0 // it was measured in real time
		o, took = recorded, length
		limited = d.Timeout > 0 && took > d.Timeout
	} else if o.State == nil { // the attempt wrote nothing
		o.State, o.Wrote = w.last(d), []string{}
	}
	if limited {
		took, o.Exit = d.Timeout, nil
		o.Failure = &loop.Failure{Kind: d.TimeoutKind, Message: "it took longer than " + brief.Clock(d.Timeout)}
	}
	o.Finished = o.Started.Add(d.Wait + took)
	w.calls += o.Usage.Calls
	return o, hangs, ever
}

// recorded returns the recorded outcome of the same attempt in the same iteration, or in the last
// recorded one.
func (w *walk) recorded(d *loop.Decision) (loop.Outcome, time.Duration) {
	at := [2]int{d.Iteration, d.Step}
	n := w.seen[at]
	w.seen[at]++
	all := w.played(d.Step, d.Iteration)
	if len(all) == 0 {
		return loop.Outcome{State: w.last(d)}, w.stepTime(w.loop.SubAgents[d.Step], "")
	}
	best := all[min(n, len(all)-1)]
	o := *best
	if o.Iteration < d.Iteration {
		// An iteration that was not recorded repeats no output and no exit.
		o.Fingerprint = vary(o.Fingerprint, d.Iteration-o.Iteration)
		o.Exit = nil
	}
	addr := session.Address("")
	if w.rec != nil {
		addr = w.rec.Loop + session.Address("["+study.Decimal(float64(best.Iteration))+"]/"+w.plan.Steps[d.Step].Name)
	}
	return o, w.stepTime(w.loop.SubAgents[d.Step], addr)
}

// last is the state after the last recorded step.
func (w *walk) last(d *loop.Decision) map[string]any {
	if w.rec == nil {
		return nil
	}
	var state map[string]any
	for i := range w.rec.Outcomes {
		if o := &w.rec.Outcomes[i]; o.State != nil && (state == nil || o.Iteration <= d.Iteration) {
			state = o.State
		}
	}
	return state
}

// vary makes the fingerprint of the n-th iteration after the recorded ones differ from all others.
func vary(print string, n int) string { return cmp.Or(print, "nothing") + study.Decimal(float64(n)) }

// stepTime is the time of one run of an agent. If the loops in it were recorded at the address, it
// is the time of all their iterations.
func (w *walk) stepTime(a *definition.Agent, at session.Address) time.Duration {
	var all time.Duration
	switch {
	case a.Type == definition.TypeLoop:
		inner, rec := 1, w.recordingAt(at)
		if rec != nil {
			inner = 0
			for i := range rec.Outcomes {
				if o := &rec.Outcomes[i]; o.Step >= 0 && o.Canceled == "" {
					all += w.stepTime(a.SubAgents[o.Step], rec.Loop+session.Address("["+
						study.Decimal(float64(o.Iteration))+"]/"+a.SubAgents[o.Step].Name))
				}
			}
		}
		for range inner {
			for _, sub := range a.SubAgents {
				all += w.stepTime(sub, "")
			}
		}
	case a.Type.Workflow():
		for _, sub := range a.SubAgents {
			own := at
			if own != "" {
				own += session.Address("/" + sub.Name)
			}
			t := w.stepTime(sub, own)
			if s := sub.Step; s != nil {
				t += time.Duration(s.DelayBefore + s.DelayAfter)
			}
			if a.Type == definition.TypeParallel {
				all = max(all, t)
			} else {
				all += t
			}
		}
	case study.Reaches(a):
		all = w.stepOf
	}
	return all
}

func (w *walk) recordingAt(at session.Address) *backtest.Recording {
	if w.take == nil || at == "" {
		return nil
	}
	for _, r := range w.take.Loops {
		if r.Loop == at {
			return r
		}
	}
	return nil
}

func (w Walked) Unscored() bool { return w.Stop == nil || w.Stop.BestScore == nil }

// NoiseKey is the state key of a drawn score.
const NoiseKey = "rehearsal:judge"

// Judging replaces the scores of a walk by drawn ones.
type Judging struct {
	Step  int // the step that gives the score
	Draw  func() float64
	value any
	Dims  []string
}

// mark puts the drawn score into the state after a step.
func (j *Judging) mark(o *loop.Outcome) {
	if o.Step == j.Step && !o.Cached && o.Failure == nil || j.value == nil && o.Cached {
		x := study.Tidy(j.Draw())
		parts := map[string]any{"score": x}
		inner := make(map[string]any)
		for _, name := range j.Dims {
			parts[name], inner[name] = x, x
		}
		parts["dimensions"] = inner
		j.value = parts
		if o.Wrote != nil {
			o.Wrote = append(slices.Clone(o.Wrote), NoiseKey)
		}
	}
	if j.value != nil {
		state := maps.Clone(o.State)
		if state == nil {
			state = make(map[string]any)
		}
		state[NoiseKey] = j.value
		o.State = state
	}
}

// around is the shortest time limit that the loops around an agent leave it in their first
// iteration.
func (s *Stage) around(a *definition.Agent) bound {
	var least bound
	for l := s.LoopAround(a); l != nil; l = s.LoopAround(l) {
		w := &walk{Cast: s.Cast, loop: l, plan: s.Plans[l.Name], stepOf: s.StepTime, Most: 1}
		own := s.StepIn(a, l)
		w.Hang = func(d loop.Decision) (time.Duration, bool) {
			if l.SubAgents[d.Step] == own && d.Timeout > 0 && (least.time == 0 || d.Timeout < least.time) {
				least = bound{d.Timeout, LimitName(l, own, d.TimeoutKind, d.Timeout)}
			}
			return 0, false
		}
		w.Run()
	}
	return least
}

// Walk applies the rules of a loop to what was recorded.
func (s *Stage) Walk(l *definition.Agent, plan *loop.Plan, t *Take) *walk {
	w := &walk{Cast: s.Cast, loop: l, plan: plan, stepOf: s.StepTime, take: t, outer: s.around(l)}
	if t != nil {
		w.rec = t.Of(l)
	}
	return w
}
