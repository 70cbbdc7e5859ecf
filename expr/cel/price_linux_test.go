// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/expr/cel"
)

// hostile has values at the limits.
var hostile = func() map[string]any {
	ints, texts, long, objects := make([]any, 1_000_000), make([]any, 200_000), make([]any, 100_000), make([]any, 20_000)
	big, maps, longKeys := make(map[string]any, 200_000), make(map[string]any, len(objects)), make(map[string]any, len(objects))
	same := strings.Repeat("a", 64<<10)
	for i := range ints {
		ints[i] = float64((i * 7919) % len(ints))
	}
	for i := range texts {
		texts[i] = fmt.Sprintf("text %d", (i*7919)%len(texts))
		big[texts[i].(string)] = i
	}
	for i := range long {
		long[i] = same[:len(same)-i%3] // distinct lengths, and memory shared
	}
	for i := range objects {
		objects[i] = map[string]any{"id": float64(i), "list": []any{1.0, "x"}}
		maps[fmt.Sprint(i)] = map[string]any{"a": map[string]any{"b": "y"}}
		longKeys[strings.Repeat(fmt.Sprint(i), 9)] = "y"
	}
	var deep any = "x"
	for range 90 {
		deep = []any{deep, deep}
	}
	whole := strings.Repeat("a", cel.MaxValue)
	return map[string]any{
		"ints": ints, "texts": texts, "long": long, "objects": objects, "big": big, "maps": maps, "longKeys": longKeys, "deep": deep,
		"whole": whole, "copy": strings.Clone(whole),
		"half": strings.Repeat("a", cel.MaxValue/2), "bytes": []byte(whole), "digits": strings.Repeat("a1", cel.MaxValue/2),
		"commas": strings.Repeat("1,", cel.MaxValue/2), "json": "[" + strings.Repeat("1,", cel.MaxValue/2-2) + "1]",
		"objectsJSON": "[" + strings.Repeat(`{"a":[]},`, cel.MaxValue/9-2) + "1]", "brackets": strings.Repeat("[", 64) + strings.Repeat("1,",
			cel.MaxValue/2-40),
		"fences": strings.Repeat("```[1,", cel.MaxValue/6), "pattern": strings.Repeat("(a?){1000}", 800), "class": strings.Repeat(`\pL{900}`, 9),
		"nested": "((a{0,30}){0,30})*$", "formats": strings.Repeat("%.99f", 20_000), "ones": make([]any, 20_000), "zone": "America/Sao_Paulo",
		"space": strings.Repeat(" ", cel.MaxValue), "quotes": strings.Repeat(`"`, cel.MaxValue/2-2), "number": strings.Repeat("9", cel.MaxValue),
		"needle": strings.Repeat("a", 4000) + "b", "time": strings.Repeat("2026-01-01T00:00:00Z", 800_000), "span": strings.Repeat("1h",
			cel.MaxValue/2),
	}
}()

// calls has expressions for each function that ask as much of it as the values let.
var calls = map[string][]string{
	"_==_": {"state.whole == state.copy", "state.deep == state.deep", "state.ints == state.ints", "state.objects == state.objects",
		"state.big == state.big", "state.maps == state.maps", "state.longKeys == state.longKeys", "state.texts == state.texts"},
	"_!=_": {"state.whole != state.copy", "state.deep != state.deep", "state.big != state.big"},
	"_<_":  {"state.whole < state.copy"}, "_<=_": {"state.whole <= state.copy"}, "_>_": {"state.whole > state.copy"},
	"_>=_": {"state.whole >= state.copy"},
	"@in": {"state.objects[0] in state.objects", "-1 in state.ints", "state.copy in state.long", "[state.deep] in [state.deep]",
		`"x" in state.big`, `lists.range(10000).all(i, "x" in state.big)`},
	"_+_": {"state.half + state.half", "state.ints + [1]", "state.whole + ''", strings.Repeat("[] + ", 30) + "state.ints",
		"state.bytes + b''"},
	"_-_": {"state.ints[0] - 1"}, "_*_": {"state.ints[0] * 2"}, "_/_": {"state.ints[0] / 2"}, "_%_": {"state.ints[0] % 2"},
	"-_":   {"-state.ints[0]"},
	"_&&_": {strings.Repeat("true && ", 500) + "true"}, "_||_": {strings.Repeat("false || ", 500) + "true"}, "!_": {"!true"},
	"_?_:_": {strings.Repeat("true ? (", 20) + "1" + strings.Repeat(") : 2",
		20)}, "_[_]": {"state.ints[999999]"}, "_[?_]": {"state.ints[?999999]"}, "_?._": {"state.?ints"},
	"@not_strictly_false": {"state.ints.all(i, true)", "state.big.all(k, true)", "state.big.exists(k, true)"},

	"bool": {"bool(state.whole)"}, "bytes": {"bytes(state.whole)"}, "double": {"double(state.number)"}, "duration": {"duration(state.span)"},
	"int": {"int(state.number)"}, "uint": {"uint(state.number)"}, "string": {"string(state.whole)", "string(state.bytes)", "string(1.0e300)"},
	"timestamp": {"timestamp(state.time)"}, "dyn": {"dyn(state.whole)"}, "type": {"type(state.deep)"}, "size": {"size(state.whole)",
		"size(state.big)", "lists.range(10000).all(i, size(state.big) > 0)"},
	"contains":   {"state.whole.contains(state.needle)", "state.whole.contains(state.copy)"},
	"startsWith": {"state.whole.startsWith(state.copy)"},
	"endsWith":   {"state.whole.endsWith(state.copy)"}, "charAt": {"state.whole.charAt(16000000)"}, "substring": {"state.whole.substring(1)"},
	"indexOf":     {"state.whole.indexOf(state.needle)", "state.whole.indexOf('b')"},
	"lastIndexOf": {"state.whole.lastIndexOf('b' + state.needle)"},
	"lowerAscii":  {"state.whole.lowerAscii()"}, "upperAscii": {"state.whole.upperAscii()"}, "trim": {"state.space.trim()"},
	"reverse": {"state.whole.reverse()", "state.ints.reverse()"}, "replace": {"state.whole.replace('a', 'b')", "state.whole.replace('', '')"},
	"split": {"state.whole.split('')", "state.whole.split('a')"}, "strings.quote": {"strings.quote(state.quotes)"},
	"join": {"state.texts.join()", "state.long.join('-')", "state.ints.map(i, '').join()"},
	"format": {"state.formats.format(state.ones)", "state.formats.format(state.ints)", "'%s'.format([state.deep])",
		"'%s'.format([state.objects])",
		"'%b'.format([state.bytes])", "'%x'.format([state.whole])", "'%s'.format([state.big])"},
	"matches": {"state.whole.matches(state.pattern)", "state.whole.matches(state.class)", "state.half.matches(state.nested)",
		"'a'.matches(state.whole)",
		"state.whole.matches('(x+x+)+y')", "state.whole.substring(0, 100000).matches('(a?){900}b')"},
	"number": {"number(state.whole)", "number(state.digits)", "number(state.commas)", "number(state.number)"},
	"says":   {"says(state.whole, state.copy)"},
	"json": {"json(state.json)", "json(state.objectsJSON)", "json(state.brackets)", "json(state.fences)", "json(state.number)",
		"json(state.objects)",
		"lists.range(10000).all(i, json(state.big) != null)"},
	"distinct": {"lists.range(1000000).distinct()", "json(state.json).distinct()", "state.ints.distinct()", "state.texts.distinct()",
		"state.long.distinct()",
		"state.objects.distinct()", "[state.deep, state.deep].distinct()"},
	"first": {"state.ints.first()"}, "last": {"state.ints.last()"}, "slice": {"state.ints.slice(0, 999999)"},
	"sort": {"state.ints.sort()", "state.texts.sort()", "state.long.sort()"}, "@sortByAssociatedKeys": {"state.objects.sortBy(o, o.id)",
		"state.ints.sortBy(i, -i)"},
	"flatten": {"state.deep.flatten(80)", "state.objects.map(o, o.list).flatten()"}, "lists.range": {"lists.range(1000000)",
		"lists.range(9000000000)"},
	"hasAll": {"state.ints.hasAll(state.ints)", "state.objects.hasAll(state.objects)"}, "hasAny": {"state.ints.hasAny(state.texts)",
		"[state.deep].hasAny([state.deep])"},
	"hasOnly": {"state.ints.hasOnly(state.ints)", "state.long.hasOnly(state.long)"}, "hasExactly": {"state.texts.hasExactly(state.texts)"},
	"math.@max": {"math.greatest(state.ints)"}, "math.@min": {"math.least(state.ints)"},
	"cel.@mapInsert": {"state.ints.transformMap(i, x, x)", "state.texts.transformMapEntry(i, x, {x: i})",
		"state.big.transformMap(k, v, [k, v])",
		"state.longKeys.transformMapEntry(k, v, {k: state.longKeys})", "[1].transformMapEntry(i, x, state.big)", "state.ints.all(i, x, i >= 0)",
		"state.big.transformList(k, v, k).transformMap(i, k, {k: i}).transformList(i, m, m.map(k, k))", "state.big.existsOne(k, v, false)",
		strings.Repeat("cel.bind(x, [state.deep, state.deep], ", 20) + "x == [x, x]" + strings.Repeat(")", 20),
		"cel.bind(a, state.objects, " + strings.Repeat("cel.bind(a, [a, a, a, a], ", 20) + "a == a" + strings.Repeat(")", 21),
		"cel.bind(a, state.half, cel.bind(b, a + a, state.ints.map(i, b + '')))", "{string(state.ints[1]): 1, state.texts[0]: state.deep}"},
	"optional.of": {"optional.of(state.deep)"}, "optional.none": {"optional.none()"},
	"optional.ofNonZeroValue": {"optional.ofNonZeroValue(state.deep)"},
	"optional.unwrap":         {"optional.unwrap(state.ints.map(i, optional.of(i)))"},
	"unwrapOpt":               {"state.ints.map(i, optional.of(i)).unwrapOpt()"},
	"hasValue":                {"state.?ints.hasValue()"}, "value": {"state.?ints.value()"}, "or": {"state.?ints.or(state.?big)"},
	"orValue": {"state.?none.orValue(state.big)"},
}

func init() {
	for _, one := range []string{"abs", "sign", "sqrt", "ceil", "floor", "round", "trunc", "isNaN", "isInf", "isFinite", "bitNot"} {
		calls["math."+one] = []string{"math." + one + "(state.ints[1])"}
	}
	for _, two := range []string{"bitAnd", "bitOr", "bitXor", "bitShiftLeft", "bitShiftRight"} {
		calls["math."+two] = []string{"math." + two + "(state.ints[1], 3)"}
	}
	for _, part := range []string{"Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "FullYear", "Hours", "Milliseconds", "Minutes", "Month",
		"Seconds"} {
		calls["get"+part] = []string{"timestamp('2026-01-01T00:00:00Z').get" + part + "(state.zone)",
			"timestamp('2026-01-01T00:00:00Z').get" + part + "(state.whole)"}
	}
}

// shapes call an expression once, several times in each iteration of a comprehension, and in comprehensions over others and
// over a map.
var shapes = []string{"%s", "lists.range(1000).map(i, [%s, %s, %s])", "lists.range(1000000).all(i, [%s].size() >= 0)",
	"lists.range(1000).map(i, lists.range(1000).map(j, %s))",
	"lists.range(100000).all(i, state.big.exists(k, dyn(%s) != k))"}

// No expression uses more than about a second of a core, whichever function it calls with whatever values. The test
// allows for slow machines; -v prints long ones, and with REFRAIN_LONG=1 each is repeated too.
func TestTimeAgainstCostOfEveryFunction(t *testing.T) {
	for _, name := range cel.Declared() {
		if len(calls[name]) == 0 {
			t.Errorf("%s has no row: add expressions that ask the most of it", name)
		}
	}
	if slowdown > 1 {
		t.Skip("the race detector takes most of the time")
	}
	tries := 2
	if os.Getenv("REFRAIN_LONG") != "" { // takes a quarter of an hour, so .ci/long leaves it out
		tries = len(shapes)
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		for _, call := range calls[name] {
			for _, shape := range shapes[:tries] {
				src := strings.ReplaceAll(shape, "%s", call)
				if len(src) > 8192 && strings.Count(shape, "%s") > 1 {
					continue // CEL's limit
				}
				spent, cost, err := timed(t, src)
				if spent > 100*time.Millisecond {
					t.Logf("%v for %d units: %.100s: %.60v", spent.Round(time.Millisecond), cost, src, err)
				}
				if limit := 2 * time.Second * slowdown; spent > limit {
					t.Errorf("%s: %.200s used %v of a core, %d units", name, src, spent, cost)
				}
			}
		}
	}
}

// Calls whose time was measured above their price are charged for at least that time.
func TestCallsAreChargedForTheirTime(t *testing.T) {
	for src, least := range map[string]time.Duration{
		"state.texts.join()":               100 * time.Millisecond,
		"state.whole == state.copy":        5 * time.Millisecond,
		"state.whole >= state.copy":        5 * time.Millisecond,
		"state.texts.distinct()":           160 * time.Millisecond,
		"state.big.existsOne(k, v, false)": 350 * time.Millisecond,
		"timestamp('2026-01-01T00:00:00Z').getDate(state.whole.substring(0, 1000000))": 40 * time.Millisecond,
	} {
		if _, cost, _ := timed(t, src); time.Duration(cost)*500 < least {
			t.Errorf("%s: %d units of 500ns are less than %s", src, cost, least)
		}
	}
}

// timed returns the processor time that an evaluation uses.
func timed(t *testing.T, src string) (time.Duration, uint64, error) {
	t.Helper()
	p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
	if err != nil {
		t.Errorf("%.100s: %v", src, err)
		return 0, 0, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := processorTime(t)
	cost, err := cel.CostOf(p, map[string]any{"state": hostile})
	return processorTime(t) - before, cost, err
}

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(1, &u); err != nil { // RUSAGE_THREAD
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A pattern of the source that is too large is refused before it is made, where it stands.
func TestLargePatternIsRefusedInItsPlace(t *testing.T) {
	_, err := expr.Compile("'a'.matches('" + strings.Repeat(`\\pL{900}`, 500) + "')")
	if err == nil || !strings.HasPrefix(err.Error(), "1:13: the regular expression is too large") {
		t.Error(err)
	}
}

// An evaluation ends when its context does, whichever function it is in.
func TestEvaluationEndsWithItsContext(t *testing.T) {
	for _, src := range []string{"lists.range(1000000).all(i, [1].hasAll([1]))",
		"lists.range(1000000).all(i, state.whole.startsWith('a'))", "1 == 1"} {
		p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("enough")
		cancel(stop)
		if _, err := p.EvalIn(ctx, expr.Values{"state": hostile}); !errors.Is(err, stop) {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// Text and numbers written by a model find the end of an evaluation too.
func FuzzPrices(f *testing.F) {
	f.Add("x.matches(y)", "aaaa", "(a*)*b")
	f.Add("json(x).distinct()", "[1, 2, [1]]", "")
	f.Add("x.format([y])", "%.50f %s", "1")
	f.Add("lists.range(1000).map(i, x.split(y)).flatten().sort()", "a,b", ",")
	f.Add("lists.range(1000).map(i, x).sort()", "a,b", "")
	f.Fuzz(func(t *testing.T, src, x, y string) {
		p, err := expr.Compile(src, expr.Var{Name: "x", Type: expr.Dyn}, expr.Var{Name: "y", Type: expr.Dyn})
		if err != nil {
			return
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := processorTime(t)
		_, _ = expr.Eval(p, map[string]any{"x": strings.Repeat(x, 1+100_000/(1+len(x))), "y": y})
		if spent := processorTime(t) - before; spent > 3*time.Second*slowdown {
			t.Errorf("%q used %v of a core", src, spent)
		}
	})
}
