// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/internal/source"
	"github.com/refrain-dev/refrain/loop"
)

// Bound is an upper limit. It is infinite if no limit applies or if the limit is unknown. JSON has
// null for infinite.
type Bound float64

// Unbounded reports whether the limit is infinite.
func (b Bound) Unbounded() bool { return math.IsInf(float64(b), 1) }

// MarshalJSON writes the number, or null if it is infinite.
func (b Bound) MarshalJSON() ([]byte, error) {
	if b.Unbounded() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(b))
}

var unbounded = Bound(math.Inf(1))

// times multiplies; zero times infinity is zero.
func (b Bound) times(n Bound) Bound {
	if b == 0 || n == 0 {
		return 0
	}
	return b * n
}

// AtMost is the most that a run, or an agent in it, can use.
type AtMost struct {
	// Runs is the number of times that the agent runs.
	Runs Bound `json:"runs"`
	// Turns is the number of questions to models. Calls is the number of requests if each question
	// is sent as often as its retries allow. Budgets count requests.
	Turns Bound `json:"turns"`
	Calls Bound `json:"calls"`
	// Tokens are input and output tokens together, and Cost is their cost.
	Tokens Bound `json:"tokens"`
	Cost   Bound `json:"cost"`
	// Seconds is the time of steps and delays, without overhead. A step that does not stop at its
	// timeout is abandoned two seconds later. The time that people may take to answer is included,
	// although no timeout limits it.
	Seconds Bound `json:"seconds"`

	tokensEach, costEach Bound // of the largest request
	waits                Bound // seconds for people to answer, which no timeout bounds
	limited              Bound // seconds for limits of providers to end, which only the timeout of a loop bounds
}

// Time returns Seconds as a duration; ok is false if the time is unbounded.
func (u AtMost) Time() (d time.Duration, ok bool) {
	if u.Seconds.Unbounded() || float64(u.Seconds) > math.MaxInt64/float64(time.Second) {
		return 0, false
	}
	return time.Duration(math.Ceil(float64(u.Seconds)*1e6)) * time.Microsecond, true
}

// plus returns the sum for two agents that run one after the other.
func (u AtMost) plus(v AtMost) AtMost {
	return AtMost{
		Turns: u.Turns + v.Turns, Calls: u.Calls + v.Calls, Tokens: u.Tokens + v.Tokens, Cost: u.Cost + v.Cost,
		Seconds:    u.Seconds + v.Seconds,
		waits:      u.waits + v.waits,
		limited:    u.limited + v.limited,
		tokensEach: max(u.tokensEach, v.tokensEach), costEach: max(u.costEach, v.costEach),
	}
}

// often multiplies the use by a number of runs.
func (u AtMost) often(n Bound) AtMost {
	u.Turns, u.Calls, u.Tokens, u.Cost, u.Seconds = u.Turns.times(n), u.Calls.times(n), u.Tokens.times(n),
		u.Cost.times(n), u.Seconds.times(n)
	u.waits, u.limited = u.waits.times(n), u.limited.times(n)
	return u
}

// within limits the use to that of the enclosing agent.
func (u AtMost) within(v AtMost) AtMost {
	u = u.atMostCalls(v.Calls)
	u.Turns, u.Tokens, u.Cost, u.Seconds = min(u.Turns, v.Turns), min(u.Tokens, v.Tokens), min(u.Cost, v.Cost),
		min(u.Seconds+u.limited, v.Seconds+v.limited)
	u.limited = 0
	u.waits = min(u.waits, v.waits)
	return u
}

// waiting adds the time in which people answer and limits of providers end.
func (u AtMost) waiting() AtMost {
	u.Seconds, u.waits, u.limited = u.Seconds+u.waits+u.limited, 0, 0
	return u
}

// atMostCalls limits the number of requests.
func (u AtMost) atMostCalls(n Bound) AtMost {
	if n < u.Calls {
		u.Calls, u.Turns = n, min(u.Turns, n)
		u.Tokens, u.Cost = min(u.Tokens, n.times(u.tokensEach)), min(u.Cost, n.times(u.costEach))
	}
	return u
}

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
	// Unpriced reports that the price of the model is unknown.
	Unpriced bool
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
}

// spread records the use of an agent and of those inside it, each limited to the use of its parent.
func (w *worst) spread(a *Agent, depth int, u AtMost) {
	one := AgentWorst{Agent: a, Depth: depth, AtMost: u.waiting()}
	if a.Type == TypeLLM {
		_, known := w.price(a)
		one.Model, one.Unpriced = w.modelOf(a), !known
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
		u.Seconds += Bound((s.DelayBefore + s.DelayAfter).Seconds())
	}
	u.Seconds += told(a, hook.BeforeRun, hook.BeforeAgent, hook.AfterAgent, hook.AfterRun)
	return u
}

// told returns the longest time of the callbacks at some points.
func told(a *Agent, points ...hook.Point) (sum Bound) {
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

// noLimit is the use of an agent about which nothing is known.
var noLimit = AtMost{Turns: unbounded, Calls: unbounded, Tokens: unbounded, Cost: unbounded, Seconds: unbounded,
	tokensEach: unbounded, costEach: unbounded}

// seconds converts a timeout, of which 0 means no limit.
func seconds[D time.Duration | loop.Duration](d D) Bound {
	if d == 0 {
		return unbounded
	}
	return Bound(time.Duration(d).Seconds())
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
	each.Seconds += told(a, hook.BeforeIteration, hook.AfterIteration) // no iteration's time
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

// budgeted limits the use to a budget.
func (u AtMost) budgeted(b *loop.Budget) AtMost {
	if b == nil {
		return u
	}
	if b.Calls > 0 {
		u = u.atMostCalls(Bound(b.Calls))
	}
	if b.Tokens > 0 {
		u.Tokens = min(u.Tokens, Bound(b.Tokens))
	}
	if b.Cost != nil {
		u.Cost = min(u.Cost, Bound(*b.Cost))
	}
	return u
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
func (w *worst) planOf(a *Agent) *loop.Plan { return w.as(a).Plan() }

// allowed returns the budget of the run in the form of a loop's; nil if there is none.
func (w *worst) allowed() *loop.Budget {
	if w.given.Budget == nil {
		return nil
	}
	return new(loop.Budget(*w.given.Budget))
}

// Stops returns the ways in which a loop of the run can end, as [Agent.Stops] does, under the
// assumptions.
func (w *WorstCase) Stops(a *Agent) []StopWay {
	if a.Type != TypeLoop {
		return nil
	}
	ways := w.of.as(a).Stops()
	if b := w.of.allowed(); b != nil && a.asksModel() {
		ways = append(ways, StopWay{loop.ReasonBudget, "when the run has used " + budgetWords(b)})
	}
	return ways
}

// Problems returns the warnings and notes of the definition that hold under the assumptions, and
// those of [WorstCase.Notes].
func (w *WorstCase) Problems() Problems {
	of := w.of
	all := slices.Concat(of.def.warnings, of.def.notes)
	if a := of.limited; a != nil {
		stale := timeProblems(a)
		all = slices.DeleteFunc(all, func(p *Problem) bool {
			// Not by their places, which may have been traced to another file.
			return slices.ContainsFunc(stale, func(q *Problem) bool {
				return p.Code == q.Code && p.Message == q.Message
			})
		})
		as := of.as(a)
		if of.given.Timeout != nil { // as if the file gave it
			as.nodes = maps.Clone(a.nodes)
			if _, given := a.nodes["timeout"]; !given {
				as.nodes["timeout"] = cmp.Or(a.nodes["max_iterations"], a.nodes["name"], a.node)
			}
		}
		all = append(all, timeProblems(as)...)
	}
	return append(all, w.Notes()...)
}

// timeProblems are what there is to say about a loop's times.
func timeProblems(a *Agent) Problems {
	c := &checker{loader: newLoader()}
	c.times(a)
	c.presetTimes(a)
	return append(c.problems, c.notes...)
}

// Notes returns a note for each missing limit: an agent that may ask a model without end, an agent
// without a time limit, a model whose price is unknown. Each has its position in the file.
func (w *WorstCase) Notes() Problems {
	l := newLoader()
	for i := range w.Agents {
		if notes := w.Agents[i].Agent.Type.kind().notes; notes != nil {
			notes(w, l, &w.Agents[i])
		}
	}
	return l.notes.sort()
}

func (w *WorstCase) timeNote(l *loader, u *AgentWorst) {
	if !w.Total.Seconds.Unbounded() || !u.Seconds.Unbounded() || u.Agent.tool {
		return
	}
	hint := "give it a timeout"
	switch step := u.Agent.within(); {
	case u.Agent.isStep():
	case step != nil && u.Agent.Type == TypeLLM:
		hint = fmt.Sprintf("give %q or the loop around it a timeout", step.Name)
	case u.Agent.Type == TypeLLM:
		hint = "put it into a loop with max_iterations: 1 and a timeout"
	}
	l.note(u.Agent.at("name"), CodeNoBound, "nothing limits how long %q takes", u.Agent.Name).Hint = hint
}

// besideNote says that branches which are meant to work at once wait for each other,
// as the budget has no room for the first answers of all.
func (w *WorstCase) besideNote(l *loader, a *Agent) {
	var all int64
	for _, branch := range a.SubAgents {
		var most int64
		for b := range branch.All {
			if b.Type != TypeLLM {
				continue
			}
			out := int64(llmagent.DefaultOutputTokens)
			if b.LLM.MaxTokens > 0 {
				out = min(out, int64(b.LLM.MaxTokens))
			}
			most = max(most, out)
		}
		all += most
	}
	for _, b := range w.of.budgetsOn(a) {
		if b.Tokens > 0 && all > b.Tokens {
			l.note(a.at("name"), CodeStop, "the branches of %q wait for each other: their first answers need %d "+
				"tokens in all, but the budget of %s has %d", a.Name, all, b.of, b.Tokens).
				Hint = "give the agents in it max_tokens"
		}
	}
}

// roomOf is a budget, what it is of, and where it is said.
type roomOf struct {
	Tokens int64
	Cost   *float64
	of     string
	at     source.Span
}

// budgetsOn are the budgets that an agent's requests have to fit into: those of the
// loops around it, and that of the run.
func (w *worst) budgetsOn(a *Agent) (all []roomOf) {
	for p := a; p != nil; p = p.parent {
		if p.Type != TypeLoop || p.Loop == nil || p.Loop.Budget == nil {
			continue
		}
		b := p.Loop.Budget
		all = append(all, roomOf{b.Tokens, b.Cost, quoted(p.Name), p.at("budget")})
	}
	if g := w.given.Budget; g != nil {
		all = append(all, roomOf{g.Tokens, g.Cost, "the run", a.at("name")})
	}
	return all
}
