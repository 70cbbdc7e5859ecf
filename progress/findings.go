// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// failures: what most steps could not do, no further iteration will. G5
func failures(h *history) (f Finding, ok bool) {
	if h.stop.Reason == loop.ReasonError && !strings.HasPrefix(h.stop.Detail, loop.NoneSucceeded) || h.runs < 2 ||
		h.fell*2 <= h.runs {
		return f, false
	}
	return Finding{
		Code: FindingFailures, Title: "Most steps failed",
		Evidence:   fmt.Sprintf("%d of %d steps, and the loop continued", h.fell, h.runs),
		Suggestion: "Look at their errors first; max_consecutive_failures: 3 would have ended the loop early",
		Add:        h.set("max_consecutive_failures", "3"),
	}, true
}

// neverDone: a limit ended a loop that had something to reach.
func neverDone(h *history) (f Finding, ok bool) {
	s := h.stop
	if !s.Reason.Limit() || len(h.records) == 0 {
		return f, false
	}
	f = Finding{Code: FindingNeverDone, Title: "The loop never reached its criterion"}
	ran := fmt.Sprintf("%s after %s", s.Reason, count(len(h.records), "iteration"))
	if target, lower, scored := h.target(); scored && s.BestScore != nil {
		f.Evidence = fmt.Sprintf("%s, best score %s of %s (iteration %d)", ran, num(*s.BestScore), num(target),
			s.BestIteration)
		switch ahead, err := h.forecast(); {
		case err == nil && ahead.Predictable && ahead.Until == loop.ReasonTarget:
			f.Suggestion = fmt.Sprintf("At this rate it takes %s more: set max_iterations to %d", about(ahead),
				len(h.records)+ahead.High)
			f.Add = h.set("max_iterations", strconv.Itoa(len(h.records)+ahead.High))
		case err == nil && ahead.Predictable:
			f.Suggestion = fmt.Sprintf("The scores level off near %s: lower the target, or give the writer better "+
				"feedback", num(ahead.Final))
			f.Add = h.set("score.target", num(attainable(ahead.Final, lower)))
		default:
			f.Suggestion = "Lower the target, raise max_iterations, or give the writer better feedback"
		}
		return f, true
	}
	if still, is := slow(h); is && !h.criterion() {
		f.Evidence = fmt.Sprintf("%s: %s, and nothing in the loop looks at the score", ran, still.Evidence)
		f.Suggestion = "Give score a target, or min_delta with patience, so that the loop ends when the score gets " +
			"no better"
		f.Add = append(h.set("score.min_delta_percent", "5"), h.set("score.patience", "2")...)
		return f, true
	}
	if len(s.Conditions) < 2 && s.Refusals == 0 {
		return f, false // nothing but a limit: it has done what it was told
	}
	exit, _ := h.condition("exit_loop")
	if stop, has := h.condition("stop_when"); has && !stop.Holds {
		why := fmt.Sprintf(" is %s, wanted %s", orUnknown(stop.Value), orUnknown(stop.Threshold))
		if stop.Value == "" && stop.Note != "" {
			why = ": " + stop.Note
		}
		f.Evidence = fmt.Sprintf("%s, stop_when never held: %s%s", ran, stop.Expr, why)
		f.Suggestion = "Check that a step writes what the condition reads, or make it easier to meet"
		return f, true
	}
	if exit.Threshold == "nobody" || exit.Holds || len(s.Conditions) > 2 {
		return f, false
	}
	f.Evidence = ran + ", and no step asked to leave"
	f.Suggestion = "Say in the instructions of the steps that may exit when to call exit_loop, or measure it with " +
		"stop_when or a score"
	if who, _, _ := strings.Cut(exit.Threshold, ", "); who != "any step" {
		f.Add = h.tell(who, "Call the tool exit_loop as soon as nothing has to be changed any more.")
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

// exitInWords: somebody has meant to leave, and has not. T9
func exitInWords(h *history) (f Finding, ok bool) {
	if len(h.wrote) == 0 {
		return f, false
	}
	names := slices.Compact(slices.Sorted(slices.Values(h.wrote)))
	f = Finding{
		Code: FindingExitWords, Title: "A model wrote exit_loop() and did not call the tool",
		Evidence: fmt.Sprintf("%s, %s; the loop took no notice of it", strings.Join(names, ", "),
			count(len(h.wrote), "time")),
		Suggestion: "Say in the instructions that it is to call the tool and write nothing, or take a model that " +
			"calls tools",
	}
	for _, name := range names {
		f.Add = append(f.Add, h.tell(name, "To end the loop, call the tool exit_loop. Do not write the call as text.")...)
	}
	return f, true
}

func about(f loop.Forecast) string {
	if f.Low == f.High {
		return count(f.Low, "iteration")
	}
	return fmt.Sprintf("%d to %d iterations", f.Low, f.High)
}

// timeouts: two or more, in a fifth of the iterations or more.
func timeouts(h *history) (f Finding, ok bool) {
	n := max(h.stop.Timeouts, len(h.late))
	if n < 2 || n*5 < len(h.records) {
		return f, false
	}
	f = Finding{
		Code: FindingTimeouts, Title: "Steps often run out of time",
		Evidence:   fmt.Sprintf("%s in %s", count(n, "timeout"), count(len(h.records), "iteration")),
		Suggestion: "Make the steps faster, or raise timeout and iteration_timeout",
	}
	if len(h.late) > 0 {
		name := mostFrequent(h.late)
		took := time.Duration(h.longest[name] * float64(time.Second))
		f.Evidence += fmt.Sprintf(", most of them in %s, which was given %s", name, short(took))
		f.Suggestion = fmt.Sprintf("Make %s faster, raise its timeout to %s, or let it adapt with adaptive_timeout",
			name, short(2*took))
		if took > 0 {
			f.Add = []Fix{{Agent: name, Field: "timeout", Value: short(2 * took)}}
		}
	}
	return f, true
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
func regression(h *history) (f Finding, ok bool) {
	var where []string
	undone := 0
	for _, it := range h.records {
		if it.Delta == nil || *it.Delta >= 0 || -*it.Delta <= it.Noise {
			continue
		}
		met := h.stop.Reason == loop.ReasonTarget || h.stop.Reason == loop.ReasonCondition
		if met && it.Number == h.stop.Result.Iteration {
			continue
		}
		where = append(where, fmt.Sprintf("%d (to %s)", it.Number, num(*it.Score)))
		if it.Rejected != "" {
			undone++
		}
	}
	if len(where) == 0 {
		return f, false
	}
	f = Finding{
		Code: FindingRegression, Title: "The score fell",
		Evidence: "in " + noun(len(where), "iteration") + " " + strings.Join(where, ", "),
	}
	if h.stop.BestScore != nil {
		f.Evidence += fmt.Sprintf("; the best is %s in iteration %d", num(*h.stop.BestScore), h.stop.BestIteration)
	}
	switch {
	case undone == len(where) && h.stop.Rollbacks > 0:
		f.Evidence += "; all were rolled back"
		f.Suggestion = "Tell the critic why with {{rejected.reason}}: its feedback may contradict itself"
		if len(h.models) > 0 {
			f.Suggestion = fmt.Sprintf("Tell %s why with {{rejected.reason}}: the feedback may contradict itself", h.models[0])
			f.Add = h.tell(h.models[0], "{{#rejected.reason}}The last try was undone: {{rejected.reason}}{{/rejected.reason}}")
		}
	case h.stop.Result.Source == loop.FromBest:
		f.Suggestion = "Set on_regression: rollback so that the next iteration starts from the best, and let the " +
			"critic see {{best.KEY}}"
		f.Add = h.set("on_regression", "rollback")
	default:
		f.Suggestion = "Set on_regression: rollback, or a quality_gate, so that a worse version is not built upon"
		f.Add = h.set("on_regression", "rollback")
	}
	return f, true
}

// noise: the judge's spread hides most improvements.
func noise(h *history) (f Finding, ok bool) {
	var floor, hidden float64
	samples, below, scored := 0, 0, 0
	for _, it := range h.records {
		if it.Noise == 0 || it.Delta == nil {
			continue
		}
		scored++
		floor, samples = it.Noise, it.Samples
		if d := math.Abs(*it.Delta); d <= it.Noise {
			below++
			hidden = max(hidden, d)
		}
	}
	if scored < 2 || below*2 < scored {
		return f, false
	}
	f = Finding{
		Code: FindingNoise, Title: "The judge is too noisy",
		Evidence: fmt.Sprintf("differences of up to %s count for nothing, and %d of %d were below that", num(floor),
			below, scored),
		Suggestion: "Give the judge clearer criteria, a lower temperature, or a scale with fewer steps",
	}
	if hidden > 0 && samples > 0 {
		if need := int(math.Ceil(float64(samples) * math.Pow(floor/hidden, 2))); need > samples && need <= 32 {
			f.Suggestion += fmt.Sprintf("; samples: %d would tell a difference of %s", need, num(hidden))
			f.Add = h.set("score.judge.samples", strconv.Itoa(need))
		}
	}
	return f, true
}

// circles: the same results, or two in turns, or scores that swing.
func circles(h *history) (f Finding, ok bool) {
	f = Finding{Code: FindingCircles, Title: "The loop goes round in circles"}
	switch {
	case h.stop.Reason == loop.ReasonNoProgress:
		f.Evidence = h.stop.Detail
	case h.stop.Trend == loop.Oscillating:
		f.Evidence = "the scores swing: " + join(h.scores())
	default:
		return f, false
	}
	f.Suggestion = "Let the critic see all earlier feedback, or raise the temperature of the step that should find " +
		"something new"
	return f, true
}

// refused: somebody wanted to leave and might not.
func refused(h *history) (f Finding, ok bool) {
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
		Code: FindingRefused, Title: "An exit was refused",
		Evidence:   fmt.Sprintf("%s, asked by %s", count(h.stop.Refusals, "time"), names),
		Suggestion: fmt.Sprintf("Give %s can_exit_loop: true, or tell it not to decide about the end", names),
	}
	for _, name := range who {
		f.Add = append(f.Add, Fix{Agent: name, Field: "can_exit_loop", Value: "true"})
	}
	return f, true
}

// slow: the later half of many iterations brought less than a tenth, none brought
// more than five per cent, or none brought anything.
func slow(h *history) (f Finding, ok bool) {
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
	f = Finding{Code: FindingSlow, Title: "Many iterations, little improvement"}
	switch most, even := largest(scores, gain); {
	case all == 0 && even && most == 0:
		f.Evidence = fmt.Sprintf("the score stayed at %s for %s", num(scores[0]), count(n, "iteration"))
		f.Suggestion = "Give the steps more to go on: have the critic name one concrete improvement at a time"
	case all <= 0 || late < 0:
		return f, false
	case late*10 < all:
		f.Evidence = fmt.Sprintf("iterations %d to %d brought %s of %s points", half+2, n, num(tidy(late)),
			num(tidy(all)))
		f.Suggestion, f.Add = stopEarlier(scores, lower), h.set("score.min_delta_percent", "5")
	case even && most < 0.05:
		f.Evidence = fmt.Sprintf("%s brought %s points, none more than %s%%", count(n-1, "iteration"), num(tidy(all)),
			num(math.Ceil(most*1000)/10))
		f.Suggestion, f.Add = stopEarlier(scores, lower), h.set("score.min_delta_percent", "5")
	default:
		return f, false
	}
	return f, true
}

func stopEarlier(scores []float64, lower bool) string {
	return fmt.Sprintf("Stop earlier with min_delta_percent: 5 (about iteration %d), or have the critic name one "+
		"concrete improvement at a time",
		flatAt(scores, lower))
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
func contextGrowth(h *history) (f Finding, ok bool) {
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
		Code: FindingContext, Title: "Every iteration sends more than the one before",
		Evidence:   fmt.Sprintf("%d input tokens in the first, %d in the last", used[0], used[len(used)-1]),
		Suggestion: "Show models less of what was said before: context: iteration, or context: {last: 2}",
	}, true
}

func count(n int, what string) string { return strconv.Itoa(n) + " " + noun(n, what) }

func noun(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

func num(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func tidy(f float64) float64 { return math.Round(f*1e9) / 1e9 }

func join(scores []float64) string {
	words := make([]string, len(scores))
	for i, s := range scores {
		words[i] = num(s)
	}
	return strings.Join(words, ", ")
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
