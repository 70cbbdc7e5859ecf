// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"bufio"
	"fmt"
	"io"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// ExportOptions are the choices of [Run.Export].
type ExportOptions struct {
	// Audit writes a hash with each event, and not only at the end.
	Audit bool
	// Version is that of the program that writes the file.
	Version string
}

// Export writes the run as JSON Lines: one line about the run, one for each event, and one with the
// hash of everything, which Export returns.
func (r *Run) Export(w io.Writer, opts ExportOptions) (hash string, err error) {
	sum := progress.Summarize(r.Events)
	head := ExportHead{
		Type: "run", Schema: exportSchema, ID: r.ID, Name: sum.Name, Status: string(sum.Status),
		Events: int64(len(r.Events)), State: r.Initial, Audit: opts.Audit, Sealed: true, Refrain: opts.Version,
	}
	c, err := newChain(r.ID, r.Initial)
	if err != nil {
		return "", err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := progress.NewJSON(buf)
	if err := enc.Encode(head); err != nil {
		return "", err
	}
	for ev := range r.Wholes.All(r.Events) {
		if err := c.add(ev); err != nil {
			return "", err
		}
		line := any(ev)
		if opts.Audit {
			line = hashed{ev, c.last}
		}
		if err := enc.Encode(line); err != nil {
			return "", fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if r.Wholes.Err != nil {
		return "", r.Wholes.Err
	}
	if err := enc.Encode(exportTail{Type: "end", Events: head.Events, Chain: c.last}); err != nil {
		return "", err
	}
	return c.last, buf.Flush()
}

// hashed is an event with the hash of the chain up to it.
type hashed struct {
	*session.Event
	Chain string `json:"chain"`
}
