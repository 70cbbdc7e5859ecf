// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// standIns take the place of characters such as 🚀 while YAML is written: the
// writer knows only those of 16 bits, and would make a prompt with one of the
// others a single long line full of escapes.
type standIns struct {
	there, back map[rune]rune
}

// newStandIns finds a character of the private area for each that needs one.
func newStandIns(n *yaml.Node) standIns {
	seen := make(map[rune]bool)
	runes(n, seen)
	s := standIns{there: make(map[rune]rune), back: make(map[rune]rune)}
	free := rune(0xe000)
	for r := range seen {
		if r <= 0xffff {
			continue
		}
		for seen[free] {
			free++
		}
		if free > 0xf8ff {
			break // the rest is written as escapes
		}
		s.there[r], s.back[free] = free, r
		free++
	}
	return s
}

func runes(n *yaml.Node, seen map[rune]bool) {
	for _, r := range n.Value {
		seen[r] = true
	}
	for _, c := range n.Content {
		runes(c, seen)
	}
}

func swap(s string, with map[rune]rune) string {
	return strings.Map(func(r rune) rune {
		if to, ok := with[r]; ok {
			return to
		}
		return r
	}, s)
}

// in puts them into a value, out takes them out of a text.
func (s standIns) in(n *yaml.Node) *yaml.Node {
	n.Value = swap(n.Value, s.there)
	for _, c := range n.Content {
		s.in(c)
	}
	return n
}

func (s standIns) out(text []byte) []byte {
	if len(s.back) == 0 {
		return text
	}
	return []byte(swap(string(text), s.back))
}
