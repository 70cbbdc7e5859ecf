// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/refrain-dev/refrain/session"
)

// chain hashes a log event by event: each hash is over the one before and the
// event, so that the last one stands for all of them in their order.
type chain struct{ last string }

// newChain begins with what is known of the run before its first event.
func newChain(id string, initial map[string]any) (*chain, error) {
	d := session.NewDigest()
	if len(initial) == 0 {
		initial = nil
	}
	if err := d.AddValue(map[string]any{"run": id, "state": initial}); err != nil {
		return nil, err
	}
	return &chain{last: d.String()}, nil
}

// add takes the next event.
func (c *chain) add(ev *session.Event) error {
	d := session.NewDigest()
	if err := d.AddValue(c.last); err != nil {
		return err
	}
	if err := d.Add(ev); err != nil {
		return err
	}
	c.last = d.String()
	return nil
}

// flaw is the first place where a log is not as it was written.
type flaw struct {
	// Seq is the event's place in its session, Line that in the file, 0 if the
	// log is in none.
	Seq     int64  `json:"seq,omitempty"`
	Line    int    `json:"line,omitempty"`
	Problem string `json:"problem"`
}

func (f *flaw) String() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Problem)
	}
	return f.Problem
}

// chained makes the chain of a log, and finds the first event that does not fit:
// one that is missing, or not what it was when its hash was made.
func (r *oneRun) chained() (hash string, found *flaw, err error) {
	c, err := newChain(r.id, r.initial)
	if r.file != nil && r.file.head == nil {
		c, err = newChain("", nil)
	}
	if err != nil {
		return "", nil, err
	}
	if r.store != nil && r.events[0].Seq != 1 {
		found = &flaw{Seq: r.events[0].Seq, Problem: fmt.Sprintf("events are missing: it has %d, and the last one has the number %d", len(r.events), r.events[len(r.events)-1].Seq)}
	}
	for i, ev := range r.events {
		line := 0
		if r.file != nil {
			line = r.file.lines[i]
		}
		if i > 0 && ev.Seq != r.events[i-1].Seq+1 && found == nil {
			found = &flaw{ev.Seq, line, fmt.Sprintf("event %d comes after event %d", ev.Seq, r.events[i-1].Seq)}
		}
		if err := c.add(r.wholes.of(ev)); err != nil {
			return "", nil, err
		}
		if found == nil && r.file != nil && r.file.audited() && r.file.hashes[i] != c.last {
			found = &flaw{ev.Seq, line, fmt.Sprintf("event %d does not fit the chain of hashes", ev.Seq)}
		}
	}
	if found == nil && r.file != nil {
		found = r.file.ending(c.last)
	}
	return c.last, found, nil
}

// audited reports whether each line should have its hash.
func (l *logFile) audited() bool { return l.head != nil && l.head.Audit }

// sealed reports whether the last line should have the hash of all.
func (l *logFile) sealed() bool { return l.head != nil && (l.head.Audit || l.head.Sealed) }

// ending says what is wrong with a file's end, where the last hash is known.
func (l *logFile) ending(hash string) *flaw {
	n := int64(len(l.events))
	switch {
	case l.head == nil:
		return nil
	case n != l.head.Events:
		return &flaw{Problem: fmt.Sprintf("there are %d events in it, and its first line says %d", n, l.head.Events)}
	case l.sealed() && l.tail == nil:
		return &flaw{Problem: "the line with the hash of all is missing at its end"}
	case l.tail != nil && (l.tail.Chain != hash || l.tail.Events != n):
		return &flaw{Problem: "the hash in its last line is that of other events: one of them, or what the run was started with, is not what it was"}
	}
	return nil
}
