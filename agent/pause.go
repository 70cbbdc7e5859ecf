// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// ErrPaused is the cause with which a run ends that was asked to pause.
var ErrPaused = errors.New("paused")

// Pause asks a run to end at its next boundary: between two steps, when nothing
// that does work is under way. A step that has begun comes to its end first, and
// so do those that run beside it. A durable run that ended so loses nothing when
// it is resumed. A Pause is for one run, which gets it in its [RunConfig]; its
// zero value is ready.
//
// What does work is an agent that runs no others, or that asks a model.
type Pause struct {
	mu     sync.Mutex
	cause  error
	busy   map[*Work]bool  // steps that are under way
	run    context.Context // of the run; nil before it is bound
	cancel context.CancelCauseFunc
}

// Ask asks for the pause. The run ends with the cause, which is usually
// [ErrPaused]. The first cause counts.
func (p *Pause) Ask(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
	}
	p.end()
}

// Asked is the cause of a pause that was asked for; nil if there is none.
func (p *Pause) Asked() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// bind says which context ends with the run, and how. p.mu is free.
func (p *Pause) bind(run context.Context, cancel context.CancelCauseFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run, p.cancel = run, cancel
	p.end()
}

// end ends the run if it is to end and nothing is under way. p.mu is held.
func (p *Pause) end() {
	if p.cause != nil && len(p.busy) == 0 && p.cancel != nil {
		p.cancel(p.cause)
	}
}

// Pausable returns a context that the run's [RunConfig.Pause] can end, and a
// function to be called when the run is over. It is for runners.
func Pausable(ctx context.Context, cfg *RunConfig) (context.Context, func()) {
	if cfg.Pause == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cfg.Pause.bind(ctx, cancel)
	return ctx, func() { cancel(nil) }
}

// Work is a step that does work, and that a [Pause] waits for. nil is none.
type Work struct {
	pause *Pause
	fence *fence // around the step
}

// Begin says that a step of a is about to do work. While the run is to be paused
// it waits until ctx is over. Whoever calls it calls Done when the step is over
// and what it came to is in the log; it is for agents that write down more about
// a step than the step itself does, and give it to [StepRun.Work]. It returns nil
// where there is nothing to wait for.
func Begin(ctx InvocationContext, a Agent) *Work {
	inv := invocationOf(ctx)
	if inv == nil || inv.run.RunConfig.Pause == nil || inv.work != nil || !works(a) {
		return nil
	}
	return inv.run.RunConfig.Pause.begin(ctx, inv.fence, false)
}

// begin counts a step as under way. If a pause was asked for, it waits for the end of
// the run instead and returns nil. A stranger is a step whose context does not tell
// which step it runs in: it may be part of one that is under way, and the pause that
// waits for that one must not make it wait.
func (p *Pause) begin(ctx context.Context, f *fence, stranger bool) *Work {
	p.mu.Lock()
	if p.cause != nil && p.run != nil && ctx.Err() == nil && !(stranger && len(p.busy) > 0) {
		p.end()
		p.mu.Unlock()
		select { // steps beside it end first
		case <-p.run.Done():
		case <-ctx.Done():
		}
		return nil
	}
	defer p.mu.Unlock()
	w := &Work{pause: p, fence: f}
	if p.busy == nil {
		p.busy = make(map[*Work]bool)
	}
	p.busy[w] = true
	return w
}

// Done says that the step is over.
func (w *Work) Done() {
	if w == nil {
		return
	}
	w.pause.mu.Lock()
	defer w.pause.mu.Unlock()
	delete(w.pause.busy, w)
	w.pause.end()
}

// leave is Done for all that was left behind within a fence.
func (p *Pause) leave(f *fence) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.busy, func(w *Work, _ bool) bool { return w.fence.within(f) })
	p.end()
}

// works reports whether an agent does work itself: then what it runs is part of
// that work.
func works(a Agent) bool { return len(a.SubAgents()) == 0 || TypeOf(a) == TypeLLM }
