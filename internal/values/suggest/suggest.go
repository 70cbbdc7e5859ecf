// SPDX-License-Identifier: Apache-2.0

// Package suggest finds the name that a person probably meant by a mistyped one.
//
//	suggest.Nearest("itterations", []string{"iterations", "timeout"}) // iterations
package suggest

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Nearest returns the most similar name to a mistyped one; "" if none is similar.
func Nearest(typed string, names []string) string {
	n := utf8.RuneCountInString(typed)
	if n > 64 {
		return ""
	}
	best, limit := "", min(n, max(1, n/3)+1) // any letter is near a single one
	x := []rune(strings.ToLower(typed))
	for _, name := range names {
		if far := n - utf8.RuneCountInString(name); max(far, -far) > limit {
			continue
		}
		d := distance(x, []rune(strings.ToLower(name)))
		if name != typed && (d < limit || d == limit && best != "" && name < best) {
			best, limit = name, d
		}
	}
	return best
}

// Hint returns a hint about an unknown name: the most similar of the names, or the list of the names.
func Hint(typed string, names []string) string {
	if near := Nearest(typed, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(names, ", ")
}

// distance counts the letters to insert, delete, change or swap with the next.
func distance(x, y []rune) int {
	var before, prev []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, prev, row = prev, row, make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, prev[j+1]+1, prev[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}
