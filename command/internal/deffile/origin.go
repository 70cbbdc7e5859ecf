// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/dialect"
)

// Origin maps places in a definition to places in the file that people edit. The zero value is the origin of a definition that
// people edit directly.
type Origin struct {
	of *dialect.Result
}

// At returns the place in the file that people edit.
func (o Origin) At(p definition.Position) definition.Position {
	if o.of == nil {
		return p
	}
	return o.of.Origin(p)
}

// Problems returns the problems of a definition with their places and lines in the file from which it was converted.
func (o Origin) Problems(all definition.Problems) definition.Problems {
	out := make(definition.Problems, len(all))
	for i, p := range all {
		was := definition.Position{File: p.File, Line: p.Line, Column: p.Column}
		at := o.At(was)
		if out[i] = p; at == was {
			continue
		}
		own := *p
		own.File, own.Line, own.Column, own.Length, own.Excerpt = at.File, at.Line, at.Column, 1, o.of.Excerpt(at)
		if strings.HasPrefix(own.Hint, "give ") || strings.HasPrefix(own.Hint, "add ") {
			own.Hint = "in what refrain import writes: " + own.Hint
		}
		out[i] = &own
	}
	return out
}
