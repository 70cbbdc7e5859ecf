// SPDX-License-Identifier: Apache-2.0

package roman

import "testing"

type written struct {
	n    int
	want string
}

func try(t *testing.T, all ...written) {
	t.Helper()
	for _, w := range all {
		if got := Write(w.n); got != w.want {
			t.Errorf("Write(%d) = %q, want %q", w.n, got, w.want)
		}
	}
}

func TestSums(t *testing.T) {
	try(t, written{1, "I"}, written{3, "III"}, written{6, "VI"}, written{1666, "MDCLXVI"})
}

func TestDifferences(t *testing.T) {
	try(t, written{4, "IV"}, written{9, "IX"}, written{40, "XL"}, written{1994, "MCMXCIV"})
}

func TestLimits(t *testing.T) {
	try(t, written{-1, ""}, written{0, ""}, written{4000, ""})
}
