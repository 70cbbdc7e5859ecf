// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/expr/cel"
)

// What makes a value larger is refused before it is made: each of these would be
// larger than the limit, many by so much that no machine has the memory.
// F11, T33
func TestLargeValuesAreNotMade(t *testing.T) {
	state := map[string]any{
		"third": strings.Repeat("x", cel.MaxValue*2/5), "many": strings.Repeat("a", 100_000),
		"bytes": []byte(strings.Repeat("x", cel.MaxValue*2/5)), "items": make([]any, 600_000),
	}
	// A list of a list of a list…, which is small as long as its parts are shared.
	tree := "[1]" + strings.Repeat(".map(a, [a, a, a, a])", 20)
	for _, src := range []string{
		`state.third + state.third + state.third`,
		`size(state.third + state.third + state.third) > 0`,
		`size(state.items + state.items) > 0`,
		`dyn(state.third) + state.third + dyn(state.third)`,
		`state.bytes + state.bytes + state.bytes`,
		`state.items + state.items`,
		`state.many.replace("a", state.many)`,
		`state.many.replace("a", state.many, 1000)`,
		`state.many.replace("", state.many)`,
		`lists.range(1000).map(i, state.many).join()`,
		`lists.range(1000).map(i, state.many).join("-")`,
		`["", "", ""].map(i, "").join(state.third)+ state.third`,
		`"%s%s%s".format([state.third, state.third, state.third])`,
		tree,
		`[state.third, state.third, state.third]`,
		`{"a": state.third, "b": state.third, "c": state.third}`,
	} {
		p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
		if err != nil {
			t.Errorf("%.60s: %v", src, err)
			continue
		}
		v, err := expr.Eval(p, map[string]any{"state": state})
		if err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") || !strings.Contains(err.Error(), "keep less in the state") {
			t.Errorf("%.60s: %T, %v", src, v, err)
		}
	}
}

// What is repeated is bounded besides: many values of a legal size are work.
func TestRepeatedCopiesAreWork(t *testing.T) {
	// A list of a list of a list…, which is small as long as its parts are shared.
	tree := "[1]" + strings.Repeat(".map(a, [a, a, a, a])", 20)
	quoted := "state.quotes"
	for range 30 {
		quoted = "strings.quote(" + quoted + ")"
	}
	state := map[string]any{"quotes": strings.Repeat(`"`, 1000), "x": strings.Repeat("x", 1<<20), "json": "[" + strings.Repeat("1,", 1<<17) + "1]"}
	for _, src := range []string{
		`lists.range(10000).map(i, state.x + string(i)).size() > 0`,
		`lists.range(10000).map(i, bytes(state.x)).size() > 0`,
		`lists.range(10000).map(i, json(state.json)).size() > 0`,
		`lists.range(10000).all(i, !says(state.x, "x"))`,
		quoted,
		`"%s".format([` + tree + `])`,
		tree + ".flatten(40)",
	} {
		p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		_, err = expr.Eval(p, map[string]any{"state": state})
		if err == nil || !strings.Contains(err.Error(), "exceeds the limit of") || !strings.Contains(err.Error(), "make it read less") {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// The functions that are looked at do what they did.
func TestBoundedFunctionsDoTheirWork(t *testing.T) {
	state := map[string]any{"x": "a-b-a", "list": []any{"a", "b"}, "n": 2, "large": strings.Repeat("x", 1<<20)}
	for src, want := range map[string]any{
		`state.x.replace("a", "cc")`:                            "cc-b-cc",
		`state.x.replace("a", "cc", 1)`:                         "cc-b-a",
		`state.x.replace("a", "cc", -1)`:                        "cc-b-cc",
		`"ab".replace("", "-")`:                                 "-a-b-",
		`state.list.join()`:                                     "ab",
		`["a", "b"].join(", ")`:                                 "a, b",
		`"%s is %d of %.2f".format([state.x, state.n, 1.0])`:    "a-b-a is 2 of 1.00",
		`strings.quote("a\"b")`:                                 `"a\"b"`,
		`size(lists.range(state.n))`:                            int64(2),
		`size([[1], [2, [3]]].flatten())`:                       int64(3),
		`size([[1], [2, [3]]].flatten(state.n))`:                int64(3),
		`size(state.large + state.large + state.large)`:         int64(3 << 20),
		`size(lists.range(10000).map(i, {"number": i}))`:        int64(10000),
		`(state.large + state.large).size() > 0 && state.n > 1`: true,
	} {
		p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := expr.Eval(p, map[string]any{"state": state}); err != nil || got != want {
			t.Errorf("%s = %v, %v, want %v", src, got, err, want)
		}
	}
	// A text of all that is allowed is.
	p, err := expr.Compile("state.x + state.x", expr.Var{Name: "state", Type: expr.Map})
	if err != nil {
		t.Fatal(err)
	}
	for n, ok := range map[int]bool{cel.MaxValue / 2: true, cel.MaxValue/2 + 1: false} {
		if _, err := expr.Eval(p, map[string]any{"state": map[string]any{"x": strings.Repeat("x", n)}}); (err == nil) != ok {
			t.Errorf("twice %d: %v", n, err)
		}
	}
	for _, src := range []string{`state.list.replace("a", "b")`, `[1, 2].join("")`, `state.n.join()`} {
		if p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map}); err == nil {
			if v, err := expr.Eval(p, map[string]any{"state": state}); err == nil {
				t.Errorf("%s = %v", src, v)
			}
		}
	}
}
