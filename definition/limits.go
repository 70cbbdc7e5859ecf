// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// Limits are limits that the starter of a run sets. They replace those of the definition; zero fields keep them.
// [Definition.Build] applies those of the loop, [Definition.RunConfig] the others.
type Limits struct {
	// MaxIterations replaces the limit of the root loop or, if the root is not a loop, of the only
	// loop. 0 means no limit; then something else must stop the loop.
	MaxIterations *uint `json:"max_iterations,omitempty"`
	// Timeout replaces the time limit of the same loop; 0 means no limit.
	Timeout *time.Duration `json:"timeout,omitempty"`
	// MaxModelCalls fails the run after this many model calls; a negative number means no limit.
	MaxModelCalls int `json:"max_model_calls,omitempty"`
	// Budget limits the whole run, in addition to the budgets of loops.
	Budget *budget.Limits `json:"budget,omitempty"`
	// LoopBudget raises the budget of the loop to which MaxIterations applies. Numbers that the loop does not limit,
	// or that are not higher, have no effect.
	LoopBudget *budget.Limits `json:"loop_budget,omitempty"`
}

// With returns the limits, replaced by those that given sets. A given budget replaces only the numbers that it has.
func (l Limits) With(given Limits) Limits {
	if given.MaxIterations != nil {
		l.MaxIterations = given.MaxIterations
	}
	if given.Timeout != nil {
		l.Timeout = given.Timeout
	}
	if given.MaxModelCalls != 0 {
		l.MaxModelCalls = given.MaxModelCalls
	}
	l.Budget, l.LoopBudget = budgetWith(l.Budget, given.Budget), budgetWith(l.LoopBudget, given.LoopBudget)
	return l
}

func budgetWith(b, given *budget.Limits) *budget.Limits {
	if b == nil || given == nil {
		return cmp.Or(b, given)
	}
	both := *b
	both.Calls, both.Tokens, both.Cost = cmp.Or(given.Calls, b.Calls), cmp.Or(given.Tokens, b.Tokens), cmp.Or(given.Cost, b.Cost)
	return &both
}

// raise returns a loop's budget with the higher numbers of b.
func raise(own *loop.Budget, b *budget.Limits) *loop.Budget {
	if own == nil || b == nil {
		return own
	}
	up := *own
	if up.Calls > 0 {
		up.Calls = max(up.Calls, b.Calls)
	}
	if up.Tokens > 0 {
		up.Tokens = max(up.Tokens, b.Tokens)
	}
	if up.Cost != nil && b.Cost != nil {
		up.Cost = new(max(*up.Cost, *b.Cost))
	}
	return &up
}

// RunConfig returns how a runner runs the agents: with the prices of the definition, its limit of
// model calls, and the limits given. A given budget of more calls than the limit raises it.
func (d *Definition) RunConfig(given Limits) agent.RunConfig {
	most := given.MaxModelCalls
	if most == 0 {
		most = d.MaxModelCalls
		if b := given.Budget; b != nil && most >= 0 {
			most = max(most, raisedCalls(b.Calls))
		}
	}
	return agent.RunConfig{Prices: d.Prices, Budget: given.Budget, MaxLLMCalls: most}
}

// raisedCalls returns the limit of model calls for a budget of calls; 0 means the default.
func raisedCalls(calls int64) int {
	if calls <= agent.DefaultMaxLLMCalls {
		return 0
	}
	return int(min(calls, math.MaxInt32))
}

// Allows returns nil if a run can have these limits. Otherwise it returns the error of
// [Definition.Build]: the definition has no loop to limit, or the limits remove a loop's only limit.
func (d *Definition) Allows(given Limits) error {
	_, err := d.limited(given)
	return err
}

// limiting is the loop to which limits from outside apply, and its fields with them; the zero value is no loop.
type limiting struct {
	limited *Agent
	limits  Loop
}

// as returns an agent with the limits of the run.
func (l *limiting) as(a *Agent) *Agent {
	if a != l.limited {
		return a
	}
	as := *a
	as.Loop = &l.limits
	return &as
}

// limited returns the loop to which the limits apply.
func (d *Definition) limited(given Limits) (none limiting, err error) {
	what, field := "max iterations", "max_iterations"
	switch {
	case given.MaxIterations != nil:
	case given.Timeout != nil:
		what, field = "a timeout is", "timeout"
	case given.LoopBudget != nil:
		what, field = "a budget is", "budget"
	default:
		return none, nil
	}
	var loops []*Agent
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 0:
		why := " given, but there is no loop"
		for a := range d.Root.All {
			if a.Func != "" {
				why = " given, but the definition has no loop; a loop in Go has its limits in its code"
			}
		}
		return none, errors.New(what + why)
	case d.Root.Type != TypeLoop && len(loops) > 1:
		return none, fmt.Errorf("%s given, but there are %d loops and none is the root; set %s of a loop in the file, and "+
			"give the file to a run that has begun with refrain resume RUN --definition FILE", what, len(loops), field)
	}
	l := *loops[0].Loop
	if n := given.MaxIterations; n != nil {
		l.MaxIterations = *n
	}
	if t := given.Timeout; t != nil {
		if *t < 0 {
			return none, fmt.Errorf("the timeout given is negative: %s", *t)
		}
		l.Timeout, l.meant = loop.Duration(*t), true
		l.clamp()
	}
	l.Budget = raise(l.Budget, given.LoopBudget)
	if endless(&l, loops[0]) {
		return none, fmt.Errorf("%s [%s] (%s)", endlessMessage(loops[0]), CodeEndless, endlessHint)
	}
	return limiting{loops[0], l}, nil
}

// Timeouts names a preset for the time limits of a loop and of its iterations.
type Timeouts string

// The presets, with the time limits of an iteration and of the loop.
const (
	TimeoutsFast     Timeouts = "fast"     // 2 minutes and 15
	TimeoutsStandard Timeouts = "standard" // 5 minutes and 30
	TimeoutsLong     Timeouts = "long"     // 10 minutes and an hour
	TimeoutsNone     Timeouts = "none"     // no limits
)

const minute = loop.Duration(time.Minute)

// presets has the time limits of the presets; 0 means no limit.
var presets = map[Timeouts]struct{ iteration, total loop.Duration }{
	TimeoutsFast:     {2 * minute, 15 * minute},
	TimeoutsStandard: {5 * minute, 30 * minute},
	TimeoutsLong:     {10 * minute, 60 * minute},
}

// preset sets the time limits that the file does not set.
func (a *Agent) preset() {
	l := a.Loop
	if l.Timeouts == "" && a.loopAround() == nil {
		l.Timeouts = TimeoutsStandard
	}
	times := presets[l.Timeouts]
	_, named := a.nodes["timeouts"]
	_, given := a.nodes["timeout"]
	l.meant = named || given
	if !given {
		l.Timeout = times.total
	}
	if _, given := a.nodes["iteration_timeout"]; !given {
		l.IterationTimeout = times.iteration
		l.clamp()
	}
}

// clamp lowers a preset's time of an iteration to that of the loop.
func (l *Loop) clamp() {
	if l.Timeout > 0 {
		l.IterationTimeout = min(l.IterationTimeout, l.Timeout)
	}
}

// loopTime reads a time of a loop.
func (r *reader) loopTime(n *source.Node, what string) (loop.Duration, bool) {
	if d, ok := spanOf(n); ok && d == 0 {
		r.report(n, CodeValue, "%s must be greater than zero, got %s", what, n.Value).Hint = "for no limit, write timeouts: none"
		return 0, false
	}
	d, ok := r.duration(n, what)
	return loop.Duration(d), ok
}

// share reads a fraction, as 10% or 0.1.
func (r *reader) share(n *source.Node, what string) (float64, bool) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(n.Value), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		v = math.Round(v*1e7) / 1e9
	}
	switch {
	case n.Kind != source.Scalar || source.IsNull(n) || err != nil:
		r.wrong(n, what, "a share such as 10% or 0.1")
		return 0, false
	case !(v > 0 && v < 1):
		r.report(n, CodeValue, "%s must be more than 0 and less than 100 percent, got %s", what, n.Value).Hint = "a tenth is 10% or 0.1"
		return 0, false
	}
	return v, true
}

func shareShape() shape {
	number := &jsonschema.Schema{ExclusiveMinimum: new(0.0), ExclusiveMaximum: new(1.0)}
	return schema.Quantity("share", `^\s*(0*[0-9]{0,2}(\.[0-9]*)?\s*%|0*\.[0-9]+)\s*$`, schema.NotNothing, number, "10%", 0.1)
}

// times warns of a time limit that leaves no room for another.
func (c *checker) times(a *Agent) {
	l := a.Loop
	_, total := a.nodes["timeout"]
	_, iteration := a.nodes["iteration_timeout"]
	if n := l.MaxIterations; total && iteration && n > 0 && l.IterationTimeout <= l.Timeout {
		// Not the product, which may be more than a duration can be.
		if need := float64(n) * float64(l.IterationTimeout); need > float64(l.Timeout) {
			c.warn(a.at("timeout"), CodeTimes, "%d iterations of up to %s can take longer than the %s of the loop", n,
				clock(l.IterationTimeout), clock(l.Timeout)).
				Hint = moreTime(need) + "; else the loop ends with reason timeout"
		}
	}
	for _, sub := range a.SubAgents {
		c.stepTime(a, sub)
	}
}

// stepTime warns of a step whose timeout is longer than that of its iteration or loop.
func (c *checker) stepTime(a, sub *Agent) {
	var may loop.Duration
	switch {
	case sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach:
		return // it is in no iteration
	case sub.Type == TypeLoop && sub.Loop.meant:
		may = sub.Loop.Timeout
	case sub.Step != nil:
		may = sub.Step.Timeout
	}
	has, field := a.Loop.IterationTimeout, "iteration_timeout"
	if has == 0 {
		has, field = a.Loop.Timeout, "timeout"
	}
	if has == 0 || may <= has {
		return
	}
	what := "an iteration of"
	if field == "timeout" {
		what = "the loop"
	}
	at := sub.at("timeout")
	if _, given := sub.nodes["timeout"]; !given {
		at = sub.at("timeouts")
	}
	p := c.warn(at, CodeTimes, "%q may take %s, but %s %q only %s", sub.Name, clock(may), what, a.Name, clock(has))
	if _, given := a.nodes[field]; !given {
		p.Hint = fmt.Sprintf("this limit is from the preset %s of %q; set %s there, or timeouts: none", a.Loop.Timeouts,
			a.Name, field)
	}
}

// presetTimes notes a loop whose timeout may be too short for its iterations, if the file does not set both limits.
func (c *checker) presetTimes(a *Agent) {
	l := a.Loop
	_, total := a.nodes["timeout"]
	_, iteration := a.nodes["iteration_timeout"]
	if total && iteration || l.Timeout == 0 || l.IterationTimeout == 0 || l.MaxIterations == 0 {
		return // said already, or not to be said
	}
	computes := true // every step, so that an iteration takes no time that counts
	for sub := range a.All {
		computes = computes && (sub.Type.Workflow() || sub.Type != "" && sub.Type.kind().most == nil)
	}
	if computes {
		return
	}
	if need := float64(l.MaxIterations) * float64(l.IterationTimeout); need > float64(l.Timeout) {
		p := c.note(a.at("max_iterations"), CodeTimes, "the %s of the loop %q may not be enough for its %d "+
			"iterations of up to %s", clock(l.Timeout), a.Name, l.MaxIterations, clock(l.IterationTimeout))
		p.Hint = moreTime(need)
	}
}

func clock(d loop.Duration) string { return brief.Clock(time.Duration(d)) }

// moreTime returns a hint for a loop whose iterations need that much time.
func moreTime(need float64) string {
	if need < float64(24*time.Hour) {
		return "give timeout: " + brief.Duration(time.Duration(need)) + ", or a shorter iteration_timeout"
	}
	return "give a shorter iteration_timeout"
}

// DefaultStateLimit is the default of state_limit, in bytes: far more than a state needs, but
// reached long before a state that grows in every iteration fills the memory.
const DefaultStateLimit = 64 << 20

func sizeOrNone() shape {
	return schema.Either(schema.ByteSize(), &jsonschema.Schema{Enum: []any{0, "0"}}, schema.OneOf("none"))
}

// stateLimit reads a size; none, or 0, means no limit.
func (r *reader) stateLimit(n *source.Node, field string) (int64, bool) {
	if n.Kind == source.Scalar && (n.Value == "none" || n.Value == "0") {
		return 0, true
	}
	if v := 1.0; n.Kind == source.Scalar && n.ShortTag() == "!!float" && n.Load(&v) == nil && v == 0 {
		return 0, true
	}
	return r.size(n, field)
}

func callsOrNone() shape { return schema.Either(schema.Whole(0), schema.OneOf("none")) }

// maxModelCalls reads a number of calls, or none; 0 means the default.
func (r *reader) maxModelCalls(n *source.Node, field string) (int, bool) {
	const unlimited = "none"
	if n.Kind == source.Scalar && n.Value == unlimited {
		return -1, true
	}
	v, ok := int64(0), false
	if n.Kind == source.Scalar && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") {
		v, ok = r.integer(n, field)
	} else {
		r.wrong(n, field, "a number of calls, or none")
	}
	if ok && !r.within(n, field, v, 0, math.MaxInt32) {
		r.hint("none means no limit, and 0 the default, which is 500")
		return 0, false
	}
	return int(v), ok
}

// raiseModelCalls raises a run's limit of calls to the budget of its root if the file does not set the limit, because
// the default is a safeguard for loops without any limit of calls.
func (d *Definition) raiseModelCalls(b *loop.Budget) {
	if d.MaxModelCalls == 0 && b != nil {
		d.MaxModelCalls = raisedCalls(b.Calls)
	}
}

// modelCalls warns of a loop that reaches the limit of calls before its limit of iterations.
func (c *checker) modelCalls(a *Agent) {
	limit := float64(cmp.Or(c.def.MaxModelCalls, agent.DefaultMaxLLMCalls))
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
		c.warn(a.at("max_iterations"), CodeCalls, "the loop %q can make %.0f model calls, but a run may make only %.0f",
			a.Name, calls, limit).
			Hint = "the run then fails; give the root max_model_calls (a number, or none), or the loop a budget " +
			"of calls"
	}
}

// modelCalls returns the number of model calls if every agent asks once each time that it runs, a coding agent asks
// as often as its max_turns allow, and every loop reaches its limit. A loop without a limit counts as one iteration.
func (a *Agent) modelCalls() float64 {
	if calls := a.Type.kind().calls; calls != nil {
		return calls(a)
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
