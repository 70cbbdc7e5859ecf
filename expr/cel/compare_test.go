// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/expr"
	_ "github.com/refrain-dev/refrain/expr/cel"
)

var compareVals = expr.Values{
	"state": map[string]any{
		"score": 7.5, "failed": 2, "verdict": "draft", "big": int64(1 << 60), "lines": []any{"a", "b"}, "i": 1, "gone": nil,
	},
	"score": 9.0, "scores": []float64{1, 2}, "iteration": 3,
}

// A condition says what it compared, with the values of both sides.
func TestConditionSaysWhatItCompared(t *testing.T) {
	type said struct {
		Holds       bool
		Op          string
		Left, Right any
	}
	for src, want := range map[string]said{
		"state.score >= 8.0":                       {false, ">=", 7.5, 8.0},
		"state.failed + 1 > 2":                     {true, ">", int64(3), int64(2)},
		"1 <= state.failed":                        {true, "<=", int64(1), int64(2)},
		"iteration < 3":                            {false, "<", int64(3), int64(3)},
		`state.verdict == "approved"`:              {false, "==", "draft", "approved"},
		"state.gone != null":                       {false, "!=", nil, nil},
		"has(state.score) == (score > 8)":          {true, "==", true, true},
		"state.lines[state.i] == 'b'":              {true, "==", "b", "b"},
		"state.lines == ['a']":                     {false, "==", []any{"a", "b"}, []any{"a"}},
		"(score > 1 ? scores : [9.0]).size() >= 2": {true, ">=", int64(2), int64(2)},
		"state.score >= 8.0 || iteration > 2":      {Holds: true},
		"!(state.score >= 8.0)":                    {Holds: true},
		"state.lines.exists(l, l == 'a')":          {Holds: true},
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		v, err := p.Test(compareVals)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if diff := cmp.Diff(want, said{v.Holds, v.Op, v.Left.Value, v.Right.Value}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
}

// A side is a number only if a float64 holds it exactly, so that nobody is shown rounded digits.
func TestSideOfAComparisonIsANumberOrAText(t *testing.T) {
	for src, want := range map[string][2]bool{ // number, text
		"state.score > 1": {true, false}, "state.failed > 1": {true, false}, "state.big > 1": {false, false}, "state.verdict > ''": {false, true},
		"state.lines != []": {false, false}, "score > 1": {true, false}, "double('NaN') != 1.0": {false, false},
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		v, err := p.Test(compareVals)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		_, number := v.Left.Number()
		_, text := v.Left.Text()
		if !v.Holds || number != want[0] || text != want[1] {
			t.Errorf("%s: %+v, a number: %v, a text: %v", src, v, number, text)
		}
	}
}

// What a condition cannot evaluate is an error that names the map and the key, whatever the side.
func TestConditionWithoutAValueIsAnError(t *testing.T) {
	for src, want := range map[string]string{
		"state.missing >= 8":         `state has no key "missing"`,
		"8 <= state.missing":         `state has no key "missing"`,
		"state.verdict >= 8":         "the values do not fit the operation",
		"state.score + state.failed": "gives 9.5, not true or false",
		"elapsed > 1.0":              "no value for elapsed",
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if v, err := p.Test(compareVals); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; want %s", src, v, err, want)
		}
	}
}

func BenchmarkTest(b *testing.B) {
	for _, src := range []string{
		"state.score >= 8.0", "state.score >= 8.0 && state.failed == 0", "state.?score.orValue(0.0) >= 8.0", "scores.size() >= 2 && scores[0] > 8.0",
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Test(compareVals); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := expr.Compile("state.score >= 8.0", vars...); err != nil {
			b.Fatal(err)
		}
	}
}
