// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/loop"
)

// WorstCase is the most that a run of a definition can use.
type WorstCase struct {
	// Total is the most that the whole run can use.
	Total AtMost
	// Agents are the agents in the order of [Agent.All], each with the most that it and the agents
	// in it can use in the whole run.
	Agents []AgentWorst

	of *worst
}

// AgentWorst is the most that one agent can use.
type AgentWorst struct {
	Agent *Agent
	Depth int // 0 for the root
	AtMost
	// Model is the name of the agent's model, from the file or from what was assumed; empty if
	// neither names one, or if the agent asks no model.
	Model string
	// Unpriced reports that the price of the model is unknown, or that of another model that a loop may have the agent ask;
	// UnpricedModel is that model.
	Unpriced      bool
	UnpricedModel string
}

// Worst computes the most that a run can use. It is a pure function of the definition and of the assumptions:
// iterations times steps, with their attempts, samples and delays, multiplied for loops in loops, and limited by
// timeouts, budgets and max_model_calls.
//
// An agent without tools takes one turn, or two if its answer must fit an output_schema. An agent with tools may take
// any number of turns. The last answer may exceed a budget of tokens or cost, because its tokens are not known in
// advance.
func (d *Definition) Worst(given Assumed) *WorstCase {
	w := &worst{def: d, given: given}
	w.limiting, _ = d.limited(given.Limits)
	total := w.once(d.Root).budgeted(w.allowed())
	total.Runs = 1
	limit := Bound(agent.DefaultMaxLLMCalls)
	switch n := d.RunConfig(given.Limits).MaxLLMCalls; {
	case n < 0:
		limit = unbounded
	case n > 0:
		limit = Bound(n)
	}
	total = total.atMostCalls(limit)
	w.spread(d.Root, 0, total)
	return &WorstCase{Total: total.waiting(), Agents: w.agents, of: w}
}

// worst computes a worst case.
type worst struct {
	limiting
	def    *Definition
	given  Assumed
	agents []AgentWorst
	slices map[*Agent]*Race // loops that have only a slice
}

// spread records the use of an agent and of those inside it, each limited to the use of its parent.
func (w *worst) spread(a *Agent, depth int, u AtMost) {
	one := AgentWorst{Agent: a, Depth: depth, AtMost: u.waiting()}
	if a.Type == TypeLLM {
		_, unknown := w.prices(a)
		one.Model, one.Unpriced, one.UnpricedModel = w.modelOf(a), unknown != "", unknown
	}
	w.agents = append(w.agents, one)
	each := func(sub *Agent, all AtMost, runs Bound) {
		all = all.within(u)
		all.Runs = runs
		w.spread(sub, depth+1, all)
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.Agent != nil {
				each(t.Agent, w.once(t.Agent).often(unbounded), unbounded)
			}
		}
	}
	p := w.planOf(a)
	for i, sub := range a.SubAgents {
		if p == nil {
			each(sub, w.once(sub).often(u.Runs), u.Runs)
			continue
		}
		runs, once := w.runsOf(p, i, sub)
		all := once.often(runs.times(u.Runs))
		if t := p.IterationTimeout; t > 0 && i != p.Finalizer() {
			all.Seconds = min(all.Seconds, seconds(t).times(iterations(p)).times(u.Runs))
		}
		each(sub, all, runs.times(u.Runs))
	}
}

// once returns the use of one run of an agent, with its callbacks.
func (w *worst) once(a *Agent) AtMost {
	u := w.run(a)
	if s := a.Step; s != nil && !a.isStep() { // a loop waits by its plan
		u.Seconds += Bound(time.Duration(s.DelayBefore + s.DelayAfter).Seconds())
	}
	u.Seconds += hookBound(a, hook.BeforeRun, hook.BeforeAgent, hook.AfterAgent, hook.AfterRun)
	return u
}

// hookBound returns the longest time of the callbacks at some points.
func hookBound(a *Agent, points ...hook.Point) (sum Bound) {
	for _, p := range points {
		for i := range a.Callbacks[p] {
			sum += seconds(cmp.Or(a.Callbacks[p][i].Timeout, hook.DefaultTimeout))
		}
	}
	return sum
}

// run returns the use of one run of the agent itself.
func (w *worst) run(a *Agent) AtMost {
	switch most := a.Type.kind().most; {
	case most != nil:
		return most(w, a)
	case a.Type == "":
		return AtMost{Seconds: unbounded}
	}
	return AtMost{}
}

// loop returns the use of one run of a loop: all its iterations, and the finalizer.
func (w *worst) loop(a *Agent) AtMost {
	p := w.planOf(a)
	var each, fin AtMost
	var after loop.Duration // the longest delay behind a step
	final := p.Finalizer()
	for i, sub := range a.SubAgents {
		_, once := w.runsOf(p, i, sub)
		if i == final {
			fin = once
			continue
		}
		one := once.often(perIteration(p, i))
		one.Seconds += waits(p, i, sub)
		each = each.plus(one)
		after = max(after, p.Steps[i].DelayAfter)
	}
	if p.IterationTimeout > 0 {
		each.Seconds = min(each.Seconds, seconds(p.IterationTimeout))
	}
	each.Seconds += hookBound(a, hook.BeforeIteration, hook.AfterIteration) // no iteration's time
	n := iterations(p)
	u := each.often(n)
	if i := judgeAgain(p); i >= 0 && n > 1 {
		_, once := w.runsOf(p, i, a.SubAgents[i])
		u = u.plus(once.often(attempts(p, i).times(n - 1)))
		u.Seconds += waits(p, i, a.SubAgents[i]).times(n - 1)
	}
	for _, i := range p.BaselineSteps() {
		_, once := w.runsOf(p, i, a.SubAgents[i])
		u = u.plus(once.often(perIteration(p, i)))
		u.Seconds += waits(p, i, a.SubAgents[i])
	}
	if between := Bound(time.Duration(p.DelayAfter + after).Seconds()); n > 1 {
		u.Seconds += between.times(n - 1)
	}
	u = u.plus(fin)
	if t := seconds(p.Timeout); p.Timeout > 0 && a == w.def.Root {
		u.Seconds, u.limited = min(u.Seconds+u.limited, t), 0
	} else if p.Timeout > 0 {
		u.Seconds, u.limited = min(u.Seconds, t), min(u.limited, t)
	}
	return u.budgeted(p.Budget)
}

// iterations returns the largest number of iterations.
func iterations(p *loop.Plan) Bound {
	if p.MaxIterations == 0 {
		return unbounded
	}
	return Bound(p.MaxIterations)
}

// runsOf returns how often a loop runs one of its sub-agents, and the use of each run.
func (w *worst) runsOf(p *loop.Plan, step int, sub *Agent) (runs Bound, once AtMost) {
	once = w.once(sub)
	s := &p.Steps[step]
	if s.AdaptiveTimeout != nil {
		once.Seconds = min(once.Seconds, seconds(max(s.Timeout, s.AdaptiveTimeout.Max)))
	} else if s.Timeout > 0 {
		once.Seconds = min(once.Seconds, seconds(s.Timeout))
	}
	if step == p.Finalizer() {
		return 1, once // it is not tried again
	}
	runs = perIteration(p, step).times(iterations(p))
	if slices.Contains(p.BaselineSteps(), step) {
		runs += perIteration(p, step)
	}
	if n := iterations(p); step == judgeAgain(p) && n > 1 {
		runs += attempts(p, step).times(n - 1)
	}
	return runs, once
}

// perIteration returns how often a step runs in one iteration: its samples times their attempts.
func perIteration(p *loop.Plan, step int) Bound { return attempts(p, step).times(samples(p, step)) }

// attempts returns the largest number of attempts of a step.
func attempts(p *loop.Plan, step int) Bound {
	if r := p.Steps[step].Retry; r != nil {
		return Bound(max(1, r.Attempts))
	}
	return 1
}

// judgeAgain returns the judge, if it is asked about the best once more after each rollback; else -1.
func judgeAgain(p *loop.Plan) int {
	if !p.Rejudges() {
		return -1
	}
	return slices.IndexFunc(p.Steps, func(s loop.Step) bool { return s.Name == p.Score.Judge.Step })
}

func samples(p *loop.Plan, step int) Bound {
	if s := p.Score; s != nil && s.Judge != nil && s.Judge.Step == p.Steps[step].Name {
		return Bound(s.Judge.Most())
	}
	return 1
}

// leastSamples is how often a step runs in an iteration: a judge with a range of samples mostly stays near the smaller number.
func leastSamples(p *loop.Plan, step int) int {
	if s := p.Score; s != nil && s.Judge != nil && s.Judge.Step == p.Steps[step].Name {
		return int(max(1, s.Judge.Samples))
	}
	return 1
}

// waits returns how long an iteration waits for a step: before and after it, between its attempts, and for its
// circuit to close.
func waits(p *loop.Plan, step int, sub *Agent) Bound {
	s := &p.Steps[step]
	wait := Bound(time.Duration(s.DelayBefore + s.DelayAfter).Seconds())
	if s.Circuit != nil {
		wait += Bound(time.Duration(s.Circuit.Cooldown).Seconds())
	}
	if s.Retry != nil {
		wait += backoffs(s.Retry, mayAsk(sub)).times(samples(p, step))
	}
	return wait
}

// mayAsk reports whether a failure in a step may ask to wait, as servers do.
func mayAsk(a *Agent) bool {
	return a.Type.kind().waits || slices.ContainsFunc(a.SubAgents, mayAsk)
}

// backoffs returns the time between all attempts of a step. Each delay is twice the previous one, up to the longest;
// asked means that each may be the longest.
func backoffs(r *loop.Retry, asked bool) (sum Bound) {
	next, longest := time.Duration(r.Backoff), time.Duration(r.MaxBackoff)
	if longest == 0 {
		longest = max(time.Minute, next)
	}
	if next = min(next, longest); asked {
		next = longest
	}
	for left := int64(r.Attempts) - 1; left > 0 && next > 0; left-- {
		if next == longest {
			return sum + Bound(longest.Seconds()).times(Bound(left))
		}
		sum += Bound(next.Seconds())
		next = min(longest, 2*next)
	}
	return sum
}

// Assumed has assumptions for [Definition.Worst] about values that the file does not have. Zero values leave them
// unknown, or as in the file.
type Assumed struct {
	// Model is the model of agents that name none. EveryModel is the model of all agents, in place
	// of those in the file.
	Model, EveryModel string
	// InputTokens is the largest number of tokens of a request, and OutputTokens the largest number of tokens of an
	// answer of an agent without max_tokens.
	InputTokens, OutputTokens int64
	// State has values that the run begins with, in place of those in the file, for [Definition.Expected].
	State map[string]any
	// Limits are those of the run. Limits that no run can have (see [Definition.Allows]) have no effect.
	Limits
}

// planOf returns the rules that a loop follows in the run; nil for an agent that is not a loop.
func (w *worst) planOf(a *Agent) *loop.Plan {
	p := w.as(a).Plan()
	if r := w.slices[a]; r != nil {
		if r.Iterations > 0 && (p.MaxIterations == 0 || r.Iterations < p.MaxIterations) {
			p.MaxIterations = r.Iterations
		}
	}
	return p
}

// sliced calls f while a loop of a race has only its slice.
func (w *worst) sliced(a *Agent, r *Race, f func()) {
	if w.slices == nil {
		w.slices = make(map[*Agent]*Race)
	}
	w.slices[a] = r
	f()
	delete(w.slices, a)
}

// race returns the most that the loops of a race use in their slices, in order, and the most that the one which goes on
// uses after that.
func (w *worst) race(a *Agent) (parts []AtMost, rest AtMost) {
	for _, sub := range a.SubAgents {
		var part AtMost
		w.sliced(sub, a.Parallel.Race, func() { part = w.once(sub).budgeted(a.Parallel.Race.Budget) })
		if parts = append(parts, part); a.Parallel.Race.Rest {
			rest = rest.most(w.once(sub).less(part))
		}
	}
	return parts, rest
}

// allowed returns the budget of the run in the form of a loop's; nil if there is none.
func (w *worst) allowed() *loop.Budget {
	if w.given.Budget == nil {
		return nil
	}
	return new(loop.Budget(*w.given.Budget))
}
