// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
)

// limit finds the loop that limits from outside are for, and what it then is.
func (b *builder) limit(d *Definition) error {
	if b.cfg.MaxIterations == nil && b.cfg.Timeout == nil {
		return nil
	}
	what, field := "max iterations", "max_iterations"
	if b.cfg.MaxIterations == nil {
		what, field = "a timeout is", "timeout"
	}
	var loops []*Agent
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 0:
		return errors.New(what + " given, but there is no loop")
	case d.Root.Type != TypeLoop && len(loops) > 1:
		return fmt.Errorf("%s given, but there are %d loops and none is the root; set %s in the file", what, len(loops), field)
	}
	l := *loops[0].Loop
	if n := b.cfg.MaxIterations; n != nil {
		l.MaxIterations = *n
	}
	if t := b.cfg.Timeout; t != nil {
		if *t < 0 {
			return fmt.Errorf("the timeout given is negative: %s", *t)
		}
		l.Timeout, l.meant = *t, true
		l.clamp()
	}
	if endless(&l, loops[0]) {
		return fmt.Errorf("%s [%s] (%s)", endlessMessage(loops[0]), CodeEndless, endlessHint)
	}
	b.limited, b.limits = loops[0], l
	return nil
}

// policy is how the loop around treats the agent; ok is false if the file says
// nothing about that.
func (a *Agent) policy() (p loopagent.StepPolicy, ok bool) {
	if a.OnError != "" && a.Type != TypeLoop { // a loop's is for its own steps
		p.OnError, ok = a.OnError, true
	}
	s := a.Step
	if s == nil {
		return p, ok
	}
	p.Timeout, p.Adaptive, p.Retry, p.Circuit = s.Timeout, s.Adaptive, s.Retry, s.Circuit
	p.DelayBefore, p.DelayAfter, p.Cache = s.DelayBefore, s.DelayAfter, s.Cache.policy()
	return p, true
}
