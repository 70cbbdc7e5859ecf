// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/brief"
)

// String returns the record as text, such as "Iteration 2: Score 6.8 → Improvement: +1.6
// (30.8%)".
func (r IterationRecord) String() string {
	s := fmt.Sprintf("Iteration %d", r.Number)
	if r.Score == nil {
		return s
	}
	s += ": Score " + num(*r.Score) + " → Improvement: "
	if r.Delta == nil {
		return s + "N/A"
	}
	s += signed(*r.Delta)
	if r.Percent != nil {
		s += fmt.Sprintf(" (%.1f%%)", tidy(*r.Percent))
	}
	return s
}

// convergence begins the detail of a stop by convergence.
const convergence = "Convergence detected: "

// String returns the record on one line, such as "Stopped: converged after 4 iterations:
// Improvement < 5%".
func (r *StopRecord) String() string {
	s := fmt.Sprintf("Stopped: %s after %s", r.Reason, brief.Count(r.Iterations, "iteration"))
	if r.Reason == ReasonMaxIterations && r.Iteration > r.Iterations { // the limit counts them all
		s = fmt.Sprintf("Stopped: %s after %s, %d of them cut short", r.Reason,
			brief.Count(r.Iteration, "iteration"), r.Iteration-r.Iterations)
	}
	if d := strings.TrimPrefix(r.Detail, convergence); d != "" {
		s += ": " + strings.Join(strings.Fields(d), " ")
	}
	return s
}

// tidy rounds away what binary fractions add: 6.8-5.2 is 1.6.
func tidy(f float64) float64 {
	if math.Abs(f) >= 1e6 {
		return f
	}
	return math.Round(f*1e9) / 1e9
}

// num writes a number with at most six significant digits, an int with all.
func num(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}

func signed(f float64) string {
	if f < 0 {
		return num(f)
	}
	return "+" + num(f)
}

// clip shortens a message to what a tally may keep.
func clip(s string) string { return brief.ClipBytes(s, maxText) }

// shortly writes a value without copying texts out of state.
func shortly(v any) string {
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
	return "text of " + brief.Count(utf8.RuneCountInString(text), "character")
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

// closeness is 1 for equal numbers and falls to 0 as their distance grows to
// the size of the larger one.
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
