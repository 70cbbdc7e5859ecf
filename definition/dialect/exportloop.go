// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"slices"

	"github.com/refrain-dev/refrain/definition"
)

// loop writes a loop. A finalizer runs after it, in a sequence around both.
func (e *exporter) loop(a *definition.Agent, in inherited, out object, file string) bool {
	l := a.Loop
	if l.Goal != "" {
		in.purpose = joined(in.purpose, "The goal: "+l.Goal)
	}
	in.purpose = joined(in.purpose, l.Instructions)
	if l.Goal != "" || l.Instructions != "" {
		e.changed(at(a, "goal"), a.Name, "goal, instructions", "instruction", "ADK's loops have none; they follow the instruction of each agent in it")
	}
	nested := in.inLoop
	after := in // the finalizer is outside
	after.exit, after.finalize = false, true
	in.exit, in.inLoop, in.finalize = false, true, false
	var finalizer *definition.Agent
	steps := slices.DeleteFunc(slices.Clone(a.SubAgents), func(sub *definition.Agent) bool {
		if sub.OutputKey == definition.LoopOutput && !l.FinalizeEach {
			finalizer = sub
			return true
		}
		return false
	})
	steps = e.ordered(a, steps)
	before := e.exits
	e.exits = false
	refs := e.subs(steps, in)
	if len(refs) == 0 {
		e.empty(a)
		return false
	}
	e.ends(a, nested)
	e.exits = e.exits || before // in ADK, leaving it leaves those around it
	if len(steps) > 0 {
		e.mapped(at(a, "sub_agents"), a.Name, "sub_agents", "")
	}
	body := object{{key: "agent_class", value: "LoopAgent"}}
	if l.MaxIterations > 0 {
		body = append(body, field{key: "max_iterations", value: int(l.MaxIterations)})
	}
	e.mapped(at(a, "max_iterations"), a.Name, "max_iterations", "")
	e.outputKey(a)
	if finalizer == nil {
		e.write(file, append(append(body[:1:1], out...), append(body[1:], field{key: "sub_agents", value: refs})...))
		return true
	}
	return e.finalized(a, finalizer, after, out, body, refs, file)
}

// finalized writes a loop and the agent that has the last word as a sequence.
func (e *exporter) finalized(a, finalizer *definition.Agent, after inherited, out, body object, refs []any, file string) bool {
	last := e.subs([]*definition.Agent{finalizer}, after)
	if len(last) == 0 {
		e.write(file, append(append(body[:1:1], out...), append(body[1:], field{key: "sub_agents", value: refs})...))
		return true
	}
	name := e.names[a.Name] + "_loop"
	for e.taken[name] {
		name += "_"
	}
	e.taken[name] = true
	path := e.file(name)
	inner := append(body[:1:1], field{key: "name", value: name})
	e.write(path, append(inner, append(body[1:], field{key: "sub_agents", value: refs})...))
	e.changed(at(finalizer, "output_key"), finalizer.Name, "loop_output", "SequentialAgent "+e.names[a.Name], "ADK has no finalizer: the loop, now %s, and then this agent are a sequence", name)
	seq := append(object{{key: "agent_class", value: "SequentialAgent"}}, out...)
	subs := append([]any{object{{key: "config_path", value: path}}}, last...)
	e.write(file, append(seq, field{key: "sub_agents", value: subs}))
	return true
}

// ordered puts steps in the order in which they run.
func (e *exporter) ordered(a *definition.Agent, steps []*definition.Agent) []*definition.Agent {
	order := a.Loop.Order
	if len(order) == 0 {
		return steps
	}
	e.changed(at(a, "order"), a.Name, "order", "sub_agents", "the sub-agents are written in that order")
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(x, y *definition.Agent) int { return slices.Index(order, x.Name) - slices.Index(order, y.Name) })
	return steps
}

// ends says what of the end of a loop is otherwise in ADK.
func (e *exporter) ends(a *definition.Agent, nested bool) {
	l := a.Loop
	_, timed := a.FieldPosition("timeout")
	_, preset := a.FieldPosition("timeouts")
	if !timed && !preset && l.Timeout > 0 {
		e.dropped(at(a, "name"), a.Name, "time", instead["timeout"], "it ends after %s, as loops do that say nothing, and ADK bounds no loop by time", l.Timeout)
	}
	switch {
	case l.MaxIterations == 0 && !e.exits:
		e.dropped(at(a, "max_iterations"), a.Name, "its end", "give it max_iterations; or write an agent in code that yields an event with actions.escalate",
			"in ADK nothing ends this loop: it has no max_iterations, no agent in it may end it, and what else does is left out")
	case nested && e.exits:
		e.changed(at(a, "name"), a.Name, "exit_loop", "", "here it leaves this loop; in ADK the loops around it end too")
	}
}
