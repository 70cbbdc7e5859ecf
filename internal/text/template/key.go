// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// key is a name in a tag.
type key struct {
	name     string
	parts    []string // name split at its dots; none for "."
	item     bool     // a leading dot: look at the item only
	optional bool
}

func newKey(name string, optional bool) key {
	k := key{name: name, optional: optional}
	rest, item := strings.CutPrefix(name, ".")
	k.item = item
	if rest != "" {
		k.parts = strings.Split(rest, ".")
	}
	return k
}

// scoped reports whether a key says itself where it belongs.
func (k key) scoped() bool {
	return strings.Contains(k.parts[0], ":") || k.parts[0] == "artifact"
}

// The names that tags take. A field may begin with a digit, a word may not. In single braces, only one word without
// dashes is a name, perhaps after a prefix; other text in single braces stays text.
const (
	word     = `[\pL_][\pL\p{Nd}_-]*`
	plain    = `[\pL_][\pL\p{Nd}_]*`
	fields   = `[\pL\p{Nd}_-]+(?:\.[\pL\p{Nd}_-]+)*`
	prefix   = `(?:(?:app|user|temp|iteration):)?`
	artifact = `artifact\.(?:user:)?[\pL\p{Nd}_.-]+`
)

var (
	// doubleName matches words joined by dots, perhaps after a prefix, or a single dot, or words after a leading dot.
	doubleName = lazyregexp.New(`^(?:\.(?:` + fields + `)?|` + artifact + `|` + prefix + word + `(?:\.` + fields + `)?)`)
	singleName = lazyregexp.New(`^(?:` + artifact + `|` + prefix + plain + `)`)
)

// scanKey returns the length of the name that s begins with as {{ }} takes it, 0 if there is none.
func scanKey(s string) int { return len(doubleName().FindString(s)) }

// scanADK scans a name in single braces as scanKey does in double ones.
func scanADK(s string) int { return len(singleName().FindString(s)) }
