// SPDX-License-Identifier: Apache-2.0

package vocabulary

import (
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/expr/cel"
)

// CelRoots lists the variables whose fields are keys of the state.
var CelRoots = []string{"state", "prev"}

// Mention is a place in a text or an expression that names a key, as the range of bytes From to To. Earlier is true
// for the key of an earlier state, as in prev.key. Dot is true if the key follows a dot in an expression, where a key
// must be a word.
type Mention struct {
	Name         string
	From, To     int
	Earlier, Dot bool
}

// CelName reports whether a key can follow a dot in an expression.
func CelName(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}

// CelKeys finds the keys that an expression names, in the forms state.key, state.?key, state["key"], state[?"key"]
// and "key" in state. hides is true if the expression defines a variable with the name of one of CelRoots.
func CelKeys(src string) (keys []Mention, hides bool) {
	for _, root := range CelRoots {
		found, hidden := cel.Mentions(src, root)
		for _, m := range found {
			keys = append(keys, Mention{m.Key, m.From, m.To, root == "prev", m.Dot})
		}
		hides = hides || hidden
	}
	slices.SortFunc(keys, func(a, b Mention) int { return a.From - b.From })
	return keys, hides
}
