// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	celexpr "cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	suite "cel.dev/expr/conformance/test"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/refrain-dev/refrain/expr"
	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// What CEL refuses is refused here too: a result must not depend on which mistake is overlooked.
func TestMistakesThatCELRefuses(t *testing.T) {
	state := map[string]any{"half": 5.5, "five": 5.0, "a": "x", "b": "x", "one": 1, "none": 0}
	for src, want := range map[string]string{
		`18446744073709551615u + 1u`:             "overflow",
		`1u - 2u`:                                "overflow",
		`9223372036854775808u * 2u`:              "overflow",
		`47.5 % 5.5`:                             "both have to be whole numbers",
		`state.half % 2`:                         "both have to be whole numbers",
		`state.five % state.half`:                "both have to be whole numbers",
		`1u % 0u`:                                "division by zero",
		`{"a": 1, "b": 2, "a": 3}["a"]`:          `1:18: the key "a" stands twice`,
		`{1: "a", 1.0: "b"}`:                     "stands twice",
		`{state.a: 1, state.b: 2}`:               "stands twice",
		`{state.one: 1, 1: 2}`:                   "stands twice",
		`[1, 1].transformMapEntry(i, x, {x: i})`: "already exists",
	} {
		p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
		if err == nil {
			_, err = expr.Eval(p, map[string]any{"state": state})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// Comprehensions with two variables and cel.bind do what CEL says, and maps are walked in the order of their keys.
func TestComprehensionsWithTwoVariables(t *testing.T) {
	state := map[string]any{"scores": map[string]any{"b": 7.0, "a": 9.0, "c": 8.0}, "list": []any{3.0, 5.0}, "five": 5.0}
	for src, want := range map[string]string{
		`5u / 2u`:                    "2",
		`18446744073709551614u + 1u`: "18446744073709551615", `state.five % 2`: "1", `5.0 % 3.0`: "2", `7 % 4u`: "3",
		`state.list.exists(i, x, i == 1 && x == 5.0)`:                      "true",
		`state.scores.all(k, v, k == "b" || v > 7.5)`:                      "true",
		`state.scores.existsOne(k, v, v > 8.0)`:                            "true",
		`state.list.transformList(i, x, x * 2 + i)`:                        "[6 11]",
		`state.scores.transformList(k, v, v > 7.0, k)`:                     "[a c]",
		`state.scores.transformMap(k, v, v + 1)`:                           "map[a:10 b:8 c:9]",
		`state.scores.transformMap(k, v, v).map(k, k)`:                     "[a b c]",
		`{"z": 1, "y": 2, "x": 3, "w": 4}.map(k, k)`:                       "[w x y z]",
		`json(state.scores).map(k, k)`:                                     "[a b c]",
		`state.list.transformMapEntry(i, x, {string(x): i})`:               "map[3:0 5:1]",
		`cel.bind(best, math.greatest(state.list), best > 4.0 ? best : 0)`: "5",
		`cel.bind(x, 1, cel.bind(y, x + 1, [x, y].map(z, z + y)))`:         "[3 4]",
		`{string(state.five): 1, "x": 2}`:                                  "map[5:1 x:2]",
		`{?"a": optional.none(), "a": 1}`:                                  "",
	} {
		p, err := expr.Compile(src, expr.Var{Name: "state", Type: expr.Map})
		if err != nil {
			if want != "" {
				t.Errorf("%s: %v", src, err)
			}
			continue
		}
		for range 5 {
			if got, err := expr.Eval(p, map[string]any{"state": state}); err != nil || fmt.Sprint(got) != want {
				t.Errorf("%s: %v, %v, want %s", src, got, err, want)
				break
			}
		}
	}
	p, err := expr.Compile(`cel.bind(x, state.a, x > 1) && state.b.all(k, v, v > state.c)`, expr.Var{Name: "state", Type: expr.Map})
	if err != nil {
		t.Fatal(err)
	}
	if keys, all := p.Reads("state"); fmt.Sprint(keys) != "[a b c]" || all {
		t.Errorf("it reads %v, %v", keys, all)
	}
}

var updateSuite = flag.Bool("update", false, "write the list of CEL's conformance tests that differ here")

// differs lists the tests of CEL's conformance suite, in scope, whose result differs here.
const differs = "testdata/conformance-differs.txt"

const reasons = `# Tests of CEL's conformance suite, in scope, whose result differs here. The reasons:
# a division by zero is an error for every kind of number, and gives no NaN and no infinity
# the result becomes JSON, where bytes are a text
# a place outside a text, a key of an optional null and the milliseconds of a duration are as cel-go has them
`

// CEL's conformance files are in the module that cel-go requires. What needs messages of protocol buffers is out of scope, as
// a state has none. A test that begins to differ fails, and so does one that no longer differs.
func TestConformanceOfCEL(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "cel.dev/expr").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "tests", "simple", "testdata")
	files, _ := filepath.Glob(filepath.Join(dir, "*.textproto"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the module cel.dev/expr has no conformance files in the module cache; run go mod download: %v", err)
	}
	var differ []string
	passed, scope, all := 0, 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tests suite.SimpleTestFile
		if err := prototext.Unmarshal(data, &tests); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, section := range tests.Section {
			for _, c := range section.Test {
				all++
				if !inScope(tests.Name, c) {
					continue
				}
				scope++
				if why := differsHere(c); why != "" {
					differ = append(differ, fmt.Sprintf("%s/%s/%s: %s", tests.Name, section.Name, c.Name, why))
				} else {
					passed++
				}
			}
		}
	}
	t.Logf("%d tests, %d in scope, of which %d pass (%.1f %%)", all, scope, passed, 100*float64(passed)/float64(scope))
	slices.Sort(differ)
	got := reasons + strings.Join(differ, "\n") + "\n"
	if *updateSuite {
		if err := os.WriteFile(differs, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(differs)
	if err != nil {
		t.Fatal(err)
	}
	names := func(s string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(s) {
			if name, _, ok := strings.Cut(line, ": "); ok && line[0] != '#' {
				set[name] = true
			}
		}
		return set
	}
	was, is := names(string(want)), names(got)
	for name := range is {
		if !was[name] {
			t.Errorf("%s differs", name)
		}
	}
	for name := range was {
		if !is[name] {
			t.Errorf("%s no longer differs: go test ./expr -run ConformanceOfCEL -update", name)
		}
	}
}

var messages = lazyregexp.New(`TestAllTypes|google\.protobuf|cel\.block|NestedTestAllTypes|proto\.|\bnet\.|ip\(|cidr\(`)

// inScope reports whether a test can be written with the values of a state.
func inScope(file string, c *suite.SimpleTest) bool {
	switch file {
	case "proto2", "proto3", "proto2_ext", "enums", "wrappers", "dynamic", "block_ext", "unknowns", "type_deductions", "type_deduction",
		"network_ext", "encoders_ext":
		return false
	}
	if c.Container != "" || c.CheckOnly || c.DisableMacros || c.DisableCheck || // every expression is checked here
		slices.ContainsFunc(c.TypeEnv, func(d *celexpr.Decl) bool { return d.GetFunction() != nil }) || messages().MatchString(c.Expr) {
		return false
	}
	if c.GetValue().GetTypeValue() != "" || c.GetTypedResult() != nil && c.GetTypedResult().Result == nil {
		return false
	}
	for _, b := range c.Bindings {
		if _, ok := plain(b.GetValue()); !ok {
			return false
		}
	}
	_, ok := plain(c.GetValue())
	return ok
}

// plain returns a value of the suite in Go; ok is false for messages.
func plain(v *celexpr.Value) (any, bool) {
	switch k := v.GetKind().(type) {
	case nil, *celexpr.Value_NullValue:
		return nil, true
	case *celexpr.Value_BoolValue:
		return k.BoolValue, true
	case *celexpr.Value_Int64Value:
		return k.Int64Value, true
	case *celexpr.Value_Uint64Value:
		return k.Uint64Value, true
	case *celexpr.Value_DoubleValue:
		return k.DoubleValue, true
	case *celexpr.Value_StringValue:
		return k.StringValue, true
	case *celexpr.Value_BytesValue:
		return k.BytesValue, true
	case *celexpr.Value_ListValue:
		list := []any{}
		for _, e := range k.ListValue.Values {
			x, ok := plain(e)
			if !ok {
				return nil, false
			}
			list = append(list, x)
		}
		return list, true
	case *celexpr.Value_MapValue:
		m := map[string]any{}
		for _, e := range k.MapValue.Entries {
			x, ok := plain(e.Value)
			if _, text := e.Key.Kind.(*celexpr.Value_StringValue); !ok || !text {
				return nil, false // the keys of a state are texts
			}
			m[e.Key.GetStringValue()] = x
		}
		return m, true
	case *celexpr.Value_ObjectValue:
		m, err := k.ObjectValue.UnmarshalNew()
		if err != nil {
			return nil, false
		}
		switch m := m.(type) {
		case *durationpb.Duration:
			return m.AsDuration(), true
		case *timestamppb.Timestamp:
			return m.AsTime(), true
		}
	}
	return nil, false
}

// canon writes a value so that equal numbers of different types are equal, as in expressions.
func canon(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", x)
	case []byte:
		return fmt.Sprintf("%q", x)
	case time.Duration:
		return x.String()
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano)
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice:
		var list []string
		for i := range r.Len() {
			list = append(list, canon(r.Index(i).Interface()))
		}
		return "[" + strings.Join(list, " ") + "]"
	case reflect.Map:
		m := map[string]string{}
		for _, k := range r.MapKeys() {
			m[fmt.Sprint(k.Interface())] = canon(r.MapIndex(k).Interface())
		}
		var list []string
		for _, k := range slices.Sorted(maps.Keys(m)) {
			list = append(list, k+": "+m[k])
		}
		return "{" + strings.Join(list, " ") + "}"
	}
	return fmt.Sprint(v)
}

// differsHere evaluates a test, and says how its result differs from CEL's; empty if it does not.
func differsHere(c *suite.SimpleTest) string {
	vals := map[string]any{}
	var vars []expr.Var
	for name, b := range c.Bindings {
		vals[name], _ = plain(b.GetValue())
		vars = append(vars, expr.Var{Name: name})
	}
	p, err := expr.Compile(c.Expr, vars...)
	var got any
	if err == nil {
		got, err = expr.Eval(p, vals)
	}
	if c.GetEvalError() != nil || c.GetAnyEvalErrors() != nil {
		if err == nil {
			return "CEL has an error, and here it is " + canon(got)
		}
		return ""
	}
	want := any(true)
	if v := c.GetValue(); v != nil {
		want, _ = plain(v)
	} else if r := c.GetTypedResult(); r != nil {
		want, _ = plain(r.Result)
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return "CEL has " + canon(want) + ", and here it is an error: " + first
	}
	if canon(got) != canon(want) {
		return "CEL has " + canon(want) + ", and here it is " + canon(got)
	}
	return ""
}
