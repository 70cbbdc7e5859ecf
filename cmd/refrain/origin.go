// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// origin says where a place in a definition stands in the file that people edit.
type origin func(definition.Position) definition.Position

// problems are those of a definition with their places in the file that it was made
// of, and the lines there.
func (o origin) problems(all definition.Problems) definition.Problems {
	lines := make(map[string][]string)
	out := make(definition.Problems, len(all))
	for i, p := range all {
		was := definition.Position{File: p.File, Line: p.Line, Column: p.Column}
		at := o(was)
		if out[i] = p; at == was {
			continue
		}
		own := *p
		own.File, own.Line, own.Column, own.Length, own.Excerpt = at.File, at.Line, at.Column, 1, ""
		if _, read := lines[at.File]; !read {
			text, _ := readSome(at.File) // without its text there is no line to show
			lines[at.File] = strings.Split(string(text), "\n")
		}
		if n := at.Line; n > 0 && n <= len(lines[at.File]) {
			own.Excerpt = strings.TrimRight(lines[at.File][n-1], "\r")
		}
		if strings.HasPrefix(own.Hint, "give ") || strings.HasPrefix(own.Hint, "add ") {
			own.Hint = "in what refrain import writes: " + own.Hint
		}
		out[i] = &own
	}
	return out
}
