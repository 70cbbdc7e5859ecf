// SPDX-License-Identifier: Apache-2.0

package expr_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/longtest"
)

func FuzzShortCuts(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(sameAsCEL)
}

func TestShortCuts(t *testing.T) {
	for seed := range longtest.N[uint64](600, 3000) {
		sameAsCEL(t, seed)
	}
}

// sameAsCEL evaluates a random expression: where one takes a short cut it must say what CEL
// says.
func sameAsCEL(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	src := source(r, 1+r.IntN(4))
	p, err := expr.Compile(src, vars...)
	if err != nil {
		return // a string plus a number, say
	}
	vals := map[string]any{"state": randomState(r, 2), "score": scalars[r.IntN(len(scalars))], "scores": []float64{1, 2}}
	vals["iteration"] = []any{3, int64(4), 2.0, 2.5}[r.IntN(4)]
	if r.IntN(5) > 0 {
		vals["elapsed"] = []any{12, 2.5}[r.IntN(2)]
	}
	want, wantErr := p.AskCEL(vals)
	same := func(how string, got any, err error) {
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !cmp.Equal(want, got, cmpopts.EquateNaNs()) {
			t.Fatalf("%s %s with %v: %#v, %v; CEL says %#v, %v", how, src, vals, got, err, want, wantErr)
		}
	}
	got, err := p.Eval(vals)
	same("Eval", got, err)
	got, err = p.EvalIn(t.Context(), counted{Values: vals})
	same("EvalIn", got, err)
	got, err = p.EvalIn(t.Context(), keyed{Values: vals})
	same("EvalIn by keys", got, err)
	v, err := p.Test(expr.Values(vals))
	if _, isBool := want.(bool); !isBool && wantErr == nil {
		if err == nil {
			t.Fatalf("%s with %v is no condition, and gives %+v", src, vals, v)
		}
		return
	}
	if wantErr != nil {
		same("Test", nil, err)
		return
	}
	same("Test", v.Holds, err)
	if c, ok := p.Comparison(); ok {
		l, errL := c.Left.AskCEL(vals)
		r, errR := c.Right.AskCEL(vals)
		if errL != nil || errR != nil {
			t.Fatalf("%s: %v, %v", src, errL, errR)
		}
		if v.Op != c.Op || !cmp.Equal(v.Left.Plain(), l, cmpopts.EquateNaNs()) || !cmp.Equal(v.Right.Plain(), r, cmpopts.EquateNaNs()) {
			t.Fatalf("%s with %v: %v %s %v, want %v %s %v", src, vals, v.Left.Plain(), v.Op, v.Right.Plain(), l, c.Op, r)
		}
	}
}

// keyed is a scope that gives the keys of its maps.
type keyed struct{ expr.Values }

func (k keyed) Key(variable, key string) (any, bool) {
	m, _ := k.Values[variable].(map[string]any)
	v, ok := m[key]
	return v, ok
}

// counted is a scope that gives its numbers as such.
type counted struct{ expr.Values }

func (c counted) Number(path string) (float64, bool, bool) {
	var at any = map[string]any(c.Values)
	for key := range strings.SplitSeq(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return 0, false, false
		}
		at = m[key]
	}
	switch n := at.(type) {
	case int:
		return float64(n), true, n < 1<<53 && n > -1<<53
	case float64:
		return n, path == "iteration" && n == math.Trunc(n), true
	}
	return 0, false, false
}

var scalars = []any{
	0, 1, 2, -3, 7.5, 2.0, 0.0, -0.5, int64(1 << 60), 1<<60 + 1.0, 1 << 53, int64(1<<53 + 1), 9007199254740992.0, uint64(math.MaxUint64), math.NaN(), math.Inf(1), true, false, nil, "", "a", "b", "8.5",
	int8(3), uint(9), []any{1}, []string{"a"}, map[string]int{"a": 1},
}

func randomState(r *rand.Rand, depth int) map[string]any {
	m := map[string]any{}
	for _, k := range []string{"a", "b", "c", "with space"} {
		switch n := r.IntN(8); {
		case n == 0:
		case n == 1 && depth > 0:
			m[k] = randomState(r, depth-1)
		default:
			m[k] = scalars[r.IntN(len(scalars))]
		}
	}
	return m
}

func source(r *rand.Rand, depth int) string {
	one := func(from ...string) string { return from[r.IntN(len(from))] }
	if depth == 0 {
		return one("state.a", "state.b", "state.a.b", `state["c"]`, `state["with space"]`, "state.b.c.a", "has(state.a)", "has(state.b.c)", `"a" in state`,
			"score", "iteration", "elapsed", "1", "2.0", "0.5", "9007199254740993", `"a"`, `"8.5"`, "true", "null", "scores.size()", "state.?a.orValue(1)", "scores[0]", "-state.a")
	}
	a, b := source(r, depth-1), source(r, r.IntN(depth))
	switch r.IntN(9) {
	case 0:
		return "!(" + a + ")"
	case 1, 2:
		return "(" + a + ") " + one("&&", "||") + " (" + b + ")"
	case 3, 4, 5, 6:
		return "(" + a + ") " + one(">", ">=", "<", "<=", "==", "!=") + " (" + b + ")"
	case 7:
		return "(" + a + ") " + one("+", "-", "*", "/", "%") + " (" + b + ")"
	}
	return "(" + a + ") ? (" + b + ") : 1"
}

// What a loop looks at after every step costs no allocation.
func TestShortCutsAllocateNothing(t *testing.T) {
	vals := expr.Values{"state": map[string]any{"score": 7.5, "failed": 2, "verdict": "draft"}, "score": nil, "iteration": 3}
	for _, src := range []string{
		"state.score >= 8.0 && state.failed == 0", "has(state.score) && state.score >= 3 || iteration > 2", `state.verdict == "approved"`,
		"score != null && score >= 8", "!(state.failed + 1 > 2)", `state["score"] * 2 < 3`,
	} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			t.Fatal(err)
		}
		var s expr.Scope = vals
		if n := testing.AllocsPerRun(100, func() {
			if _, err := p.Test(s); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", src, n)
		}
	}
}

func BenchmarkTest(b *testing.B) {
	for _, src := range []string{"state.score >= 8.0 && state.failed == 0", "state.?score.orValue(0.0) >= 8.0", "scores.size() >= 2 && scores[0] > 8.0"} {
		p, err := expr.Compile(src, vars...)
		if err != nil {
			b.Fatal(err)
		}
		var s expr.Scope = expr.Values{"state": map[string]any{"score": 9.5, "failed": 2}, "scores": []float64{1, 2}}
		b.Run(src, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Test(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
