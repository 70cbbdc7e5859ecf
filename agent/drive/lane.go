// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/agent"
)

// Lane is where the steps of a loop with a grace run, one at a time: the loop runs within
// [Lane.Run], and its steps have the lane in their [StepConfig]. Out of Run a step with a lane
// runs as one without. The zero value is ready to use.
//
// Three goroutines take part: the loop's, that of the steps, and that of the caller of Run. The
// first two are a coroutine, of which one waits while the other runs: to go from one to the other
// takes a tenth of the time that channels take, and wakes no other processor. The caller sleeps
// until a context ends or the consumer stops listening. When the grace of a step is over then, the
// caller lets the loop go on beside another goroutine for steps, and the step is left behind in
// its own.
type Lane struct {
	ctx  context.Context
	body func()
	wake chan struct{} // to the caller: something has happened, look
	over chan struct{} // closed when the loop has ended

	under atomic.Pointer[watched] // the step under way
	goOn  func() (struct{}, bool) // lets the loop go on to its next step; false: it has ended
	step  func(struct{}) bool     // lets the lane run the step under way

	quits bool // the loop has not come to its end: by runtime.Goexit, unless by a panic
	crash any  // that panic
	stack []byte
}

// Run runs a loop's body under the loop's context, and returns when it has ended. A panic of the
// body is raised again.
func (l *Lane) Run(ctx agent.InvocationContext, body func()) {
	*l = Lane{ctx: ctx, body: body, wake: make(chan struct{}, 1), over: make(chan struct{})}
	go l.serve()
	l.watch()
	l.step = nil
	switch {
	case l.crash != nil:
		if inv := invocationOf(ctx); inv != nil {
			inv.crashed = l.stack
		}
		// If nobody recovers it, the program's last words have both.
		defer panic(l.crash)
		panic(fmt.Sprintf("in the goroutine of a loop:\n%s", l.stack))
	case l.quits:
		runtime.Goexit()
	}
}

// loop is the loop's side of the coroutine.
func (l *Lane) loop(step func(struct{}) bool) {
	l.step = step
	whole := false
	defer func() {
		if !whole {
			l.crash, l.stack, l.quits = recover(), debug.Stack(), true
		}
	}()
	l.body()
	whole = true
}

// serve is the steps' side. It ends with the loop, or when a step is left behind in it.
func (l *Lane) serve() {
	ends := false
	defer func() {
		if !ends { // an agent has ended the goroutine
			go l.serve()
		}
	}()
	if l.goOn == nil {
		l.goOn, _ = iter.Pull(l.loop)
	}
	for {
		unlock()
		if _, ok := l.goOn(); !ok {
			ends = true
			close(l.over)
			return
		}
		w := l.under.Load()
		if w.work(); w.state.Load() == w.run|gone {
			ends = true
			return
		}
	}
}

// run runs a step in the lane. The loop calls it.
func (l *Lane) run(w *watched) *StepResult {
	w.wake = l.wake
	l.under.Store(w)
	if l.ctx.Err() != nil { // whoever watches may have seen it already, and is to wait for this step too
		w.look()
	}
	if w.in.Context != nil {
		defer w.heed()()
	}
	unlock()
	l.step(struct{}{})
	if w.state.Load() == w.run|over {
		return w.result()
	}
	return w.leave()
}

// heed makes the end of the run's own context known. What it returns is to be called at the end of
// the run.
func (w *watched) heed() (done func()) {
	told := make(chan struct{})
	stop := context.AfterFunc(w.ctx, func() {
		defer close(told)
		if w.late() {
			w.step.fence.close(w.in.Late)
		}
		w.ends.Store(true)
		w.look()
	})
	return func() {
		if !stop() {
			<-told
		}
	}
}

// unlock takes back what an agent may have left in its goroutine: a coroutine cannot go on in a
// goroutine that is locked to a thread.
func unlock() {
	for range 4 {
		runtime.UnlockOSThread()
	}
}

// watch returns when the loop has ended. A step that does not end within its grace is left behind.
func (l *Lane) watch() {
	told, ending := l.ctx.Done(), false
	var w *watched // whose grace has begun, in the run of that number
	var run int64
	patience := time.NewTimer(time.Hour)
	patience.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-l.wake:
		case <-told:
			told, ending = nil, true
		case <-patience.C:
			if w.state.CompareAndSwap(run|working, run|gone) {
				go l.serve()
			} else {
				w.state.CompareAndSwap(run|hearing, run|awaited)
			}
			w = nil
		}
		now := l.under.Load()
		if now == nil {
			continue
		}
		state := now.state.Load()
		if now != w || state&^phases != run {
			w = nil
			patience.Stop()
		}
		if phase := state & phases; w == nil && phase <= hearing && (ending || now.ends.Load()) {
			w, run = now, state&^phases
			patience.Reset(w.step.cfg.Grace)
		}
	}
}
