// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// failures: what most steps could not do, no further iteration will. G5
func failures(h *history, in Language) (f Finding, ok bool) {
	if h.stop.Reason == loop.ReasonError && !h.stop.NoneSucceeded || h.runs < 2 || h.fell*2 <= h.runs {
		return f, false
	}
	return Finding{
		Code: FindingFailures, Title: in.say(failuresTitle),
		Evidence:   in.say(failuresHow, h.fell, h.runs),
		Suggestion: in.say(failuresDo),
		Add:        h.set("max_consecutive_failures", "3"),
	}, true
}

// neverDone: a limit ended a loop that had something to reach.
func neverDone(h *history, in Language) (f Finding, ok bool) {
	s := h.stop
	if !s.Reason.Limit() || len(h.records) == 0 {
		return f, false
	}
	f = Finding{Code: FindingNeverDone, Title: in.say(neverTitle)}
	ran := in.say(neverAfter, string(s.Reason), in.iterations(len(h.records)))
	if target, lower, scored := h.target(); scored && s.BestScore != nil {
		f.Evidence = in.say(neverBest, ran, in.offBy(*s.BestScore, s.BestError), in.score(target), s.BestIteration)
		if s.BestIteration == 0 {
			f.Evidence = in.say(neverStart, ran, in.offBy(*s.BestScore, s.BestError), in.score(target))
		}
		switch ahead, err := h.forecast(); {
		case err == nil && ahead.Predictable && ahead.Until == loop.ReasonTarget && ahead.High > 2*ahead.Iterations+1:
			f.Suggestion = in.say(neverElse, string(s.Reason)) // a range as wide as that is no figure to set a limit by
		case err == nil && ahead.Predictable && ahead.Until == loop.ReasonTarget && s.Reason == loop.ReasonMaxIterations:
			f.Suggestion = in.say(neverRate, in.about(ahead), len(h.records)+ahead.High)
			f.Add = h.set("max_iterations", strconv.Itoa(len(h.records)+ahead.High))
		case err == nil && ahead.Level != nil:
			f.Suggestion = in.say(neverLevel, in.score(*ahead.Level))
			f.Add = h.set("score.target", brief.Number(attainable(*ahead.Level, lower), 64))
		default:
			f.Suggestion = in.say(neverElse, string(s.Reason))
		}
		return f, true
	}
	if still, is := slow(h, in); is && !h.criterion() {
		f.Evidence = in.say(neverBlind, ran, still.Evidence)
		f.Suggestion = in.say(neverBlindDo)
		f.Add = append(h.set("score.min_delta_percent", "5"), h.set("score.patience", "2")...)
		return f, true
	}
	if len(s.Conditions) < 2 && s.Refusals == 0 {
		return f, false // nothing but a limit: it has done what it was told
	}
	exit, _ := h.condition("exit_loop")
	if stop, has := h.condition("stop_when"); has && !stop.Holds {
		f.Evidence = in.say(neverWhen, ran, stop.Expr, in.orUnknown(stop.Value), in.orUnknown(stop.Threshold))
		if stop.Value == "" && stop.Note != "" {
			f.Evidence = in.say(neverWhenNote, ran, stop.Expr, stop.Note)
		}
		f.Suggestion = in.say(neverWhenDo)
		return f, true
	}
	who := h.plan.CanExit
	if who != nil && len(who) == 0 || exit.Holds || len(s.Conditions) > 2 {
		return f, false
	}
	f.Evidence = in.say(neverAsked, ran)
	f.Suggestion = in.say(neverAskedDo)
	if len(who) > 0 {
		f.Add = h.tell(who[0], "Call the tool exit_loop as soon as nothing has to be changed any more.")
	}
	return f, true
}

// attainable is a score that is reached when another one is, with one decimal.
func attainable(score float64, lower bool) float64 {
	if lower {
		return math.Ceil(score*10) / 10
	}
	return math.Floor(score*10) / 10
}

// doubtful: facts speak against the score, or against the result of a loop without a score.
func doubtful(h *history, in Language) (f Finding, ok bool) {
	var where []string
	first := 0 // iteration with a finding
	title, unprotected := doubtfulResult, doubtfulResultDo
	if h.scored() {
		title, unprotected = doubtfulTitle, doubtfulDo
	}
	advice := doubtfulLook // what is protected needs no other protection
	for _, it := range h.records {
		for _, found := range it.doubts {
			if found.Kind != loop.FindingProtected {
				advice = unprotected
			}
			first = cmp.Or(first, int(it.number))
			where = append(where, in.say(doubtfulHow, int(it.number), brief.Clean(found.Text)))
		}
	}
	if len(where) == 0 {
		return f, false
	}
	f = Finding{
		Code: FindingDoubtful, Title: in.say(title),
		Evidence:   strings.Join(where[:min(len(where), 3)], "; "),
		Suggestion: in.say(advice, first-1, first),
	}
	if more := len(where) - 3; more > 0 {
		f.Evidence += in.say(doubtfulMore, more)
	}
	return f, true
}

// exitInWords: somebody has meant to leave, and has not. T9
func exitInWords(h *history, in Language) (f Finding, ok bool) {
	if len(h.wrote) == 0 {
		return f, false
	}
	names := slices.Compact(slices.Sorted(slices.Values(h.wrote)))
	f = Finding{
		Code: FindingExitWords, Title: in.say(exitWordsTitle),
		Evidence:   in.say(exitWordsHow, strings.Join(names, ", "), in.counted(len(h.wrote), times1, timesN)),
		Suggestion: in.say(exitWordsDo),
	}
	for _, name := range names {
		f.Add = append(f.Add, h.tell(name, "To end the loop, call the tool exit_loop. Do not write the call as text.")...)
	}
	return f, true
}

// about is how many iterations a forecast expects: "3 to 5 iterations".
func (lang Language) about(f loop.Forecast) string {
	if f.Low == f.High {
		return lang.iterations(f.Low)
	}
	return lang.say(iterationsRange, f.Low, f.High)
}

// timeouts: two or more, in a fifth of the iterations or more.
func timeouts(h *history, in Language) (f Finding, ok bool) {
	n := max(h.stop.Timeouts, len(h.late))
	if n < 2 || n*5 < len(h.records) {
		return f, false
	}
	f = Finding{
		Code: FindingTimeouts, Title: in.say(timeoutsTitle),
		Evidence:   in.say(timeoutsHow, in.counted(n, timeouts1, timeoutsN), in.iterations(len(h.records))),
		Suggestion: in.say(timeoutsDo),
	}
	if len(h.late) > 0 {
		name := mostFrequent(h.late)
		more := roughly(time.Duration(2 * h.longest[name] * float64(time.Second)))
		f.Evidence += in.say(timeoutsMost, name)
		if field, limit := h.loopLimit(name); limit > 0 {
			more := brief.Duration(roughly(2 * limit))
			f.Suggestion, f.Add = in.say(timeoutsLoopDo, name, field, more), h.set(field, more)
			return f, true
		}
		f.Suggestion = in.say(timeoutsMostDo, name, brief.Duration(more))
		if more > 0 {
			f.Add = []Fix{{Agent: name, Field: "timeout", Value: brief.Duration(more)}}
		}
	}
	return f, true
}

// roughly returns a duration as a person would set one: of its first two digits, the second is 0 or 5.
func roughly(d time.Duration) time.Duration {
	step := 500 * time.Microsecond
	for 20*step <= d {
		step *= 10
	}
	return d.Round(step)
}

func mostFrequent(names []string) string {
	n := make(map[string]int)
	best := names[0]
	for _, name := range names {
		if n[name]++; n[name] > n[best] {
			best = name
		}
	}
	return best
}

// regression: the score fell by more than the judge's noise, in an iteration that
// did not do what was wanted all the same.
func regression(h *history, in Language) (f Finding, ok bool) {
	var where []string
	undone := 0
	for _, it := range h.records {
		if !it.compared || it.delta >= 0 || -it.delta <= it.noise {
			continue
		}
		met := h.stop.Reason == loop.ReasonTarget || h.stop.Reason == loop.ReasonCondition
		if met && int(it.number) == h.stop.Result.Iteration {
			continue
		}
		where = append(where, in.say(fellTo, int(it.number), in.score(it.score)))
		if it.rejected {
			undone++
		}
	}
	if len(where) == 0 {
		return f, false
	}
	f = Finding{
		Code: FindingRegression, Title: in.say(fellTitle),
		Evidence: in.say(fellInN, strings.Join(where, ", ")),
	}
	if len(where) == 1 {
		f.Evidence = in.say(fellIn1, where[0])
	}
	if h.stop.BestScore != nil && h.stop.BestIteration == 0 {
		f.Evidence += in.say(fellStart, in.score(*h.stop.BestScore))
	} else if h.stop.BestScore != nil {
		f.Evidence += in.say(fellBest, in.score(*h.stop.BestScore), h.stop.BestIteration)
	}
	switch {
	case undone == len(where) && h.stop.Rollbacks > 0:
		f.Evidence += in.say(fellUndone)
		f.Suggestion = in.say(fellTellCritic)
		if len(h.models) > 0 {
			f.Suggestion = in.say(fellTell, h.models[0])
			f.Add = h.tell(h.models[0], "{{#rejected.reason}}The last try was undone: {{rejected.reason}}{{/rejected.reason}}")
		}
	case h.stop.Result.Source == loop.FromBest:
		f.Suggestion = in.say(fellBestDo)
		f.Add = h.set("on_regression", "rollback")
	default:
		f.Suggestion = in.say(fellDo)
		f.Add = h.set("on_regression", "rollback")
	}
	return f, true
}

// noise finds a judge whose spread hides most improvements. It finds nothing if the scores rise in spite of it.
func noise(h *history, in Language) (f Finding, ok bool) {
	if h.stop.Trend == loop.Improving {
		return f, false
	}
	var floor, hidden, off float64
	samples, below, scored := 0, 0, 0
	for _, it := range h.records {
		if it.noise == 0 || !it.compared {
			continue
		}
		scored++
		floor, samples, off = it.noise, int(it.samples), it.off
		if d := math.Abs(it.delta); d <= it.noise {
			below++
			hidden = max(hidden, d)
		}
	}
	if scored < 2 || below*2 < scored {
		return f, false
	}
	f = Finding{
		Code: FindingNoise, Title: in.say(noiseTitle),
		Evidence:   in.say(noiseHow, in.score(floor), below, scored),
		Suggestion: in.say(noiseDo),
	}
	if off > 0 {
		f.Evidence = in.say(noiseOff, in.figure(strings.TrimPrefix(brief.OffBy(off), " ± ")), in.score(floor), below, scored)
	}
	if hidden > 0 && samples > 0 {
		if need := int(math.Ceil(float64(samples) * math.Pow(floor/hidden, 2))); need > samples && need <= 32 {
			f.Suggestion += in.say(noiseSamples, need, in.score(hidden))
			f.Add = h.set("score.judge.samples", strconv.Itoa(need))
		}
	}
	return f, true
}

// circles: the same results, or two in turns, or scores that swing.
func circles(h *history, in Language) (f Finding, ok bool) {
	f = Finding{Code: FindingCircles, Title: in.say(circlesTitle)}
	switch {
	case h.stop.Reason == loop.ReasonNoProgress:
		f.Evidence = in.circling(h)
	case h.stop.Trend == loop.Oscillating && h.stop.BestIteration < len(h.records): // a new best is no circle
		f.Evidence = in.say(circlesSwing, in.list(h.scores()))
	default:
		return f, false
	}
	f.Suggestion = in.say(circlesDo)
	return f, true
}

// refused: somebody wanted to leave and might not.
func refusals(h *history, in Language) (f Finding, ok bool) {
	if h.stop.Refusals == 0 {
		return f, false
	}
	var who []string
	for _, r := range h.stop.Refused {
		if !slices.Contains(who, r.By) {
			who = append(who, r.By)
		}
	}
	names := strings.Join(who, ", ")
	f = Finding{
		Code: FindingRefused, Title: in.say(refusedTitle),
		Evidence:   in.say(refusedHow, in.counted(h.stop.Refusals, times1, timesN), names),
		Suggestion: in.say(refusedDo, names),
	}
	for _, name := range who {
		f.Add = append(f.Add, Fix{Agent: name, Field: "can_exit_loop", Value: "true"})
	}
	return f, true
}

// slow: the later half of many iterations brought less than a tenth, none brought
// more than five per cent, or none brought anything.
func slow(h *history, in Language) (f Finding, ok bool) {
	scores := h.scores()
	n := len(scores)
	if n < 5 || h.stop.Reason == loop.ReasonConverged {
		return f, false
	}
	_, lower, _ := h.target()
	gain := func(from, to float64) float64 {
		if lower {
			return from - to
		}
		return to - from
	}
	half := n / 2
	all, late := gain(scores[0], scores[n-1]), gain(scores[half], scores[n-1])
	f = Finding{Code: FindingSlow, Title: in.say(slowTitle)}
	switch most, even := largest(scores, gain); {
	case all == 0 && even && most == 0:
		f.Evidence = in.say(slowStayed, in.score(scores[0]), in.iterations(n))
		f.Suggestion = in.say(slowStayedDo)
	case all <= 0 || late < 0:
		return f, false
	case late*10 < all:
		f.Evidence = in.say(slowLate, half+2, n, in.score(tidy(late)), in.score(tidy(all)))
		f.Suggestion, f.Add = in.say(slowDo, flatAt(scores, lower)), h.set("score.min_delta_percent", "5")
	case even && most < 0.05:
		f.Evidence = in.say(slowEven, in.iterations(n-1), in.score(tidy(all)), in.score(math.Ceil(most*1000)/10))
		f.Suggestion, f.Add = in.say(slowDo, flatAt(scores, lower)), h.set("score.min_delta_percent", "5")
	default:
		return f, false
	}
	return f, true
}

// largest is the largest improvement from one score to the next, as a share of the
// score before; even says that no score was worse than the one before, nor zero.
func largest(scores []float64, gain func(from, to float64) float64) (most float64, even bool) {
	for i := 1; i < len(scores); i++ {
		d := gain(scores[i-1], scores[i])
		if d < 0 || scores[i-1] == 0 && d != 0 {
			return 0, false
		}
		if d > 0 {
			most = max(most, d/math.Abs(scores[i-1]))
		}
	}
	return most, true
}

// flatAt is the first iteration that improved by less than five per cent.
func flatAt(scores []float64, lower bool) int {
	for i := 1; i < len(scores); i++ {
		d := scores[i] - scores[i-1]
		if lower {
			d = -d
		}
		if scores[i-1] != 0 && d/math.Abs(scores[i-1]) < 0.05 {
			return i + 1
		}
	}
	return len(scores)
}

// contextGrowth: the input of an iteration grew to twice that of the first.
func contextGrowth(h *history, in Language) (f Finding, ok bool) {
	var used []int64
	for _, n := range h.input {
		if n > 0 {
			used = append(used, n)
		}
	}
	if len(used) < 3 || used[len(used)-1] < 2*used[0] {
		return f, false
	}
	for i := 1; i < len(used); i++ {
		if used[i] < used[i-1] {
			return f, false
		}
	}
	return Finding{
		Code: FindingContext, Title: in.say(contextTitle),
		Evidence:   in.say(contextHow, used[0], used[len(used)-1]),
		Suggestion: in.say(contextDo),
	}, true
}

// iterations are "1 iteration" or "3 iterations".
func (lang Language) iterations(n int) string { return lang.counted(n, iterations1, iterationsN) }

// circling returns how often the results of a loop that went in circles were repeated. The record of an old version has no counts,
// only an English text.
func (lang Language) circling(h *history) string {
	c, _ := h.condition("no_progress")
	switch {
	case c.Circles == nil:
		return h.stop.Detail
	case c.Circles.Repeating():
		return lang.say(circlesSame, c.Circles.Repeats)
	}
	return lang.say(circlesTurns, c.Circles.Swings)
}

// tidy removes the noise of floating point: nine decimals stay.
func tidy(f float64) float64 { return math.Round(f*1e9) / 1e9 }

func (lang Language) list(scores []float64) string {
	words := make([]string, len(scores))
	for i, s := range scores {
		words[i] = lang.score(s)
	}
	between := ", "
	if lang == Portuguese { // whose numbers have commas
		between = "; "
	}
	return strings.Join(words, between)
}

func (lang Language) orUnknown(s string) string {
	if s == "" {
		return lang.say(amountUnknown)
	}
	return s
}
