// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/expr"
	_ "github.com/refrain-dev/refrain/expr/cel" // the engine of expressions
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// Check is a compiled check. It is safe for concurrent use.
type Check struct {
	spec Spec
	find func(ctx context.Context, s *Subject) finding
}

// finding is the value of a check with its reason.
type finding struct {
	value  float64
	reason string
	turns  []*float64 // by turn, if the check compares each with its reference
	none   bool       // not evaluated
	votes  int        // of judges
	split  bool       // votes on one statement differ
	broken bool       // failed, whatever the value and "not" are
}

// Measures are the names besides those of checks by which two versions are compared. No check can have one of them.
var Measures = []string{"passed", "score", "cost", "seconds"}

// Kinds lists the kinds of checks that a file can name.
var Kinds = []Kind{Equals, Contains, Matches, Schema, Rouge1, Expr, Calls, Stop, Max, Completed, Rubric, Agrees, Pairwise}

// Orders lists the orders of calls.
var Orders = []Order{Exact, InOrder, AnyOrder}

// stopReasons are the reasons that a run can have.
var stopReasons = []loop.StopReason{
	loop.ReasonExit, loop.ReasonEscalated, loop.ReasonImpossible, loop.ReasonBlocked, loop.ReasonCondition, loop.ReasonTarget,
	loop.ReasonConverged,
	loop.ReasonNoProgress, loop.ReasonMaxIterations, loop.ReasonTimeout, loop.ReasonBudget, loop.ReasonError, loop.ReasonCanceled,
}

// Variables are the variables that an expression can read.
var Variables = []expr.Var{
	{Name: "answer", Type: expr.String}, {Name: "state", Type: expr.Map}, {Name: "case", Type: expr.Map}, {Name: "turn", Type: expr.Map},
	{Name: "calls", Type: expr.List}, {Name: "stop", Type: expr.String}, {Name: "score"}, {Name: "iterations", Type: expr.Int},
	{Name: "usage", Type: expr.Map}, {Name: "cost"}, {Name: "seconds", Type: expr.Double}, {Name: "errors", Type: expr.List},
	{Name: "events", Type: expr.List},
}

// Compile checks a spec and makes it ready to run. Its error is an [*Error].
func Compile(spec Spec) (*Check, error) {
	c := &Check{spec: spec}
	wrong := spec.common()
	if wrong != nil {
		return nil, wrong
	}
	switch spec.Kind {
	case Equals:
		c.find = spec.texts()
	case Contains:
		if i := slices.IndexFunc(spec.Texts, func(text string) bool { return trim(text) == "" }); i >= 0 {
			wrong = &Error{Field: fmt.Sprintf("contains[%d]", i), Message: "every answer contains the empty text",
				Hint: "write a text that a wrong answer does not have, or matches: \\S for any text"}
		}
		c.find = spec.texts()
	case Matches:
		c.find, wrong = spec.patterns()
	case Schema:
		c.find, wrong = spec.schema()
	case Rouge1:
		c.find = spec.rouge()
	case Expr:
		c.find, wrong = spec.expression()
	case Calls:
		c.find, wrong = spec.calls()
	case Stop:
		c.find, wrong = spec.stop()
	case Max:
		c.find, wrong = spec.max()
	case Completed:
		c.find = checkCompleted
	case Rubric:
		if i := slices.IndexFunc(spec.Texts, func(text string) bool { return trim(text) == "" }); i >= 0 || len(spec.Texts) == 0 {
			wrong = &Error{Field: fmt.Sprintf("rubric[%d]", max(i, 0)), Message: "rubric needs statements that are true of a good answer",
				Hint: "write rubric: [The answer names the price.]"}
		}
		c.find = spec.rubric()
	case Agrees:
		c.find = spec.agrees()
	case Pairwise:
		c.find = spec.pairwise()
	case Unsupported:
		c.find = func(context.Context, *Subject) finding { return finding{none: true, reason: spec.Text} }
	default:
		wrong = unknown("kind", "check", string(spec.Kind), names(Kinds))
	}
	if wrong != nil {
		return nil, wrong
	}
	return c, nil
}

func names[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

// unknown is the error of a word that is none of several.
func unknown(field, what, word string, known []string) *Error {
	return &Error{Field: field, Message: fmt.Sprintf("there is no %s %q", what, word), Hint: suggest.Hint(word, known)}
}

// common checks the fields of all kinds.
func (s Spec) common() *Error {
	switch {
	case math.IsNaN(s.Min) || s.Min < 0 || s.Min > 1:
		return &Error{Field: "min", Message: fmt.Sprintf("min must be above 0 and at most 1, got %v", s.Min),
			Hint: "a check without a least value is informational: true"}
	case !(s.Weight >= 0 && s.Weight <= MaxWeight):
		return &Error{Field: "weight", Message: fmt.Sprintf("weight must be above 0 and at most %d, got %v", int64(MaxWeight), s.Weight)}
	case s.Of != "" && slices.Contains([]Kind{Calls, Stop, Max, Completed}, s.Kind):
		return &Error{Field: "of", Message: fmt.Sprintf("%s does not read the answer, so no value of the state can take its place", s.Kind),
			Hint: "leave of out, or write expr for what the state has"}
	case s.Samples < 0 || s.Samples > MaxSamples:
		return &Error{Field: "samples", Message: fmt.Sprintf("samples must be from 1 to %d, got %d", MaxSamples, s.Samples)}
	case s.Kind == Pairwise && (s.Not || s.Min != 0):
		return &Error{Field: "pairwise", Message: "pairwise passes or fails no case, so that min and not have no meaning",
			Hint: "leave them out, and write decide: pairwise"}
	case slices.Contains(Measures, s.Name):
		return &Error{Field: "name", Message: fmt.Sprintf("a check cannot have the name %q, which versions are compared by", s.Name)}
	}
	return nil
}

// Spec returns the spec from which the check was compiled.
func (c *Check) Spec() Spec { return c.spec }

// Run runs the check. A check that cannot be evaluated for want of a reference has neither a value nor a verdict; one
// that fails to run, such as an expression that reads a missing key, has failed.
func (c *Check) Run(ctx context.Context, s *Subject) Result {
	r := Result{Name: c.spec.Label(), Min: c.spec.least(), Informational: c.spec.Informational || c.spec.Kind == Pairwise, Weight: c.spec.Weight}
	f := c.find(ctx, s)
	r.Reason, r.Turns, r.Votes, r.Split = f.reason, f.turns, f.votes, f.split
	if f.none {
		return r
	}
	v := f.value
	switch {
	case c.spec.Not && r.Turns != nil:
		v = invert(r.Turns, len(s.Turns))
	case c.spec.Not:
		v = 1 - v
	}
	if f.broken {
		v = 0
	}
	r.Value, r.Passed = &v, new(!f.broken && r.Reached(v))
	return r
}

// invert makes each value 1 minus itself, except for the turns that are missing, which have 0 anyway, and returns their mean.
func invert(turns []*float64, present int) float64 {
	sum, n := 0.0, 0.0
	for i, v := range turns {
		if v == nil {
			continue
		}
		if n++; i < present {
			*v = 1 - *v
			sum += *v
		}
	}
	return sum / n
}

func broken(format string, args ...any) finding {
	return finding{broken: true, reason: fmt.Sprintf(format, args...)}
}

// answers have nothing in common. An expression that matches each of them matches a part of any answer: the empty part.
var answers = []string{"", "\uE000", "a 1.\n\nB"}

func (s Spec) patterns() (func(context.Context, *Subject) finding, *Error) {
	if len(s.Texts) == 0 {
		return nil, &Error{Field: "matches", Message: "matches needs a regular expression"}
	}
	all := make([]*regexp.Regexp, len(s.Texts))
	for i, text := range s.Texts {
		re, err := regexp.Compile(text)
		if err != nil {
			e := &Error{Field: fmt.Sprintf("matches[%d]", i), Message: "the regular expression cannot be read: " + err.Error(), Err: err}
			if of, ok := errors.AsType[*syntax.Error](err); ok {
				e.Message = fmt.Sprintf("the regular expression cannot be read: %s: %s", of.Code, of.Expr)
				if of.Code == syntax.ErrInvalidPerlOp {
					e.Hint = "RE2 has no lookaround: write two checks, one of them with not: true"
				}
			}
			return nil, e
		}
		if !slices.ContainsFunc(answers, func(answer string) bool { return !re.MatchString(answer) }) {
			return nil, &Error{Field: fmt.Sprintf("matches[%d]", i), Message: fmt.Sprintf("%s matches every answer, also the empty one", quote(text)),
				Hint: "write + in place of *, or begin the expression with ^ and end it with $"}
		}
		all[i] = re
	}
	return s.share("matches", func(i int, answer string) bool { return all[i].MatchString(answer) }), nil
}

func (s Spec) schema() (func(context.Context, *Subject) finding, *Error) {
	if s.Schema == nil {
		return nil, &Error{Field: "schema", Message: "schema needs a JSON Schema"}
	}
	data, err := json.Marshal(s.Schema)
	of := new(jsonschema.Schema)
	if err == nil {
		err = json.Unmarshal(data, of)
	}
	var shape *functiontool.Shape
	var resolved *jsonschema.Resolved
	if err == nil {
		if shape, err = functiontool.NewShape(of); err == nil {
			resolved, err = of.Resolve(nil)
		}
	}
	if err != nil {
		return nil, &Error{Field: "schema", Message: "this is not a JSON Schema that can be used: " + err.Error(), Err: err}
	}
	return func(_ context.Context, subject *Subject) finding {
		v, f := s.value(subject)
		if f != nil {
			return *f
		}
		if text, ok := v.(string); ok && s.Of == "" {
			if err := json.Unmarshal([]byte(Unfence(text)), &v); err != nil {
				return finding{reason: fmt.Sprintf("%s is not JSON: %v", quote(text), err)}
			}
		}
		v = plain(v)
		if err := resolved.Validate(v); err != nil {
			// The shape has better words, but removes null where a property may be missing.
			return finding{reason: cmp.Or(strings.Join(shape.Check(v), "; "), "a property is null, and its schema has no null")}
		}
		return finding{value: 1, reason: "fits the schema"}
	}, nil
}

// Unfence returns a text without space around it, and without the code fence around all of it.
func Unfence(text string) string {
	text = strings.TrimSpace(text)
	if body, ok := strings.CutPrefix(text, "```"); ok {
		if body, ok = strings.CutSuffix(body, "```"); ok {
			language, rest, _ := strings.Cut(body, "\n")
			if language = strings.TrimSpace(language); language == "" || strings.EqualFold(language, "json") {
				return strings.TrimSpace(rest)
			}
		}
	}
	return text
}

// plain returns a copy of a value as JSON has it, with numbers as float64.
func plain(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	var out any
	_ = json.Unmarshal(data, &out) // of what was just written
	return out
}

func (s Spec) stop() (func(context.Context, *Subject) finding, *Error) {
	if len(s.Reasons) == 0 {
		return nil, &Error{Field: "stop", Message: "stop needs at least one reason", Hint: "there are " + strings.Join(names(stopReasons), ", ")}
	}
	for i, r := range s.Reasons {
		if !slices.Contains(stopReasons, loop.StopReason(r)) {
			return nil, unknown(fmt.Sprintf("stop[%d]", i), "stop reason", r, names(stopReasons))
		}
	}
	return func(_ context.Context, subject *Subject) finding {
		switch {
		case subject.short():
			return broken("%s", ended)
		case subject.Stop == "":
			return broken("no loop stopped: the agents have none")
		case slices.Contains(s.Reasons, string(subject.Stop)):
			return finding{value: 1, reason: "stopped because of " + string(subject.Stop)}
		}
		return finding{reason: fmt.Sprintf("stopped because of %s, not of %s", subject.Stop, strings.Join(s.Reasons, " or "))}
	}, nil
}

func checkCompleted(_ context.Context, s *Subject) finding {
	switch {
	case s.short():
		return broken("%s", ended)
	case s.Stop.Failed():
		return finding{reason: "the loop stopped because of an error"}
	}
	return finding{value: 1, reason: "completed"}
}
