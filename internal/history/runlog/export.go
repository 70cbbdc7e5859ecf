// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// ExportOptions is the options of [Run.Export].
type ExportOptions struct {
	// Audit makes Export write a hash with each event, and not only at the end.
	Audit bool
	// Version is the version of the program that writes the file.
	Version string
	// Mask removes secrets from a line of JSON; nil means that Export changes no line. The last line of the file has the
	// number of changed lines. If there are any, the hashes are those of the file and not those of the run, so the file
	// can be read, but not imported or verified.
	Mask func(line string) string
}

// Export writes the run as JSON Lines: one line about the run, one line for each event, and a last line with the hash
// of the run and all events. Export returns this hash.
func (r *Run) Export(w io.Writer, opts ExportOptions) (hash string, err error) {
	sum := r.Summary()
	head := ExportHead{
		Type: "run", Schema: exportSchema, ID: r.ID, Name: sum.Name, Status: string(sum.Status),
		Events: int64(r.Len()), State: r.Initial, Audit: opts.Audit, Hashed: true, Sealed: r.sealed(), Refrain: opts.Version,
	}
	out := &exporter{mask: opts.Mask}
	if r.File != nil {
		out.masked = r.File.Masked()
	}
	if head.State, err = masked(out, r.Initial); err != nil {
		return "", err
	}
	c, err := newChain(r.ID, head.State)
	if err != nil {
		return "", err
	}
	buf := bufio.NewWriterSize(w, 1<<16)
	enc := progress.NewJSON(buf)
	if err := enc.Encode(head); err != nil {
		return "", err
	}
	for ev := range r.Events() {
		if ev, err = masked(out, ev); err != nil {
			return "", fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		if _, err := c.add(ev); err != nil {
			return "", err
		}
		line := any(ev)
		if opts.Audit {
			line = hashLine{ev, c.last}
		}
		if err := enc.Encode(line); err != nil {
			return "", fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if err := r.Err(); err != nil {
		return "", err
	}
	if err := enc.Encode(exportTail{Type: "end", Events: head.Events, Chain: c.last, Masked: out.masked}); err != nil {
		return "", err
	}
	return c.last, buf.Flush()
}

// sealed reports whether the last run in the log has ended, and its end has a seal.
func (r *Run) sealed() bool {
	var last *session.Event
	for ev := range r.All() {
		if ev.Mark != nil && ev.Mark.Kind != mark.KindAnswered && ev.Address == "" {
			last = ev
		}
	}
	var end mark.RunEnded
	return last != nil && last.Mark.Kind == mark.KindRunEnded && r.Wholes.Of(last).Mark.Decode(&end) == nil && end.Seal != ""
}

// exporter masks the values of an export, and counts the values that it has changed.
type exporter struct {
	mask   func(string) string
	masked int64
}

// masked returns a value without its secrets, or v itself if it has none.
func masked[T any](out *exporter, v T) (T, error) {
	if out.mask == nil {
		return v, nil
	}
	text, err := progress.MarshalJSON(v)
	if err != nil {
		return v, err
	}
	without := out.mask(string(text))
	if without == string(text) {
		return v, nil
	}
	out.masked++
	var now T
	if err := json.Unmarshal([]byte(without), &now); err != nil {
		return v, fmt.Errorf("strike out its secrets: %w", err)
	}
	return now, nil
}

// hashLine is the line of an event in an export with Audit. Chain is the hash of the chain up to the event.
type hashLine struct {
	*session.Event
	Chain string `json:"chain"`
}
