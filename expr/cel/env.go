// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Limits of an expression. They are far above the needs of a condition and far below the capacity of a machine.
const (
	maxSource = 8 << 10 // characters of source
	maxDepth  = 64      // nesting of the source
	maxCost   = 1 << 20 // CEL cost units of one evaluation
	checkEach = 256     // iterations of a comprehension between looks at the context
)

var celTypes = map[expr.Type]*cel.Type{
	expr.Dyn:        cel.DynType,
	expr.Bool:       cel.BoolType,
	expr.Int:        cel.IntType,
	expr.Double:     cel.DoubleType,
	expr.String:     cel.StringType,
	expr.List:       cel.ListType(cel.DynType),
	expr.ListDouble: cel.ListType(cel.DoubleType),
	expr.Map:        cel.MapType(cel.StringType, cel.DynType),
}

func typeOf(t *cel.Type) expr.Type {
	switch t.Kind() {
	case types.BoolKind:
		return expr.Bool
	case types.IntKind, types.UintKind:
		return expr.Int
	case types.DoubleKind:
		return expr.Double
	case types.StringKind, types.BytesKind, types.TimestampKind, types.DurationKind, types.TypeKind:
		return expr.String
	case types.ListKind:
		return expr.List
	case types.MapKind:
		return expr.Map
	}
	return expr.Dyn
}

// bind turns a number into the kind that the checker was promised; whatever
// else does not fit is left for the evaluation to refuse.
func bind(t expr.Type, x any) any {
	switch t {
	case expr.Double:
		switch n := adapt.NativeToValue(x).(type) {
		case types.Int:
			return types.Double(n)
		case types.Uint:
			return types.Double(n)
		}
	case expr.Int:
		if d, ok := adapt.NativeToValue(x).(types.Double); ok && d == types.Double(int64(d)) {
			return types.Int(d)
		}
	}
	return x
}

// programOptions returns the options for the program of a tree.
func programOptions(tree ast.Expr) []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CostLimit(maxCost),
		cel.CostTracking(costs{}),
		cel.InterruptCheckFrequency(checkEach),
		cel.CustomDecoratorV2(integerDivision),
		cel.CustomDecoratorV2(withPrice),
		cel.CustomDecoratorV2(folds(tree).decorate),
	}
}

// base holds everything but the variables; building it takes milliseconds.
var base = sync.OnceValues(func() (*cel.Env, error) {
	subset := env.NewLibrarySubset()
	for _, op := range arithmetic {
		subset.AddExcludedFunctions(env.NewFunction(op.name))
	}
	subset.AddExcludedFunctions(env.NewFunction(overloads.TypeConvertString,
		&env.Overload{ID: overloads.DoubleToString}))
	opts := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(subset)),
		cel.CustomTypeAdapter(adapt),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.EagerlyValidateDeclarations(true),
		cel.ASTValidators(patterns{}, mapKeys{}),
		cel.ParserExpressionSizeLimit(maxSource),
		cel.ParserRecursionLimit(maxDepth),
		cel.OptionalTypes(),
		ext.Strings(), ext.Math(), ext.Lists(), ext.TwoVarComprehensions(),
		ext.Bindings(ext.BindingsVersion(0)), // from 1 on it has cel.@block, which no source can call
		cel.Function(overloads.TypeConvertString, cel.Overload(overloads.DoubleToString, []*cel.Type{cel.DoubleType}, cel.StringType,
			cel.UnaryBinding(func(v ref.Val) ref.Val { // as templates do: CEL writes 1234567.0 as 1.234567e+06
				return types.String(brief.Number(float64(v.(types.Double)), 64))
			}))),
		cel.Function("number", cel.Overload("refrain_number", []*cel.Type{cel.StringType}, cel.DoubleType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				f, err := expr.Number(string(v.(types.String)))
				if err != nil {
					return types.WrapErr(err)
				}
				return types.Double(f)
			})),
			cel.Overload("refrain_number_double", []*cel.Type{cel.DoubleType}, cel.DoubleType, cel.UnaryBinding(itself)),
			cel.Overload("refrain_number_int", []*cel.Type{cel.IntType}, cel.DoubleType,
				cel.UnaryBinding(func(v ref.Val) ref.Val { return types.Double(v.(types.Int)) }))),
		cel.Function("says", cel.Overload("refrain_says", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(text, phrase ref.Val) ref.Val {
				return types.Bool(expr.Says(string(text.(types.String)), string(phrase.(types.String))))
			}))),
		cel.Function("json",
			cel.Overload("refrain_json", []*cel.Type{cel.StringType}, cel.DynType, cel.UnaryBinding(jsonOf)),
			cel.Overload("refrain_json_map", []*cel.Type{celTypes[expr.Map]}, cel.DynType, cel.UnaryBinding(itself)),
			cel.Overload("refrain_json_list", []*cel.Type{celTypes[expr.List]}, cel.DynType, cel.UnaryBinding(itself)),
			cel.Overload("refrain_json_double", []*cel.Type{cel.DoubleType}, cel.DynType, cel.UnaryBinding(itself)),
			cel.Overload("refrain_json_int", []*cel.Type{cel.IntType}, cel.DynType, cel.UnaryBinding(itself)),
			cel.Overload("refrain_json_bool", []*cel.Type{cel.BoolType}, cel.DynType, cel.UnaryBinding(itself))),
	}
	return cel.NewCustomEnv(append(opts, arithmeticOptions()...)...)
})

// itself is the function json for a value that is no text any more.
func itself(v ref.Val) ref.Val { return v }

// environments caches what Compile builds, by the declared variables: a
// program has few such lists. Beyond maxEnvironments nothing is kept.
var environments struct {
	mu    sync.Mutex
	byKey map[string]*cel.Env
}

const maxEnvironments = 64

func environment(vars []expr.Var) (*cel.Env, error) {
	b, err := base()
	if err != nil {
		return nil, err
	}
	var key strings.Builder
	for _, v := range vars {
		fmt.Fprintf(&key, "%q:%s,", v.Name, v.Type)
	}
	environments.mu.Lock()
	defer environments.mu.Unlock()
	if e, ok := environments.byKey[key.String()]; ok {
		return e, nil
	}
	opts := make([]cel.EnvOption, len(vars))
	for i, v := range vars {
		t, ok := celTypes[v.Type]
		if !ok {
			return nil, fmt.Errorf("variable %q has no such type: %q", v.Name, v.Type)
		}
		opts[i] = cel.Variable(v.Name, t)
	}
	e, err := b.Extend(opts...)
	if err != nil {
		return nil, err
	}
	if environments.byKey == nil {
		environments.byKey = map[string]*cel.Env{}
	}
	if len(environments.byKey) < maxEnvironments {
		environments.byKey[key.String()] = e
	}
	return e, nil
}
