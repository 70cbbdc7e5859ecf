// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// clocks records which steps are running, and since when.
type clocks struct {
	steps  map[session.Address]time.Time
	order  []session.Address
	passes map[session.Address]time.Time // start of a loop's current iteration
	calls  map[session.Address][]string  // calls in progress that must not be made twice
	rests  map[session.Address]bool      // steps that wait for a limit; a pause does not wait for them
}

func (c *clocks) add(ev *session.Event) {
	if ev.Address == "" {
		return
	}
	c.answered(ev)
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindStepStarted:
		if c.steps == nil {
			c.steps, c.passes = make(map[session.Address]time.Time), make(map[session.Address]time.Time)
		}
		c.steps[ev.Address] = ev.Timestamp
		c.order = append(c.order, ev.Address)
		if loop := ev.Address.Parent(); ev.Iteration > 0 && c.passes[loop].IsZero() {
			c.passes[loop] = ev.Timestamp
		}
	case mark.KindLimited:
		if c.rests == nil {
			c.rests = make(map[session.Address]bool)
		}
		c.rests[ev.Address] = true
	case mark.KindLimitOver:
		delete(c.rests, ev.Address)
	case mark.KindDispatched:
		var d mark.Dispatched
		if ev.Mark.Decode(&d) != nil {
			return
		}
		if c.calls == nil {
			c.calls = make(map[session.Address][]string)
		}
		if len(d.Calls) == 0 {
			d.Calls = []string{""} // the step itself
		}
		c.calls[ev.Address] = append(c.calls[ev.Address], d.Calls...)
	case mark.KindStepFinished:
		delete(c.calls, ev.Address)
		delete(c.rests, ev.Address)
		delete(c.steps, ev.Address)
		for i := len(c.order) - 1; i >= 0; i-- {
			if c.order[i] == ev.Address {
				c.order = append(c.order[:i], c.order[i+1:]...)
				break
			}
		}
	case mark.KindIterationFinished:
		delete(c.passes, ev.Address)
	}
}

// working returns the steps that a pause waits for: running steps that contain no other running step.
func (c *clocks) working() (at []session.Address) {
	for _, a := range c.order {
		inner := c.rests[a]
		for _, b := range c.order {
			inner = inner || b != a && b.Under(a)
		}
		if !inner {
			at = append(at, a)
		}
	}
	return at
}

// answered records the answers of tools, so that their calls are no longer in doubt.
func (c *clocks) answered(ev *session.Event) {
	calls := c.calls[ev.Address]
	if len(calls) == 0 || ev.Content == nil || ev.Partial {
		return
	}
	for _, p := range ev.Content.Parts {
		if p == nil || p.FunctionResponse == nil {
			continue
		}
		calls = slices.DeleteFunc(calls, func(id string) bool { return id == p.FunctionResponse.ID })
	}
	if c.calls[ev.Address] = calls; len(calls) == 0 {
		delete(c.calls, ev.Address)
	}
}

// inDoubt returns the steps that may have made a call that must not be made twice, if they are cut off now: tasks of this kind,
// and models that have called such a tool. rest reports whether other steps are also running.
func (c *clocks) inDoubt(def *definition.Definition) (names []string, rest bool) {
	once := make(map[string]bool)
	for one := range def.Root.All {
		once[one.Name] = one.Effect == agent.AtMostOnce
	}
	doubt := func(a session.Address) bool { return len(c.calls[a]) > 0 || once[a.Agent()] }
	for _, a := range c.order {
		if doubt(a) {
			names = append(names, brief.Clean(a.Agent()))
		}
	}
	for _, a := range c.working() {
		rest = rest || !doubt(a)
	}
	return names, rest
}

// waitsFor returns the steps that a pause waits for, such as "draft finishes", and how long that may take; empty if no step is
// running.
func (c *clocks) waitsFor(def *definition.Definition, now time.Time) (step, most string) {
	at := c.working()
	if len(at) == 0 {
		return "", ""
	}
	var names []string
	var longest time.Duration
	bounded := true
	for _, a := range at {
		names = append(names, brief.Clean(a.Agent()))
		left, ok := c.left(def, a, now)
		bounded = bounded && ok
		longest = max(longest, left)
	}
	verb := " finishes"
	if len(names) > 1 {
		verb = " finish"
	}
	most = "however long that takes"
	if bounded {
		most = "up to " + progress.Clock(longest)
	}
	return strings.Join(names, ", ") + verb, most
}

// left returns how long a step can still take, by its own time limit and those of the loops around it; false if there is no
// limit.
func (c *clocks) left(def *definition.Definition, at session.Address,
	now time.Time) (left time.Duration, bounded bool) {
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
