// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// ErrPaused is the cause with which a paused run ends.
var ErrPaused = errors.New("paused")

// Pause ends a run at its next boundary: between two steps, when no step is working. Steps that
// have begun finish first. A durable run that was paused loses nothing when it is resumed. A
// Pause is for one run, which gets it in its [RunConfig]. Its zero value is ready to use.
//
// A step is working if its agent runs no others, or calls a model.
type Pause struct {
	mu     sync.Mutex
	cause  error
	busy   map[*Work]bool  // steps that are under way
	run    context.Context // of the run; nil before it is bound
	cancel context.CancelCauseFunc
}

// Ask asks the run to pause. The run ends with cause, which is usually [ErrPaused]. Only the
// first call has an effect.
func (p *Pause) Ask(cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause == nil {
		p.cause = cause
	}
	p.end()
}

// Asked returns the cause of the requested pause, or nil.
func (p *Pause) Asked() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cause
}

// Bind sets the context that ends with the run, and the function that ends the run. Bind is for
// package drive.
func (p *Pause) Bind(run context.Context, cancel context.CancelCauseFunc) {
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

// Work is a working step that a [Pause] waits for. A nil Work stands for no step.
type Work struct {
	pause *Pause
	owner any
}

// Begin, which is for package drive, counts a step as working until [Work.Done] is called. If a
// pause was requested, Begin waits for the end of the run and returns nil. A stranger is a step
// whose context does not tell which step it runs in. A stranger does not wait, because the pause
// may wait for the step that it belongs to.
func (p *Pause) Begin(ctx context.Context, owner any, stranger bool) *Work {
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
	w := &Work{pause: p, owner: owner}
	if p.busy == nil {
		p.busy = make(map[*Work]bool)
	}
	p.busy[w] = true
	return w
}

// Done records that the step has ended.
func (w *Work) Done() {
	if w == nil {
		return
	}
	w.pause.mu.Lock()
	defer w.pause.mu.Unlock()
	delete(w.pause.busy, w)
	w.pause.end()
}

// Rest, which is for package drive, calls wait. Until wait returns, the step does not count as working. If a pause
// was requested meanwhile, Rest waits for the end of the run. It returns an error if ctx has ended.
func (w *Work) Rest(ctx context.Context, wait func() error) error {
	if w == nil {
		return wait()
	}
	p := w.pause
	p.mu.Lock()
	working := p.busy[w]
	delete(p.busy, w)
	p.end()
	p.mu.Unlock()
	err := wait()
	p.mu.Lock()
	paused := working && err == nil && p.cause != nil && p.run != nil
	if working && !paused {
		p.busy[w] = true
	}
	p.mu.Unlock()
	if paused { // steps beside it end first
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	return err
}

// Leave, which is for package drive, calls Done for every step whose owner was left behind.
func (p *Pause) Leave(left func(owner any) bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.busy, func(w *Work, _ bool) bool { return left(w.owner) })
	p.end()
}
