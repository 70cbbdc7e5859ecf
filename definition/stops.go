// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/loop"
)

// StopWay is one way in which a loop can come to its end.
type StopWay struct {
	Reason loop.StopReason `json:"reason"`
	// Text says it in words, as in "after 5 iterations".
	Text string `json:"text"`
}

// Stops are the ways in which a loop can end, besides an error and being
// canceled; nil for an agent that is no loop.
func (a *Agent) Stops() []StopWay {
	if a.Type != TypeLoop {
		return nil
	}
	var ways []StopWay
	add := func(r loop.StopReason, format string, args ...any) {
		ways = append(ways, StopWay{r, fmt.Sprintf(format, args...)})
	}
	l := a.Loop
	for _, step := range steps(a) {
		switch {
		case step.ExitWhen != "":
			add(loop.ReasonExit, "%s: when %s", step.Name, step.ExitWhen)
		case step.Type == TypeLLM && step.mayExit():
			add(loop.ReasonExit, "%s: when it calls exit_loop", step.Name)
		case step.approves():
			add(loop.ReasonExit, "%s: when the person approves", step.Name)
		case step.Type == TypeFunc && step.mayExit():
			add(loop.ReasonExit, "%s: when its Go code asks for it", step.Name)
		}
	}
	if l.StopWhen != nil {
		add(loop.ReasonCondition, "when %s", conditionWords(l.StopWhen))
	}
	if s := l.Score; s != nil {
		scoreStops(s, add)
	}
	if l.NoProgress != nil {
		add(loop.ReasonNoProgress, "when it goes round in circles")
	}
	if l.NotWorth != nil {
		per := l.NotWorth.Per
		if per == "" {
			per = loop.PerIteration
		}
		add(loop.ReasonConverged, "when the next %s is expected to gain less than %s", perWords[per],
			decimal(l.NotWorth.Gain))
	}
	if l.MaxIterations > 0 {
		add(loop.ReasonMaxIterations, "after %s", plurals(int64(l.MaxIterations), "iteration"))
	}
	if l.Timeout > 0 {
		add(loop.ReasonTimeout, "after %s", briefly(l.Timeout))
	}
	if b := l.Budget; b != nil {
		add(loop.ReasonBudget, "when %s are used", budgetWords(b))
	}
	return ways
}

var perWords = map[loop.Per]string{
	loop.PerIteration: "iteration", loop.PerMinute: "minute", loop.PerKTokens: "thousand tokens",
	loop.PerCost: "unit of cost",
}

func scoreStops(s *loop.Score, add func(loop.StopReason, string, ...any)) {
	sign := "≥"
	if s.LowerIsBetter {
		sign = "≤"
	}
	var goals []string
	if s.Target != nil {
		goals = append(goals, fmt.Sprintf("the score is %s %s", sign, decimal(*s.Target)))
	}
	if s.DimensionTarget != nil {
		goals = append(goals, fmt.Sprintf("every part of it is %s %s", sign, decimal(*s.DimensionTarget)))
	}
	if goals != nil {
		add(loop.ReasonTarget, "when %s", strings.Join(goals, " and "))
	}
	var gains []string
	if s.MinDelta != nil {
		gains = append(gains, decimal(*s.MinDelta))
	}
	if s.MinDeltaPercent != nil {
		gains = append(gains, decimal(*s.MinDeltaPercent)+"%")
	}
	if gains != nil {
		often := ""
		if s.Patience > 1 {
			often = fmt.Sprintf(", %d times running", s.Patience)
		}
		add(loop.ReasonConverged, "when the score improves by less than %s%s", strings.Join(gains, " or "), often)
	}
}

func budgetWords(b *loop.Budget) string {
	var parts []string
	if b.Calls > 0 {
		parts = append(parts, plurals(b.Calls, "request"))
	}
	if b.Tokens > 0 {
		parts = append(parts, plurals(b.Tokens, "token"))
	}
	if b.Cost != nil {
		parts = append(parts, decimal(*b.Cost)+" of cost")
	}
	return strings.Join(parts, " or ")
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func plurals(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// criteria says in words when a loop is done, as the end of a sentence that
// begins "Call this function ONLY when"; empty if the definition does not say.
func criteria(l *Loop) string {
	var parts []string
	if goal := strings.TrimRight(strings.Join(strings.Fields(l.Goal), " "), "."); goal != "" {
		parts = append(parts, fmt.Sprintf("the goal is reached (%s)", goal))
	}
	if s := l.Score; s != nil && s.Target != nil {
		bound := "least"
		if s.LowerIsBetter {
			bound = "most"
		}
		parts = append(parts, fmt.Sprintf("the score is at %s %v", bound, *s.Target))
	}
	if s := l.Score; s != nil && s.DimensionTarget != nil {
		bound := "least"
		if s.LowerIsBetter {
			bound = "most"
		}
		parts = append(parts, fmt.Sprintf("every part of it is at %s %v", bound, *s.DimensionTarget))
	}
	if l.StopWhen != nil {
		parts = append(parts, "this holds: "+conditionWords(l.StopWhen))
	}
	return strings.Join(parts, " and ")
}

// conditionWords is a condition with its parts joined by words.
func conditionWords(c *loop.Condition) string {
	words := c.Expr
	switch {
	case len(c.Any) > 0:
		words = joinWords(c.Any, " or ")
	case len(c.All) > 0:
		words = joinWords(c.All, " and ")
	case c.Not != nil:
		words = "not (" + conditionWords(c.Not) + ")"
	}
	if c.For > 1 {
		words = fmt.Sprintf("(%s) in %d iterations running", words, c.For)
	}
	return words
}

func joinWords(cs []loop.Condition, by string) string {
	words := make([]string, len(cs))
	for i := range cs {
		words[i] = "(" + conditionWords(&cs[i]) + ")"
	}
	return strings.Join(words, by)
}
