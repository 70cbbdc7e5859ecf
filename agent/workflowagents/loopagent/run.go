// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// run is one run of a loop: what package loop has decided, and what is needed
// to carry it out.
type run struct {
	*Agent
	ctx   agent.InvocationContext
	yield func(*session.Event, error) bool
	onEv  func(*session.Event) bool // run.event, bound once
	loop  *agent.Loop
	steps []*agent.Step     // by index in the plan, made when first run
	words []*session.Event  // what each said last
	at    []session.Address // where each is in this iteration
	names int               // how long the steps' names are together
	buf   []byte            // for place
	timed bool              // the clock is read

	tally      loop.Tally
	exit       *session.Exit // the request that the step made, if it is followed
	refused    *session.Exit // one that is not
	finalizing bool
	stopped    bool
	err        error // the last failure

	cur, last, best *session.Event // what the iterations said
	final           *session.Event // what the finalizer said
	said            *session.Event // what was said last
}

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	here := agent.AddressOf(ctx)
	r := &run{
		Agent: a, ctx: ctx, yield: yield, steps: make([]*agent.Step, len(a.plan.Steps)), words: make([]*session.Event, len(a.plan.Steps)),
		at:    make([]session.Address, len(a.plan.Steps)),
		timed: !a.plain || a.cfg.OnStop != nil || a.cfg.KeepStates || agent.Marks(ctx),
		loop: &agent.Loop{
			Name: a.Name(), Address: here, MaxIterations: a.cfg.MaxIterations, Outer: agent.LoopOf(ctx),
			Goal: a.cfg.Goal, Instructions: a.cfg.Instructions,
		},
	}
	for _, step := range a.plan.Steps {
		r.names += len(step.Name)
	}
	r.onEv = r.event
	r.loop.Started = r.now()
	for r.next() {
	}
	if !r.stopped && ctx.Err() != nil { // cut off while an event was on its way
		r.fail(context.Cause(ctx))
	}
}

// next does what the plan says comes next and reports whether to go on.
func (r *run) next() bool {
	d := r.plan.Next(&r.tally, r.now())
	if d.Ended.Number > 0 && !r.endIteration(d.Ended) {
		return false
	}
	switch d.Action {
	case loop.RunStep:
		if d.Iteration != r.loop.Iteration && !r.beginIteration(d.Iteration) {
			return false
		}
		return r.step(d)
	case loop.Finalize:
		r.finalizing = true
		r.loop.Pass = r.loop.Address
		return r.step(d)
	default:
		r.stop(d.Stop)
		return false
	}
}

func (r *run) now() time.Time {
	if !r.timed {
		return time.Time{}
	}
	return time.Now()
}

// step runs one sub-agent and adds what it left to the tally.
func (r *run) step(d loop.Decision) bool {
	s := r.steps[d.Step]
	if s == nil {
		s = agent.NewStep(r.ctx, agent.StepConfig{Agent: r.cfg.AgentConfig.SubAgents[d.Step], Loop: r.loop})
		r.steps[d.Step] = s
	}
	o := loop.Outcome{Iteration: d.Iteration, Step: d.Step, Started: r.now()}
	r.exit, r.refused = nil, nil
	res := s.RunAt(r.address(d.Step), r.onEv)
	if res.Left {
		return false
	}
	r.heard(d.Step, res.Said)
	o.Finished = r.now()
	r.outcome(&o, res.Err)
	r.plan.Add(&r.tally, o)
	return true
}

// heard takes down a step's last words; nil if it said none. A step that used to
// speak and leaves the loop in silence lets its earlier words stand.
func (r *run) heard(step int, words *session.Event) {
	switch {
	case words == nil:
		if r.exit != nil && r.words[step] != nil {
			r.cur = r.words[step]
		}
		return
	case r.finalizing:
		r.final = words
	default:
		r.cur, r.words[step] = words, words
	}
	r.said = words
}

// outcome fills in what became of a step.
func (r *run) outcome(o *loop.Outcome, err error) {
	if r.exit != nil {
		o.Exit = exitOf(r.exit)
	} else if r.refused != nil {
		o.Exit = exitOf(r.refused)
	}
	if r.cfg.StopWhen != nil || r.cfg.Score != nil {
		o.State = r.state(r.loop.Pass)
	}
	_, panicked := errors.AsType[*agent.PanicError](err)
	if r.ctx.Err() != nil && !panicked { // perhaps the step ended early, without a word
		o.Canceled = context.Cause(r.ctx).Error()
		return
	}
	if err == nil {
		return
	}
	r.err = err
	o.Failure = &loop.Failure{Kind: loop.Failed, Message: err.Error()}
	if panicked {
		o.Failure.Kind = loop.Panicked
	}
}

// state is a copy of the state as a step at an address sees it.
func (r *run) state(at session.Address) map[string]any {
	if v, ok := r.ctx.Session().(*session.View); ok {
		return maps.Collect(v.StateAt(at).All())
	}
	return maps.Collect(r.ctx.Session().State().All())
}

func (r *run) beginIteration(n int) bool {
	r.loop.Iteration = n
	r.place(n)
	r.cur = nil
	return r.callBack(len(r.cfg.BeforeIteration), func(i int, ctx agent.Context) error {
		return r.cfg.BeforeIteration[i](ctx, n)
	})
}

// place makes the addresses of an iteration: that of the pass, and those of its
// steps. They are cut from one text.
func (r *run) place(n int) {
	buf := r.buf[:0]
	for _, step := range r.plan.Steps {
		buf = append(buf, r.loop.Address...)
		buf = append(buf, '[')
		buf = strconv.AppendInt(buf, int64(n), 10)
		buf = append(buf, "]/"...)
		buf = append(buf, step.Name...)
	}
	text := session.Address(buf)
	pass := (len(text) - r.names) / len(r.at) // what stands before each name
	for i, step := range r.plan.Steps {
		end := pass + len(step.Name)
		r.at[i], text = text[:end], text[end:]
	}
	r.loop.Pass = r.at[0][:pass-1]
	r.buf = buf
}

// address is where a step runs. The finalizer is in no iteration.
func (r *run) address(step int) session.Address {
	if r.finalizing {
		return r.loop.Address + "/" + session.Address(r.plan.Steps[step].Name)
	}
	return r.at[step]
}

// endIteration takes down what an iteration came to.
func (r *run) endIteration(it loop.IterationRecord) bool {
	if it.Complete {
		r.last = r.cur
	}
	r.loop.Score = it.Score
	if it.Best {
		r.best, r.loop.BestScore = r.cur, it.Score
	}
	if v, ok := r.ctx.Session().(*session.View); ok {
		v.EndIteration(r.loop.Pass)
	}
	if agent.Marks(r.ctx) && !r.mark(session.MarkIterationFinished, it, nil) {
		return false
	}
	ok := r.callBack(len(r.cfg.AfterIteration), func(i int, ctx agent.Context) error {
		return r.cfg.AfterIteration[i](ctx, it)
	})
	if r.cfg.KeepStates { // with what the callbacks made of it
		r.loop.Prev = r.state(r.loop.Address)
		if it.Best {
			r.loop.Best = r.loop.Prev
		}
	}
	return ok
}

// callBack calls n iteration callbacks and yields what they changed.
func (r *run) callBack(n int, call func(int, agent.Context) error) bool {
	if n == 0 {
		return true
	}
	ev := &session.Event{}
	ctx := agent.NewCallbackContext(r.ctx, &ev.Actions)
	for i := range n {
		if err := call(i, ctx); err != nil {
			r.fail(fmt.Errorf("iteration callback: %w", err))
			return false
		}
	}
	return len(ev.Actions.StateDelta) == 0 && len(ev.Actions.ArtifactDelta) == 0 || r.yield(ev, nil)
}

// fail stops the loop for a reason that no step has given.
func (r *run) fail(err error) {
	r.err = err
	if r.ctx.Err() != nil {
		r.plan.Add(&r.tally, loop.Outcome{Iteration: r.loop.Iteration, Step: -1, Canceled: context.Cause(r.ctx).Error()})
	} else {
		r.tally.Fatal = &loop.StepFailure{Failure: loop.Failure{Kind: loop.Failed, Message: err.Error()}}
	}
	r.stop(r.plan.Next(&r.tally, r.now()).Stop)
}

// stop says what the loop came to, and ends with the error if it is one.
func (r *run) stop(rec *loop.StopRecord) {
	r.stopped = true
	if r.cfg.OnStop != nil {
		r.cfg.OnStop(r.ctx, rec)
	}
	if !r.plain || agent.Marks(r.ctx) {
		if !r.conclude(rec) {
			return
		}
	}
	switch {
	case rec.Reason == loop.ReasonError:
		r.yield(nil, r.err)
	case r.ctx.Err() != nil: // whatever the reason: it may have been the finalizer's turn
		r.yield(nil, context.Cause(r.ctx))
	}
}

// conclude yields the loop's last events: its mark, its result under its output
// key, and the words of the result if they were not the last that were said. A
// canceled loop leaves its mark and says no more.
func (r *run) conclude(rec *loop.StopRecord) bool {
	result := map[loop.Source]*session.Event{
		loop.FromFinalizer: r.final, loop.FromBest: r.best, loop.FromLast: r.last, loop.FromPartial: r.cur,
	}[rec.Result.Source]
	if r.ctx.Err() != nil {
		result = nil
	}
	ev := &session.Event{}
	if result != nil && r.cfg.OutputKey != "" {
		ev.Actions.StateDelta = map[string]any{r.cfg.OutputKey: result.Text()}
	}
	if agent.Marks(r.ctx) {
		if !r.mark(session.MarkLoopStopped, rec, ev) {
			return false
		}
		ev = &session.Event{} // an event with a mark has no words
	}
	if result != nil && result != r.said {
		ev.Content = genai.NewContentFromText(result.Text(), genai.RoleModel)
	}
	if ev.Content == nil && ev.Actions.StateDelta == nil {
		return true
	}
	return r.yield(ev, nil)
}

// mark yields a mark on ev, or on an event of its own.
func (r *run) mark(kind session.MarkKind, data any, ev *session.Event) bool {
	m, err := session.NewMark(kind, data)
	if err != nil {
		r.yield(nil, err)
		return false
	}
	if ev == nil {
		ev = &session.Event{}
	}
	ev.Mark = m
	return r.yield(ev, nil)
}
