// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// MaxValue is the largest size, in bytes, of a value that an expression makes: a text, or a list or
// map with its contents. It is checked before the value is made, as CEL counts the cost of an
// operation only afterwards, when a huge value has already filled the memory.
const MaxValue = 16 << 20

// perPlace is the size that each element of a list or map counts besides its value.
const perPlace = 16

func tooLarge() error {
	return fmt.Errorf("the value is larger than %d MiB, the limit for expressions: keep less in the state, or use a "+
		"command that works on files", MaxValue>>20)
}

// bulk returns the size of a value in plain form, in bytes, where shared parts count each time. It stops counting
// above MaxValue, and counts a value that is nested too deep as too large.
func bulk(v ref.Val) int { return bulkAt(v, 0) }

func bulkAt(v ref.Val, depth int) int {
	if depth > maxNesting {
		return MaxValue + 1
	}
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	case traits.Lister:
		n := 0
		for it := x.Iterator(); n <= MaxValue && it.HasNext() == types.True; {
			n += perPlace + bulkAt(it.Next(), depth+1)
		}
		return n
	case traits.Mapper:
		n := 0
		for it := x.Iterator(); n <= MaxValue && it.HasNext() == types.True; {
			k := it.Next()
			n += 2*perPlace + bulkAt(k, depth+1) + bulkAt(x.Get(k), depth+1)
		}
		return n
	}
	return perPlace
}

// sum returns the size of two concatenated values. Of lists it counts only the elements, because their values are not
// copied.
func sum(l, r ref.Val) int { return length(l) + length(r) }

func length(v ref.Val) int {
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	case traits.Lister:
		if n, ok := x.Size().(types.Int); ok {
			return perPlace * int(n)
		}
	}
	return 0
}

// growing has the functions whose results can be much larger than their arguments, with a bound of the result.
var growing = map[string]func(args []ref.Val) int{
	"replace":       replaced,
	"join":          joined,
	"format":        formatted,
	"flatten":       func(args []ref.Val) int { return bulk(args[0]) },
	"strings.quote": func(args []ref.Val) int { return 2*length(args[0]) + 2 },
	"lists.range":   func(args []ref.Val) int { n, _ := args[0].(types.Int); return perPlace * int(min(n, MaxValue)) },
}

func replaced(args []ref.Val) int {
	var texts [3]string
	for i := range texts {
		s, ok := args[i].(types.String)
		if !ok {
			return 0 // which the function says
		}
		texts[i] = string(s)
	}
	text, old, with := texts[0], texts[1], texts[2]
	times := strings.Count(text, old)
	if len(args) > 3 {
		if n, ok := args[3].(types.Int); ok && n >= 0 {
			times = int(min(n, types.Int(times)))
		}
	}
	if len(with) > 0 && times > MaxValue/len(with) {
		return MaxValue + 1
	}
	return len(text) + times*(len(with)-len(old))
}

func joined(args []ref.Val) int {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return 0
	}
	gap := 0
	if len(args) > 1 {
		gap = length(args[1])
	}
	n := 0
	for it := list.Iterator(); n <= MaxValue && it.HasNext() == types.True; {
		n += gap + length(it.Next())
	}
	return n
}

// formatted counts each argument once, as text, with the most that escapes and precisions may add: CEL allows 100
// digits.
func formatted(args []ref.Val) int {
	if len(args) < 2 {
		return 0
	}
	text, _ := args[0].(types.String)
	return len(text) + 100*strings.Count(string(text), "%") + 2*bulk(args[1])
}

// counting lists the functions that accept ints but no doubles. They also accept a whole number of the state, which
// has no ints.
var counting = map[string]bool{
	"charAt": true, "flatten": true, "indexOf": true, "lastIndexOf": true, "lists.range": true, "replace": true, "slice": true, "split": true,
	"substring": true, "math.bitAnd": true, "math.bitNot": true, "math.bitOr": true, "math.bitShiftLeft": true, "math.bitShiftRight": true, "math.bitXor": true,
}

// wholes replaces whole doubles among the arguments by ints.
func wholes(args []ref.Val) []ref.Val {
	var ints []ref.Val
	for i, a := range args {
		n, ok := whole53(a)
		if !ok {
			continue
		}
		if ints == nil {
			ints = slices.Clone(args)
		}
		ints[i] = n
	}
	if ints == nil {
		return args
	}
	return ints
}

// bindings has CEL's own implementations of the functions in growing or counting, by overload, and by name where only
// the values select the overload.
var bindings = sync.OnceValue(func() map[string]*functions.Overload {
	all := make(map[string]*functions.Overload)
	env, err := base()
	if err != nil {
		return all
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(growing)), slices.Collect(maps.Keys(counting))) {
		f, ok := env.Functions()[name]
		if !ok {
			continue
		}
		overloads, err := f.Bindings()
		if err != nil {
			continue
		}
		for _, o := range overloads {
			all[o.Operator] = o
		}
	}
	return all
})

// bounded checks the size of a result before the function computes it, and passes ints to functions that count.
func bounded(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	size, counts := growing[call.Function()], counting[call.Function()]
	if size == nil && !counts {
		return i, nil
	}
	o := cmp.Or(bindings()[call.OverloadID()], bindings()[call.Function()])
	if o == nil {
		return nil, fmt.Errorf("%s has no implementation", call.Function())
	}
	impl := func(args ...ref.Val) ref.Val {
		if counts {
			args = wholes(args)
		}
		if size != nil && size(args) > MaxValue {
			return types.WrapErr(tooLarge())
		}
		switch {
		case o.Unary != nil && len(args) == 1:
			return o.Unary(args[0])
		case o.Binary != nil && len(args) == 2:
			return o.Binary(args[0], args[1])
		case o.Function != nil:
			return o.Function(args...)
		}
		return types.MaybeNoSuchOverloadErr(args[0])
	}
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), impl), nil
}

// These are the bytes that are made and read for a unit of CEL's cost. They limit what one evaluation makes to a few
// times MaxValue, however often it repeats a call.
const (
	bytesMade = 64
	bytesRead = 4
)

// costs tells CEL the cost of texts. Where types are known only at evaluation, CEL counts each call as one unit.
type costs struct{}

// CallCost implements CEL's cost.ActualCostEstimator.
func (costs) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	switch function {
	case "json", "number", "says":
		n := 0
		for _, a := range args {
			n += length(a)
		}
		return new(uint64(min(1+n/bytesRead, maxCost/2))) // one at least can be read
	}
	switch result.(type) {
	case types.String, types.Bytes:
		return new(uint64(1 + length(result)/bytesMade))
	}
	return nil
}
