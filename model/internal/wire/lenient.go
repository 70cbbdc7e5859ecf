// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Unmarshal reads JSON leniently: it ignores unknown fields, and a field of an unexpected type
// stays zero. There are many servers of each format, and an unimportant field must not cost an
// answer. Unmarshal fails on text that is not JSON.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Count is a number of things, at most 2³¹-1. It reads the forms that servers write: 12, 12.0 and
// "12". Any other value stays zero.
type Count int64

// UnmarshalJSON never fails.
func (c *Count) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && f > 0 {
		*c = Count(min(f, math.MaxInt32))
	}
	return nil
}
