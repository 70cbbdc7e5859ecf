// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// surrogates matches the two escapes with which JSON writes a character outside the basic plane. YAML writes such a
// character in another way.
var surrogates = lazyregexp.New(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

// Surrogate returns the character of the two escapes at the beginning of a text, such as \ud83d\ude80. It returns 0
// if the text begins with anything else.
func Surrogate(text string) rune {
	if text = text[:min(len(text), 12)]; !surrogates().MatchString(text) {
		return 0
	}
	hi, _ := strconv.ParseUint(text[2:6], 16, 16)
	lo, _ := strconv.ParseUint(text[8:12], 16, 16)
	return utf16.DecodeRune(rune(hi), rune(lo))
}

// wideColumns has the columns, by line, of characters that take 12 columns in JSON and 1 in the YAML that is parsed instead.
type wideColumns map[int][]int

// fromJSON converts valid JSON to YAML with the same lines. In JSON, tabs are only between values.
func fromJSON(data []byte) ([]byte, wideColumns) {
	data = bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	var out []byte
	var at []int
	done := 0
	for _, pair := range surrogates().FindAllIndex(data, -1) {
		out = append(out, data[done:pair[0]]...)
		at = append(at, len(out))
		out = append(out, string(Surrogate(string(data[pair[0]:pair[1]])))...)
		done = pair[1]
	}
	if out = append(out, data[done:]...); len(at) == 0 {
		return out, nil
	}
	shorter, src := make(wideColumns), New("", "", 0, string(out))
	for _, n := range at {
		line, column := src.Place(n)
		shorter[line] = append(shorter[line], column)
	}
	return out, shorter
}

// widen changes the columns of values to those in the JSON.
func (e wideColumns) widen(n *yaml.Node) {
	before, _ := slices.BinarySearch(e[n.Line], n.Column)
	n.Column += 11 * before
	for _, c := range n.Content {
		e.widen(c)
	}
}
