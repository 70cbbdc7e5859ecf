// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
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
	"replace":       replacedSize,
	"join":          joinedSize,
	"format":        formattedSize,
	"flatten":       func(args []ref.Val) int { return bulk(args[0]) },
	"strings.quote": func(args []ref.Val) int { return 2*length(args[0]) + 2 },
	"lists.range":   func(args []ref.Val) int { n, _ := args[0].(types.Int); return perPlace * int(min(n, MaxValue)) },
}

func replacedSize(args []ref.Val) int {
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

func joinedSize(args []ref.Val) int {
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

// formattedSize counts each argument once, as text, with the most that escapes and precisions may add: CEL allows 100
// digits.
func formattedSize(args []ref.Val) int {
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

// bytesMade is how many bytes are made for a unit of CEL's cost. It limits what one evaluation makes to a few times
// MaxValue, however often it repeats a call.
const bytesMade = 64

// perByteMade is the time, in nanoseconds, for each byte of a new value.
const perByteMade = float64(unit) / bytesMade

// costs tells CEL the cost of what a call is about to do; see [meter].
type costs struct{}

// CallCost implements CEL's cost.ActualCostEstimator. Calls that have a price are charged before they start.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function == work {
		return new(uint64(args[0].(types.Uint)))
	}
	return new(uint64(1))
}
