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
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/session"
)

// walk follows a loop's rules from outcome to outcome, with its limits of time,
// which the stage has left out. What the steps have left is taken from a run on the
// stage, and from its last iteration again and again where that was cut off; how
// long they take is made up.
type walk struct {
	*study.Cast
	loop   *definition.Agent
	plan   *loop.Plan
	stepOf time.Duration // how long a step takes
	take   *Take
	rec    *progress.Recording

	// Hang says how long the attempt that a decision is about hangs, and whether
	// it does; nil: none does. A time of 0 is for ever.
	Hang  func(loop.Decision) (time.Duration, bool)
	outer bound // what the loops around leave it

	Judging *Judging // gives the scores in place of what was played; may be nil
	Most    int      // iterations after which enough is seen; 0: they are not counted

	Tally   loop.Tally
	elapsed time.Duration
	seen    map[[2]int]int // by iteration and step
	calls   int64

	played *played // what the stage has of it; made when it is first asked for
}

// played are the outcomes of a recording, to be found again and again.
type played struct {
	at         map[[2]int][]*loop.Outcome // by iteration and step
	iterations map[int][]int              // by step: those in which it was played, in order
}

func playedIn(rec *progress.Recording) *played {
	p := &played{make(map[[2]int][]*loop.Outcome), make(map[int][]int)}
	if rec == nil {
		return p
	}
	for i := range rec.Outcomes {
		o := &rec.Outcomes[i]
		if o.Canceled != "" {
			continue
		}
		at := [2]int{o.Iteration, o.Step}
		if p.at[at] == nil {
			p.iterations[o.Step] = append(p.iterations[o.Step], o.Iteration)
		}
		p.at[at] = append(p.at[at], o)
	}
	for _, its := range p.iterations {
		slices.Sort(its)
	}
	return p
}

// upTo are the outcomes of a step in the last iteration up to one in which it was
// played.
func (p *played) upTo(step, iteration int) []*loop.Outcome {
	its := p.iterations[step]
	if i, found := slices.BinarySearch(its, iteration); found {
		iteration = its[i]
	} else if i > 0 {
		iteration = its[i-1]
	} else {
		iteration = 0
	}
	return p.at[[2]int{iteration, step}]
}

// bound is a limit of time around a loop.
type bound struct {
	time time.Duration // 0 is none
	name string
}

// walked is what came of a walk.
type walked struct {
	Stop  *loop.StopRecord // nil if it does not end by itself
	Fatal *loop.StepFailure
	// Guard names what has ended it from outside of the loop; "": nothing has.
	Guard      string
	Elapsed    time.Duration
	Iterations int
	calls      int64
	Hangs      int // attempts that were cut off
	Failed     int
	Hung       bool // for ever
	far        bool // it was not followed to its end

	limit time.Duration // the loop's, of which a share is kept for the finalizer
	kept  float64
}

// maxWalk is how many steps show that nothing ends a loop.
const maxWalk = 100_000

// begun is where walks begin in time: some moment, always the same.
var begun = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

func (w *walk) Run() walked {
	w.seen = make(map[[2]int]int)
	limit := int64(w.Def.MaxModelCalls)
	if limit == 0 {
		limit = agent.DefaultMaxLLMCalls
	}
	out := walked{limit: time.Duration(w.plan.Timeout), kept: w.plan.Share()}
	done := func() walked {
		out.Elapsed, out.Iterations, out.calls, out.Fatal = w.elapsed, w.Tally.Iteration, w.calls, w.Tally.Fatal
		out.Failed = w.Tally.Failures
		return out
	}
	for range maxWalk {
		d := w.plan.Next(&w.Tally, begun)
		switch d.Action {
		case loop.Stop:
			out.Stop = d.Stop
			return done()
		case loop.Rollback:
			w.plan.Add(&w.Tally, loop.Outcome{Iteration: d.Iteration, Step: -1, RolledBack: true})
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
	switch n := w.plan.MaxIterations; { // that far away, but there
	case n > 0:
		out.Guard = fmt.Sprintf("max_iterations: %d", n)
	case w.plan.Timeout > 0 && w.elapsed > 0:
		out.Guard = LimitName(w.loop, nil, loop.TotalTimeout, 0)
	}
	return done()
}

// outcome is what comes of a decision. Ever says that nothing in the loop ends it.
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
		recorded.Between = 0 // that was real time
		o, took = recorded, length
		limited = d.Timeout > 0 && took > d.Timeout
	} else if o.State == nil { // it has written nothing
		o.State, o.Wrote = w.last(d), []string{}
	}
	if limited {
		took, o.Exit = d.Timeout, nil
		o.Failure = &loop.Failure{Kind: d.TimeoutKind, Message: "it took longer than " + d.Timeout.String()}
	}
	o.Finished = o.Started.Add(d.Wait + took)
	w.calls += o.Usage.Calls
	return o, hangs, ever
}

// recorded is what a step has left on the stage: the same attempt in the same
// iteration, or in the last one that was recorded.
func (w *walk) recorded(d *loop.Decision) (loop.Outcome, time.Duration) {
	at := [2]int{d.Iteration, d.Step}
	n := w.seen[at]
	w.seen[at]++
	if w.played == nil {
		w.played = playedIn(w.rec)
	}
	all := w.played.upTo(d.Step, d.Iteration)
	if len(all) == 0 {
		return loop.Outcome{State: w.last(d)}, w.stepTime(w.loop.SubAgents[d.Step], "")
	}
	best := all[min(n, len(all)-1)]
	o := *best
	if o.Iteration < d.Iteration {
		// In iterations that were not played nobody says the same twice.
		o.Fingerprint = vary(o.Fingerprint, d.Iteration-o.Iteration)
		o.Exit = nil
	}
	addr := session.Address("")
	if w.rec != nil {
		addr = w.rec.Loop + session.Address("["+study.Decimal(float64(best.Iteration))+"]/"+w.plan.Steps[d.Step].Name)
	}
	return o, w.stepTime(w.loop.SubAgents[d.Step], addr)
}

// last is the state that the last recorded step has left.
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

// vary keeps fingerprints of later iterations apart, in turns: where the last two
// were alike they stay so.
func vary(print string, n int) string { return cmp.Or(print, "nothing") + study.Decimal(float64(n)) }

// stepTime is how long an agent's turn takes. At an address where loops in it were
// played it is as long as their iterations together.
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
			if t := w.stepTime(sub, own); a.Type == definition.TypeParallel {
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

func (w *walk) recordingAt(at session.Address) *progress.Recording {
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

func (w walked) Unscored() bool { return w.Stop == nil || w.Stop.BestScore == nil }

// NoiseKey is where the rules find a score that was drawn.
const NoiseKey = "rehearsal:judge"

// Judging has the rules of a walk read scores that are drawn.
type Judging struct {
	Step  int // that scores
	Draw  func() float64
	value any
	Dims  []string
}

// mark puts the score into the state that a step has left.
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

// around is the least time that the loops around a loop, or around an agent in one,
// leave it in their first iteration.
func (s *Stage) around(a *definition.Agent) bound {
	var least bound
	for l := s.LoopAround(a); l != nil; l = s.LoopAround(l) {
		w := &walk{Cast: s.Cast, loop: l, plan: s.Plans[l.Name], stepOf: s.StepTime}
		for range len(l.SubAgents) {
			d := w.plan.Next(&w.Tally, begun)
			if d.Action != loop.RunStep {
				break
			}
			if l.SubAgents[d.Step] == s.StepIn(a, l) {
				if d.Timeout > 0 && (least.time == 0 || d.Timeout < least.time) {
					least = bound{d.Timeout, LimitName(l, l.SubAgents[d.Step], d.TimeoutKind, d.Timeout)}
				}
				break
			}
			o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: begun.Add(w.elapsed), Waited: d.Wait}
			w.elapsed += d.Wait + w.stepTime(l.SubAgents[d.Step], session.Address(""))
			o.Finished = begun.Add(w.elapsed)
			w.plan.Add(&w.Tally, o)
		}
	}
	return least
}

// Walk follows the rules of a loop from what was played.
func (s *Stage) Walk(l *definition.Agent, plan *loop.Plan, t *Take) *walk {
	w := &walk{Cast: s.Cast, loop: l, plan: plan, stepOf: s.StepTime, take: t, outer: s.around(l)}
	if t != nil {
		w.rec = t.Of(l)
	}
	return w
}
