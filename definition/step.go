// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"time"

	"go.yaml.in/yaml/v4"

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

// stepFields are the fields that only steps of loops can have. timeout is
// another one for the types whose own it is not.
var stepFields = []string{"adaptive_timeout", "retry", "circuit", "delay_before", "delay_after", "cache"}

func stepOf(a *Agent) *Step {
	if a.Step == nil {
		a.Step = &Step{}
	}
	return a.Step
}

// isStep reports whether the agent is a step of a loop, and not just inside one.
func (a *Agent) isStep() bool { return a.parent != nil && a.parent.Type == TypeLoop }

// stepField reads a field about a step, and reports whether it is one.
func (r *reader) stepField(a *Agent, p pair) bool {
	switch p.key {
	case "timeout":
		r.timeout(a, p)
	case "adaptive_timeout":
		stepOf(a).Adaptive = r.adaptive(a, p.value)
	case "retry":
		stepOf(a).Retry = r.retry(a, p.value)
	case "circuit":
		stepOf(a).Circuit = r.circuit(a, p.value)
	case "delay_before":
		stepOf(a).DelayBefore = r.delay(p.value, p.key)
	case "delay_after":
		stepOf(a).DelayAfter = r.delay(p.value, p.key)
	case "cache":
		stepOf(a).Cache = r.cache(a, p.value)
	default:
		return false
	}
	return true
}

// timeout is a loop's own, the bound of a loop's step, or a task's own.
func (r *reader) timeout(a *Agent, p pair) {
	if a.Type == TypeLoop {
		loopOf(a).Timeout = r.loopTime(p.value, p.key)
		return
	}
	d, _ := r.duration(p.value, p.key)
	switch {
	case a.Type == "": // whose it is
	case a.isStep():
		stepOf(a).Timeout = d
	case a.Type == TypeHTTP:
		httpOf(a).Timeout = d
	case a.Type == TypeCommand:
		commandOf(a).Timeout = d
	}
}

func (r *reader) adaptive(a *Agent, n *yaml.Node) *loop.Adaptive {
	out := &loop.Adaptive{}
	given := make(map[string]bool)
	ok := r.settings(a, n, "adaptive_timeout", within("adaptive_timeout"), func(key, f string, n *yaml.Node) {
		given[key] = true
		switch key {
		case "min":
			out.Min = r.loopDuration(n, f)
		case "max":
			out.Max = r.loopDuration(n, f)
		case "factor":
			out.Factor, _ = r.number(n, f)
		case "after":
			out.After, _ = r.positive(n, f)
		}
	})
	if !ok || !r.complete(n, "adaptive_timeout", given, "max") {
		return nil
	}
	return out
}

// retry reads how often a step runs in all, or a map.
func (r *reader) retry(a *Agent, n *yaml.Node) *loop.Retry {
	out := &loop.Retry{}
	if n.Kind == yaml.ScalarNode {
		var ok bool
		if out.Attempts, ok = r.positive(n, "retry"); !ok {
			return nil
		}
		return out
	}
	given := make(map[string]bool)
	ok := r.settings(a, n, "retry", within("retry"), func(key, f string, n *yaml.Node) {
		given[key] = true
		switch key {
		case "attempts":
			out.Attempts, _ = r.positive(n, f)
		case "backoff":
			out.Backoff = r.loopDuration(n, f)
		case "max_backoff":
			out.MaxBackoff = r.loopDuration(n, f)
		}
	})
	if !ok || !r.complete(n, "retry", given, "attempts") {
		return nil
	}
	return out
}

func (r *reader) circuit(a *Agent, n *yaml.Node) *loop.Circuit {
	out := &loop.Circuit{}
	given := make(map[string]bool)
	ok := r.settings(a, n, "circuit", within("circuit"), func(key, f string, n *yaml.Node) {
		given[key] = true
		switch key {
		case "failures":
			out.Failures, _ = r.positive(n, f)
		case "cooldown":
			out.Cooldown = r.loopDuration(n, f)
		case "endpoint":
			out.Endpoint, _ = r.text(n, f)
		}
	})
	if !ok || !r.complete(n, "circuit", given, "failures", "cooldown") {
		return nil
	}
	return out
}

func (r *reader) loopDuration(n *yaml.Node, what string) loop.Duration {
	d, _ := r.duration(n, what)
	return loop.Duration(d)
}
