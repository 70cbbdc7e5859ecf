// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/session"
)

// chain is a chain of hashes over a log. Each hash covers the previous hash and the next event, so the last hash covers
// all events in their order.
type chain struct {
	last string
	buf  []byte
}

// newChain returns a chain whose first hash covers the run's ID and its initial state.
func newChain(id string, initial map[string]any) (*chain, error) {
	d := seal.New()
	if len(initial) == 0 {
		initial = nil
	}
	if err := d.AddValue(map[string]any{"run": id, "state": initial}); err != nil {
		return nil, err
	}
	return &chain{last: d.String()}, nil
}

// add adds the next event to the chain. It returns the event's canonical JSON, which the next call overwrites.
func (c *chain) add(ev *session.Event) (data []byte, err error) {
	d := seal.New()
	if err := d.AddValue(c.last); err != nil {
		return nil, err
	}
	if c.buf, err = ev.AppendCanonical(c.buf[:0]); err != nil {
		return nil, err
	}
	d.AddData(c.buf)
	c.last = d.String()
	return c.buf, nil
}

// Flaw describes the first place where a log differs from the log that was written.
type Flaw struct {
	// Seq is the event's sequence number. Line is the number of its line in the file; 0 if the log is not in a
	// file.
	Seq     int64  `json:"seq,omitempty"`
	Line    int    `json:"line,omitempty"`
	Problem string `json:"problem"`
}

// String returns the problem, with the line if there is one.
func (f *Flaw) String() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Problem)
	}
	return f.Problem
}

// Chained computes the chain of hashes over the log, and returns its last hash. found is the first flaw, such as a missing
// or a changed event; nil if there is none. Chained can find a changed event only in a file with hashes.
func (r *Run) Chained() (hash string, found *Flaw, err error) {
	return r.chained(func(*session.Event, []byte) {})
}

// chained does what Chained does, and also calls each with every event and its canonical JSON.
func (r *Run) chained(each func(ev *session.Event, data []byte)) (hash string, found *Flaw, err error) {
	c, err := newChain(r.ID, r.Initial)
	if r.File != nil && r.File.Head == nil {
		c, err = newChain("", nil)
	}
	if err != nil {
		return "", nil, err
	}
	if r.Store != nil && r.First().Seq != 1 {
		found = &Flaw{Seq: r.First().Seq, Problem: fmt.Sprintf("events are missing: there are %d, and the last one "+
			"is number %d", r.Len(), r.Last().Seq)}
	}
	i, before := -1, int64(0)
	for ev, at := range r.hashed {
		i++
		if i > 0 && ev.Seq != before+1 && found == nil {
			found = &Flaw{ev.Seq, at.line, fmt.Sprintf("event %d comes after event %d", ev.Seq, before)}
		}
		before = ev.Seq
		data, err := c.add(ev)
		if err != nil {
			return "", nil, err
		}
		each(ev, data)
		if found == nil && r.File != nil && r.File.audited() && at.chain != c.last {
			found = &Flaw{ev.Seq, at.line, fmt.Sprintf("event %d does not match the chain of hashes", ev.Seq)}
		}
	}
	if err := r.Err(); err != nil {
		return "", nil, err
	}
	if found == nil && r.File != nil {
		found = r.File.ending(c.last)
	}
	return c.last, found, nil
}

// place is the line of an event in a file, with the hash in this line. It is zero if the log is not in a file.
type place struct {
	line  int
	chain string
}

// hashed yields the events of the log with their places in a file.
func (r *Run) hashed(yield func(ev *session.Event, at place) bool) {
	if r.File != nil {
		for rec, line := range r.File.records {
			if !yield(rec.ev, place{line, rec.chain}) {
				return
			}
		}
		return
	}
	for ev := range r.Events() {
		if !yield(ev, place{}) {
			return
		}
	}
}

// audited reports whether each line of the file should have a hash.
func (l *File) audited() bool { return l.Head != nil && l.Head.Audit }

// Hashed reports whether the file should have a last line with the hash of all events.
func (l *File) Hashed() bool {
	return l.Head != nil && (l.Head.Audit || l.Head.Hashed || l.Head.Sealed)
}

// ending compares the end of a file with hash, the computed hash of all its events. It returns nil if they agree.
func (l *File) ending(hash string) *Flaw {
	n := int64(l.n)
	switch {
	case l.Head == nil:
		return nil
	case n != l.Head.Events:
		return &Flaw{Problem: fmt.Sprintf("it has %d events, but its first line says %d", n, l.Head.Events)}
	case l.Hashed() && l.tail == nil:
		return &Flaw{Problem: "the line with the hash of all is missing at its end"}
	case l.tail != nil && (l.tail.Chain != hash || l.tail.Events != n):
		return &Flaw{Problem: "the hash in its last line is that of other events: one of them, or what the run was " +
			"started with, was changed"}
	}
	return nil
}
