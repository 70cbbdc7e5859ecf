// SPDX-License-Identifier: Apache-2.0

// Package roman writes numbers as the Romans did.
package roman

import "strings"

var signs = []struct {
	value int
	sign  string
}{
	{1000, "M"}, {500, "D"}, {100, "C"}, {50, "L"}, {10, "X"}, {5, "V"}, {1, "I"},
}

// Write is a number from 1 to 3999 in Roman signs, and empty for any other.
func Write(n int) string {
	var b strings.Builder
	for _, s := range signs {
		for n > s.value {
			b.WriteString(s.sign)
			n -= s.value
		}
	}
	return b.String()
}
