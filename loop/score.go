// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/expr"
)

// Score says how an iteration is scored, and which score ends the loop. Either Key or Expr is
// set.
type Score struct {
	// Key is the state key that holds the score: a number, or a text with a number. In a text
	// the score is the first number after Label, if there is a Label; otherwise the Field of
	// the JSON in the text, with or without code fences; otherwise the number after the word
	// score, at the beginning of the text, or in a form like 8.5/10.
	Key   string `json:"key,omitzero"`
	Label string `json:"label,omitzero"`
	// Field is the path of the number in a JSON object, with dots. "" means "score".
	Field string `json:"field,omitzero"`
	// Expr is a CEL expression that gives a number, over the variables of a Condition.
	Expr string `json:"expr,omitzero"`

	// Holdout is the state key of a second score, in the same form as that of Key. No step of the loop should read it. It has
	// no effect on the loop, except for the finding [FindingHoldout]. "" means no second score.
	Holdout string `json:"holdout,omitzero"`

	// Judge runs the scoring step more than once. nil: the score is read once, at the
	// end of the iteration.
	Judge *Judge `json:"judge,omitzero"`
	// Baseline scores the state before the first iteration, by the Judge or the Scorers. A first iteration that is
	// worse is then not the best, and a plan with rollbacks undoes it. A step that fails in the baseline ends the
	// baseline but not the loop.
	Baseline bool `json:"baseline,omitzero"`
	// Scorers are the names of the steps that write what the score is read from; a Baseline without a Judge needs them.
	Scorers []string `json:"scorers,omitzero"`
	// Dimensions are the names of the parts that the score must have, at most 32: fields of the
	// JSON, or of the object "dimensions" in it. If a score has no number of its own, it is the
	// mean of its parts. Without names, all parts in "dimensions" count.
	Dimensions []string `json:"dimensions,omitzero"`

	// Target ends the loop when the score reaches it, and every dimension
	// reaches DimensionTarget. nil: no target.
	Target          *float64 `json:"target,omitzero"`
	DimensionTarget *float64 `json:"dimension_target,omitzero"`
	// MinDelta and MinDeltaPercent end the loop when the improvement over the previous score is below one of them
	// Patience times in a row. The percentage is relative to the previous score. A worse score counts as below. The
	// first iteration has no improvement. An iteration with a failed step does not count, because its score may be old.
	//
	// With a Judge, MinDelta counts as at least a third of a score's error. The last eight scores must also fit a score
	// that has stopped changing 10^(1+Patience/2) times better than one that gains twice MinDelta in every iteration;
	// Patience counts as at most 6 there.
	MinDelta        *float64 `json:"min_delta,omitzero"`
	MinDeltaPercent *float64 `json:"min_delta_percent,omitzero"`
	// Patience is the number of consecutive small improvements that end the loop. 0 means 1.
	Patience uint `json:"patience,omitzero"`
	// LowerIsBetter makes a lower score the better one.
	LowerIsBetter bool `json:"lower_is_better,omitzero"`
}

// weakest returns the dimension furthest from its target, nil if all have reached it.
func (s *Score) weakest(dims []Dimension) *Dimension {
	var worst *Dimension
	for i := range dims {
		if s.better(*s.DimensionTarget, dims[i].Value) && (worst == nil || s.better(worst.Value, dims[i].Value)) {
			worst = &dims[i]
		}
	}
	return worst
}

// sense returns 1 if more is better, else -1.
func (s *Score) sense() float64 {
	if s.LowerIsBetter {
		return -1
	}
	return 1
}

func (s *Score) better(a, b float64) bool {
	if s.LowerIsBetter {
		return a < b
	}
	return a > b
}

func (s *Score) patience() uint { return max(1, s.Patience) }

// writtenBy reports whether keys contains one that the score is read from. A score that reads no key counts as written
// in every iteration. nil means that the keys are unknown; then the score counts as written.
func (s *Score) writtenBy(keys []string) bool {
	if keys == nil {
		return true
	}
	if s.Expr == "" {
		return slices.Contains(keys, s.Key)
	}
	q, err := compile(s.Expr)
	if err != nil || q.all {
		return len(keys) > 0
	}
	return len(q.reads) == 0 || slices.ContainsFunc(q.reads, func(k string) bool { return slices.Contains(keys, k) })
}

// unwrittenError returns an error that says that the judge has not written what the score is read from or, if judge is "",
// that no step of the iteration has.
func (s *Score) unwrittenError(judge string) error {
	what := fmt.Sprintf("state key %q", s.Key)
	if s.Expr != "" {
		what = "a state key that " + s.Expr + " reads"
	}
	if judge != "" {
		return fmt.Errorf("the judge %s did not write %s", judge, what)
	}
	return fmt.Errorf("no step wrote %s in this iteration", what)
}

// lastScore is the score of the last iteration that ended. While a judge answers, its dimensions and its note are those
// of the running iteration.
type lastScore struct {
	// Score is nil if the iteration has none; ScoreNote then says why.
	Score     *float64 `json:"score,omitzero"`
	ScoreNote string   `json:"score_note,omitzero"`
	// Dimensions are those of the score, by name.
	Dimensions []Dimension `json:"dimensions,omitzero"`
	// Scored counts all scores.
	Scored int `json:"scored,omitzero"`
}

// reading is a score with its parts.
type reading struct {
	score float64
	dims  []Dimension
}

// read returns the score of an outcome; the error says why there is none.
func (s *Score) read(t *Tally, o *addedOutcome) (reading, error) {
	var v any
	switch {
	case o.Exit != nil && o.Exit.Score != nil && t.Exit != nil:
		f, err := finite(*o.Exit.Score)
		return reading{score: f}, err
	case s.Expr != "":
		q, err := compile(s.Expr)
		if err != nil {
			return reading{}, err
		}
		v, err = q.EvalIn(context.Background(), o.scope(t))
		if err != nil {
			return reading{}, err
		}
	default:
		var ok bool
		if v, ok = o.visibleState()[s.Key]; !ok {
			return reading{}, &expr.KeyError{Path: "state", Key: s.Key}
		}
	}
	got, err := s.parts(v)
	if err != nil && s.Expr == "" {
		return reading{}, fmt.Errorf("state key %q: %w", s.Key, err)
	}
	return got, err
}

// Best returns the index of the state with the best score, the first of several that are equal; -1 if none has a score,
// with the reason for each. Of the variables of Expr, only state has a value.
func (s *Score) Best(states []map[string]any) (best int, why []error) {
	best = -1
	most := 0.0
	why = make([]error, len(states))
	for i, state := range states {
		got, err := s.read(&Tally{}, &addedOutcome{&Outcome{State: state}})
		if why[i] = err; err == nil && (best < 0 || s.better(got.score, most)) {
			best, most = i, got.score
		}
	}
	return best, why
}

// number reads a value of state as a score.
func (s *Score) number(v any) (float64, error) {
	switch x := v.(type) {
	case nil:
		return 0, fmt.Errorf("no score in null")
	case float64:
		return finite(x)
	case int:
		return float64(x), nil
	case int64:
		return float64(x), nil
	case json.Number:
		f, err := x.Float64()
		if err != nil {
			return 0, fmt.Errorf("no number: %w", err)
		}
		return finite(f)
	case string:
		return s.inText(x)
	case map[string]any:
		return s.inObject(x)
	case bool, []any:
		return 0, fmt.Errorf("no score in a %s", kind(x))
	}
	b, err := json.Marshal(v) // such as another kind of number, or a struct
	if err != nil {
		return 0, fmt.Errorf("no score in a value of type %T: %w", v, err)
	}
	if v, err = expr.JSON(string(b)); err != nil {
		return 0, err
	}
	return s.number(v)
}

// inText reads a score from a text: after Label if there is one, else from the JSON in it, else from its words.
func (s *Score) inText(text string) (float64, error) {
	if s.Label != "" {
		i := strings.Index(strings.ToLower(text), strings.ToLower(s.Label))
		if i < 0 || len(strings.ToLower(text)) != len(text) {
			if i = strings.Index(text, s.Label); i < 0 {
				return 0, fmt.Errorf("no label %q in %q", s.Label, excerpt(text))
			}
		}
		f, err := expr.Number(text[i+len(s.Label):])
		if err != nil {
			return 0, fmt.Errorf("after the label %q: %w", s.Label, err)
		}
		return f, nil
	}
	if v, err := expr.JSON(text); err == nil {
		inner, ok := v.(string)
		if _, list := v.([]any); !list && (!ok || inner != text) { // a list such as [1] is a reference to a source, not a score
			return s.number(v)
		}
	}
	return scoreInText(text)
}

// inObject reads the score from the Field of a JSON object.
func (s *Score) inObject(m map[string]any) (float64, error) {
	field := cmp.Or(s.Field, "score")
	var v any = m
	for name := range strings.SplitSeq(field, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return 0, fmt.Errorf("no field %q in the JSON", field)
		}
		if v, ok = m[name]; !ok {
			return 0, fmt.Errorf("no field %q in the JSON", field)
		}
	}
	if _, deeper := v.(map[string]any); deeper {
		return 0, fmt.Errorf("field %q of the JSON is an object", field)
	}
	return s.number(v)
}

// finite returns an error if a number is infinite, NaN or larger than maxScore, because JSON must be able to represent
// sums and squares of scores.
func finite(f float64) (float64, error) {
	switch {
	case !isFinite(f):
		return 0, fmt.Errorf("not a finite number: %s", strconv.FormatFloat(f, 'g', -1, 64))
	case math.Abs(f) > maxScore:
		return 0, fmt.Errorf("too large a number: %s", num(f))
	}
	return f, nil
}

const maxScore = 1e100

func isFinite(f float64) bool { return f-f == 0 }
