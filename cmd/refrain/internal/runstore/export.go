// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"bufio"
	"fmt"
	"io"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// Export writes the run, and returns the hash of all.
func (r *Run) Export(w io.Writer, audit bool) (hash string, err error) {
	sum := progress.Summarize(r.Events)
	head := ExportHead{
		Type: "run", Schema: exportSchema, ID: r.ID, Name: sum.Name, Status: string(sum.Status),
		Events: int64(len(r.Events)), State: r.Initial, Audit: audit, Sealed: true, Refrain: term.Version(),
	}
	c, err := newChain(r.ID, r.Initial)
	if err != nil {
		return "", err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := term.NewJSON(buf)
	if err := enc.Encode(head); err != nil {
		return "", err
	}
	for ev := range r.Wholes.All(r.Events) {
		if err := c.add(ev); err != nil {
			return "", err
		}
		line := any(ev)
		if audit {
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
