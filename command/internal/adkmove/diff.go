// SPDX-License-Identifier: Apache-2.0

package adkmove

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"
)

// around is the number of unchanged lines that a diff shows before and after a change.
const around = 3

// Diff writes the changes as a unified diff for people, git apply and patch -p1. Its paths are relative to the folder.
func (p *Plan) Diff(w io.Writer) error {
	var b bytes.Buffer
	for _, c := range p.changed {
		c.diff(&b)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c change) diff(b *bytes.Buffer) {
	fmt.Fprintf(b, "--- %s\n+++ %s\n", path.Join("a", c.name), path.Join("b", c.name))
	grown := 0 // number of added lines so far
	for i := 0; i < len(c.lines); i++ {
		if c.lines[i] == c.moved[i] {
			continue
		}
		from, to := max(i-around, 0), i
		for k := i; k < len(c.lines) && k <= to+2*around+1; k++ {
			if c.lines[k] != c.moved[k] {
				to = k
			}
		}
		i = to
		to = min(to+around+1, len(c.lines))
		if c.lines[to-1] == "" {
			to-- // after the last line break
		}
		var body bytes.Buffer
		old, now := to-from, 0
		for k := from; k < to; {
			start := k
			for k < to && c.lines[k] != c.moved[k] {
				k++
			}
			if k == start {
				now++
				say(&body, ' ', c.lines[k])
				k++
				continue
			}
			for _, line := range c.lines[start:k] {
				say(&body, '-', line)
			}
			for line := range strings.Lines(strings.Join(c.moved[start:k], "")) {
				now++
				say(&body, '+', line)
			}
		}
		fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n%s", from+1, old, from+1+grown, now, &body)
		grown += now - old
	}
}

func say(b *bytes.Buffer, sign byte, line string) {
	b.WriteByte(sign)
	b.WriteString(line)
	if !strings.HasSuffix(line, "\n") {
		b.WriteString("\n\\ No newline at end of file\n")
	}
}
