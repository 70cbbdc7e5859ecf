// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// TextWithinNoise is the phrase, in every text, for a difference between two versions that the judge cannot tell apart.
const TextWithinNoise = "within the judge's noise"

// WithinNoise reports whether the score differs from the one before by no more than Noise, so that the judge does not
// tell them apart. It is false for exact scores.
func (r IterationRecord) WithinNoise() bool {
	return r.Delta != nil && r.Noise > 0 && math.Abs(*r.Delta) <= r.Noise
}

// WithinNoise reports whether two scores, with their standard errors, differ by no more than twice the standard error
// of their difference. It is false if both are exact.
func WithinNoise(a, aError, b, bError float64) bool {
	e := math.Hypot(aError, bError)
	return e > 0 && math.Abs(a-b) <= 2*e
}

// String returns the record as text, such as "Iteration 2: Score 6.8 → Improvement: +1.6
// (30.8%)", with the error of a score that has one, and "within the judge's noise" after a difference that is.
func (r IterationRecord) String() string {
	s := fmt.Sprintf("Iteration %d", r.Number)
	if r.Score == nil {
		return s
	}
	s += ": Score " + brief.Score(*r.Score) + brief.OffBy(r.Error) + " → Improvement: "
	if r.Delta == nil {
		return s + "N/A"
	}
	s += brief.Signed(*r.Delta)
	if r.Percent != nil {
		s += fmt.Sprintf(" (%.1f%%)", roundDecimals(*r.Percent))
	}
	if r.WithinNoise() {
		s += ", " + TextWithinNoise
	}
	return s
}

// convergence begins the detail of a stop record with ReasonConverged.
const convergence = "Convergence detected: "

// String returns the record on one line, such as "Stopped: converged after 4 iterations:
// Improvement < 5%".
func (r *StopRecord) String() string {
	s := fmt.Sprintf("Stopped: %s after %s", r.Reason, brief.Count(r.Iterations, "iteration"))
	if r.Reason == ReasonMaxIterations && r.Iteration > r.Iterations { // the limit also counts iterations that were cut short
		s = fmt.Sprintf("Stopped: %s after %s, %d of them cut short", r.Reason,
			brief.Count(r.Iteration, "iteration"), r.Iteration-r.Iterations)
	}
	if d := strings.TrimPrefix(r.Detail, convergence); d != "" {
		s += ": " + strings.Join(strings.Fields(d), " ")
	}
	return s
}

// roundDecimals rounds to nine decimals, so that 6.8-5.2 is 1.6. It leaves numbers of a million and more as they are.
func roundDecimals(f float64) float64 {
	if math.Abs(f) >= 1e6 {
		return f
	}
	return math.Round(f*1e9) / 1e9
}

// num writes a number with at most six significant digits, and a whole number with all of its digits. Logs contain
// these texts and a resumed run must write the same ones, so the format must not change.
func num(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

// count writes a number with its noun. Its format must not change either.
func count[N int | int64 | uint](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func withSign(f float64) string {
	if f < 0 {
		return num(f)
	}
	return "+" + num(f)
}

// truncate shortens a message to maxText bytes.
func truncate(s string) string { return brief.ClipBytes(s, maxText) }

// summarize writes a value for people. It gives the type and the size of maps and lists, and the length of long texts.
func summarize(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case uint64:
		return strconv.FormatUint(x, 10)
	case float64:
		return num(x)
	case string:
		return briefText(x)
	}
	return kind(v)
}

func briefText(text string) string {
	if len(text) <= 24 && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return strconv.Quote(text)
	}
	return "text of " + count(utf8.RuneCountInString(text), "character")
}

func kind(v any) string {
	switch x := v.(type) {
	case bool:
		return "boolean"
	case []any:
		return fmt.Sprintf("list of %d", len(x))
	case map[string]any:
		return fmt.Sprintf("map of %d", len(x))
	case json.Number:
		return "number"
	}
	return fmt.Sprintf("%T", v)
}

// closeness returns 1 for equal numbers. It falls to 0 as their distance grows to the size of the larger one.
func closeness(x, y float64) float64 {
	size := max(math.Abs(x), math.Abs(y))
	if x == y || size == 0 {
		return 1
	}
	c := 1 - math.Abs(x-y)/size
	if math.IsNaN(c) || c < 0 {
		return 0
	}
	return c
}
