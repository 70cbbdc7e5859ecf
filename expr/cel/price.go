// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// unit is the time, in nanoseconds, that one unit of CEL's cost stands for. An evaluation of maxCost units takes about half a second.
const unit = 500

// work is the function whose calls tell CEL's tracker how many units a function is about to use.
const work = "@work"

// ctxName is the name under which an evaluation finds its context. No source can have it.
const ctxName = "@context"

// meter charges an evaluation for the time of a call before the call starts, so that one long call is stopped as many
// short ones are.
type meter struct {
	frame *interpreter.ExecutionFrame
	ns    float64 // not charged yet
}

// spend charges a time in nanoseconds. It ends the evaluation if its cost is used up or its context has ended.
func (m *meter) spend(ns float64) {
	if m.ns += ns; m.ns > 100*unit {
		m.flush()
	}
}

type workCall struct{}

func (workCall) Function() string   { return work }
func (workCall) OverloadID() string { return work }

func (m *meter) flush() {
	units := min(m.ns/unit, 2*maxCost)
	m.ns = 0
	if units < 1 {
		return
	}
	if costs := m.frame.CostTracker(); costs != nil {
		costs.EvalUnary(nil, 0, workCall{}, types.Uint(math.Ceil(units)), nil)
	}
	if v, ok := m.frame.ResolveName(ctxName); ok && v.(context.Context).Err() != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: interpreter.InterruptError{}.Error()})
	}
}

// weigh charges a walk through a value, and returns the time that it takes in nanoseconds.
func (m *meter) weigh(v ref.Val) float64 { return m.weighAt(v, 0) }

func (m *meter) weighAt(v ref.Val, depth int) float64 {
	ns := 250 + 0.3*float64(length(v))
	m.spend(ns)
	if depth > maxNesting {
		return ns
	}
	if sorted, ok := v.(sortedMap); ok {
		v = sorted.Mapper // whose iterator does not sort
	}
	switch x := v.(type) {
	case *types.Optional:
		if x.HasValue() {
			ns += m.weighAt(x.GetValue(), depth+1)
		}
	case traits.Lister:
		for it := x.Iterator(); it.HasNext() == types.True; {
			ns += m.weighAt(it.Next(), depth+1)
		}
	case traits.Mapper:
		for it := x.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			m.spend(perEntry)
			ns += perEntry + m.weighAt(k, depth+1) + m.weighAt(x.Get(k), depth+1)
		}
	}
	return ns
}

// perEntry is the time, in nanoseconds, to find the value of a key of a map, besides that for the key and the value.
const perEntry = 900

// price charges a call for the time that it will take.
type price func(m *meter, args []ref.Val)

// texts prices a call by the sizes of its arguments, with a time per byte of a text or per element of a list.
func texts(perByte, perElement float64) price {
	return func(m *meter, args []ref.Val) {
		for _, a := range args {
			switch a.(type) {
			case types.String, types.Bytes:
				m.spend(perByte * float64(length(a)))
			case traits.Sizer:
				m.spend(perElement * count(a))
			}
		}
	}
}

// count returns the number of elements of a list or map, 0 for any other value.
func count(v ref.Val) float64 {
	switch v.(type) {
	case traits.Lister, traits.Mapper:
		n, _ := v.(traits.Sizer).Size().(types.Int)
		return float64(n)
	}
	return 0
}

// priceWhole prices a call that walks through all of its arguments.
func priceWhole(m *meter, args []ref.Val) {
	for _, a := range args {
		m.weigh(a)
	}
}

// pairs prices a comparison of each element of one list with each of the other.
func pairs(m *meter, args []ref.Val) {
	if len(args) == 2 {
		m.spend(2 * ((1+count(args[0]))*m.weigh(args[1]) + count(args[1])*60))
	}
}

// equality prices a comparison of two values, which ends where they differ.
func equality(m *meter, args []ref.Val) {
	l, r := args[0], args[1]
	if length(l) == length(r) && count(l) == count(r) {
		m.weigh(l)
	}
}

// membership prices the search for a value in a list; a map finds it at once.
func membership(m *meter, args []ref.Val) {
	if _, ok := args[1].(traits.Lister); ok {
		m.spend(count(args[1]) * (60 + min(m.weigh(args[0]), 1e9)))
	}
}

// sorting prices a sort by the last argument: n log n comparisons of texts that may differ only at their ends.
func sorting(m *meter, args []ref.Val) {
	keys, ok := args[len(args)-1].(traits.Lister)
	if !ok {
		return
	}
	longest := 0
	for it := keys.Iterator(); it.HasNext() == types.True; {
		m.spend(60)
		longest = max(longest, length(it.Next()))
	}
	n := count(keys)
	m.spend(n * math.Log2(n+2) * (250 + 0.2*float64(longest)))
}

// uniques prices [distinct]: numbers and texts are hashed, any other elements compared with each other.
func uniques(m *meter, args []ref.Val) {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return
	}
	others, weight := 0.0, 0.0
	for it := list.Iterator(); it.HasNext() == types.True; {
		e := it.Next()
		m.spend(800 + float64(length(e)))
		if _, hashed := identity(e); !hashed {
			others++
			weight += m.weigh(e)
		}
	}
	m.spend(others * weight)
}

// search prices the search for a text at each place of another.
func search(m *meter, args []ref.Val) {
	m.spend(10*float64(length(args[0])) + float64(length(args[0]))*float64(length(args[1])))
}

// priceZone prices a call that may read a time zone's file.
func priceZone(m *meter, args []ref.Val) {
	if len(args) > 1 {
		m.spend(100_000 + 40*float64(length(args[1])))
	}
}

// addition prices the copy of two texts or lists. A list that a comprehension makes is not copied.
func addition(m *meter, args []ref.Val) {
	made := length(args[1])
	if _, grows := args[0].(traits.MutableLister); !grows {
		made += length(args[0])
	}
	m.spend(perByteMade * float64(made))
}

// insertion prices the insertion of an entry, or of those of another map, whose keys are sorted. A map that a comprehension makes
// is not copied.
func insertion(m *meter, args []ref.Val) {
	n := 1.0
	if len(args) == 2 {
		n = count(args[1]) * (1 + 0.1*math.Log2(count(args[1])+2))
	}
	if _, grows := args[0].(traits.MutableMapper); !grows {
		n += count(args[0])
	}
	m.spend(n * perEntry)
}

// insert adds an entry to a map, or those of another map.
func insert(args ...ref.Val) ref.Val {
	made, ok := args[0].(traits.Mapper)
	if !ok {
		return types.NewErr("no such overload: cel.@mapInsert")
	}
	if len(args) == 3 {
		return types.InsertMapKeyValue(made, args[1], args[2])
	}
	entries, ok := args[1].(traits.Mapper)
	if !ok {
		return types.NewErr("no such overload: transformMapEntry needs a map such as {key: value} for each entry")
	}
	for it := entries.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		res := types.InsertMapKeyValue(made, k, entries.Get(k))
		if made, ok = res.(traits.Mapper); !ok {
			return res
		}
	}
	return made
}

// constant prices a call that takes the same time whatever its arguments; CEL charges it one unit.
var constant price

// prices has every function that the environment declares: one without a price cannot be called.
var prices = map[string]price{
	operators.Equals: equality, operators.NotEquals: equality,
	operators.Less: texts(0.3, 0), operators.LessEquals: texts(0.3, 0), operators.Greater: texts(0.3, 0),
	operators.GreaterEquals: texts(0.3, 0),
	operators.In:            membership, "in": membership, operators.OldIn: membership,
	operators.Add:      addition,
	operators.Subtract: constant, operators.Multiply: constant, operators.Divide: constant, operators.Modulo: constant,
	operators.Negate:     constant,
	operators.LogicalAnd: constant, operators.LogicalOr: constant, operators.LogicalNot: constant, operators.Conditional: constant,
	operators.NotStrictlyFalse: constant, "__not_strictly_false__": constant, // the latter in expressions of before
	operators.Index: constant, operators.OptIndex: constant, operators.OptSelect: constant,

	"bool": texts(20, 0), "bytes": texts(2, 0), "double": texts(20, 0), "duration": texts(40, 0), "int": texts(20, 0), "string": texts(5, 0),
	"timestamp": texts(40, 0), "uint": texts(20, 0), "dyn": constant, "type": constant,
	"size": texts(2, 0), "contains": texts(2, 0), "startsWith": texts(1, 0), "endsWith": texts(1, 0),
	"charAt": texts(10, 0), "substring": texts(10, 0), "indexOf": search, "lastIndexOf": search,
	"lowerAscii": texts(10, 0), "upperAscii": texts(10, 0), "trim": texts(10, 0), "reverse": texts(20, 60),
	"replace": texts(20, 0), "split": texts(100, 0), "strings.quote": texts(40, 0),
	"join":    func(m *meter, args []ref.Val) { texts(0, 400)(m, args); m.spend(2 * float64(joinedSize(args))) },
	"format":  func(m *meter, args []ref.Val) { texts(100, 0)(m, args); m.spend(30 * m.weigh(args[1])) },
	"matches": constant, // priced by [pattern]

	"number": func(m *meter, args []ref.Val) { m.spend(numberTime(args[0])) }, "says": texts(60, 0), "json": texts(60, 0),

	"distinct": uniques, "first": constant, "last": constant, "slice": texts(0, 60), "sort": sorting, "@sortByAssociatedKeys": sorting,
	"flatten": priceWhole, "hasAll": pairs, "hasAny": pairs, "hasExactly": pairs, "hasOnly": pairs,
	"lists.range": func(m *meter, args []ref.Val) { m.spend(20 * float64(growing["lists.range"](args))) },
	"math.@max":   texts(0, 100), "math.@min": texts(0, 100),
	"math.abs": constant, "math.bitAnd": constant, "math.bitNot": constant, "math.bitOr": constant, "math.bitShiftLeft": constant,
	"math.bitShiftRight": constant, "math.bitXor": constant, "math.ceil": constant, "math.floor": constant, "math.isFinite": constant,
	"math.isInf": constant, "math.isNaN": constant, "math.round": constant, "math.sign": constant, "math.sqrt": constant,
	"math.trunc": constant,

	"cel.@mapInsert": insertion,

	"optional.none": constant, "optional.of": constant, "optional.ofNonZeroValue": priceWhole, "optional.unwrap": texts(0, 100),
	"unwrapOpt": texts(0, 100),
	"hasValue":  constant, "value": constant, "or": constant, "orValue": constant,

	"getDate": priceZone, "getDayOfMonth": priceZone,
	"getDayOfWeek": priceZone, "getDayOfYear": priceZone, "getFullYear": priceZone, "getHours": priceZone,
	"getMilliseconds": priceZone, "getMinutes": priceZone, "getMonth": priceZone, "getSeconds": priceZone,
}

// pricedCall computes a call after its price is charged.
type pricedCall struct {
	interpreter.InterpretableCall
	price   price
	pattern func(m *meter, args []ref.Val) ref.Val // of matches
	impl    functions.FunctionOp
}

// Exec implements interpreter.InterpretableV2.
func (c *pricedCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	operands := c.Args()
	args := make([]ref.Val, len(operands))
	for i, o := range operands {
		if args[i] = o.Exec(frame); types.IsError(args[i]) {
			return args[i]
		}
	}
	m := meter{frame: frame, ns: unit}
	for i, a := range args { // CEL lists the keys of a map to learn its type, and needs no order for that
		if sorted, ok := a.(sortedMap); ok {
			args[i] = sorted.Mapper
		}
		if _, grows := a.(traits.MutableMapper); !grows {
			if _, isMap := a.(traits.Mapper); isMap {
				m.spend(20 * count(a))
			}
		}
	}
	var result ref.Val
	if c.pattern != nil {
		result = c.pattern(&m, args)
	} else {
		c.price(&m, args)
		m.flush()
		result = c.impl(args...)
	}
	if made := length(result); made > 0 && c.Function() != operators.Add {
		m.spend(perByteMade * float64(made))
		m.flush()
	}
	return types.LabelErrNode(c.ID(), result)
}

// Eval implements interpreter.Interpretable.
func (c *pricedCall) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, c.Exec)
}

// bindings has the implementations of all functions, by overload, and by name where only the values select the overload.
var bindings = sync.OnceValue(func() map[string]*functions.Overload {
	all := make(map[string]*functions.Overload)
	env, err := base()
	if err != nil {
		return all
	}
	for _, f := range env.Functions() {
		overloads, err := f.Bindings()
		if err != nil {
			continue
		}
		for _, o := range overloads {
			all[o.Operator] = o
		}
	}
	maps.Copy(all, map[string]*functions.Overload{
		operators.Equals:    {Binary: types.Equal},
		operators.NotEquals: {Binary: func(l, r ref.Val) ref.Val { return types.Bool(types.Equal(l, r) != types.True) }},
		"list_distinct":     {Unary: distinct},
		"distinct":          {Unary: distinct},
		// CEL looks at all keys of the map for each entry that it inserts.
		"@mapInsert_map_key_value": {Function: insert}, "@mapInsert_map_map": {Function: insert}, "cel.@mapInsert": {Function: insert},
	})
	return all
})

// withPrice charges each call for its time, checks the size of its result before it is computed, and passes ints to
// functions that count.
func withPrice(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	name := call.Function()
	p, ok := prices[name]
	if !ok {
		return nil, fmt.Errorf("%s has no price", name)
	}
	size, counts := growing[name], counting[name]
	if name == overloads.Matches {
		pattern, err := matching(call.Args()[1])
		return &pricedCall{InterpretableCall: call, pattern: pattern}, err
	}
	if p == nil && size == nil && !counts {
		return i, nil
	}
	o := bindings()[call.OverloadID()]
	if o == nil {
		o = bindings()[name]
	}
	if o == nil {
		return nil, fmt.Errorf("%s has no implementation", name)
	}
	if p == nil {
		p = func(*meter, []ref.Val) {}
	}
	impl := func(args ...ref.Val) ref.Val {
		if counts {
			args = wholes(args)
		}
		if size != nil && size(args) > MaxValue {
			return types.WrapErr(tooLarge())
		}
		switch {
		case o.OperandTrait != 0 && !args[0].Type().HasTrait(o.OperandTrait):
		case o.Unary != nil && len(args) == 1:
			return o.Unary(args[0])
		case o.Binary != nil && len(args) == 2:
			return o.Binary(args[0], args[1])
		case o.Function != nil:
			return o.Function(args...)
		}
		return types.NewErr("no such overload: %s", name)
	}
	return &pricedCall{InterpretableCall: call, price: p, impl: impl}, nil
}

// numberTime returns the time, in nanoseconds, that Number needs for a text: each digit may begin a number.
func numberTime(v ref.Val) float64 {
	text, _ := v.(types.String)
	digits := 0
	for i := range len(text) {
		if '0' <= text[i] && text[i] <= '9' {
			digits++
		}
	}
	return 4*float64(len(text)) + 400*float64(digits)
}
