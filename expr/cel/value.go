// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// maxNesting bounds how deep a value may be; state can be cyclic by mistake.
const maxNesting = 100

// adapter turns Go values into CEL's as they are touched: lists and maps
// element by element, anything unknown by way of its JSON.
type adapter struct{}

var adapt adapter

// NativeToValue implements CEL's types.Adapter.
func (a adapter) NativeToValue(v any) (out ref.Val) {
	defer func() {
		if r := recover(); r != nil {
			out = types.NewErr("cannot read a value of type %T: %v", v, r)
		}
	}()
	switch x := v.(type) {
	case nil:
		return types.NullValue
	case ref.Val:
		return x
	case bool:
		return types.Bool(x)
	case int:
		return types.Int(x)
	case int64:
		return types.Int(x)
	case float64:
		return types.Double(x)
	case string:
		return types.String(x)
	case []byte:
		return types.Bytes(x)
	case time.Time:
		return types.Timestamp{Time: x}
	case time.Duration:
		return types.Duration{Duration: x}
	case json.Number:
		return number(x)
	case json.RawMessage:
		return a.decoded(x)
	case map[string]any:
		return sortedMap{types.NewStringInterfaceMap(a, x)}
	case []any:
		return types.NewDynamicList(a, x)
	case []float64:
		return types.NewDynamicList(a, x)
	case []string:
		return types.NewStringList(a, x)
	case []ref.Val: // made by functions such as sort
		return types.NewRefValList(a, x)
	}
	return a.viaJSON(v)
}

func (a adapter) viaJSON(v any) ref.Val {
	b, err := json.Marshal(v)
	if err != nil {
		return types.NewErr("cannot read a value of type %T: %v", v, err)
	}
	return a.decoded(b)
}

func (a adapter) decoded(b []byte) ref.Val {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return types.NewErr("cannot read JSON: %v", err)
	}
	return a.NativeToValue(v)
}

// whole64 returns an int, or an unsigned one if an int is too small.
func whole64(u uint64) ref.Val {
	if u > math.MaxInt64 {
		return types.Uint(u)
	}
	return types.Int(u)
}

func number(n json.Number) ref.Val {
	if i, err := n.Int64(); err == nil {
		return types.Int(i)
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return whole64(u)
	}
	f, err := n.Float64()
	if err != nil {
		return types.NewErr("not a number: %q", n.String())
	}
	return types.Double(f)
}

// sortedMap is a map that iterates in the order of its keys. With Go's random order, the result of state.map(k,
// state[k]) would be random too.
type sortedMap struct{ traits.Mapper }

// Iterator implements traits.Iterable.
func (m sortedMap) Iterator() traits.Iterator {
	var keys []ref.Val
	for it := m.Mapper.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int { return strings.Compare(keyText(a), keyText(b)) })
	return types.NewRefValList(adapt, keys).Iterator()
}

func keyText(k ref.Val) string {
	if s, ok := k.(types.String); ok {
		return string(s)
	}
	return fmt.Sprint(k.Value())
}

// plain turns a result into plain Go values, of at most MaxValue.
func plain(v ref.Val) (any, error) { return new(unpacker).plain(v, 0) }

// unpacker counts the size of a result. Shared parts are copied, so a small value can become a large one.
type unpacker struct{ size int }

func (u *unpacker) plain(v ref.Val, depth int) (any, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("the result is nested deeper than %d", maxNesting)
	}
	u.size += perPlace
	switch v.(type) {
	case types.String, types.Bytes:
		u.size += length(v)
	}
	if u.size > MaxValue+perPlace { // a text may have all of it
		return nil, tooLarge()
	}
	if sorted, ok := v.(sortedMap); ok {
		v = sorted.Mapper // a Go map has no order
	}
	switch x := v.(type) {
	case *types.Err:
		return nil, x
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(x), nil
	case types.Int:
		return int64(x), nil
	case types.Uint:
		if x > math.MaxInt64 {
			return uint64(x), nil
		}
		return int64(x), nil
	case types.Double:
		return float64(x), nil
	case types.String:
		return string(x), nil
	case types.Bytes:
		return strings.ToValidUTF8(string(x), string(utf8.RuneError)), nil
	case types.Timestamp:
		return x.Format(time.RFC3339Nano), nil
	case types.Duration:
		return x.Duration.String(), nil
	case *types.Optional:
		if !x.HasValue() {
			return nil, nil
		}
		return u.plain(x.GetValue(), depth+1)
	case ref.Type:
		return x.TypeName(), nil
	case traits.Lister:
		out := []any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			e, err := u.plain(it.Next(), depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		return out, nil
	case traits.Mapper:
		out := map[string]any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			k := it.Next()
			u.size += length(k)
			e, err := u.plain(x.Get(k), depth+1)
			if err != nil {
				return nil, err
			}
			out[keyText(k)] = e
		}
		return out, nil
	}
	return nil, fmt.Errorf("the result has no plain form: %s", v.Type().TypeName())
}

// describe names a plain value for an error text, without quoting all of it.
func describe(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the text %q", brief.Clip(x, 40))
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprint(v)
}

// jsonOf is the function json for a text. It makes the values of all numbers at once, because a number can have many
// digits, and a list is often read more than once.
func jsonOf(v ref.Val) ref.Val {
	x, err := expr.JSON(string(v.(types.String)))
	if err != nil {
		return types.WrapErr(err)
	}
	return adapt.NativeToValue(numbers(x))
}

func numbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		return number(x)
	case []any:
		for i := range x {
			x[i] = numbers(x[i])
		}
	case map[string]any:
		for k := range x {
			x[k] = numbers(x[k])
		}
	}
	return v
}
