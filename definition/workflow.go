// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
)

// Parallel is what only parallel agents have.
type Parallel struct {
	// MaxConcurrency is how many run at once; 0 is all.
	MaxConcurrency uint
}

var parallelRows = []row[Parallel]{
	field("max_concurrency", "most sub-agents that run at once; all if left out", wholeFrom[uint](0, ""),
		func(p *Parallel) *uint { return &p.MaxConcurrency }),
}

var subRows = []row[Agent]{does("sub_agents", "the agents inside, in order; {ref: file.yaml} reads one from a file",
	func() shape { return filled(by("step")) }, (*reader).subAgents)}

func (r *reader) subAgents(a *Agent, n *source.Node) {
	items, _ := r.items(n, "sub_agents")
	for i, item := range items {
		if r.full() {
			return
		}
		a.nodes[fmt.Sprintf("sub_agents[%d]", i)] = item
		if item.Kind == source.Scalar {
			r.wrong(item, "a sub-agent", "a map with a name, or with a ref")
			if source.PlainText(item) && vocabulary.AgentName(item.Value) == "" {
				r.hint("describe the agent here, or write {ref: " + item.Value + ".yaml}")
			}
			continue
		}
		if sub := r.agent(item, a); sub != nil {
			if written := source.Deref(n).Content[i]; written.Kind == source.Alias {
				sub.alias = written
			}
			a.SubAgents = append(a.SubAgents, sub)
		}
	}
}

func (c *checker) subAgents(a *Agent) {
	if !a.Type.Workflow() || len(a.SubAgents) > 0 {
		return
	}
	n, given := a.nodes["sub_agents"]
	switch {
	case !given:
		c.report(a.src.Of(a.node), CodeNoSteps, "%s agent needs sub_agents", article(a.Type))
	case len(source.Deref(n).Content) == 0 && !source.IsNull(n):
		c.report(a.at("sub_agents"), CodeNoSteps, "%s agent needs at least one sub-agent", article(a.Type))
	}
}

var errorRows = []row[Agent]{
	field("on_error", "after a failed step: stop (default), skip_step or, in a loop, next_iteration; on a step for "+
		"itself, on a loop for all its steps too", oneWord(loop.StopOnError, loop.SkipStep, loop.NextIteration),
		func(a *Agent) *loop.ErrorPolicy { return &a.OnError }).
		helped("skip_step goes on with the next step, next_iteration with the next iteration").shown(loop.StopOnError),
}

var goOnRows = []row[Agent]{does("continue_on_error", "true lets a loop go on with its next iteration after a failed "+
	"step; on a step of a loop it means on_error: next_iteration, on another step on_error: skip_step", yesNo,
	(*reader).continueOnError)}

func (r *reader) continueOnError(a *Agent, n *source.Node) {
	on, ok := r.boolean(n, "continue_on_error")
	switch {
	case !ok || !on:
	case a.Loop != nil:
		a.Loop.ContinueOnError = true
	case a.isStep():
		a.OnError = loop.NextIteration
	default:
		a.OnError = loop.SkipStep
	}
}

// errorPolicy checks what follows after the agent fails. A loop has a switch for its steps, and as a step
// another one for itself (C14).
func (c *checker) errorPolicy(a *Agent) {
	_, given := a.nodes["on_error"]
	_, goesOn := a.nodes["continue_on_error"]
	switch {
	case given && goesOn && !(a.Type == TypeLoop && a.isPart()):
		c.report(a.at("key of continue_on_error"), CodeConflict,
			"continue_on_error and on_error say the same; give one of them")
	case a.OnError == "" || a.Type == TypeLoop || a.isStep():
	case !a.isPart():
		field := "on_error"
		if !given {
			field = "continue_on_error"
		}
		c.report(a.at(field), CodeNoLoop, "%s is for loops, and for the steps of loops, sequences and parallel agents; "+
			"%q is none of them", field, a.Name)
	case a.OnError == loop.NextIteration:
		c.report(a.at("on_error"), CodeNoLoop, "%q is not a step of a loop, so no iteration follows when it fails", a.Name).
			Hint = "give it stop or skip_step"
	}
}

// policies are how a sequence or a parallel agent treats its steps.
func (b *builder) policies(a *Agent) drive.StepPolicies {
	by := make(drive.StepPolicies)
	for _, sub := range a.SubAgents {
		p := drive.StepPolicy{SkipOnError: sub.OnError == loop.SkipStep}
		if s := sub.Step; s != nil && !b.cfg.StandIns.NoCallbacks {
			p.DelayBefore, p.DelayAfter = s.DelayBefore, s.DelayAfter
		}
		if p != (drive.StepPolicy{}) {
			by[sub.Name] = p
		}
	}
	return by
}
