// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/values/sleep"
)

// WaitIdle waits until a time. It is for an agent that can do nothing before that time, for example because a provider
// accepts no more requests. Meanwhile the step does not count as working: a pause does not wait for it, and the [Clock]s
// around it stand still, unless another of the [Branches] in them works. It returns an error if the context has ended.
// The traits of the agent must be CanIdle and Continues, and it yields a mark.KindLimited before it and a
// mark.KindLimitOver after it.
func (p Place) WaitIdle(until time.Time) error {
	if c := pausableOf(p.ctx); c != nil {
		c.pause()
		defer c.resume()
	}
	until = until.Round(0) // compare wall clocks, because the machine may sleep
	begun, most := time.Now(), time.Until(until)
	wait := func() (err error) {
		for left := most; left > 0 && err == nil; {
			err = sleep.For(p.ctx, min(left, time.Minute))
			left = min(time.Until(until), most-time.Since(begun)) // the wall clock may be set back
		}
		return err
	}
	if p.inv == nil {
		return wait()
	}
	return p.inv.work.Rest(p.ctx, wait)
}

// CanIdle reports whether an agent or one below it may call [Place.WaitIdle].
func CanIdle(a agent.Agent) bool {
	return TraitsOf(a, true).CanIdle || slices.ContainsFunc(a.SubAgents(), CanIdle)
}

// Clock measures and limits the time in which a step works. It stands still while anything in the step rests.
type Clock struct {
	outer pausable      // nil if there is none
	limit time.Duration // 0 means no limit

	mu     sync.Mutex
	timer  *time.Timer
	pauses int
	since  time.Time // when the present rest, or the present work, began
	active time.Duration
	paused time.Duration
}

// pausable is a clock that stops while a step rests: a [Clock], or [Branches].
type pausable interface {
	pause()
	resume()
}

type pausableKey struct{}

func pausableOf(ctx context.Context) pausable {
	c, _ := ctx.Value(pausableKey{}).(pausable)
	return c
}

// WithClock returns ctx with a clock that calls late when the time of work reaches limit; 0 sets no
// limit.
func WithClock(ctx context.Context, limit time.Duration, late func()) (context.Context, *Clock) {
	c := &Clock{outer: pausableOf(ctx), limit: limit, since: time.Now()}
	if limit > 0 {
		c.timer = time.AfterFunc(limit, late)
	}
	return context.WithValue(ctx, pausableKey{}, c), c
}

// pause stops the clock and the clocks around it, unless another rest has stopped it already.
func (c *Clock) pause() {
	if c.outer != nil {
		c.outer.pause()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses++; c.pauses > 1 {
		return
	}
	now := time.Now()
	c.active, c.since = c.active+now.Sub(c.since), now
	if c.timer != nil && !c.timer.Stop() {
		c.timer = nil // late was called
	}
}

// resume starts the clock again when no rest is left, and the clocks around it.
func (c *Clock) resume() {
	if c.outer != nil {
		c.outer.resume()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pauses--; c.pauses > 0 {
		return
	}
	now := time.Now()
	c.paused, c.since = c.paused+now.Sub(c.since), now
	if c.timer != nil {
		c.timer.Reset(max(0, c.limit-c.active))
	}
}

// Stop ends the clock, and returns how long it stood still.
func (c *Clock) Stop() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if c.pauses > 0 { // the step was abandoned
		return c.paused + time.Since(c.since)
	}
	return c.paused
}

// Branches are the steps that an agent runs at the same time. The clocks around them stand still while all branches
// that have begun and not ended rest. A nil *Branches has no clock around it.
type Branches struct {
	outer pausable

	mu               sync.Mutex
	working, resting int
	pausedOuter      bool // outer rests
}

// WithBranches returns ctx for the steps that an agent runs at the same time.
func WithBranches(ctx context.Context) (context.Context, *Branches) {
	outer := pausableOf(ctx)
	if outer == nil {
		return ctx, nil
	}
	b := &Branches{outer: outer}
	return context.WithValue(ctx, pausableKey{}, b), b
}

// Begin records that a branch begins.
func (b *Branches) Begin() { b.count(1, 0) }

// End records that a branch has ended.
func (b *Branches) End() { b.count(-1, 0) }

func (b *Branches) pause()  { b.count(-1, 1) }
func (b *Branches) resume() { b.count(1, -1) }

// count changes the numbers of working and of resting branches. It pauses the outer clock when only resting branches
// are left, and resumes it when one works again.
func (b *Branches) count(working, resting int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working, b.resting = b.working+working, b.resting+resting
	switch still := b.working == 0 && b.resting > 0; {
	case still == b.pausedOuter:
		return
	case still:
		b.outer.pause()
	default:
		b.outer.resume()
	}
	b.pausedOuter = !b.pausedOuter
}

// Pausable returns a context that [agent.RunConfig.Pause] can end, and a function to call when
// the run has ended. It is for runners.
func Pausable(ctx context.Context, cfg *agent.RunConfig) (context.Context, func()) {
	if cfg.Pause == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cfg.Pause.Bind(ctx, cancel)
	return ctx, func() { cancel(nil) }
}

// Begin counts a step of a as working, for a pause: see [agent.Pause]. If the run is to be
// paused, Begin waits until the context ends. Call Done on its result when the step has ended
// and its outcome is in the log. It is for agents that write more about a step than the step
// itself; put the result into [StepRun.Work]. Begin returns nil if there is nothing to wait
// for.
func (p Place) Begin(a agent.Agent) *agent.Work {
	inv := p.inv
	if inv == nil || inv.run.RunConfig.Pause == nil || inv.work != nil || !worksItself(a) {
		return nil
	}
	return inv.run.RunConfig.Pause.Begin(p.ctx, inv.fence, false)
}

// worksItself reports whether an agent does work itself, and does not only run its sub-agents. The steps that such an
// agent runs are part of its work.
func worksItself(a agent.Agent) bool {
	return len(a.SubAgents()) == 0 || agent.TypeOf(a) == agent.TypeLLM
}
