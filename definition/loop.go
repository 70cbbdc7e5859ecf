// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/source"
	"github.com/refrain-dev/refrain/loop"
)

// Loop holds the fields that only loops have.
type Loop struct {
	Goal         string
	Instructions string
	// MaxIterations limits the number of iterations; 0 means no limit.
	MaxIterations          uint
	Order                  []string
	StopWhen               *loop.Condition
	StopCheck              loop.StopCheck
	Score                  *loop.Score
	MaxConsecutiveFailures uint
	// ContinueOnError continues with the next iteration after a failed step, unless the step has a policy
	// of its own. Agent.OnError then says only what follows when the loop itself fails.
	ContinueOnError bool

	// Timeout limits the loop and IterationTimeout each iteration; 0 means no limit. Times that the
	// file does not set come from the preset in Timeouts. The default preset is [TimeoutsStandard]
	// for an outermost loop, and none for a loop inside another loop.
	Timeouts                  Timeouts
	Timeout, IterationTimeout time.Duration
	// Budget limits the model calls of the loop; nil means no limit.
	Budget *loop.Budget
	// FinalizerReserve is the share of Timeout and Budget that is kept for the finalizer; 0 is the default
	// of package loopagent.
	FinalizerReserve float64
	// FinalizeEach makes the finalizer the last step of every iteration.
	FinalizeEach bool
	// IterationDelay is the pause between two iterations.
	IterationDelay time.Duration
	// StateLimit is the largest state that a step can make, in bytes; 0 means no limit. The
	// default in a file is [DefaultStateLimit].
	StateLimit int64

	// Result is the state key of the loop's result. BestOnExit makes the best iteration the result
	// after an exit too; see loopagent.Config.
	Result     string
	BestOnExit bool

	QualityGate  *float64
	OnRegression loop.Regression
	NoProgress   *loop.NoProgress
	NotWorth     *loop.NotWorth

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
	field("timeouts", "preset of the timeouts of iteration and loop; standard if left out, none for a nested loop", oneWord(TimeoutsFast, TimeoutsStandard, TimeoutsLong, TimeoutsNone), func(l *Loop) *Timeouts { return &l.Timeouts }).helped("timeouts names a preset; the time itself is timeout or iteration_timeout").shown("standard"),
	field("timeout", "time limit, such as 30s or 5m; a plain number is seconds; on sequential, parallel, llm, a2a and func only as a step of a loop", plain(schema.Duration, (*reader).loopTime), func(l *Loop) *time.Duration { return &l.Timeout }),
	field("iteration_timeout", "time limit of one iteration; its remaining steps are skipped", plain(schema.Duration, (*reader).loopTime), func(l *Loop) *time.Duration { return &l.IterationTimeout }),
	field("iteration_delay", "pause between two iterations", aDelay, func(l *Loop) *time.Duration { return &l.IterationDelay }),
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
		case strings.HasPrefix(pe.Field, "steps"):
			c.stepError(a, pe)
		case strings.HasPrefix(pe.Field, "order"):
			c.order(a, pe)
		default:
			c.planError(a, pe)
		}
	}
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
	},
}

func (b *builder) loop(a *Agent, cb around) (agent.Agent, error) {
	base, err := b.workflow(a, cb)
	if err != nil {
		return nil, err
	}
	l := b.as(a).Loop
	cfg := loopagent.Config{
		AgentConfig: base, Plan: b.as(a).Plan(),
		Goal: l.Goal, Instructions: l.Instructions, Result: cmp.Or(l.Result, b.subjects[a]), OutputKey: outputKey(a), KeepStates: b.kept[a],
	}
	if b.files != nil && a.hasCommand() {
		cfg.HandBack = []string{a.workspaceKey()}
	}
	for _, sub := range a.SubAgents {
		if sub.Step != nil && sub.Step.Cache != nil {
			if cfg.Steps == nil {
				cfg.Steps = make(map[string]loopagent.StepPolicy)
			}
			cfg.Steps[sub.Name] = loopagent.StepPolicy{Cache: sub.Step.Cache.policy()}
		}
	}
	b.aroundIterations(a, &cfg)
	if s := a.Step; s != nil && a.parent == nil && !b.cfg.StandIns.NoCallbacks {
		waiting(&cfg, s.DelayBefore, s.DelayAfter)
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
	l, onError := a.Loop, a.OnError
	if l.ContinueOnError {
		onError = loop.NextIteration
	}
	p := &loop.Plan{
		Name: a.Name, MaxIterations: l.MaxIterations, Order: slices.Clone(l.Order), CanExit: canExit(a),
		StopWhen: l.StopWhen, StopCheck: l.StopCheck, Score: l.Score,
		OnError: onError, MaxConsecutiveFailures: l.MaxConsecutiveFailures,
		Timeout: loop.Duration(l.Timeout), IterationTimeout: loop.Duration(l.IterationTimeout),
		Budget: l.Budget, FinalizerReserve: l.FinalizerReserve, NoProgress: l.NoProgress, NotWorth: l.NotWorth,
		QualityGate: l.QualityGate, OnRegression: l.OnRegression, BestOnExit: l.BestOnExit, Watch: a.watch(),
		FinalizeEach: l.FinalizeEach,
		DelayAfter:   loop.Duration(l.IterationDelay), StateLimit: l.StateLimit,
	}
	for _, sub := range a.SubAgents {
		p.Steps = append(p.Steps, sub.planStep())
	}
	p.Score = a.withBaseline(p.Score)
	p.Rules = p.Current()
	return p
}

// withBaseline returns the score of a loop with the steps that give it, if it has a baseline. Where commands measure
// what other commands make of the files of a workspace, it has one unless the file says no.
func (a *Agent) withBaseline(s *loop.Score) *loop.Score {
	if s == nil {
		return nil
	}
	names, measured := a.scorers(s)
	_, given := a.nodes["score.baseline"]
	if !s.Baseline && (given || !measured || a.def == nil || a.def.Workspace == nil) {
		return s
	}
	own := *s
	own.Baseline, own.Scorers = true, names
	return &own
}

// scorers returns the steps of a loop that write what its score is read from. measured reports that all of them are
// commands, and that another command works before them.
func (a *Agent) scorers(s *loop.Score) (names []string, measured bool) {
	keys := scoreKeys(s)
	works := false
	measured = true
	for _, sub := range inOrder(a) {
		if !sub.contains(func(in *Agent) bool {
			return slices.ContainsFunc(in.writes(), func(key string) bool { return slices.Contains(keys, key) })
		}) {
			works = works || sub.hasCommand()
			continue
		}
		names = append(names, sub.Name)
		measured = measured && sub.Command != nil && works
	}
	return names, measured && names != nil
}

// planStep returns how the enclosing loop runs the agent as a step.
func (a *Agent) planStep() loop.Step {
	s := loop.Step{Name: a.Name, Finalizer: a.OutputKey == LoopOutput, OnError: a.OnError}
	if own := a.Step; own != nil {
		s.Timeout, s.AdaptiveTimeout, s.Retry, s.Circuit = loop.Duration(own.Timeout), own.AdaptiveTimeout, own.Retry,
			own.Circuit
		s.DelayBefore, s.DelayAfter = loop.Duration(own.DelayBefore), loop.Duration(own.DelayAfter)
	}
	return s
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
	p := c.report(a.at(e.Field), CodeOrder, "%s", e.Msg)
	p.Hint, p.err = e.Hint, e
}

func (c *checker) planError(a *Agent, e *loop.PlanError) {
	if errs, ok := errors.AsType[expr.Errors](e.Err); ok {
		c.inside(a, e.Field, errs)
		return
	}
	field, msg := planWords(e)
	p := c.report(a.at(field), CodeStop, "%s", briefWords(msg))
	p.Hint, p.err = strings.Replace(e.Hint, "lower reserve", "lower finalizer_reserve", 1), e
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

// planWords returns the field and the message of a problem of a plan, in the words of the file.
func planWords(e *loop.PlanError) (field, msg string) {
	head, rest := e.Field, ""
	if i := strings.IndexAny(head, ".["); i >= 0 {
		head, rest = head[:i], head[i:]
	}
	named, ok := planFields[head]
	if !ok {
		return e.Field, e.Msg
	}
	return named + rest, named + strings.TrimPrefix(e.Msg, head)
}

// stepError reports a mistake of the plan in a step at that step of the file, in the file's words. It ignores
// mistakes in on_error.
func (c *checker) stepError(a *Agent, e *loop.PlanError) {
	var i int
	if _, err := fmt.Sscanf(e.Field, "steps[%d]", &i); err != nil || i >= len(a.SubAgents) {
		return
	}
	prefix := index("steps", i) + "."
	rest, ok := strings.CutPrefix(e.Field, prefix)
	if !ok || rest == "on_error" {
		return
	}
	field, msg := planWords(&loop.PlanError{Field: rest, Msg: strings.TrimPrefix(e.Msg, prefix)})
	p := c.report(a.SubAgents[i].at(field), CodeStop, "%s", briefWords(msg))
	p.Hint, p.err = e.Hint, e
}

func (r *reader) numberPointer(n *source.Node, field string) *float64 {
	if v, ok := r.number(n, field); ok {
		return &v
	}
	return nil
}

var scoreParts = parts[loop.Score]{rows: []row[loop.Score]{
	field("key", "state key of the score: a number, JSON, or text with a number in it", aText, func(s *loop.Score) *string { return &s.Key }),
	field("label", "word before the number in a text, such as Score", aText, func(s *loop.Score) *string { return &s.Label }),
	field("field", "field of the score, if the value is JSON", aText, func(s *loop.Score) *string { return &s.Field }),
	field("expr", "expression that computes the score, in place of key", aWords, func(s *loop.Score) *string { return &s.Expr }),
	field("holdout", "state key of a second score, read in the same way, such as of tests that the agent never sees; the loop reports when it falls while the score rises", aText, func(s *loop.Score) *string { return &s.Holdout }),
	field("judge", "step that gives the score; or {step, samples} to ask it several times", judgeParts.value(), func(s *loop.Score) **loop.Judge { return &s.Judge }),
	field("baseline", "true scores what is there before the first iteration, so that a worse first one is not kept; the default where commands measure the files of a workspace", aBool, func(s *loop.Score) *bool { return &s.Baseline }),
	field("dimensions", "parts of the score: fields of the JSON", each(aText, listing{empty: "leave it out to count whatever the answer has"}), func(s *loop.Score) *[]string { return &s.Dimensions }),
	field("dimension_target", "target that every part must reach too", maybe(aNumber), func(s *loop.Score) **float64 { return &s.DimensionTarget }),
	field("target", "end the loop when the score reaches this", maybe(aNumber), func(s *loop.Score) **float64 { return &s.Target }),
	field("min_delta", "end the loop when the score improves by less than this", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDelta }),
	field("min_delta_percent", "min_delta in percent of the previous score", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDeltaPercent }),
	field("patience", "iterations in a row whose improvement must be too small", wholeFrom[uint](0, ""), func(s *loop.Score) *uint { return &s.Patience }).shown(1),
	field("lower_is_better", "true if lower scores are better", aBool, func(s *loop.Score) *bool { return &s.LowerIsBetter }),
}, or: "key", form: "a state key, or a map", keep: true}

var judgeParts = parts[loop.Judge]{rows: []row[loop.Judge]{
	field("step", "step that gives the score", aText, func(j *loop.Judge) *string { return &j.Step }),
	special("samples", "how often to ask it about the same work, at most 32; 3..12 asks 3 times, and then until it is clear whether the target is reached, at most 12 times",
		samplesShape, takesSamples).shown(1),
}, or: "step", form: "the name of a step, or a map with step and samples"}

const rangePattern = `^0*[1-9][0-9]{0,8}\.\.0*[1-9][0-9]{0,8}$`

func samplesShape() shape {
	return schema.Either(schema.Whole(1), &jsonschema.Schema{Type: "string", Title: "range such as 3..12", Pattern: rangePattern})
}

// takesSamples reads a number of samples, or a range of them.
func takesSamples(p place, n *source.Node, j *loop.Judge) bool {
	low, high, is := strings.Cut(n.Value, "..")
	if n.Kind != source.Scalar || !is {
		v, ok := wholeFrom[uint](1, "").read(p, n)
		j.Samples = v
		return ok
	}
	least, err := strconv.ParseUint(low, 10, 31)
	most, other := strconv.ParseUint(high, 10, 31)
	if err != nil || other != nil || least == 0 || most == 0 {
		p.report(n, CodeValue, "%s must be a whole number of at least 1, or two of them, got %q", p.field, n.Value).Hint = "write a range as 3..12"
		return false
	}
	j.Samples, j.Max = uint(least), uint(most)
	return true
}

// wordsAsNumbers warns of numbers that must be found in a model's text: a score without a label, and a comparison
// that can never hold.
func (c *checker) wordsAsNumbers(a *Agent) {
	if s := a.Loop.Score; s != nil {
		pinned := s.Label != "" || s.Field != "" || len(s.Dimensions) > 0
		if w := c.wordsIn(s.Key, a); w != nil && !pinned {
			c.warn(a.at("score.key"), CodeWords, "%s is a text that %q writes, in which the score must be found", s.Key,
				w.Name).
				Hint = "give " + quoted(w.Name) + " an output_schema, or the score a label: the word before the number"
		}
		if schemas := c.answers(s.Key); s.Field != "" && schemas != nil {
			c.field(a.at("score.field"), append([]string{s.Key}, strings.Split(s.Field, ".")...), schemas)
		}
		c.dimensionTarget(a, s)
	}
	if a.Loop.StopWhen != nil {
		eachExpression("stop_when", a.Loop.StopWhen, func(field, src string) { c.wordsCompared(a, field, src) })
	}
}

// wordsIn returns the model agent of a loop that writes a text to a key; nil if there is none, or if another agent
// may write the key too.
func (c *checker) wordsIn(key string, a *Agent) *Agent {
	ws := c.writers[key]
	if key == "" || len(ws) != 1 || !ws[0].in(a) || !saysWords(ws[0]) {
		return nil
	}
	return ws[0]
}

func saysWords(a *Agent) bool {
	return a.Type == TypeLLM && (a.LLM == nil || a.LLM.OutputSchema == nil)
}

// dimensionTarget checks a dimension_target without dimensions. It refuses one that the score can never meet, because
// its writer gives only a number, and warns about one that only some scores can meet.
func (c *checker) dimensionTarget(a *Agent, s *loop.Score) {
	if s.DimensionTarget == nil || len(s.Dimensions) > 0 || s.Key == "" {
		return
	}
	ws := c.writers[s.Key]
	without := 0
	for _, w := range ws {
		if numberAlone(w, s.Key) {
			without++
		}
	}
	const hint = "list them in score.dimensions, or have the judge answer with an object \"dimensions\""
	at := a.at("score.dimension_target")
	switch {
	case len(ws) > 0 && without == len(ws):
		c.report(at, CodeStop, "dimension_target can never be met: %s is written by %q, which gives no dimensions", s.Key, ws[0].Name).Hint = hint
	case without > 0 || slices.ContainsFunc(ws, func(w *Agent) bool {
		return w.Type == TypeExpression || w.Type == TypeTemplate
	}):
		c.warn(at, CodeStop, "dimension_target is met only if the score has dimensions, and none are named").Hint = hint
	}
}

// numberAlone reports whether the values that an agent writes to a key can have no dimensions.
func numberAlone(w *Agent, key string) bool {
	switch {
	case w.Type == TypeLLM:
		return w.LLM != nil && w.LLM.OutputSchema != nil && w.LLM.OutputSchema.Properties["dimensions"] == nil
	case w.Type != TypeExpression || w.Expression == nil:
		return false
	}
	src, ok := w.Expression.Set[key]
	if !ok {
		src = w.Expression.Value
	}
	p, err := expr.Compile(src, vocabulary.TaskVariables...)
	return err == nil && (p.Type() == expr.Int || p.Type() == expr.Double)
}

// selfJudged notes a score that comes from the only agent of the loop that makes a result.
func (c *checker) selfJudged(a *Agent) {
	s := a.Loop.Score
	if s == nil {
		return
	}
	var judge *Agent
	makers := 0
	rated := []string{s.Key}
	if p, err := expr.Compile(s.Expr, vocabulary.ConditionVariables...); err == nil {
		rated, _ = p.Reads("state")
	}
	for _, sub := range a.SubAgents {
		switch {
		case sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach, sub.Type == TypeExpression, sub.Type == TypeTemplate:
			continue
		case s.Judge != nil && s.Judge.Step == sub.Name, s.Judge == nil && sub.OutputKey != "" &&
			slices.Contains(rated, sub.OutputKey):
			judge = sub
		default:
			makers++
		}
	}
	if judge != nil && judge.Type == TypeLLM && makers == 0 {
		c.note(judge.at("name"), CodeJudge, "%q judges itself: no other step of the loop %q makes anything", judge.Name,
			a.Name).
			Hint = "let one agent write, and another one judge"
	}
}
