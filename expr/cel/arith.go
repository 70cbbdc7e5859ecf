// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/stdlib"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// operator replaces one of CEL's arithmetic operators, which refuse to mix ints and doubles, so that their result
// would depend on how a number is stored.
type operator struct {
	name   string                     // CEL's mangled name
	verb   string                     // for the error text
	double func(l, r float64) float64 // for a mix of numbers
}

var arithmetic = []operator{
	{operators.Add, "add", func(l, r float64) float64 { return l + r }},
	{operators.Subtract, "subtract", func(l, r float64) float64 { return l - r }},
	{operators.Multiply, "multiply", func(l, r float64) float64 { return l * r }},
	{operators.Divide, "divide", func(l, r float64) float64 { return l / r }},
	{operators.Modulo, "take the remainder of", math.Mod},
}

// standard has CEL's own implementations of the operators, by name.
var standard = sync.OnceValue(func() map[string]*functions.Overload {
	all := make(map[string]*functions.Overload)
	for _, f := range stdlib.Functions() {
		if own, err := f.Bindings(); err == nil && len(own) == 1 {
			all[f.Name()] = own[0]
		}
	}
	return all
})

// same computes with CEL's own operator; nil if the type of l has none.
func (op operator) same(l, r ref.Val) ref.Val {
	own := standard()[op.name]
	if !l.Type().HasTrait(own.OperandTrait) {
		return nil
	}
	return own.Binary(l, r)
}

// arithmeticOptions declares each operator with CEL's own overloads and those
// for every mix of two numbers.
func arithmeticOptions() []cel.EnvOption {
	numbers := []*cel.Type{cel.IntType, cel.UintType, cel.DoubleType}
	var opts []cel.EnvOption
	for _, op := range arithmetic {
		var fs []cel.FunctionOpt
		for _, f := range stdlib.Functions() {
			if f.Name() != op.name {
				continue
			}
			for _, o := range f.OverloadDecls() {
				fs = append(fs, cel.Overload(o.ID(), o.ArgTypes(), o.ResultType()))
			}
		}
		for _, l := range numbers {
			for _, r := range numbers {
				if l == r && (l != cel.DoubleType || op.name != operators.Modulo) {
					continue
				}
				result := cel.DynType // an int and an uint may need a double
				if slices.Contains([]*cel.Type{l, r}, cel.DoubleType) {
					result = cel.DoubleType
				}
				id := fmt.Sprintf("refrain_%s_%s_%s", op.name, l, r)
				fs = append(fs, cel.Overload(id, []*cel.Type{l, r}, result))
			}
		}
		fs = append(fs, cel.SingletonBinaryBinding(op.apply))
		opts = append(opts, cel.Function(op.name, fs...))
	}
	return opts
}

func (op operator) apply(l, r ref.Val) ref.Val {
	if l.Type() == types.UintType && r.Type() == types.UintType && r != types.Uint(0) {
		return op.same(l, r) // which overflows as an error
	}
	l, r = toSigned(l), toSigned(r)
	lf, lok := float(l)
	rf, rok := float(r)
	divides := op.name == operators.Divide || op.name == operators.Modulo
	switch {
	case lok && rok && divides && rf == 0:
		return types.NewErr("division by zero")
	case lok && rok && op.name == operators.Modulo && (lf != math.Trunc(lf) || rf != math.Trunc(rf)):
		return types.NewErr("cannot take the remainder of %v and %v: both have to be whole numbers", l.Value(), r.Value())
	case lok && rok && l.Type() != r.Type() && beyond(lf, rf, op.double(lf, rf)):
		if res := op.exactly(l, r); res != nil {
			return res
		}
		return types.Double(op.double(lf, rf))
	case lok && rok && (l.Type() != r.Type() || op.name == operators.Modulo && l.Type() == types.DoubleType):
		return types.Double(op.double(lf, rf))
	case op.name == operators.Divide && l.Type() == types.IntType && r.Type() == types.IntType:
		if l.(types.Int)%r.(types.Int) != 0 {
			return types.Double(op.double(lf, rf))
		}
	}
	if op.name == operators.Add && sum(l, r) > MaxValue {
		return types.WrapErr(tooLarge())
	}
	if res := concatenation(op, l, r); res != nil {
		return res
	}
	res := op.same(l, r)
	if res == nil || types.IsError(res) && res.(*types.Err).Error() == "no such overload" {
		return types.NewErr("cannot %s %s and %s", op.verb, l.Type().TypeName(), r.Type().TypeName())
	}
	return res
}

// concatenation returns the sum of two lists; nil for any other operation, and for a list that a comprehension makes, to
// which CEL appends.
func concatenation(op operator, l, r ref.Val) ref.Val {
	_, grows := l.(traits.MutableLister)
	ll, lok := l.(traits.Lister)
	rl, rok := r.(traits.Lister)
	if op.name != operators.Add || grows || !lok || !rok {
		return nil
	}
	return listSum(ll, rl)
}

// exactly returns the result for an int and a whole double, with all digits; nil if it is no int. Numbers of the
// state are doubles, except ints that a double would round.
func (op operator) exactly(l, r ref.Val) ref.Val {
	if n, ok := whole53(l); ok {
		l = n
	}
	if n, ok := whole53(r); ok {
		r = n
	}
	li, lok := l.(types.Int)
	ri, rok := r.(types.Int)
	if !lok || !rok || op.name == operators.Divide && li%ri != 0 {
		return nil
	}
	if res := op.same(li, ri); !types.IsError(res) {
		return res
	}
	return nil
}

// integerDivision gives CEL's integer division back to calls in which the
// checker saw two ints.
func integerDivision(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.OverloadID() != "divide_int64" {
		return i, nil
	}
	divide := func(args ...ref.Val) ref.Val { return standard()[operators.Divide].Binary(args[0], args[1]) }
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), divide), nil
}

// exact is the largest int up to which a float64 holds every int exactly.
const exact = 1<<53 - 1

// beyond reports whether a number is so large that a float64 may have lost digits of it.
func beyond(numbers ...float64) bool {
	return slices.ContainsFunc(numbers, func(f float64) bool { return math.Abs(f) > exact })
}

// whole53 converts a double to an int, if it is whole and a float64 holds it exactly.
func whole53(v ref.Val) (types.Int, bool) {
	d, ok := v.(types.Double)
	if !ok || d != types.Double(math.Trunc(float64(d))) || d < -exact-1 || d > exact+1 {
		return 0, false
	}
	return types.Int(d), true
}

// toSigned turns an unsigned number into an int if it fits, else into a double.
func toSigned(v ref.Val) ref.Val {
	u, ok := v.(types.Uint)
	switch {
	case !ok:
		return v
	case u <= math.MaxInt64:
		return types.Int(u)
	}
	return types.Double(u)
}

func float(v ref.Val) (float64, bool) {
	switch n := v.(type) {
	case types.Int:
		return float64(n), true
	case types.Double:
		return float64(n), true
	}
	return 0, false
}
