// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"bytes"
	"io"
	"path"

	"github.com/rogpeppe/go-internal/diff"
)

// Diff writes the changes as a unified diff for people, git apply and patch -p1. Its paths are relative to the folder.
func (p *Plan) Diff(w io.Writer) error {
	for _, c := range p.changed {
		if _, err := w.Write(c.diff()); err != nil {
			return err
		}
	}
	return nil
}

func (c change) diff() []byte {
	_, text, _ := bytes.Cut(diff.Diff(path.Join("a", c.name), []byte(c.before), path.Join("b", c.name), []byte(c.after)), []byte("\n"))
	return text // without the first line, which repeats the names
}
