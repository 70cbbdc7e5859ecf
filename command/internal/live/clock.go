// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// clocks records which steps are running, in the order in which they began.
type clocks struct{ steps []*clock }

// clock is a step that is running.
type clock struct {
	at          session.Address
	began, pass time.Time // pass is the start of a loop's current iteration
	calls       []string  // in progress, and must not be made twice
	rests       bool      // the step waits for a limit; a pause does not wait for it
}

// at returns the running step at an address; nil if there is none.
func (c *clocks) at(at session.Address) *clock {
	for _, s := range slices.Backward(c.steps) {
		if s.at == at {
			return s
		}
	}
	return nil
}

func (c *clocks) add(ev *session.Event) {
	s := c.at(ev.Address)
	if s != nil {
		s.answered(ev)
	}
	switch {
	case ev.Mark == nil || ev.Address == "":
	case ev.Mark.Kind == mark.KindStepStarted:
		c.steps = append(c.steps, &clock{at: ev.Address, began: ev.Timestamp})
		if loop := c.at(ev.Address.Parent()); loop != nil && ev.Iteration > 0 && loop.pass.IsZero() {
			loop.pass = ev.Timestamp
		}
	case s == nil:
	case ev.Mark.Kind == mark.KindLimited:
		s.rests = true
	case ev.Mark.Kind == mark.KindLimitOver:
		s.rests = false
	case ev.Mark.Kind == mark.KindDispatched:
		var d mark.Dispatched
		if ev.Mark.Decode(&d) != nil {
			return
		}
		if len(d.Calls) == 0 {
			d.Calls = []string{""} // the step itself
		}
		s.calls = append(s.calls, d.Calls...)
	case ev.Mark.Kind == mark.KindStepFinished:
		c.steps = slices.DeleteFunc(c.steps, func(o *clock) bool { return o == s })
	case ev.Mark.Kind == mark.KindIterationFinished:
		s.pass = time.Time{}
	}
}

// answered records the answers of tools, so that their calls are no longer in doubt.
func (s *clock) answered(ev *session.Event) {
	if ev.Content == nil || ev.Partial {
		return
	}
	for _, p := range ev.Content.Parts {
		if p != nil && p.FunctionResponse != nil {
			s.calls = slices.DeleteFunc(s.calls, func(id string) bool { return id == p.FunctionResponse.ID })
		}
	}
}

// working returns the steps that a pause waits for: running steps that contain no other running step.
func (c *clocks) working() (all []*clock) {
	for _, s := range c.steps {
		contains := func(o *clock) bool { return o.at != s.at && o.at.Under(s.at) }
		if !s.rests && !slices.ContainsFunc(c.steps, contains) {
			all = append(all, s)
		}
	}
	return all
}

// inDoubt returns the steps that may have made a call that must not be made twice, if they are cut off now: tasks of this kind,
// and models that have called such a tool. rest reports whether other steps are also running.
func (c *clocks) inDoubt(def *definition.Definition) (names []string, rest bool) {
	once := make(map[string]bool)
	for one := range def.Root.All {
		once[one.Name] = one.Effect == agent.AtMostOnce
	}
	doubt := func(s *clock) bool { return len(s.calls) > 0 || once[s.at.Agent()] }
	for _, s := range c.steps {
		if doubt(s) {
			names = append(names, brief.Clean(s.at.Agent()))
		}
	}
	for _, s := range c.working() {
		rest = rest || !doubt(s)
	}
	return names, rest
}

// waitsFor returns the steps that a pause waits for, such as "draft finishes", and how long that may take; empty if no step is
// running.
func (c *clocks) waitsFor(def *definition.Definition, now time.Time) (step, most string) {
	working := c.working()
	if len(working) == 0 {
		return "", ""
	}
	var names []string
	var longest time.Duration
	bounded := true
	for _, s := range working {
		names = append(names, brief.Clean(s.at.Agent()))
		left, ok := c.left(def, s.at, now)
		bounded = bounded && ok
		longest = max(longest, left)
	}
	verb := " finishes"
	if len(names) > 1 {
		verb = " finish"
	}
	most = "however long that takes"
	if bounded {
		most = "up to " + brief.Clock(longest)
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
		s := c.at(a)
		for one := range def.Root.All {
			if s == nil || one.Name != a.Agent() {
				continue
			}
			if one.Step != nil {
				bound(time.Duration(one.Step.Timeout), s.began)
			}
			if one.Loop != nil {
				bound(time.Duration(one.Loop.IterationTimeout), s.pass)
				bound(time.Duration(one.Loop.Timeout), s.began)
			}
		}
	}
	return left, bounded
}
