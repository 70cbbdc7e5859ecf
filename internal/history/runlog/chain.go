// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"fmt"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/session"
)

// chain hashes a log event by event: each hash is over the one before and the
// event, so that the last one stands for all of them in their order.
type chain struct {
	last string
	buf  []byte
}

// newChain begins with what is known of the run before its first event.
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

// add takes the next event, and returns its canonical JSON, which the next call overwrites.
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

// Flaw is the first place where a log is not as it was written.
type Flaw struct {
	// Seq is the event's place in its session, Line that in the file, 0 if the
	// log is in none.
	Seq     int64  `json:"seq,omitempty"`
	Line    int    `json:"line,omitempty"`
	Problem string `json:"problem"`
}

func (f *Flaw) String() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Problem)
	}
	return f.Problem
}

// Chained makes the chain of a log, and finds the first event that does not fit:
// one that is missing, or not what it was when its hash was made.
func (r *Run) Chained() (hash string, found *Flaw, err error) {
	return r.chained(func(*session.Event, []byte) {})
}

// chained is Chained, and gives each event with its canonical JSON to each.
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

// place is the line of an event in a file, and the hash in it; zero for a log in no file.
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

// audited reports whether each line should have its hash.
func (l *File) audited() bool { return l.Head != nil && l.Head.Audit }

// Hashed reports whether the last line should have the hash of all.
func (l *File) Hashed() bool {
	return l.Head != nil && (l.Head.Audit || l.Head.Hashed || l.Head.Sealed)
}

// ending says what is wrong with a file's end, where the last hash is known.
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
