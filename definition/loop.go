// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/loop"
)

// Loop holds the fields that only loops have.
type Loop struct {
	// Plan has the rules that the file gives. [Agent.Plan] adds what follows from the agents: the name, the steps, who may exit,
	// OnError, Watch, and the steps of OnPlateau. Times that the file does not set come from the preset in Timeouts. The default of
	// StateLimit in a file is [DefaultStateLimit].
	loop.Plan
	Goal         string
	Instructions string
	// ContinueOnError continues with the next iteration after a failed step, unless the step has a policy
	// of its own. Agent.OnError then says only what follows when the loop itself fails.
	ContinueOnError bool
	// Timeouts is the preset of the times. The default is [TimeoutsStandard] for an outermost loop, and none for a loop inside
	// another loop.
	Timeouts Timeouts
	// Result is the state key of the loop's result; see loopagent.Config.
	Result string

	legs []*Agent // by entry of OnPlateau: the loop as an agent that names its model; nil if it names none

	meant bool // somebody has chosen Timeout, so that it counts as a bound
}

// DefaultMaxIterations is the default of max_iterations.
const DefaultMaxIterations = 5

var loopRows = []row[Loop]{
	field("goal", "goal of the loop", aText, func(l *Loop) *string { return &l.Goal }),
	field("instructions", "loop: how to reach the goal; llm: system instruction, with placeholders", aText, func(l *Loop) *string { return &l.Instructions }).alone(),
	field("max_iterations", "most iterations; 5 if left out; 0 for no limit, if something else stops the loop", wholeFrom[uint](0, ""), func(l *Loop) *uint { return &l.MaxIterations }).or(DefaultMaxIterations),
	field("order", "order of the sub-agents, if not that of sub_agents: every name once", each(aText, listing{whole: true}), func(l *Loop) *[]string { return &l.Order }),
	field("stop_when", "expression that ends the loop when true; or any, all, not of several; or when with for: k iterations in a row; or {text, of}: a step says a phrase", own(conditionRef, (*reader).condition), func(l *Loop) **loop.Condition { return &l.StopWhen }),
	field("stop_check", "when to evaluate stop_when: after every iteration (default) or every step", oneWord[loop.StopCheck]("iteration", "step"), func(l *Loop) *loop.StopCheck { return &l.StopCheck }).shown("iteration"),
	field("score", "state key of an iteration's score; or a map with key or expr and more", scoreParts.value(), func(l *Loop) **loop.Score { return &l.Score }),
	field("quality_gate", "least score at which an iteration is accepted", maybe(aNumber), func(l *Loop) **float64 { return &l.QualityGate }),
	special("result", "state key to hand back, in place of what was said last; or best: the best iteration, also "+
		"after an exit", schema.Text, takesResult),
	field("on_regression", "after an iteration worse than the best: keep_best (default), or rollback, which undoes it", oneWord[loop.Regression]("keep_best", "rollback"), func(l *Loop) *loop.Regression { return &l.OnRegression }).shown("keep_best"),
	field("no_progress", "true ends a loop that repeats itself; or {repeats, swings, keys}", noProgressParts.value(), func(l *Loop) **loop.NoProgress { return &l.NoProgress }),
	field("not_worth", "end the loop when the next iteration is not worth it: {gain, per: iteration, minute, ktokens or cost}", notWorthParts.value(), func(l *Loop) **loop.NotWorth { return &l.NotWorth }),
	field("on_plateau", "what to do when the loop has converged, before it stops: a list, each entry once, in order: fresh, or {model, instructions, thinking, fresh, steps}",
		as(each(legValue, listing{empty: "leave it out for a loop that stops", whole: true}), legsOf), func(l *Loop) *[]loop.Leg { return &l.OnPlateau }),
	field("timeouts", "preset of the timeouts of iteration and loop; standard if left out, none for a nested loop", oneWord(TimeoutsFast, TimeoutsStandard, TimeoutsLong, TimeoutsNone), func(l *Loop) *Timeouts { return &l.Timeouts }).helped("timeouts names a preset; the time itself is timeout or iteration_timeout").shown("standard"),
	field("timeout", "time limit, such as 30s or 5m; a plain number is seconds; on sequential, parallel, llm, a2a and func only as a step of a loop",
		plain(schema.Duration, (*reader).loopTime), func(l *Loop) *loop.Duration { return &l.Timeout }),
	field("iteration_timeout", "time limit of one iteration; its remaining steps are skipped",
		plain(schema.Duration, (*reader).loopTime), func(l *Loop) *loop.Duration { return &l.IterationTimeout }),
	field("iteration_delay", "pause between two iterations", aDelay, func(l *Loop) *loop.Duration { return &l.DelayAfter }),
	field("budget", "limit on the model calls in the loop: {calls, tokens, cost}", budgetParts.value(), func(l *Loop) **loop.Budget { return &l.Budget }),
	field("finalizer", "when the finalizer runs: after the loop (default) or after each_iteration", as(oneWord("after", finalizeEach), func(when string) bool { return when == finalizeEach }), func(l *Loop) *bool { return &l.FinalizeEach }).helped("it says when; output_key: loop_output makes a step the finalizer").shown("after"),
	field("finalizer_reserve", "share of time and budget kept for the finalizer; 10% if left out", plain(shareShape, (*reader).share), func(l *Loop) *float64 { return &l.FinalizerReserve }).shown("10%"),
	field("state_limit", "largest state that a step can make, such as 10MB; none for no limit", plain(sizeOrNone, (*reader).stateLimit), func(l *Loop) *int64 { return &l.StateLimit }).helped("none is no limit; without state_limit it is 64MiB").or("64MiB"),
	field("max_consecutive_failures", "end the loop after this many failed steps in a row", wholeFrom[uint](0, ""), func(l *Loop) *uint { return &l.MaxConsecutiveFailures }),
}

// takesResult reads a state key, or best.
func takesResult(p place, n *source.Node, l *Loop) bool {
	key, ok := p.text(n, p.field)
	if l.Result = key; key == "best" {
		l.Result, l.BestOnExit = "", true
	}
	return ok
}

const finalizeEach = "each_iteration"

var budgetParts = parts[loop.Budget]{rows: []row[loop.Budget]{
	field("calls", "requests to models", wholeFrom[int64](1, "leave it out for no limit"), func(b *loop.Budget) *int64 { return &b.Calls }),
	field("tokens", "tokens of input and output together", wholeFrom[int64](1, "leave it out for no limit"), func(b *loop.Budget) *int64 { return &b.Tokens }),
	field("cost", "cost, by the prices at the root", maybe(anAbove), func(b *loop.Budget) **float64 { return &b.Cost }),
}, some: "give calls, tokens or cost"}

var noProgressParts = parts[loop.NoProgress]{rows: []row[loop.NoProgress]{
	field("repeats", "equal iterations in a row that end the loop", wholeFrom[uint](1, ""), func(p *loop.NoProgress) *uint { return &p.Repeats }).shown(3),
	field("swings", "times that two results must alternate to end the loop", wholeFrom[uint](1, ""), func(p *loop.NoProgress) *uint { return &p.Swings }).shown(2),
	field("keys", "state keys to compare; everything said and changed if left out", each(aText, listing{}), func(p *loop.NoProgress) *[]string { return &p.Keys }),
}, or: "true"}

var notWorthParts = parts[loop.NotWorth]{rows: []row[loop.NotWorth]{
	field("gain", "least expected gain in score", aNumber, func(w *loop.NotWorth) *float64 { return &w.Gain }).must(),
	field("per", "unit that must bring the gain: an iteration, a minute, a thousand tokens or a unit of cost", oneWord[loop.Per]("iteration", "minute", "ktokens", "cost"), func(w *loop.NotWorth) *loop.Per { return &w.Per }).shown("iteration"),
}}

// loop checks the rules of a loop.
func (c *checker) loop(a *Agent) {
	if endless(a.Loop, a) {
		c.report(a.at("max_iterations"), CodeEndless, "%s", endlessMessage(a)).Hint = endlessHint
	}
	c.anyone(a)
	for _, e := range unjoin(a.Plan().Check()) {
		pe, ok := errors.AsType[*loop.PlanError](e)
		switch {
		case !ok:
			c.report(a.at("sub_agents"), CodeStop, "%v", e).err = e
		case pe.Step > 0:
			c.stepError(a, pe)
		case pe.Field == "steps": // a loop without sub-agents is an error of its own
		case rootOf(pe.Field) == "order":
			c.order(a, pe)
		default:
			c.planError(a, pe)
		}
	}
	c.legs(a)
	c.times(a)
	c.conditionReads(a)
	c.literal(a, "goal", a.Loop.Goal)
	c.literal(a, "instructions", a.Loop.Instructions)
}

// endlessMessage says why no limit bounds a loop.
func endlessMessage(a *Agent) string {
	const never = "this loop can never stop: max_iterations is 0 and "
	if len(canExit(a)) > 0 {
		return never + "no sub-agent that has can_exit_loop has exit_when"
	}
	return never + "no sub-agent has can_exit_loop"
}

const endlessHint = "give max_iterations above 0, timeout, stop_when, a score with target or min_delta, exit_when of a " +
	"sub-agent, or can_exit_loop of one that asks a model"

// endless reports whether no limit bounds a loop.
func endless(l *Loop, a *Agent) bool {
	if l.MaxIterations > 0 || l.StopWhen != nil || stops(l.Score) {
		return false
	}
	// A default preset does not count, because it ends only loops that should have ended long before.
	if l.meant && l.Timeout > 0 || l.Budget != nil && a.asksModel() {
		return false
	}
	return !slices.ContainsFunc(a.SubAgents, func(sub *Agent) bool { return sub.OutputKey != LoopOutput && exits(sub) })
}

// stops reports whether a score can end its loop.
func stops(s *loop.Score) bool {
	return s != nil && (s.Target != nil || s.DimensionTarget != nil || s.MinDelta != nil || s.MinDeltaPercent != nil)
}

var loopKind = kind{is: TypeLoop, tells: []string{"sub_agents"}, build: (*builder).loop, most: (*worst).loop, expect: (*expecter).iterate,
	notes: func(w *WorstCase, l *loader, u *AgentWorst) {
		if p := w.of.planOf(u.Agent); u.Seconds.Unbounded() && p.MaxIterations == 0 && p.Timeout == 0 {
			l.note(u.Agent.at("max_iterations"), CodeNoBound, "nothing limits the iterations of %q except its own stop "+
				"conditions", u.Agent.Name).
				Hint = "give timeout, or max_iterations"
		}
		w.legNote(l, u.Agent)
	},
}

func (b *builder) loop(a *Agent, cb around) (agent.Agent, error) {
	base, err := b.workflow(a, cb)
	if err != nil {
		return nil, err
	}
	l := b.as(a).Loop
	cfg := loopagent.Config{
		AgentConfig: base, Rules: *b.as(a).Plan(),
		Goal: l.Goal, Instructions: l.Instructions, Result: cmp.Or(l.Result, b.subjects[a]), OutputKey: outputKey(a), KeepStates: b.kept[a],
		Scorers: a.scoringAgents(),
	}
	if b.files != nil && a.hasCommand() {
		cfg.HandBack = []string{a.workspaceKey()}
	}
	for _, sub := range a.SubAgents {
		if sub.Step != nil && sub.Step.Cache != nil {
			if cfg.Caches == nil {
				cfg.Caches = make(map[string]loopagent.Cache)
			}
			cfg.Caches[sub.Name] = sub.Step.Cache.policy()
		}
	}
	b.aroundIterations(a, &cfg)
	if s := a.Step; s != nil && a.parent == nil && !b.cfg.StandIns.NoCallbacks {
		waiting(&cfg, time.Duration(s.DelayBefore), time.Duration(s.DelayAfter))
	}
	if change := b.cfg.StandIns.Loop; change != nil {
		change(a, &cfg)
	}
	return loopagent.New(cfg)
}

// Plan returns the rules that a run of the loop follows; nil for an agent that is not a loop. The
// checks, [Definition.Worst], rehearsals and the loop agent that [Definition.Build] makes use this
// plan. Do not change the values that its pointers lead to, because they belong to the definition.
func (a *Agent) Plan() *loop.Plan {
	if a.Type != TypeLoop {
		return nil
	}
	p := a.Loop.Plan
	p.Name, p.CanExit, p.Order = a.Name, canExit(a), slices.Clone(p.Order)
	p.OnError, p.Watch, p.OnPlateau = a.OnError, a.watch(), a.planLegs()
	if a.Loop.ContinueOnError {
		p.OnError = loop.NextIteration
	}
	for _, sub := range a.SubAgents {
		p.Steps = append(p.Steps, sub.planStep())
	}
	p.Score = a.withBaseline(p.Score)
	p.Version = p.Current()
	return &p
}

// planStep returns how the enclosing loop runs the agent as a step.
func (a *Agent) planStep() loop.Step {
	var s loop.Step
	if a.Step != nil {
		s = a.Step.Step
	}
	s.Name, s.Finalizer, s.OnError = a.Name, a.OutputKey == LoopOutput, a.OnError
	return s
}

// descendant returns the agent of a name inside a; nil if there is none.
func (a *Agent) descendant(name string) *Agent {
	for sub := range a.All {
		if sub != a && sub.Name == name {
			return sub
		}
	}
	return nil
}

// steps yields the agent and the agents below it, without those that are tools.
func (a *Agent) steps(yield func(*Agent) bool) {
	var walk func(*Agent) bool
	walk = func(a *Agent) bool {
		return yield(a) && !slices.ContainsFunc(a.SubAgents, func(sub *Agent) bool { return !walk(sub) })
	}
	walk(a)
}

// unjoin returns the errors that errors.Join has joined.
func unjoin(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// order reports what is wrong with an order, if all of its names are known.
func (c *checker) order(a *Agent, e *loop.PlanError) {
	unnamed := func(sub *Agent) bool { return sub.Name == "" }
	if a.incomplete() || len(a.SubAgents) == 0 || slices.ContainsFunc(a.SubAgents, unnamed) {
		return
	}
	p := c.report(a.at(e.Field), CodeOrder, "%s", e.Message(e.Subject))
	p.Hint, p.Suggestion, p.err = e.Hint, e.Suggestion, e
}

func (c *checker) planError(a *Agent, e *loop.PlanError) {
	if errs, ok := errors.AsType[expr.Errors](e.Err); ok {
		c.inside(a, e.Field, errs)
		return
	}
	field := fileField(e.Field)
	p := c.report(a.at(field), CodeStop, "%s", e.Message(fileField(e.Subject)))
	p.Hint, p.Suggestion, p.err = e.Hint, e.Suggestion, e
	_, given := a.nodes["timeout"]
	switch {
	case field == "iteration_timeout" && !given && a.Loop.Timeouts != "":
		p.Hint = fmt.Sprintf("this limit is from the preset %s; set timeout too, or timeouts: none", a.Loop.Timeouts)
	case field == "finalizer":
		p.Message, p.Hint = fmt.Sprintf("the loop %q has no finalizer", a.Name),
			"give one of its sub-agents output_key: loop_output"
	}
}

// planFields maps fields of a plan to their names in the file.
var planFields = map[string]string{
	"reserve": "finalizer_reserve", "delay_after": "iteration_delay", "finalize_each": "finalizer", "adaptive": "adaptive_timeout",
}

// rootOf returns the first name of a JSON path.
func rootOf(path string) string {
	if i := strings.IndexAny(path, ".["); i >= 0 {
		return path[:i]
	}
	return path
}

// fileField returns the path of a field of a plan or of its step as the file names it.
func fileField(path string) string {
	root := rootOf(path)
	if name, ok := planFields[root]; ok {
		return name + path[len(root):]
	}
	return path
}

// stepError reports a mistake of the plan in a step at that step of the file, in the file's words. It ignores
// mistakes in the step as a whole and in on_error, because the definition checks names, finalizers and policies itself.
func (c *checker) stepError(a *Agent, e *loop.PlanError) {
	if e.Step > len(a.SubAgents) || e.Field == "" || e.Field == "on_error" {
		return
	}
	p := c.report(a.SubAgents[e.Step-1].at(fileField(e.Field)), CodeStop, "%s", e.Message(fileField(e.Subject)))
	p.Hint, p.Suggestion, p.err = e.Hint, e.Suggestion, e
}

func (r *reader) numberPointer(n *source.Node, field string) *float64 {
	if v, ok := r.number(n, field); ok {
		return &v
	}
	return nil
}
