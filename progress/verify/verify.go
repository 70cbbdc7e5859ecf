// SPDX-License-Identifier: Apache-2.0

// Package verify compares the hashes and the state that a session keeps with those that its events give.
//
//	for _, s := range verify.Runs(events, nil) {
//		fmt.Println(s.Run, s.Problem)
//	}
package verify

import (
	"encoding/json"
	"fmt"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/seal"
)

// LoopSeal is the result of comparing one stop record with the events that it summarizes.
type LoopSeal struct {
	// Loop is the loop's address, Seq the sequence number of its stop record.
	Loop session.Address `json:"loop"`
	Seq  int64           `json:"seq"`
	// Problem says what differs; empty if nothing does.
	Problem string `json:"problem,omitempty"`
	// Reason and Digest are those of the record.
	Reason string `json:"stop_reason,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// Loops computes the digest of every stop record in a log again and compares it. events is the
// whole log of one session, oldest first; an event that was changed, added or removed since is a
// problem of every loop around it. Somebody who can write the log can also write matching records:
// to notice that, keep the digests of the outermost loops elsewhere. If the events are an outline,
// whole reads one of them in full; otherwise it may be nil.
func Loops(events []*session.Event, whole progress.Whole) []LoopSeal {
	var seals []LoopSeal
	var gone mark.Spans // superseded by a resume before this event
	for i, ev := range events {
		if s := ev.Mark.Supersedes(); s != nil {
			gone = gone.Union(s)
		}
		if ev.Mark == nil || ev.Mark.Kind != mark.KindLoopStopped {
			continue
		}
		before := session.Without(events[:i], gone)
		one := LoopSeal{Loop: ev.Address, Seq: ev.Seq}
		var record stopRecord
		if err := ev.Mark.Decode(&record); err != nil {
			one.Problem = fmt.Sprintf("the record cannot be read: %v", err)
		} else {
			one.Problem, one.Reason, one.Digest = record.problem(before, ev, whole), record.Reason, record.Digest
		}
		seals = append(seals, one)
	}
	return seals
}

// stopRecord is the part of a loop's stop record that a seal needs.
type stopRecord struct {
	Reason, Digest string
	Events         *json.Number
}

// problem returns the difference between a stop record and its events; empty if there is none.
func (r *stopRecord) problem(before []*session.Event, stop *session.Event, whole progress.Whole) string {
	if r.Digest == "" {
		return "the record has no digest"
	}
	switch made, n, err := seal.OfLoop(before, stop, whole.Of); {
	case err != nil:
		return err.Error()
	case made == r.Digest:
		return ""
	case r.Events != nil && r.Events.String() != fmt.Sprint(n):
		return fmt.Sprintf("the log has %d events of the loop, the record was made from %s", n, r.Events)
	}
	return "an event of the loop, or its stop record, was changed"
}
