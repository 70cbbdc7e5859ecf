// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Step is how a loop treats one of its steps. Zero fields leave it as it is.
type Step struct {
	// Timeout bounds one attempt. A loop in a loop has a Timeout of its own
	// instead: see [Loop].
	Timeout time.Duration
	// Adaptive makes the bound from the step's own history.
	Adaptive *loop.Adaptive
	// Retry runs the step again when it fails, Circuit stops running it when it
	// fails again and again.
	Retry   *loop.Retry
	Circuit *loop.Circuit
	// DelayBefore and DelayAfter are waited around the step.
	DelayBefore, DelayAfter time.Duration
	// Cache keeps what the step has said, for when it would read the same.
	Cache *Cache
}

func stepOf(a *Agent) *Step {
	if a.Step == nil {
		a.Step = &Step{}
	}
	return a.Step
}

// isStep reports whether the agent is a step of a loop, and not just inside one.
func (a *Agent) isStep() bool { return a.parent != nil && a.parent.Type == TypeLoop }

// stepTimeRows bound the steps whose own timeout it is not.
var stepTimeRows = []row[Step]{field("timeout", "", aSpan, func(s *Step) *time.Duration { return &s.Timeout })}

// taskTimeRows bound a step of a loop, or elsewhere the task itself.
var taskTimeRows = []row[Agent]{field("timeout", "", aSpan, func(a *Agent) *time.Duration {
	switch {
	case a.Type == "": // whose it is
	case a.isStep():
		return &stepOf(a).Timeout
	case a.Type == TypeHTTP:
		return &a.HTTP.Timeout
	}
	return &a.Command.Timeout
})}

var stepRows = []row[Step]{
	field("retry", "of a loop's step: how often it runs in all when it fails, or {attempts, backoff, max_backoff}", retryParts.value(), func(s *Step) **loop.Retry { return &s.Retry }),
	field("circuit", "of a loop's step: {failures, cooldown}: after so many failures running it is not run until the time is over; steps with the same endpoint share it", circuitParts.value(), func(s *Step) **loop.Circuit { return &s.Circuit }),
	field("adaptive_timeout", "of a loop's step: a timeout made from how long it has taken so far: {min, max, factor, after}", adaptiveParts.value(), func(s *Step) **loop.Adaptive { return &s.Adaptive }),
	field("delay_before", "of a loop's step, or of the loop at the root: how long to wait before it", aDelay, func(s *Step) *time.Duration { return &s.DelayBefore }),
	field("delay_after", "of a loop's step, or of the loop at the root: how long to wait after it", aDelay, func(s *Step) *time.Duration { return &s.DelayAfter }),
	field("cache", "of a loop's step: true if it says the same whenever it reads the same; or how long that holds; or {ttl, key}", value[*Cache]{cacheShape, cacheOf}, func(s *Step) **Cache { return &s.Cache }),
}

var retryParts = parts[loop.Retry]{rows: []row[loop.Retry]{
	field("attempts", "how often it runs in all", wholeFrom[uint](1, ""), func(t *loop.Retry) *uint { return &t.Attempts }).must(),
	field("backoff", "how long to wait before the second attempt; twice as long before each further one", aLoopSpan, func(t *loop.Retry) *loop.Duration { return &t.Backoff }),
	field("max_backoff", "the longest wait, and the longest that a server may ask for by Retry-After; one that asks for more is not tried again", aLoopSpan, func(t *loop.Retry) *loop.Duration { return &t.MaxBackoff }).shown("1m"),
}, or: "attempts"}

var circuitParts = parts[loop.Circuit]{rows: []row[loop.Circuit]{
	field("failures", "how many running open it", wholeFrom[uint](1, ""), func(c *loop.Circuit) *uint { return &c.Failures }).must(),
	field("cooldown", "how long it stays open", aLoopSpan, func(c *loop.Circuit) *loop.Duration { return &c.Cooldown }).must(),
	field("endpoint", "a name for what the step depends on: steps of the loop with the same one share a circuit", aText, func(c *loop.Circuit) *string { return &c.Endpoint }),
}}

var adaptiveParts = parts[loop.Adaptive]{rows: []row[loop.Adaptive]{
	field("min", "the least that it is", aLoopSpan, func(t *loop.Adaptive) *loop.Duration { return &t.Min }),
	field("max", "the most, and what holds until there are enough runs", aLoopSpan, func(t *loop.Adaptive) *loop.Duration { return &t.Max }).must(),
	field("factor", "what the 95th percentile of the runs is multiplied by, at least 1", numberFrom(0), func(t *loop.Adaptive) *float64 { return &t.Factor }).shown(3),
	field("after", "how many runs it takes, at most 32", wholeFrom[uint](1, ""), func(t *loop.Adaptive) *uint { return &t.After }).shown(5),
}}
