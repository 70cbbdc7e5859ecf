// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"cmp"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// RowWords describes a row of a ledger in words.
type RowWords struct {
	// Title names the condition, Why explains it; Why may be empty.
	Title string `json:"title"`
	Why   string `json:"why,omitzero"`
	// Amount is the value now, with the bound: "2 of 3 in a row".
	Amount string `json:"amount"`
	// Tag is a word about the tense: "likely". Most rows have none.
	Tag string `json:"tag,omitzero"`
}

// RowOf returns a row of the ledger of the loop in s in words of a language. led is the ledger that contains the row.
// Names and expressions are those of the definition.
func RowOf(s *progress.Step, lang Language, led *loop.Ledger, r *loop.Row) RowWords {
	w := title(s.Loop, lang, r)
	w.Amount = amount(s, lang, r)
	switch {
	case r.Status == loop.ConditionLikely:
		w.Tag = lang.say(tagLikely)
	case r.Status == loop.ConditionHolds:
		w.Tag = lang.say(tagHolds)
	case led.Reason != "" && led.Nearest == r.Name:
		w.Tag = lang.say(tagNext)
	}
	return w
}

// title returns the name of a condition, and an explanation.
func title(l *progress.Loop, lang Language, r *loop.Row) (w RowWords) {
	lower := l.Plan.Score != nil && l.Plan.Score.LowerIsBetter
	choose := func(high, low phrase) phrase {
		if lower {
			return low
		}
		return high
	}
	bound := 0.0
	if r.Bound != nil {
		bound = *r.Bound
	}
	switch r.Name {
	case "exit_loop":
		return exitIn(lang, r)
	case "target":
		w.Title = lang.say(choose(rowTarget, rowTargetLow), bound)
	case "dimension_target":
		w.Title = lang.say(choose(rowDimensions, rowDimensionsLow), bound)
	case "converged":
		w.Title, w.Why = lang.say(rowConverged), gain(l.Plan.Score, lang)
	case "no_progress":
		w.Title, w.Why = lang.say(rowCircles), lang.say(whyCircles)
	case "max_iterations":
		w.Title = lang.say(rowIterations)
	case "max_consecutive_failures":
		w.Title = lang.say(rowFailures)
	case "not_worth":
		w.Title, w.Why = lang.say(rowNotWorth), notWorth(l.Plan.NotWorth, lang)
	case "timeout":
		w.Title = lang.say(rowTime)
	case "budget.tokens":
		w.Title = lang.say(rowTokens)
	case "budget.cost":
		w.Title = lang.say(rowCost)
	case "budget.calls":
		w.Title = lang.say(rowCalls)
	case "budget":
		w.Title, w.Why = lang.say(rowBudget), r.Note
	case "stop_when":
		w.Title, w.Why = lang.say(rowCondition), r.Expr
	default:
		w.Title = r.Expr // a part of stop_when
		w.Title = cmp.Or(w.Title, r.Name)
	}
	if r.Reserved > 0 {
		w.Why = lang.say(whyKept, quantity(lang, r.Unit, r.Reserved))
	}
	return w
}

// exitIn describes the row of the steps that may ask to stop.
func exitIn(lang Language, r *loop.Row) RowWords {
	switch {
	case r.Who != nil && len(r.Who) == 0:
		return RowWords{Title: lang.say(rowExit), Why: lang.say(whyNobody)}
	case len(r.Who) == 0:
		return RowWords{Title: lang.say(rowExit), Why: lang.say(whyAny)}
	case len(r.Who) == 1:
		return RowWords{Title: lang.say(rowExitOne, r.Who[0]), Why: lang.say(whyOnly)}
	}
	return RowWords{Title: lang.say(rowExit), Why: lang.say(whySome, strings.Join(r.Who, ", "))}
}

// gain describes the gain that is too small.
func gain(s *loop.Score, lang Language) string {
	if s == nil {
		return ""
	}
	var parts []string
	if s.MinDelta != nil {
		parts = append(parts, lang.say(whyGain, *s.MinDelta))
	}
	if s.MinDeltaPercent != nil {
		parts = append(parts, lang.say(whyGainPercent, *s.MinDeltaPercent))
	}
	if s.Judge != nil && s.Judge.Most() > 1 {
		parts = append(parts, lang.say(whyNoise))
	}
	if len(parts) == 0 {
		return ""
	}
	text := parts[0]
	for _, p := range parts[1:] {
		text = lang.say(or, text, p)
	}
	return text
}

func notWorth(n *loop.NotWorth, lang Language) string {
	if n == nil {
		return ""
	}
	per := map[loop.Per]phrase{loop.PerMinute: perMinute, loop.PerKTokens: perKTokens, loop.PerCost: perCost}
	unit, ok := per[n.Per]
	if !ok {
		unit = perIteration
	}
	return lang.say(whyNotWorth, n.Gain, lang.say(unit))
}

// amount returns the value of a row with its bound.
func amount(s *progress.Step, lang Language, r *loop.Row) string {
	switch {
	case r.Name == "exit_loop" && r.Status == loop.ConditionFired && s.Loop.Stop != nil:
		return lang.say(amountAskedIn, s.Loop.Stop.Iteration)
	case r.Name == "exit_loop" && r.Holds:
		return lang.say(amountAsked)
	case r.Name == "exit_loop":
		return lang.say(amountNotAsked)
	case r.Status == loop.ConditionUnknown:
		return lang.say(amountUnknown)
	case r.Have == nil && r.Threshold == "":
		return r.Value
	case r.Have == nil:
		return r.Value + " (" + r.Threshold + ")"
	case r.Unit == loop.UnitTimes:
		return lang.say(timesOf, quantity(lang, r.Unit, *r.Have), quantity(lang, r.Unit, *r.Bound))
	case r.Unit == loop.UnitValue:
		return lang.score(*r.Have) + " (" + r.Threshold + ")"
	case r.Unit == loop.UnitCost && s.Usage().Unknown:
		return lang.say(orMoreOf, quantity(lang, r.Unit, *r.Have), quantity(lang, r.Unit, *r.Bound))
	}
	return lang.say(valueOf, quantity(lang, r.Unit, *r.Have), quantity(lang, r.Unit, *r.Bound))
}

// quantity writes a number with its unit.
func quantity(lang Language, unit loop.Unit, n float64) string {
	switch unit {
	case loop.UnitSeconds:
		return lang.figure(brief.Clock(time.Duration(n * float64(time.Second))))
	case loop.UnitCost:
		return lang.figure(brief.Money(n))
	}
	return lang.score(n)
}
