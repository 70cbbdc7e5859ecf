// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Sweep holds the back-tests of recorded runs for all values of one field of their plans. A level is an
// interval of values within which no run changes its end.
type Sweep struct {
	// Field is the path of the field in a plan, such as score.min_delta_percent. Times are in seconds.
	Field string `json:"field"`
	// Now is the value that the plans of all runs have; nil if they have none, or not the same.
	Now *float64 `json:"now,omitzero"`
	// Levels are in the order of their values.
	Levels []Level `json:"levels"`
	// Safe is the index of the level that saves most and loses no result that is known; -1: none.
	Safe int `json:"safe"`

	runs []*swept
}

// Level is an interval of values for which each run ends in the same way. Only the time that a limit
// of time saves differs within it: the balance has that of a value in the middle.
type Level struct {
	// From and To are the bounds. From belongs to the level if IncludesFrom is true, To if IncludesTo
	// is. A nil To: there is no upper bound.
	From         float64  `json:"from"`
	To           *float64 `json:"to,omitzero"`
	IncludesFrom bool     `json:"includes_from"`
	IncludesTo   bool     `json:"includes_to"`
	// Value is one with few digits that is in the level: Now, if that is.
	Value float64 `json:"value"`
	Balance
}

// SweepFields returns the fields that [NewSweep] can move.
func SweepFields() []string { return slices.Clone(sweepFields) }

// FieldValue returns the value of one of [SweepFields] that the plans of all runs have; nil if they have
// none or different ones. Times are in seconds.
func FieldValue(runs []*Recording, field string) *float64 { return commonValue(runs, field) }

var sweepFields = []string{
	"score.min_delta", "score.min_delta_percent", "score.patience", "score.target", "score.dimension_target",
	"quality_gate", "max_iterations", "max_consecutive_failures", "no_progress.repeats", "timeout", "budget.calls",
	"budget.tokens", "budget.cost",
}

// NewSweep finds the values of a field at which the end of any of the runs changes. It replays each
// run a few times for each of its iterations, asks no model, and fails for a field that is not one of
// [SweepFields].
func NewSweep(runs []*Recording, field string) (*Sweep, error) {
	if !slices.Contains(sweepFields, field) {
		return nil, fmt.Errorf("%q cannot be moved; these fields can: %s", field, strings.Join(sweepFields, ", "))
	}
	s := &Sweep{Field: field, Safe: -1, Now: commonValue(runs, field)}
	var ticks []float64
	own := make([]*swept, len(runs))
	for i, r := range runs {
		own[i] = &swept{r: r, field: field, ticks: r.ticks(field), used: r.used(), known: make(map[int]Trial)}
		ticks = append(ticks, own[i].ticks...)
	}
	s.runs = own
	slices.Sort(ticks)
	ticks = slices.Compact(ticks)
	type end struct {
		verdict Verdict
		stops   int
		reason  loop.StopReason
		saved   Used
	}
	var last []end
	for i := range 2*len(ticks) + 1 {
		at, ok := alongTicks(ticks, i, wholeField(field))
		if !ok {
			continue
		}
		var l Level
		ends := make([]end, len(own))
		for j, o := range own {
			t := o.at(at)
			l.add(t, o.used)
			ends[j] = end{t.Verdict, t.Stops, t.Reason, t.Saved}
			ends[j].saved.Time = 0 // a limit of time saves another bit for each value
		}
		l.bound(ticks, i, signedField(field))
		if n := len(s.Levels); n > 0 && slices.Equal(ends, last) {
			s.Levels[n-1].To, s.Levels[n-1].IncludesTo = l.To, l.IncludesTo
			continue
		}
		s.Levels, last = append(s.Levels, l), ends
	}
	for i := range s.Levels {
		s.Levels[i].Value = s.Levels[i].readable(s.Now)
	}
	s.safest()
	return s, nil
}

// Trials returns the trials of a level, in the order of the runs.
func (s *Sweep) Trials(level int) []Trial {
	all := make([]Trial, len(s.runs))
	for i, o := range s.runs {
		all[i] = *o.at(s.Levels[level].Value)
	}
	return all
}

// safest finds the level that saves most and loses nothing; of several, the one of which most is
// known, and then the one that is there now.
func (s *Sweep) safest() {
	for i := range s.Levels {
		l := &s.Levels[i]
		if l.Lost > 0 {
			continue
		}
		if s.Safe < 0 {
			s.Safe = i
			continue
		}
		best := &s.Levels[s.Safe]
		switch by := cmp.Or(l.Saved.better(best.Saved), best.Unknown-l.Unknown); {
		case by > 0, by == 0 && s.Now != nil && l.Value == *s.Now:
			s.Safe = i
		}
	}
}

// better compares what is saved: by cost, tokens, iterations and time.
func (u Used) better(v Used) int {
	return cmp.Or(cmp.Compare(u.Cost, v.Cost), cmp.Compare(u.Tokens, v.Tokens), cmp.Compare(u.Iterations, v.Iterations),
		cmp.Compare(u.Time, v.Time))
}

// swept is one run of a sweep. Its end changes at its own ticks alone.
type swept struct {
	r     *Recording
	field string
	ticks []float64
	used  Used
	known map[int]Trial // by place among the ticks
}

// at is the trial with a value of the field.
func (o *swept) at(value float64) *Trial {
	i, on := slices.BinarySearch(o.ticks, value)
	i *= 2
	if on {
		i++
	}
	t, ok := o.known[i]
	if !ok {
		t = o.r.try(func(p *loop.Plan) (*loop.Plan, error) {
			return p.With(o.field, strconv.FormatFloat(value, 'f', -1, 64))
		})
		o.known[i] = t
	}
	return &t
}

// alongTicks is a value at the i-th place along the ticks: before the first, on it, behind it, and so
// on; ok is false if there is none that is whole, or above zero.
func alongTicks(ticks []float64, i int, whole bool) (v float64, ok bool) {
	n := i / 2
	switch {
	case i%2 == 1:
		v = ticks[n]
	case len(ticks) == 0:
		v = 1
	case n == 0:
		v = ticks[0] - max(1e-6, math.Abs(ticks[0])/2)
	case n == len(ticks):
		v = ticks[n-1] + max(1, math.Abs(ticks[n-1]))
	default:
		v = ticks[n-1] + (ticks[n]-ticks[n-1])/2
	}
	if whole {
		v = math.Floor(v)
		return v, v >= 1 && (i%2 == 1 || n == 0 || v > ticks[n-1])
	}
	return v, true
}

// bound gives a level the bounds of the i-th place.
func (l *Level) bound(ticks []float64, i int, signed bool) {
	n := i / 2
	if i%2 == 1 {
		l.From, l.To, l.IncludesFrom, l.IncludesTo = ticks[n], new(ticks[n]), true, true
		return
	}
	if n > 0 {
		l.From = ticks[n-1]
	} else if len(ticks) > 0 && signed {
		l.From = min(0, ticks[0]-1)
	}
	if n < len(ticks) {
		l.To = new(ticks[n])
	}
}

// readable is the value in the level with the fewest digits; now, if that is in it.
func (l *Level) readable(now *float64) float64 {
	has := func(v float64) bool {
		return (v > l.From || l.IncludesFrom && v == l.From) && (l.To == nil || v < *l.To || l.IncludesTo && v == *l.To)
	}
	if now != nil && has(*now) {
		return *now
	}
	for _, size := range []float64{1, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6} {
		v := round(math.Ceil(l.From/size) * size)
		if !has(v) {
			v = round(v + size)
		}
		if has(v) {
			return v
		}
	}
	if l.IncludesFrom || l.To == nil {
		return l.From
	}
	return l.From + (*l.To-l.From)/2
}

// wholeField reports whether a field is a count.
func wholeField(field string) bool {
	switch field {
	case "score.patience", "max_iterations", "max_consecutive_failures", "no_progress.repeats", "budget.calls",
		"budget.tokens":
		return true
	}
	return false
}

// signedField reports whether a field may be below zero.
func signedField(field string) bool {
	return strings.HasSuffix(field, "target") || field == "quality_gate"
}

// commonValue is the value of a field that all plans have.
func commonValue(runs []*Recording, field string) (common *float64) {
	for i, r := range runs {
		v, ok := valueIn(r.Plan, field)
		if !ok || i > 0 && *common != v {
			return nil
		}
		common = &v
	}
	return common
}

// valueIn is the value of a field of a plan.
func valueIn(p *loop.Plan, field string) (float64, bool) {
	if field == "timeout" {
		return time.Duration(p.Timeout).Seconds(), p.Timeout > 0
	}
	text, err := json.Marshal(p)
	var v any
	if err != nil || json.Unmarshal(text, &v) != nil {
		return 0, false
	}
	for name := range strings.SplitSeq(field, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	f, ok := v.(float64)
	return f, ok
}

// ticks are the values of a field at which the end of the run may change.
func (r *Recording) ticks(field string) []float64 {
	all := r.candidates(field)
	if wholeField(field) {
		var whole []float64
		for _, v := range all { // the limit may lie on either side, and between two whole numbers
			whole = append(whole, math.Floor(v), math.Floor(v)+1)
		}
		all = whole
	}
	all = slices.DeleteFunc(all, func(v float64) bool {
		return math.IsNaN(v) || math.IsInf(v, 0) || v <= 0 && !signedField(field)
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// candidates are values out of the run's own records.
func (r *Recording) candidates(field string) (all []float64) {
	share := 1 - r.Plan.Share()
	var used loop.Usage
	var cost, active float64
	final := r.Plan.Finalizer()
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.Step == final && final >= 0 {
			continue
		}
		used.Calls += o.Usage.Calls
		used.InputTokens += o.Usage.InputTokens + o.Usage.OutputTokens
		if o.Usage.Cost != nil {
			cost += *o.Usage.Cost
		}
		active += max(0, o.Finished.Sub(o.Started)).Seconds() + o.Between.Seconds()
		switch field {
		case "timeout":
			all = append(all, active/share)
		case "budget.calls":
			all = append(all, float64(used.Calls)/share)
		case "budget.tokens":
			all = append(all, float64(used.InputTokens)/share)
		case "budget.cost":
			all = append(all, round(cost/share))
		case "max_iterations", "score.patience", "no_progress.repeats", "max_consecutive_failures":
			all = append(all, float64(o.Iteration))
		}
	}
	for _, rec := range r.start().BacktestOf(r.Plan, r.Outcomes).Records {
		switch field {
		case "score.min_delta":
			all = appendKnown(all, rec.Delta)
		case "score.min_delta_percent":
			all = appendKnown(all, rec.Percent)
		case "score.target", "quality_gate":
			all = appendKnown(all, rec.Score)
		case "score.dimension_target":
			for _, d := range rec.Dimensions {
				all = append(all, d.Value)
			}
		}
	}
	return all
}

func appendKnown(all []float64, v *float64) []float64 {
	if v == nil {
		return all
	}
	return append(all, *v)
}
