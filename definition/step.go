// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/loop"
)

// Step is how a loop treats one of its steps. Zero fields leave it as it is. Sequences and parallel agents know the
// delays only.
type Step struct {
	// Timeout bounds one attempt. A loop in a loop has a Timeout of its own
	// instead: see [Loop].
	Timeout time.Duration
	// AdaptiveTimeout computes the limit from the step's earlier runs.
	AdaptiveTimeout *loop.AdaptiveTimeout
	// Retry runs the step again when it fails, Circuit stops running it when it
	// fails again and again.
	Retry   *loop.Retry
	Circuit *loop.Circuit
	// DelayBefore and DelayAfter are waited around the step.
	DelayBefore, DelayAfter time.Duration
	// Cache keeps the step's result, and uses it again while the step reads the same values.
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

// isPart reports whether the agent is a step of a loop or a sequence, or a branch of a parallel agent.
func (a *Agent) isPart() bool { return a.parent != nil && a.parent.Type.Workflow() }

// stepTimeRows bound the steps whose own timeout it is not.
var stepTimeRows = []row[Step]{field("timeout", "", aSpan, func(s *Step) *time.Duration { return &s.Timeout })}

var stepRows = []row[Step]{
	field("retry", "attempts in all when the step fails, or {attempts, backoff, max_backoff}; for steps of a loop", retryParts.value(), func(s *Step) **loop.Retry { return &s.Retry }),
	field("circuit", "skip the step after failures in a row until a cooldown ends: {failures, cooldown, endpoint}; for steps of a loop", circuitParts.value(), func(s *Step) **loop.Circuit { return &s.Circuit }),
	field("adaptive_timeout", "timeout computed from the step's earlier durations: {min, max, factor, after}; for steps of a loop", adaptiveParts.value(), func(s *Step) **loop.AdaptiveTimeout { return &s.AdaptiveTimeout }),
	field("delay_before", "pause before the agent; for the steps of workflow agents, and a loop at the root", aDelay, func(s *Step) *time.Duration { return &s.DelayBefore }),
	field("delay_after", "pause after the agent, also if it fails; for the steps of workflow agents, and a loop at the root", aDelay, func(s *Step) *time.Duration { return &s.DelayAfter }),
	field("cache", "reuse the result while the input is equal: true, or for a duration, or {ttl, key}; for steps of a loop", value[*Cache]{cacheShape, cacheOf}, func(s *Step) **Cache { return &s.Cache }),
}

var retryParts = parts[loop.Retry]{rows: []row[loop.Retry]{
	field("attempts", "attempts in all", wholeFrom[uint](1, ""), func(t *loop.Retry) *uint { return &t.Attempts }).must(),
	field("backoff", "wait before the second attempt; doubles before each further one", aLoopSpan, func(t *loop.Retry) *loop.Duration { return &t.Backoff }),
	field("max_backoff", "longest wait; if a server asks for more by Retry-After, there is no further attempt", aLoopSpan, func(t *loop.Retry) *loop.Duration { return &t.MaxBackoff }).shown("1m"),
}, or: "attempts"}

var circuitParts = parts[loop.Circuit]{rows: []row[loop.Circuit]{
	field("failures", "failures in a row that open the circuit", wholeFrom[uint](1, ""), func(c *loop.Circuit) *uint { return &c.Failures }).must(),
	field("cooldown", "time that the circuit stays open", aLoopSpan, func(c *loop.Circuit) *loop.Duration { return &c.Cooldown }).must(),
	field("endpoint", "name of what the step depends on; steps of the loop with the same endpoint share a circuit", aText, func(c *loop.Circuit) *string { return &c.Endpoint }),
}}

var adaptiveParts = parts[loop.AdaptiveTimeout]{rows: []row[loop.AdaptiveTimeout]{
	field("min", "shortest timeout", aLoopSpan, func(t *loop.AdaptiveTimeout) *loop.Duration { return &t.Min }),
	field("max", "longest timeout; also the timeout until there are enough durations", aLoopSpan, func(t *loop.AdaptiveTimeout) *loop.Duration { return &t.Max }).must(),
	field("factor", "factor on the 95th percentile of the durations, at least 1", numberFrom(0), func(t *loop.AdaptiveTimeout) *float64 { return &t.Factor }).shown(3),
	field("after", "durations to wait for, at most 32", wholeFrom[uint](1, ""), func(t *loop.AdaptiveTimeout) *uint { return &t.After }).shown(5),
}}

// stepPlace reports what only a step can have where there is none.
func (c *checker) stepPlace(a *Agent) {
	if a.isStep() || a.Type == "" {
		return
	}
	for _, field := range stepFields(a.Type) {
		n, given := a.nodes[field]
		if !given || source.IsNull(n) {
			continue
		}
		if strings.HasPrefix(field, "delay_") {
			if !a.isPart() && !(a.parent == nil && a.Type == TypeLoop) {
				c.report(a.at(field), CodeNoLoop, "%s is for the steps of loops, sequences and parallel agents, and for a "+
					"loop at the root; %q is none of them", field, a.Name)
			}
			continue
		}
		p := c.report(a.at(field), CodeNoLoop, "%s is for steps of a loop; %q is not one", field, a.Name)
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

// waiting makes a loop wait before all else it does, and after it, also if it fails. It is for the root, around
// which no agent waits.
func waiting(cfg *loopagent.Config, before, after time.Duration) {
	around := &cfg.AgentConfig
	if before > 0 {
		wait := func(ctx agent.Context) (*genai.Content, error) { return nil, drive.Wait(ctx, before) }
		around.BeforeAgentCallbacks = append([]agent.BeforeAgentCallback{wait}, around.BeforeAgentCallbacks...)
	}
	if after <= 0 {
		return
	}
	wait := func(ctx agent.Context) (*genai.Content, error) { return nil, drive.Wait(ctx, after) }
	around.AfterAgentCallbacks = append(slices.Clone(around.AfterAgentCallbacks), wait)
	told := cfg.OnStop
	cfg.OnStop = func(ctx agent.InvocationContext, rec *loop.StopRecord) {
		if told != nil {
			told(ctx, rec)
		}
		if rec.Reason == loop.ReasonError && !drive.At(ctx).Replays() { // nobody calls what is around an agent that failed
			_ = drive.Wait(ctx, after) // the loop ends anyway
		}
	}
}
