// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"
	"unicode"
	"unicode/utf8"
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

// scanKey returns the length of the name that s begins with as {{ }} takes it,
// 0 if there is none: words joined by dots, perhaps after a prefix, or a single
// dot, or words after a leading dot.
func scanKey(s string) int {
	if strings.HasPrefix(s, ".") {
		n := scanField(s[1:])
		if n == 0 {
			return 1
		}
		return 1 + n + scanFields(s[1+n:])
	}
	n := scanScoped(s, true)
	if s[:n] == "artifact" && strings.HasPrefix(s[n:], ".") {
		return scanArtifact(s)
	}
	return n + scanFields(s[n:])
}

// scanADK scans a name in single braces as scanKey does in double ones: one identifier, perhaps after a prefix, or
// artifact.name. Other text in single braces stays text.
func scanADK(s string) int {
	if n := scanArtifact(s); n > 0 {
		return n
	}
	return scanScoped(s, false)
}

// scanScoped scans a word, perhaps after a prefix.
func scanScoped(s string, dashes bool) int {
	n := scanWord(s, dashes)
	switch s[:n] {
	case "app", "user", "temp", "iteration":
		if strings.HasPrefix(s[n:], ":") {
			if m := scanWord(s[n+1:], dashes); m > 0 {
				return n + 1 + m
			}
		}
	}
	return n
}

// scanArtifact scans "artifact." and a file name, which may belong to the user.
func scanArtifact(s string) int {
	file, ok := strings.CutPrefix(s, "artifact.")
	if !ok {
		return 0
	}
	file, _ = strings.CutPrefix(file, "user:")
	end := strings.IndexFunc(file, func(r rune) bool { return r != '.' && !inWord(r, true) })
	if end < 0 {
		end = len(file)
	}
	if end == 0 {
		return 0
	}
	return len(s) - len(file) + end
}

// scanFields scans any number of ".field".
func scanFields(s string) int {
	n := 0
	for strings.HasPrefix(s[n:], ".") {
		m := scanField(s[n+1:])
		if m == 0 {
			break
		}
		n += 1 + m
	}
	return n
}

// scanField scans a word after a dot, which may begin with a digit.
func scanField(s string) int {
	for i, r := range s {
		if !inWord(r, true) {
			return i
		}
	}
	return len(s)
}

// scanWord scans a letter or underscore and the rest of the word.
func scanWord(s string, dashes bool) int {
	if r, _ := utf8.DecodeRuneInString(s); r != '_' && !unicode.IsLetter(r) {
		return 0
	}
	for i, r := range s {
		if !inWord(r, dashes) {
			return i
		}
	}
	return len(s)
}

func inWord(r rune, dashes bool) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || dashes && r == '-'
}
