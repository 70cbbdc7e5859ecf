// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/sleep"
)

// Rest waits until a time, for an agent that can do nothing before it, such as ask a provider that takes no more
// requests for now. Meanwhile the step does not work: a pause does not wait for it, and the [Clock]s around it stand
// still. It returns an error if the context has ended. The agent must be a [Rester], and a [Continuer] that yields a
// mark.KindLimited before it and a mark.KindLimitOver after it.
func (p Place) Rest(until time.Time) error {
	for c := clockOf(p.ctx); c != nil; c = c.outer {
		c.rest()
		defer c.goOn()
	}
	until = until.Round(0) // on the clock on the wall, as the machine may sleep too
	begun, most := time.Now(), time.Until(until)
	wait := func() (err error) {
		for left := most; left > 0 && err == nil; {
			err = sleep.For(p.ctx, min(left, time.Minute))
			left = min(time.Until(until), most-time.Since(begun)) // the clock on the wall may be set back
		}
		return err
	}
	if p.inv == nil {
		return wait()
	}
	return p.inv.work.Rest(p.ctx, wait)
}

// Rests reports whether an agent or one below it is a [Rester] that may rest.
func Rests(a agent.Agent) bool {
	r, ok := a.(Rester)
	return ok && r.Rests() || slices.ContainsFunc(a.SubAgents(), Rests)
}

// Clock measures and limits the time in which a step works: it stands still while anything in the step rests.
type Clock struct {
	outer *Clock
	limit time.Duration // 0 is none

	mu      sync.Mutex
	timer   *time.Timer
	resting int
	since   time.Time // of the rest, or of the work
	worked  time.Duration
	rested  time.Duration
}

type clockKey struct{}

func clockOf(ctx context.Context) *Clock {
	c, _ := ctx.Value(clockKey{}).(*Clock)
	return c
}

// WithClock returns ctx with a clock that calls late after so much time of work; a limit of 0 is none.
func WithClock(ctx context.Context, limit time.Duration, late func()) (context.Context, *Clock) {
	c := &Clock{outer: clockOf(ctx), limit: limit, since: time.Now()}
	if limit > 0 {
		c.timer = time.AfterFunc(limit, late)
	}
	return context.WithValue(ctx, clockKey{}, c), c
}

func (c *Clock) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting++; c.resting > 1 {
		return
	}
	now := time.Now()
	c.worked, c.since = c.worked+now.Sub(c.since), now
	if c.timer != nil && !c.timer.Stop() {
		c.timer = nil // it is late
	}
}

func (c *Clock) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resting--; c.resting > 0 {
		return
	}
	now := time.Now()
	c.rested, c.since = c.rested+now.Sub(c.since), now
	if c.timer != nil {
		c.timer.Reset(max(0, c.limit-c.worked))
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
	if c.resting > 0 { // the step was left behind
		return c.rested + time.Since(c.since)
	}
	return c.rested
}
