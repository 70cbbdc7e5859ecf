// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"math"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// distinct returns each element of a list once, at its first place.
func distinct(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.NewErr("no such overload: distinct")
	}
	seen := map[any]bool{}
	var out, others []ref.Val
	for it := list.Iterator(); it.HasNext() == types.True; {
		e := it.Next()
		if key, ok := identity(e); ok {
			if seen[key] {
				continue
			}
			seen[key] = true
		} else {
			if slices.ContainsFunc(others, func(o ref.Val) bool { return types.Equal(e, o) == types.True }) {
				continue
			}
			others = append(others, e)
		}
		out = append(out, e)
	}
	return types.NewRefValList(adapt, out)
}

// identity returns a key that two numbers, texts, bools or nulls have in common if they are equal. A NaN equals none.
func identity(v ref.Val) (key any, ok bool) {
	switch x := v.(type) {
	case types.String, types.Bool, types.Int, types.Null:
		return x, true
	case types.Uint:
		if x <= math.MaxInt64 {
			return types.Int(x), true
		}
		return x, true
	case types.Double:
		switch f := float64(x); {
		case f != math.Trunc(f): // also NaN, which is found in no map
			return x, true
		case f >= -1<<63 && f < 1<<63:
			return types.Int(f), true
		case f >= 1<<63 && f < 1<<64:
			return types.Uint(f), true
		}
		return x, true
	}
	return nil, false
}

// listSum concatenates lists into one whose elements are found at once. CEL's own sum of many lists asks each of them.
func listSum(l, r traits.Lister) ref.Val {
	out := make([]ref.Val, 0, int(count(l)+count(r)))
	for _, list := range []traits.Lister{l, r} {
		for it := list.Iterator(); it.HasNext() == types.True; {
			out = append(out, it.Next())
		}
	}
	return types.NewRefValList(adapt, out)
}
