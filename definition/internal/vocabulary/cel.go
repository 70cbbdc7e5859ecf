// SPDX-License-Identifier: Apache-2.0

package vocabulary

import (
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// celToken is a token of an expression: a word, a string or a sign. name is the content of a word or a string, and
// from and to are its range without quotes.
type celToken struct {
	kind     celKind
	name     string
	from, to int
}

type celKind uint8

const (
	celWord celKind = iota
	celText
	celSign
)

// celTokens splits an expression into tokens. The expression must compile.
func celTokens(src string) []celToken {
	var all []celToken
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRuneInString(src[i:])
		switch {
		case unicode.IsSpace(r):
			i += size
		case strings.HasPrefix(src[i:], "//"):
			if n := strings.IndexByte(src[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(src)
			}
		case r == '"' || r == '\'' || r == '`':
			t := celQuoted(src, i)
			i = t.end
			all = append(all, t.celToken)
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			end := i
			for end < len(src) && (src[end] == '_' || src[end] < 0x80 && (unicode.IsLetter(rune(src[end])) || unicode.IsDigit(rune(src[end])))) {
				end++
			}
			end = max(end, i+size)
			if word := src[i:end]; end < len(src) && (src[end] == '"' || src[end] == '\'') &&
				strings.Trim(strings.ToLower(word), "rb") == "" {
				t := celQuoted(src, end)
				if strings.ContainsAny(word, "bB") {
					t.kind, t.name = celSign, "bytes"
				}
				all = append(all, t.celToken)
				i = t.end
				continue
			}
			all = append(all, celToken{celWord, src[i:end], i, end})
			i = end
		default:
			all = append(all, celToken{celSign, src[i : i+size], i, i + size})
			i += size
		}
	}
	return all
}

type celQuote struct {
	celToken
	end int
}

// celQuoted reads a string in quotes. It does not decode escapes, because no key of the state has a character that needs one.
func celQuoted(src string, at int) celQuote {
	quote := src[at : at+1]
	if triple := strings.Repeat(quote, 3); quote != "`" && strings.HasPrefix(src[at:], triple) {
		quote = triple
	}
	from := at + len(quote)
	to := from
	for to < len(src) && !strings.HasPrefix(src[to:], quote) {
		if src[to] == '\\' {
			to++
		}
		to++
	}
	to = min(to, len(src))
	kind := celText
	if quote == "`" {
		kind = celWord
	}
	return celQuote{celToken{kind, src[from:to], from, to}, min(to+len(quote), len(src))}
}

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
	all := celTokens(src)
	at := func(i int) celToken {
		if i < 0 || i >= len(all) {
			return celToken{kind: celSign}
		}
		return all[i]
	}
	sign := func(i int, text string) bool { return at(i).kind == celSign && at(i).name == text }
	for i, t := range all {
		if t.kind != celWord || !slices.Contains(CelRoots, t.name) || sign(i-1, ".") ||
			sign(i-1, "?") && sign(i-2, ".") {
			continue
		}
		if sign(i-1, "(") && sign(i+1, ",") && at(i-2).kind == celWord && sign(i-3, ".") ||
			sign(i-1, ",") && sign(i+1, ",") {
			hides = true // items.map(state, …)
		}
		next := i + 2
		if sign(next, "?") {
			next++
		}
		switch k := at(next); {
		case sign(i+1, ".") && k.kind == celWord:
			keys = append(keys, Mention{k.name, k.from, k.to, t.name == "prev", src[k.from-1] != '`'})
		case sign(i+1, "[") && k.kind == celText && sign(next+1, "]"):
			keys = append(keys, Mention{k.name, k.from, k.to, t.name == "prev", false})
		}
		if k := at(i - 2); at(i-1).kind == celWord && at(i-1).name == "in" && k.kind == celText && !sign(i+1, ".") &&
			!sign(i+1, "[") {
			keys = append(keys, Mention{k.name, k.from, k.to, t.name == "prev", false})
		}
	}
	sort.Slice(keys, func(i, k int) bool { return keys[i].From < keys[k].From }) // 20 KB smaller than slices.SortFunc
	return keys, hides
}
