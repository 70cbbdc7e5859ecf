// SPDX-License-Identifier: Apache-2.0

package term

import "testing"

// An amount of money is read at a glance: no exponent, however small it is.
func TestAmountsHaveNoExponent(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 0.0000112345: "0.00001123", 0.41: "0.41", 12.34567: "12.35", 1234567: "1235000", 3e-12: "0.000000000003"} {
		if got := Amount(f); got != want {
			t.Errorf("%v: %q, want %q", f, got, want)
		}
	}
}
