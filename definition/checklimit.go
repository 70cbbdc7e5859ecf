// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition/internal/source"
)

// stepPlace reports what only a step of a loop can have where there is none.
func (c *checker) stepPlace(a *Agent) {
	if a.isStep() || a.Type == "" {
		return
	}
	for _, field := range stepFields(a.Type) {
		n, given := a.nodes[field]
		if !given || source.IsNull(n) || a.parent == nil && a.Type == TypeLoop && strings.HasPrefix(field, "delay_") {
			continue
		}
		p := c.report(a.at(field), CodeNoLoop, "%s works on the steps of a loop, and %q is none", field, a.Name)
		if step := a.within(); step != nil {
			p.Hint = fmt.Sprintf("give it to %q", step.Name)
		}
	}
}

// within is the step of a loop that the agent is in; nil if it is in no loop.
func (a *Agent) within() *Agent {
	for a = a.parent; a != nil; a = a.parent {
		if a.isStep() && !a.tool {
			return a
		}
	}
	return nil
}

// asksModel reports whether a model is asked by the agent or in it.
func (a *Agent) asksModel() bool {
	for sub := range a.All {
		if sub.Type == TypeLLM {
			return true
		}
	}
	return false
}

// times warns of times of which one leaves no room for another.
func (c *checker) times(a *Agent) {
	l := a.Loop
	_, total := a.nodes["timeout"]
	_, iteration := a.nodes["iteration_timeout"]
	if n := l.MaxIterations; total && iteration && n > 0 && l.IterationTimeout <= l.Timeout {
		// Not the product, which may be more than a duration can be.
		if need := float64(n) * float64(l.IterationTimeout); need > float64(l.Timeout) {
			c.warn(a.at("timeout"), CodeTimes, "%d iterations of up to %s can take longer than the %s of the loop", n, briefly(l.IterationTimeout), briefly(l.Timeout)).
				Hint = moreTime(need) + "; else the loop ends with reason timeout"
		}
	}
	for _, sub := range a.SubAgents {
		c.stepTime(a, sub)
	}
}

// stepTime warns of a step that has more time than the iteration that it is in.
func (c *checker) stepTime(a, sub *Agent) {
	var may time.Duration
	switch {
	case sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach:
		return // it is in no iteration
	case sub.Type == TypeLoop && sub.Loop.meant:
		may = sub.Loop.Timeout
	case sub.Step != nil:
		may = sub.Step.Timeout
	}
	has, field := a.Loop.IterationTimeout, "iteration_timeout"
	if has == 0 {
		has, field = a.Loop.Timeout, "timeout"
	}
	if has == 0 || may <= has {
		return
	}
	what := "an iteration of"
	if field == "timeout" {
		what = "the loop"
	}
	at := sub.at("timeout")
	if _, given := sub.nodes["timeout"]; !given {
		at = sub.at("timeouts")
	}
	p := c.warn(at, CodeTimes, "%q may take %s, and %s %q only %s", sub.Name, briefly(may), what, a.Name, briefly(has))
	if _, given := a.nodes[field]; !given {
		p.Hint = fmt.Sprintf("that is the preset %s of %q: give it %s, or timeouts: none", a.Loop.Timeouts, a.Name, field)
	}
}

// longTime is a time as Go writes it.
var longTime = regexp.MustCompile(`\b([0-9]+h)?[0-9]+m0s\b`)

// briefWords is a message with its times as people write them.
func briefWords(msg string) string {
	return longTime.ReplaceAllStringFunc(msg, func(s string) string {
		d, err := time.ParseDuration(s)
		if err != nil {
			return s
		}
		return briefly(d)
	})
}

// briefly is a time as people write it: 5m and not 5m0s.
func briefly(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
