// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// run is a case with two turns and what a run of it left.
func run() *check.Subject {
	return &check.Subject{
		Case: check.Case{ID: "vat", Group: "tax", Tags: []string{"x"}, Values: map[string]any{"topic": "cats"}, Turns: []check.Turn{
			{Input: "first", Expected: new("The flight is booked"), Calls: []check.Call{{Name: "search", Args: map[string]any{"n": 1, "q": "x"}}}},
			{Input: "second", Expected: new("done"), Calls: []check.Call{}},
		}},
		Turns: []check.Outcome{
			{Answer: "the flights were booked", Calls: []check.Call{{Name: "search", Args: map[string]any{"q": "x", "n": 1.0}}}},
			{Answer: " Done: cafe\u0301 \n```json\n{\"a\": 1}\n```", Calls: []check.Call{{Name: "exit_loop"}}},
		},
		State: map[string]any{"draft": "done", "list": []any{"a", int64(1)}, "n": 3},
		Stop:  loop.ReasonTarget, Score: new(8.5), Iterations: 3, Time: 90 * time.Second,
		Usage:  loop.Usage{Calls: 4, InputTokens: 1000, OutputTokens: 50, Cost: new(0.25)},
		Errors: []string{"step critic failed"},
		Events: func() []any { return []any{map[string]any{"author": "writer"}} },
	}
}

func TestChecks(t *testing.T) {
	schema := map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}, "required": []any{"a"}}
	least := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		spec   check.Spec
		value  float64 // -1 is not evaluated
		passed bool
		reason string
	}{
		{check.Spec{Kind: check.Equals, Texts: []string{"x", "done"}, Of: "draft"}, 1, true, `equals "done"`},
		{check.Spec{Kind: check.Equals, Texts: []string{"x", "y"}, Of: "draft"}, 0, false, `"done" is not "x" or "y"`},
		{check.Spec{Kind: check.Equals, Texts: []string{`["a",1]`}, Of: "list"}, 1, true, ""},
		{check.Spec{Kind: check.Equals, Of: "draft"}, 1, true, ""},
		{check.Spec{Kind: check.Equals}, 0, false, `turn 1: "the flights were booked" is not "The flight is booked"`},
		{check.Spec{Kind: check.Equals, Texts: []string{"x"}, Of: "none"}, 0, false, `the state has no key "none"`},
		{check.Spec{Kind: check.Equals, Texts: []string{"x"}, Of: "none", Not: true}, 0, false, `the state has no key "none"`},
		{check.Spec{Kind: check.Contains, Texts: []string{"caf\u00e9", " Done "}}, 1, true, `contains "café" and "Done"`},
		{check.Spec{Kind: check.Contains, Texts: []string{"café", "tea"}}, 0.5, false, `has no "tea"`},
		{check.Spec{Kind: check.Contains, Texts: []string{"café", "tea"}, Min: 0.5}, 0.5, true, ""},
		{check.Spec{Kind: check.Contains, Texts: []string{"sorry"}, Not: true}, 1, true, ""},
		{check.Spec{Kind: check.Matches, Texts: []string{`^Done: \w+`, `(?i)CAF`}}, 1, true, "matches"},
		{check.Spec{Kind: check.Matches, Texts: []string{`^\d`}}, 0, false, `does not match "^\d"`},
		{check.Spec{Kind: check.Schema, Schema: schema}, 0, false, "is not JSON: invalid character 'D'"},
		{check.Spec{Kind: check.Schema, Schema: map[string]any{"type": "array"}}, 0, false, ""},
		{check.Spec{Kind: check.Schema, Schema: map[string]any{"type": "array"}, Of: "list"}, 1, true, ""},
		{check.Spec{Kind: check.Schema, Schema: map[string]any{"type": "string"}, Of: "draft"}, 1, true, ""},
		{check.Spec{Kind: check.Schema, Schema: false}, 0, false, ""},
		{check.Spec{Kind: check.Rouge1}, (0.75 + 1.0/3) / 2, false, `turn 2: ROUGE-1 is 0.3333 with "done"`},
		{check.Spec{Kind: check.Rouge1, Min: 0.5}, (0.75 + 1.0/3) / 2, true, ""},
		{check.Spec{Kind: check.Calls}, 0.5, false, "turn 2: unexpected call exit_loop()"},
		{check.Spec{Kind: check.Calls, Ignore: []string{"exit_loop"}}, 1, true, "the calls are as expected"},
		{check.Spec{Kind: check.Calls, Order: check.InOrder}, 1, true, ""},
		{check.Spec{Kind: check.Expr, Expr: "score >= 8"}, 1, true, "score >= 8: 8.5 >= 8 is true"},
		{check.Spec{Kind: check.Expr, Expr: "score / 10.0", Min: 0.8}, 0.85, true, "score / 10.0 is 0.85"},
		{check.Spec{Kind: check.Expr, Expr: "iterations"}, 0, false, "not a number from 0 to 1: divide it by its largest value"},
		{check.Spec{Kind: check.Expr, Expr: "state.missing == 1"}, 0, false, "the expression fails"},
		{check.Spec{Kind: check.Expr, Expr: "!(state.missing == 1)", Not: true}, 0, false, "the expression fails"},
		{check.Spec{Kind: check.Expr, Expr: "state.draft", Not: true}, 0, false, `the expression gives done`},
		{check.Spec{Kind: check.Expr, Expr: `answer.contains("Done") && state.draft == "done" && case.id == "vat" && case.group == "tax" && case.set.topic == "cats" &&
			case.turns.size() == 2 && case.expected == "done" && turn.input == "second" && turn.expected == "done" && calls.size() == 2 && calls[0].name == "search" &&
			calls[0].args.n == 1 && stop == "target_reached" && iterations == 3 && usage.tokens == 1050 && usage.calls == 4 && cost < 0.3 && seconds == 90.0 &&
			errors.size() == 1 && events[0].author == "writer" && "x" in case.tags`}, 1, true, ""},
		{check.Spec{Kind: check.Expr, Expr: "answer == 3", Of: "n"}, 1, true, ""},
		{check.Spec{Kind: check.Stop, Reasons: []string{"condition", "target_reached"}}, 1, true, "stopped because of target_reached"},
		{check.Spec{Kind: check.Stop, Reasons: []string{"condition"}}, 0, false, "stopped because of target_reached, not of condition"},
		{check.Spec{Kind: check.Max, Max: &check.Limits{Cost: new(0.25), Seconds: new(90.0), Tokens: least(1050), Calls: least(4), Iterations: least(3)}}, 1, true, "cost 0.25 of at most 0.25"},
		{check.Spec{Kind: check.Max, Max: &check.Limits{Cost: new(0.2), Tokens: least(1049), Calls: least(9)}}, 0, false, "cost 0.25 is more than 0.20; tokens 1,050 is more than 1,049"},
		{check.Spec{Kind: check.Completed}, 1, true, "completed"},
		{check.Spec{Kind: check.Unsupported, Text: "no judge"}, -1, false, "no judge"},
	} {
		c, err := check.Compile(tt.spec)
		if err != nil {
			t.Errorf("%+v: %v", tt.spec, err)
			continue
		}
		r := c.Run(t.Context(), run())
		switch {
		case tt.value < 0:
			if r.Value != nil || r.Passed != nil {
				t.Errorf("%+v was evaluated: %v", tt.spec, *r.Value)
			}
		case r.Value == nil || math.Abs(*r.Value-tt.value) > 1e-9 || *r.Passed != tt.passed:
			t.Errorf("%+v: %s", tt.spec, shown(r))
		}
		if !strings.Contains(r.Reason, tt.reason) || r.Reason == "" || r.Name != tt.spec.Label() {
			t.Errorf("%+v: name %q, reason %q, want %q", tt.spec, r.Name, r.Reason, tt.reason)
		}
	}
}

func shown(r check.Result) string {
	if r.Value == nil {
		return "not evaluated: " + r.Reason
	}
	return fmt.Sprintf("%s %t: %s", brief.Score(*r.Value), *r.Passed, r.Reason)
}

// A conversation that ended early fails the checks of its last answer, also those with not, and its missing turns count.
func TestMissingTurnFails(t *testing.T) {
	for spec, want := range map[*check.Spec]string{
		{Kind: check.Contains, Texts: []string{"sorry"}, Not: true}: "0 false: the conversation ended before its last turn",
		{Kind: check.Completed}:                                 "0 false: the conversation ended before its last turn",
		{Kind: check.Stop, Reasons: []string{"target_reached"}}: "0 false: the conversation ended before its last turn",
		{Kind: check.Rouge1, Min: 0.3}:                          "0.375 true: turn 2: is missing",
		{Kind: check.Rouge1, Not: true}:                         "0.125 false: turn 2: is missing",
		{Kind: check.Equals, Not: true, Min: 0.5}:               `0.5 true: turn 1: "the flights were booked" is not "The flight is booked"`,
		{Kind: check.Calls, Min: 0.6}:                           "0.5 false: turn 2: is missing",
	} {
		c, err := check.Compile(*spec)
		if err != nil {
			t.Fatal(err)
		}
		s := run()
		s.Turns = s.Turns[:1]
		if got := shown(c.Run(t.Context(), s)); got != want {
			t.Errorf("%+v: %s, want %s", spec, got, want)
		}
	}
}

// What a case does not have is not evaluated.
func TestNotEvaluated(t *testing.T) {
	for _, spec := range []check.Spec{{Kind: check.Rouge1}, {Kind: check.Equals}, {Kind: check.Contains, Not: true}, {Kind: check.Calls}} {
		c, err := check.Compile(spec)
		if err != nil {
			t.Fatal(err)
		}
		s := &check.Subject{Case: check.Case{Turns: []check.Turn{{Input: "a"}}}, Turns: []check.Outcome{{Answer: "b"}}}
		if r := c.Run(t.Context(), s); r.Value != nil || r.Passed != nil || r.Reason == "" {
			t.Errorf("%+v: %s", spec, shown(r))
		}
	}
	failed := &check.Subject{Turns: []check.Outcome{{}}, Stop: loop.ReasonError}
	c, err := check.Compile(check.Spec{Kind: check.Completed})
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(c.Run(t.Context(), failed)); got != "0 false: the loop stopped because of an error" {
		t.Error(got)
	}
}

// If the cost is unknown, a limit of the cost fails, with "not" too.
func TestUnknownCostIsNotWithinALimit(t *testing.T) {
	s := run()
	s.Usage.Cost = nil
	for _, not := range []bool{false, true} {
		c, err := check.Compile(check.Spec{Kind: check.Max, Max: &check.Limits{Cost: new(1.0), Tokens: new(int64(5000))}, Not: not})
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(c.Run(t.Context(), s)); got != "0 false: cost is unknown: a model has no price" {
			t.Error(got)
		}
	}
	s.Usage = loop.Usage{}
	c, err := check.Compile(check.Spec{Kind: check.Max, Max: &check.Limits{Cost: new(1.0)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(c.Run(t.Context(), s)); got != "1 true: cost of no model call" {
		t.Error(got)
	}
}

// The three orders of ADK's TrajectoryEvaluator.
func TestOrdersOfCalls(t *testing.T) {
	calls := func(names string) (all []check.Call) {
		all = []check.Call{}
		for name := range strings.FieldsSeq(names) {
			name, arg, _ := strings.Cut(name, ":")
			c := check.Call{Name: name}
			if arg != "" {
				c.Args = map[string]any{"a": arg}
			}
			all = append(all, c)
		}
		return all
	}
	for _, tt := range []struct {
		want, got               string
		exact, inOrder, anyWise bool
	}{
		{"a b", "a b", true, true, true},
		{"a b", "a c b", false, true, true},
		{"a b", "b a", false, false, true},
		{"a a", "a", false, false, false},
		{"a", "a a", false, true, true},
		{"", "", true, true, true},
		{"", "a", false, true, true},
		{"a", "", false, false, false},
		{"a:1", "a:2", false, false, false},
		{"a:1 b", "a:2 a:1 b", false, true, true},
		{"b a:1", "a:1 b", false, false, true},
	} {
		for order, want := range map[check.Order]bool{check.Exact: tt.exact, check.InOrder: tt.inOrder, check.AnyOrder: tt.anyWise} {
			c, err := check.Compile(check.Spec{Kind: check.Calls, Order: order})
			if err != nil {
				t.Fatal(err)
			}
			r := c.Run(t.Context(), &check.Subject{Case: check.Case{Turns: []check.Turn{{Calls: calls(tt.want)}}}, Turns: []check.Outcome{{Calls: calls(tt.got)}}})
			if *r.Passed != want {
				t.Errorf("%s of %q for %q: %s", order, tt.got, tt.want, shown(r))
			}
		}
	}
	c, err := check.Compile(check.Spec{Kind: check.Calls, IgnoreArgs: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Run(t.Context(), &check.Subject{Case: check.Case{Turns: []check.Turn{{Calls: calls("a:1")}}}, Turns: []check.Outcome{{Calls: calls("a:2")}}}); !*r.Passed {
		t.Error(shown(r))
	}
}

// Numbers of arguments are compared by value, however they were stored.
func TestNumbersOfArguments(t *testing.T) {
	c, err := check.Compile(check.Spec{Kind: check.Calls})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		a, b any
		same bool
	}{
		{1, 1.0, true}, {int64(1 << 53), float64(1 << 53), true}, {int64(1<<53 + 1), int64(1 << 53), false}, {1, "1", false}, {true, 1, false},
		{[]any{1, map[string]any{"a": nil}}, []any{1.0, map[string]any{"a": nil}}, true}, {[]any{1}, []any{1, 2}, false}, {nil, 0, false},
		{map[string]any{"a": 1}, map[string]any{"b": 1}, false}, {0.1, "0.1", false}, {1e2, 100, true},
		{json.Number("99999999999999999999"), 1e20, false}, {json.Number("1e20"), 1e20, true}, {json.Number("-1.50"), -1.5, true},
		{json.Number("0.00"), json.Number("-0"), true}, {json.Number("1200e-2"), 12, true}, {json.Number("0.012E+3"), 12, true},
		{json.Number("-1"), 1, false}, {json.Number("1e99999999999999999999"), 1, false}, {json.Number("1e400"), json.Number("10e399"), true},
	} {
		call := func(v any) []check.Call { return []check.Call{{Name: "f", Args: map[string]any{"v": v}}} }
		r := c.Run(t.Context(), &check.Subject{Case: check.Case{Turns: []check.Turn{{Calls: call(tt.a)}}}, Turns: []check.Outcome{{Calls: call(tt.b)}}})
		if *r.Passed != tt.same {
			t.Errorf("%v and %v: %s", tt.a, tt.b, shown(r))
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct {
		spec  check.Spec
		field string
		hint  string
	}{
		{check.Spec{Kind: "rogue1"}, "kind", `did you mean "rouge1"?`},
		{check.Spec{}, "kind", "there are equals"},
		{check.Spec{Kind: check.Rouge1, Min: 1.5}, "min", "informational: true"},
		{check.Spec{Kind: check.Rouge1, Weight: -1}, "weight", ""},
		{check.Spec{Kind: check.Contains, Texts: []string{""}}, "contains[0]", "matches: \\S"},
		{check.Spec{Kind: check.Contains, Texts: []string{"a", " "}, Not: true}, "contains[1]", ""},
		{check.Spec{Kind: check.Matches, Texts: []string{""}}, "matches[0]", ""},
		{check.Spec{Kind: check.Matches, Texts: []string{"a", "x*"}}, "matches[1]", "write + in place of *"},
		{check.Spec{Kind: check.Matches, Texts: []string{"(?s)^.*$"}}, "matches[0]", ""},
		{check.Spec{Kind: check.Max, Max: &check.Limits{Cost: new(1.0)}, Of: "k"}, "of", "expr"},
		{check.Spec{Kind: check.Completed, Of: "k"}, "of", ""},
		{check.Spec{Kind: check.Rouge1, Weight: math.Inf(1)}, "weight", ""},
		{check.Spec{Kind: check.Rouge1, Weight: 1e308}, "weight", ""},
		{check.Spec{Kind: check.Rouge1, Weight: math.NaN()}, "weight", ""},
		{check.Spec{Kind: check.Rouge1, Name: "score"}, "name", ""},
		{check.Spec{Kind: check.Matches}, "matches", ""},
		{check.Spec{Kind: check.Matches, Texts: []string{"a", "("}}, "matches[1]", ""},
		{check.Spec{Kind: check.Schema}, "schema", ""},
		{check.Spec{Kind: check.Schema, Schema: map[string]any{"$ref": "http://127.0.0.1/x.json"}}, "schema", ""},
		{check.Spec{Kind: check.Expr, Expr: "anser == 'a'"}, "expr", `did you mean "answer"?`},
		{check.Spec{Kind: check.Expr}, "expr", ""},
		{check.Spec{Kind: check.Calls, Order: "any"}, "calls", "any_order"},
		{check.Spec{Kind: check.Stop}, "stop", "there are exit_loop"},
		{check.Spec{Kind: check.Stop, Reasons: []string{"target_reached", "timout"}}, "stop[1]", `did you mean "timeout"?`},
		{check.Spec{Kind: check.Max}, "max", "there are cost, seconds"},
		{check.Spec{Kind: check.Max, Max: &check.Limits{Cost: new(math.NaN())}}, "max.cost", ""},
	} {
		_, err := check.Compile(tt.spec)
		e, ok := errors.AsType[*check.Error](err)
		if !ok || e.Field != tt.field || !strings.Contains(e.Hint, tt.hint) || e.Message == "" {
			t.Errorf("%+v: %#v", tt.spec, e)
		}
	}
}

// Expressions that some answer does not match are no mistakes.
func TestExpressionsThatMatchTheEmptyAnswer(t *testing.T) {
	for _, text := range []string{"^$", "^x*$", "^(yes|no)?$", `^\s*$`, ".+", `\S`} {
		if _, err := check.Compile(check.Spec{Kind: check.Matches, Texts: []string{text}}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A program reads an answer as it is: words around the JSON break it, and a null is a value.
func TestSchemaIsStrict(t *testing.T) {
	c, err := check.Compile(check.Spec{Kind: check.Schema, Schema: map[string]any{"type": "object", "required": []any{"a"},
		"properties": map[string]any{"a": map[string]any{"type": "integer"}, "b": map[string]any{"type": "string"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[string]string{
		` {"a": 1} `:                            "1 true: fits the schema",
		"```json\n{\"a\": 1, \"b\": \"\"}\n```": "1 true: fits the schema",
		"```\n{\"a\": 1}```":                    "1 true: fits the schema",
		"Here it is: {\"a\": 1}":                "is not JSON: invalid character 'H'",
		`{"a": 1} Done.`:                        "is not JSON: invalid character 'D' after top-level value",
		"Done:\n```json\n{\"a\": 1}\n```":       "is not JSON",
		"```python\n{\"a\": 1}\n```":            "is not JSON",
		"```json":                               "is not JSON",
		"":                                      "is not JSON",
		`{"a": 1, "b": null}`:                   "0 false: a property is null, and its schema has no null",
		`{"a": "1"}`:                            "0 false: a: expected an integer",
		`{}`:                                    "0 false: a: is missing",
	} {
		s := run()
		s.Turns[1].Answer = answer
		if got := shown(c.Run(t.Context(), s)); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}

// An expression cannot work for ever.
func TestExpressionIsLimited(t *testing.T) {
	list := strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(a, ", 8) + "true" + strings.Repeat(")", 8)
	c, err := check.Compile(check.Spec{Kind: check.Expr, Expr: list})
	if err != nil {
		return // refused at once
	}
	if r := c.Run(t.Context(), run()); *r.Passed || !strings.Contains(r.Reason, "cost") {
		t.Error(shown(r))
	}
}

func TestCombine(t *testing.T) {
	result := func(v float64, passed bool, weight float64) check.Result {
		return check.Result{Value: &v, Passed: &passed, Weight: weight}
	}
	info := result(0, false, 1)
	info.Informational = true
	for _, tt := range []struct {
		results []check.Result
		pass    check.Pass
		passed  bool
		score   float64
		none    bool
	}{
		{[]check.Result{result(1, true, 0), result(0.9, true, 0)}, check.Pass{}, true, 0.95, false},
		{[]check.Result{result(1, true, 0), result(0.9, false, 0)}, check.Pass{}, false, 0.95, false},
		{[]check.Result{result(1, true, 3), result(0, false, 1)}, check.Pass{Score: 0.75}, true, 0.75, false},
		{[]check.Result{result(1, true, 3), info, {}}, check.Pass{}, true, 1, false},
		{[]check.Result{info, {}}, check.Pass{}, false, 0, true},
		{[]check.Result{result(0.1, true, 0), result(0.2, true, 0), result(0.3, true, 0)}, check.Pass{Score: 0.2}, true, 0.2, false},
		{nil, check.Pass{Score: 0.5}, false, 0, true},
	} {
		g := check.Combine(tt.results, tt.pass)
		switch {
		case tt.none:
			if g.Passed != nil || g.Score != nil {
				t.Errorf("%+v: %v", tt, *g.Score)
			}
		case g.Passed == nil || *g.Passed != tt.passed || math.Abs(*g.Score-tt.score) > 1e-9:
			t.Errorf("%+v: %v %v", tt, g.Passed, g.Score)
		}
	}
}
