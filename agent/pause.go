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

// Bind is for package drive: it says which context ends with the run, and how.
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

// Work is a step that does work, and that a [Pause] waits for. nil is none.
type Work struct {
	pause *Pause
	owner any
}

// Begin is for package drive: it counts a step of an owner as under way. If a pause was asked for, it waits for the end of
// the run instead and returns nil. A stranger is a step whose context does not tell
// which step it runs in: it may be part of one that is under way, and the pause that
// waits for that one must not make it wait.
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

// Leave is for package drive: it is Done for the steps of owners that were left
// behind.
func (p *Pause) Leave(left func(owner any) bool) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.busy, func(w *Work, _ bool) bool { return left(w.owner) })
	p.end()
}
