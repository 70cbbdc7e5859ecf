// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"math"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/loop"
)

func callsOrNone() shape { return either(whole(0), oneOf("none")) }

// maxModelCalls reads a number of calls, or none; 0 is the default.
func (r *reader) maxModelCalls(n *yaml.Node, field string) (int, bool) {
	const unlimited = "none"
	if n.Kind == yaml.ScalarNode && n.Value == unlimited {
		return -1, true
	}
	v, ok := int64(0), false
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		v, ok = r.integer(n, field)
	} else {
		r.wrong(n, field, "a number of calls, or none")
	}
	if ok && (v < 0 || v > math.MaxInt32) {
		r.report(r.src.Of(n), CodeValue, "%s must be between 0 and %d, got %d", field, math.MaxInt32, v).
			Hint = "none is no limit, and 0 the default of 500"
		return 0, false
	}
	return int(v), ok
}

// raiseModelCalls lets a run make as many calls as the budget of its root has,
// if the file says nothing else: the guard is for loops that nobody has thought
// about.
func (d *Definition) raiseModelCalls(b *loop.Budget) {
	if d.MaxModelCalls == 0 && b != nil && b.Calls > agent.DefaultMaxLLMCalls {
		d.MaxModelCalls = int(min(b.Calls, math.MaxInt32))
	}
}

// modelCalls warns of loops that come to the limit of calls before they come to
// that of iterations.
func (c *checker) modelCalls(a *Agent) {
	limit := float64(c.def.MaxModelCalls)
	if limit == 0 {
		limit = agent.DefaultMaxLLMCalls
	}
	if limit < 0 {
		return
	}
	if a.Type != TypeLoop {
		for _, sub := range a.SubAgents {
			c.modelCalls(sub)
		}
		return
	}
	if calls := a.modelCalls(); calls > limit {
		c.warn(a.at("max_iterations"), CodeCalls, "the loop %q can ask models %.0f times, and a run may do so %.0f times", a.Name, calls, limit).
			Hint = "the run then fails; give the root max_model_calls (a number, or none), or the loop a budget of calls"
	}
}

// modelCalls is how often models are asked if every agent asks once each time
// that it runs, and every loop comes to its limit. A loop without one counts
// for one iteration.
func (a *Agent) modelCalls() float64 {
	if a.Type == TypeLLM {
		return 1
	}
	var each, after float64
	for _, sub := range a.SubAgents {
		if n := sub.modelCalls(); a.Type == TypeLoop && sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach {
			after += n
		} else {
			each += n
		}
	}
	if a.Type != TypeLoop {
		return each
	}
	n := each*float64(max(a.Loop.MaxIterations, 1)) + after
	if b := a.Loop.Budget; b != nil && b.Calls > 0 {
		n = min(n, float64(b.Calls))
	}
	return n
}
