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
	"slices"

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
		before := events[:i]
		if gone != nil {
			before = slices.DeleteFunc(slices.Clone(before), func(ev *session.Event) bool { return gone.Has(ev.Seq) })
		}
		seals = append(seals, LoopSeal{Loop: ev.Address, Seq: ev.Seq, Problem: problem(before, ev, whole)})
	}
	return seals
}

// problem returns the difference between a stop record and its events; empty if there is none.
func problem(before []*session.Event, stop *session.Event, whole progress.Whole) string {
	var record struct {
		Digest string
		Events *json.Number
	}
	if err := stop.Mark.Decode(&record); err != nil {
		return fmt.Sprintf("the record cannot be read: %v", err)
	}
	if record.Digest == "" {
		return "the record has no digest"
	}
	switch made, n, err := seal.OfLoop(before, stop, whole.Of); {
	case err != nil:
		return err.Error()
	case made == record.Digest:
		return ""
	case record.Events != nil && record.Events.String() != fmt.Sprint(n):
		return fmt.Sprintf("the log has %d events of the loop, the record was made from %s", n, record.Events)
	}
	return "an event of the loop, or its stop record, was changed"
}
