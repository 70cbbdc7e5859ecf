// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Unmarshal reads JSON as far as it is what v expects: unknown fields are passed
// over, and a field of an unexpected type stays zero. There are many servers of
// each format, and what one writes in a field that hardly matters must not cost
// an answer. It fails on what is not JSON.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Count is a number of things, at most 2³¹-1. It reads what servers write for
// one: 12, 12.0 and "12". What is no such number stays zero.
type Count int64

// UnmarshalJSON never fails.
func (c *Count) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && f > 0 {
		*c = Count(min(f, math.MaxInt32))
	}
	return nil
}
