// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/expr"
	_ "github.com/refrain-dev/refrain/expr/cel"
)

func Example() {
	p, err := expr.Compile(`state.tests.failed == 0 && state.level + 1 > 2.5`, expr.Var{Name: "state", Type: expr.Map})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := map[string]any{"tests": map[string]any{"failed": 0}, "level": 2}
	fmt.Println(expr.EvalBool(p, map[string]any{"state": state}))

	_, err = expr.Compile(`stat.level > 2`, expr.Var{Name: "state", Type: expr.Map})
	fmt.Println(err)
	// Output:
	// true <nil>
	// 1:1: nothing is called "stat" (did you mean "state"?)
}

var vars = []expr.Var{
	{Name: "state", Type: expr.Map},
	{Name: "score"},
	{Name: "scores", Type: expr.ListDouble},
	{Name: "iteration", Type: expr.Int},
	{Name: "elapsed", Type: expr.Double},
}

type verdict struct {
	Grade int    `json:"grade"`
	Note  string `json:"note"`
}

type named string

func state() map[string]any {
	return map[string]any{
		"i": 7, "f": 7.0, "two": 2, "twof": 2.0, "zero": 0, "zerof": 0.0, "neg": -7,
		"i8": int8(3), "u": uint(9), "u64": uint64(math.MaxUint64), "f32": float32(0.5),
		"n": json.Number("7"), "nf": json.Number("7.5"), "bad": json.Number("x"),
		"text": "Score: 6.8/10", "named": named("yes"), "ok": true, "null": nil,
		"fenced": "Here:\n```json\n{\"score\": 8.5, \"n\": 3}\n```\nthanks",
		"list":   []any{1, 2.5, "x"}, "ints": []int{3, 1, 2}, "strings": []string{"b", "a"},
		"map": map[string]any{"b": 2, "a": 1, "c": 3}, "mapi": map[string]int{"z": 1, "y": 2},
		"intkeys": map[int]string{1: "one"}, "raw": json.RawMessage(`{"a":1}`),
		"struct": verdict{Grade: 4, Note: "fine"}, "ptr": &verdict{Grade: 5}, "nilptr": (*verdict)(nil),
		"at": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "for": 90 * time.Second,
		"func": func() {}, "nan": math.NaN(), "with space": 1,
	}
}

func eval(src string, st map[string]any) (any, error) {
	p, err := expr.Compile(src, vars...)
	if err != nil {
		return nil, err
	}
	return expr.Eval(p, map[string]any{
		"state": st, "score": 8, "scores": []float64{5.2, 6.8}, "iteration": 3, "elapsed": 12,
	})
}

// T14, T21, T26, C28
func TestEval(t *testing.T) {
	for src, want := range map[string]any{
		// numbers mix, whatever Go type they arrived in
		`state.i + 1`:                        int64(8),
		`state.f + 1`:                        8.0,
		`1 + state.i`:                        int64(8),
		`1 + state.f`:                        8.0,
		`1 + 2.5`:                            3.5,
		`state.n + 1`:                        int64(8),
		`state.nf - 1`:                       6.5,
		`state.u + state.i`:                  int64(16),
		`state.u64 > 1`:                      true,
		`state.u64 * 1 > 1.8e19`:             true,
		`state.i8 * state.f32`:               1.5,
		`state.i / state.two * 0.5`:          1.75,
		`state.f / state.twof * 0.5`:         1.75,
		`state.i / state.two`:                3.5,
		`state.i / state.i`:                  int64(1),
		`7 / 2`:                              int64(3),
		`iteration / 2`:                      int64(1),
		`iteration / 2.0`:                    1.5,
		`size(state.list) / 2`:               int64(1),
		`state.i % state.two`:                int64(1),
		`state.f % 2`:                        1.0,
		`state.neg % 2`:                      int64(-1),
		`-state.f`:                           -7.0,
		`5u + state.i`:                       int64(12),
		`state.i > 3`:                        true,
		`state.f > 3`:                        true,
		`state.f == 7`:                       true,
		`state.i == 7.0`:                     true,
		`score >= 8.0 && score == 8`:         true,
		`scores[1] - scores[0] > 1`:          true,
		`elapsed > 10 && elapsed / 2 == 6.0`: true,
		`math.greatest(state.i, 8.5)`:        8.5,
		`state.ints.map(n, n * 1.5)`:         []any{4.5, 1.5, 3.0},
		`state.list[state.twof]`:             "x",
		`state.i in [1, 7]`:                  true,
		`state.f in [1, 7]`:                  true,
		// what else + and - are for
		`"a" + "b"`:                                     "ab",
		`state.text + "!"`:                              "Score: 6.8/10!",
		`[1] + [2]`:                                     []any{int64(1), int64(2)},
		`state.list + ["y"]`:                            []any{int64(1), 2.5, "x", "y"},
		`duration("90s") + duration("30s")`:             "2m0s",
		`state.at + state.for`:                          "2026-01-02T03:05:35Z",
		`state.at - duration("1s") < state.at`:          true,
		`timestamp("2026-01-02T03:04:05Z") == state.at`: true,
		// text
		`number(state.text) > 6.5`:                  true,
		`json(state.fenced).score`:                  8.5,
		`json(state.fenced).n + 0.5`:                3.5,
		`state.named == "yes"`:                      true,
		`state.text.lowerAscii().contains("score")`: true,
		`state.strings.sort()`:                      []any{"a", "b"},
		`state.strings.join("+")`:                   "b+a",
		// presence
		`has(state.i)`:                      true,
		`has(state.gone)`:                   false,
		`has(state.gone) && state.gone > 1`: false,
		`state.?gone.orValue(3)`:            int64(3),
		`state.?i.orValue(3)`:               int64(7),
		`"i" in state`:                      true,
		`state["with space"]`:               int64(1),
		`state["null"] == null`:             true,
		`state.nilptr == null`:              true,
		// structs as JSON, maps in the order of their keys
		`state.struct.grade + 0.5`:                     4.5,
		`state.ptr.grade`:                              int64(5),
		`state.struct`:                                 map[string]any{"grade": int64(4), "note": "fine"},
		`state.raw.a`:                                  int64(1),
		`state.intkeys["1"]`:                           "one",
		`state.map.map(k, k)`:                          []any{"a", "b", "c"},
		`state.mapi.map(k, state.mapi[k])`:             []any{int64(2), int64(1)},
		`state.map.filter(k, state.map[k] > 1).size()`: int64(2),
		`{"a": [1, {"b": null}]}`:                      map[string]any{"a": []any{int64(1), map[string]any{"b": nil}}},
		`type(1)`:                                      "int",
		`b"abc"`:                                       "abc",
		`optional.none()`:                              nil,
		`state.ok ? "yes" : "no"`:                      "yes",
	} {
		got, err := eval(src, state())
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
}

// A stored run gives the same answers as the live one: its numbers come back
// as float64.
func TestEvalAfterJSON(t *testing.T) { // D8, G8
	live := map[string]any{"done": 9, "total": 10, "level": 3, "none": 0, "list": []int{1, 2}}
	b, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(b, &stored); err != nil {
		t.Fatal(err)
	}
	for _, src := range []string{
		`state.done / state.total > 0.8`, `state.level + 1 == 4`, `state.level % 2 == 1`, `state.done / state.none > 1`,
		`state.list[0] / 2 == 0.5`, `state.level / 3 == 1`, `state.level * 2.5 > 7`, `10 / state.level > 3.3`,
		`state.level % state.none == 0`,
	} {
		a, errA := eval(src, live)
		b, errB := eval(src, stored)
		if a != b || fmt.Sprint(errA) != fmt.Sprint(errB) {
			t.Errorf("%s: live %v %v, stored %v %v", src, a, errA, b, errB)
		}
	}
}

func TestEvalErrors(t *testing.T) {
	for src, want := range map[string]string{
		`state.gone > 1`:                      `state has no key "gone"`,
		`state["gone"] > 1`:                   `state has no key "gone"`,
		`state.struct.gone`:                   `state.struct has no key "gone"`,
		`state.map[state.named]`:              `state.map has no key "yes"`,
		`state.raw["b"].c`:                    `state.raw has no key "b"`,
		`state.map.all(k, state.gone[k] > 1)`: `state has no key "gone"`,
		`state.i + "x"`:                       `cannot add int and string`,
		`state.text - 1`:                      `cannot subtract string and int`,
		`state["null"] * 2`:                   `cannot multiply null_type and int`,
		`state.i / 0`:                         `division by zero`,
		`state.f / state.zerof`:               `division by zero`,
		`state.f % state.zero`:                `division by zero`,
		`1 / 0`:                               `division by zero`,
		`number("none")`:                      `no number in the text`,
		`json("none")`:                        `read JSON: no JSON in the text`,
		`state.bad + 1`:                       `not a number: "x"`,
		`state.func == 1`:                     `cannot read a value of type func()`,
		`9223372036854775807 + iteration`:     `integer overflow`,
		`state.text > 3`:                      `the values do not fit the operation`,
	} {
		_, err := eval(src, state())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", src, err, want)
		}
	}
	_, err := eval(`state.gone`, state())
	key, ok := errors.AsType[*expr.KeyError](err)
	if !ok || *key != (expr.KeyError{Path: "state", Key: "gone"}) {
		t.Errorf("error %#v, want a KeyError", err)
	}
	p, err := expr.Compile("score > 1", vars...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := expr.Eval(p, nil); err == nil || err.Error() != "no value for score" {
		t.Errorf("error %v", err)
	}
	p, err = expr.Compile("state.text", vars...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := expr.EvalBool(p, map[string]any{"state": state()}); err == nil || err.Error() != `gives the text "Score: 6.8/10", not true or false` {
		t.Errorf("error %v", err)
	}
}

func TestCompileErrors(t *testing.T) {
	for src, want := range map[string]expr.Errors{
		``:                             {{Line: 1, Column: 1, Msg: "empty expression"}},
		`scoer > 1`:                    {{Line: 1, Column: 1, Msg: `nothing is called "scoer"`, Unknown: "scoer", Suggestion: "score"}},
		"score > 1 &&\n  itration > 2": {{Line: 2, Column: 3, Msg: `nothing is called "itration"`, Unknown: "itration", Suggestion: "iteration"}},
		`qqqqqq > 1`:                   {{Line: 1, Column: 1, Msg: `nothing is called "qqqqqq"`, Unknown: "qqqqqq"}},
		`numbr("1") > stat.x`:          {{Line: 1, Column: 6, Msg: `nothing is called "numbr"`, Unknown: "numbr", Suggestion: "number"}, {Line: 1, Column: 14, Msg: `nothing is called "stat"`, Unknown: "stat", Suggestion: "state"}},
		`state.x.matches("(")`:         {{Line: 1, Column: 17, Msg: "not a regular expression: look for brackets that are not closed; the syntax is that of RE2"}},
	} {
		_, err := expr.Compile(src, vars...)
		got, ok := errors.AsType[expr.Errors](err)
		if !ok {
			t.Errorf("%q: error %v (%T)", src, err, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", src, diff)
		}
	}
	for _, src := range []string{`1 +`, `state.`, `"a" + 1`, `iteration + "x"`, `has(state)`, strings.Repeat("(", 500), strings.Repeat("x", 20000)} {
		_, err := expr.Compile(src, vars...)
		e, ok := errors.AsType[*expr.Error](err)
		if !ok || e.Line < 1 || e.Column < 1 {
			t.Errorf("%.20q: error %v", src, err)
		}
	}
	if _, err := expr.Compile("x", expr.Var{Name: "x", Type: "colour"}); err == nil {
		t.Error("an unknown type is accepted")
	}
}

// F10, X1: no expression runs for long, whatever it says.
func TestEvalIsBounded(t *testing.T) {
	nested := `state.big.all(a, state.big.all(b, state.big.all(c, state.big.all(d, a + b + c + d >= 0))))`
	for _, src := range []string{
		nested,
		`lists.range(1000000000).size() > 0`,
		`lists.range(100000).map(i, lists.range(100000)).size() > 0`,
		`state.long.replace("", state.long).replace("", state.long).replace("", state.long).size() > 0`,
		`lists.range(1000).map(i, state.long).join(state.long).size() > 0`,
	} {
		st := map[string]any{"big": make([]int, 1000), "long": strings.Repeat("x", 10_000)}
		start := time.Now()
		if _, err := eval(src, st); err == nil {
			t.Errorf("%s: no error", src)
		}
		if d := time.Since(start); d > 2*time.Minute {
			t.Errorf("%s: took %v", src, d)
		}
	}
	p, err := expr.Compile(nested, vars...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.EvalIn(ctx, expr.Values{"state": map[string]any{"big": make([]int, 1000)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want canceled", err)
	}
	loop := map[string]any{}
	loop["self"] = loop
	if _, err := eval(`state`, loop); err == nil {
		t.Error("a cyclic value has a plain form")
	}
}

func TestReads(t *testing.T) {
	for src, want := range map[string]struct {
		keys []string
		all  bool
	}{
		`score > 1`:                                    {nil, false},
		`state.a > 1 && state["b"] < 2`:                {[]string{"a", "b"}, false},
		`has(state.c) || "d" in state`:                 {[]string{"c", "d"}, false},
		`state.?e.orValue(1) + state[?"f"].orValue(2)`: {[]string{"e", "f"}, false},
		`state.a.b.c`:                                  {[]string{"a"}, false},
		`state[string(iteration)]`:                     {nil, true},
		`state[state.which]`:                           {[]string{"which"}, true},
		`state.list.exists(x, x > state.min)`:          {[]string{"list", "min"}, false},
		`scores.exists(state, state > 1.0)`:            {nil, false},
		`state.all(k, k != "")`:                        {nil, true},
		`size(state) > 1`:                              {nil, true},
		`{"k": [state.v]}`:                             {[]string{"v"}, false},
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		keys, all := p.Reads("state")
		if diff := cmp.Diff(want.keys, keys); diff != "" || all != want.all {
			t.Errorf("%s: all %v, keys (-want +got):\n%s", src, all, diff)
		}
		if p.String() != src {
			t.Errorf("String() = %q", p.String())
		}
	}
}

func TestProgramIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for _, src := range []string{`state.i + 1 > 2`, `state.gone`, `state.text > 3`, `state.map.map(k, state.map[k])`} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Fatal(err)
		}
		st := state()
		for range 4 {
			wg.Go(func() {
				for range 200 {
					_, _ = expr.Eval(p, map[string]any{"state": st})
				}
			})
		}
	}
	wg.Wait()
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`state.a + 1 > 2.5`, `has(state.a) && state["b"] / 2 == 1`, `number(state.t) > 1`, `json(state.t).x[0]`,
		`state.map(k, state[k])`, `1 / 0`, `"%d".format([1])`, `state.?a.orValue(1u) % 2`, "\xff", `[1][5]`, `{}["x"]`,
	} {
		f.Add(s, `{"a": 1, "b": [1.5, "x", null], "t": "7,5"}`)
	}
	for _, s := range []string{
		strings.Repeat("(", 300), strings.Repeat("!", 300) + "true", "1" + strings.Repeat(" + 1", 300), strings.Repeat("[", 100) + strings.Repeat("]", 100),
		strings.Repeat("state.", 100) + "a", "'" + strings.Repeat("a", 5000) + "'", "\x00", "\ufeff1", "1\r\n+ 1", "'\xff'", "[1].map(a, [1].map(b, [1].map(c, a + b + c)))", "99999999999999999999 + 1",
	} {
		f.Add(s, strings.Repeat("[", 100)) // what is meant to exhaust a parser, or to confuse it
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			if _, ok := errors.AsType[*expr.Error](err); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		p.Reads("state")
		st := map[string]any{"t": text}
		if v, err := expr.JSON(text); err == nil {
			st["a"] = v
			if m, ok := v.(map[string]any); ok {
				st = m
			}
		}
		in := map[string]any{"state": st, "score": nil, "scores": []float64{1}, "iteration": 1, "elapsed": 1.0}
		a, errA := expr.Eval(p, in)
		b, errB := expr.Eval(p, in)
		if (errA == nil) != (errB == nil) || errA == nil && fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%q twice: %v %v, then %v %v", src, a, errA, b, errB)
		}
	})
}

func BenchmarkEval(b *testing.B) {
	p, err := expr.Compile(`state.quality >= 8.0 && score + 1 > 2`, vars...)
	if err != nil {
		b.Fatal(err)
	}
	in := map[string]any{"state": map[string]any{"quality": 8.5}, "score": 3.0, "scores": []float64{1}, "iteration": 1, "elapsed": 1.0}
	for b.Loop() {
		if _, err := expr.EvalBool(p, in); err != nil {
			b.Fatal(err)
		}
	}
}

// LOOP 29: integers of state keep every digit on their way through an expression, and
// numbers of state, which are doubles, serve where a function wants an int.
func TestNumbersOfState(t *testing.T) {
	vals := map[string]any{"state": map[string]any{
		"id": int64(math.MaxInt64 - 1), "huge": uint64(math.MaxUint64), "odd": int64(1<<53 + 1), "limit": 9007199254740992.0,
		"one": 1.0, "ten": 10.0, "n": 1234567.0, "half": 0.5, "text": "hello", "list": []any{"a", "b", "c"},
		"json": `{"id": 9223372036854775807, "huge": 18446744073709551615, "n": 3}`,
	}}
	for src, want := range map[string]any{
		"state.id":                            int64(math.MaxInt64 - 1),
		"state.huge":                          uint64(math.MaxUint64),
		"[state.huge][0]":                     uint64(math.MaxUint64),
		"string(state.id)":                    "9223372036854775806",
		"string(state.huge)":                  "18446744073709551615",
		"string(json(state.json).id)":         "9223372036854775807",
		"json(state.json).huge":               uint64(math.MaxUint64),
		"state.huge > state.id":               true,
		"state.huge == 18446744073709551615u": true,
		"state.id + state.one":                int64(math.MaxInt64),
		"state.id + 1":                        int64(math.MaxInt64),
		"state.id + state.ten":                9223372036854775816.0,
		"state.odd - state.one":               int64(1 << 53),
		"state.limit + 1":                     int64(1<<53 + 1),
		"1 + state.limit":                     int64(1<<53 + 1),
		"state.odd * state.ten":               int64(90071992547409930),
		"state.odd % state.ten":               int64(3),
		"state.odd / state.one":               int64(1<<53 + 1),
		"state.odd + state.half":              9007199254740992.0,
		"state.n + 1":                         1234568.0,
		"string(state.n)":                     "1234567",
		"string(state.half)":                  "0.5",
		"string(1e21)":                        "1e+21",
		"string(1e-7)":                        "1e-07",
		"state.text.substring(state.one)":     "ello",
		"state.text.charAt(state.one)":        "e",
		"state.list[state.one]":               "b",
		"state.list.slice(0, state.one)":      []any{"a"},
		"lists.range(state.one + 1)":          []any{int64(0), int64(1)},
		"'a-b-c'.split('-', state.one + 1)":   []any{"a", "b-c"},
		"'aaa'.replace('a', 'b', state.one)":  "baa",
		"math.bitAnd(state.n, 1)":             int64(1),
		"'%d'.format([state.n])":              "1234567",
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		got, err := expr.Eval(p, vals)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", src, err, diff)
		}
	}
	for _, src := range []string{"state.text.substring(state.half)", "lists.range(state.half)"} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := expr.Eval(p, vals); err == nil || !strings.Contains(err.Error(), "no such overload") {
			t.Errorf("%s: got %v, %v", src, v, err)
		}
	}
}

// Lists that functions make have the values of their arguments, and not those of their JSON.
func TestListsOfFunctionsKeepTypes(t *testing.T) {
	for _, src := range []string{
		"type([2.0, 1.0].sort()[0]) == double", "[b'b', b'a'].sort()[0] == b'a'", "[duration('2s'), duration('1s')].sort()[0] == duration('1s')",
		"timestamp('2026-01-02T00:00:00Z') == [timestamp('2026-01-02T00:00:00Z')].sort()[0]", "type([2u, 1u].sort()[0]) == uint",
		"[{'a': 2.0}, {'a': 1.0}].sortBy(o, o.a)[0].a == 1.0", "type([[1.0]].flatten()[0]) == double", "'b,a'.split(',').sort() == ['a', 'b']",
		"type([1.0].slice(0, 1)[0]) == double", "type([1.0].distinct()[0]) == double", "type([1.0].reverse()[0]) == double",
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got, err := expr.Eval(p, nil); err != nil || got != true {
			t.Errorf("%s: got %v, %v", src, got, err)
		}
	}
}
