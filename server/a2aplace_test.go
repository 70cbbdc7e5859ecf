// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

// The token of a page holds the place also at times beyond the nanoseconds of an int64.
func TestTokenOfAPageHoldsAnyTime(t *testing.T) {
	for _, at := range []time.Time{time.Unix(0, 1), time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC)} {
		want := taskPlace{at, "r_1 a"}
		got, err := placeAt(want.token())
		if err != nil || got.compare(want) != 0 {
			t.Errorf("%v comes back as %v, %v", want, got, err)
		}
	}
}
