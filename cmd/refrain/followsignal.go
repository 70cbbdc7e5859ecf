// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// controls are what somebody at the keyboard can do to a run.
type controls interface {
	// interrupt is Ctrl-C. The first pauses the run, the second cuts off what is
	// under way; leave says that it was the third. Say is what there is to say.
	interrupt() (say string, leave bool)
	// pause and cancel are what they say.
	pause() (say string)
	cancel()
}

// signal is a signal that ends the process. All but Ctrl-C are sent by programs,
// which send them once: they cut off what is under way after a time of grace.
func (f *follower) signal(sig os.Signal) {
	say, leave := f.interrupt()
	if leave {
		f.leave()
	}
	fmt.Fprintln(f.e.stderr, say)
	if sig == os.Interrupt {
		return
	}
	time.AfterFunc(f.grace, func() {
		if f.presses.Load() == 1 {
			say, _ := f.interrupt()
			fmt.Fprintln(f.e.stderr, say)
		}
	})
}

func (f *follower) interrupt() (say string, leave bool) {
	switch f.presses.Add(1) {
	case 1:
		return f.pause(), false
	case 2:
		go f.ask(f.sup.PauseNow, "")
		return "Stopping now; the steps that are cut off are made again when the run is resumed. Ctrl-C again to leave at once.", false
	}
	return "", true
}

func (f *follower) pause() (say string) {
	go f.ask(f.sup.Pause, "")
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.busy.pausing(f.def, time.Now())
}

func (f *follower) cancel() { go f.ask(f.sup.Cancel, "") }

// clocks know which steps are under way, and since when.
type clocks struct {
	steps  map[session.Address]time.Time
	order  []session.Address
	passes map[session.Address]time.Time // since when a loop is in its iteration
}

func (c *clocks) add(ev *session.Event) {
	if ev.Mark == nil || ev.Address == "" {
		return
	}
	switch ev.Mark.Kind {
	case session.MarkStepStarted:
		if c.steps == nil {
			c.steps, c.passes = make(map[session.Address]time.Time), make(map[session.Address]time.Time)
		}
		c.steps[ev.Address] = ev.Timestamp
		c.order = append(c.order, ev.Address)
		if loop := ev.Address.Parent(); ev.Iteration > 0 && c.passes[loop].IsZero() {
			c.passes[loop] = ev.Timestamp
		}
	case session.MarkStepFinished:
		delete(c.steps, ev.Address)
		for i := len(c.order) - 1; i >= 0; i-- {
			if c.order[i] == ev.Address {
				c.order = append(c.order[:i], c.order[i+1:]...)
				break
			}
		}
	case session.MarkIterationFinished:
		delete(c.passes, ev.Address)
	}
}

// working are the steps that a pause waits for: those in which no other is under
// way.
func (c *clocks) working() (at []session.Address) {
	for _, a := range c.order {
		inner := false
		for _, b := range c.order {
			inner = inner || b != a && b.Under(a)
		}
		if !inner {
			at = append(at, a)
		}
	}
	return at
}

// pausing says what a pause waits for, and how long that may take.
func (c *clocks) pausing(def *definition.Definition, now time.Time) string {
	const again = "Ctrl-C again to stop now; nothing already saved is lost."
	at := c.working()
	if len(at) == 0 {
		return "Pausing. " + again
	}
	var names []string
	var longest time.Duration
	bounded := true
	for _, a := range at {
		names = append(names, a.Agent())
		left, ok := c.left(def, a, now)
		bounded = bounded && ok
		longest = max(longest, left)
	}
	verb := "finishes"
	if len(names) > 1 {
		verb = "finish"
	}
	time := "however long that takes"
	if bounded {
		time = "up to " + progress.Clock(longest)
	}
	return fmt.Sprintf("Pausing after %s %s (%s). %s", strings.Join(names, ", "), verb, time, again)
}

// left is how long a step can take, by its own bound and those of the loops around
// it; false if nothing bounds it.
func (c *clocks) left(def *definition.Definition, at session.Address, now time.Time) (left time.Duration, bounded bool) {
	bound := func(d time.Duration, since time.Time) {
		if d <= 0 || since.IsZero() {
			return
		}
		if rest := max(0, d-now.Sub(since)); !bounded || rest < left {
			left, bounded = rest, true
		}
	}
	for a := at; a != ""; a = a.Parent() {
		for one := range def.Root.All {
			if one.Name != a.Agent() {
				continue
			}
			if one.Step != nil {
				bound(one.Step.Timeout, c.steps[a])
			}
			if one.Loop != nil {
				bound(one.Loop.IterationTimeout, c.passes[a])
				bound(one.Loop.Timeout, c.steps[a])
			}
		}
	}
	return left, bounded
}
