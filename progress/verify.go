// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/refrain-dev/refrain/session"
)

// Seal is one stop record held against the events that it was made from.
type Seal struct {
	// Loop is the loop's address, Seq the place of its stop record in the log.
	Loop session.Address `json:"loop"`
	Seq  int64           `json:"seq"`
	// Problem says what does not agree; "" if all does.
	Problem string `json:"problem,omitempty"`
}

// Verify makes the digest of every stop record in a log again and says which
// still agree. events are those of one session, oldest first, whole: an event
// that was changed, added or removed since is a problem of every loop around
// it. Who can write the log can also write records that agree with it: keep
// the digests of the outermost loops elsewhere to notice that. The events may be an
// outline: whole reads one of them then, and may be nil otherwise.
func Verify(events []*session.Event, whole Whole) []Seal {
	var seals []Seal
	var gone session.Spans // what a resumed run has put aside by then
	for i, ev := range events {
		if s := session.SupersededBy(ev); s != nil {
			gone = gone.Union(s)
		}
		if ev.Mark == nil || ev.Mark.Kind != session.MarkLoopStopped {
			continue
		}
		before := events[:i]
		if gone != nil {
			before = slices.DeleteFunc(slices.Clone(before), func(ev *session.Event) bool { return gone.Has(ev.Seq) })
		}
		seals = append(seals, Seal{Loop: ev.Address, Seq: ev.Seq, Problem: problem(before, ev, whole)})
	}
	return seals
}

// problem says what does not agree with a stop record.
func problem(before []*session.Event, stop *session.Event, whole Whole) string {
	record := make(map[string]any)
	dec := json.NewDecoder(bytes.NewReader(stop.Mark.Data))
	dec.UseNumber()
	if err := dec.Decode(&record); err != nil {
		return fmt.Sprintf("the record cannot be read: %v", err)
	}
	sealed, _ := record["digest"].(string)
	if sealed == "" {
		return "the record has no digest"
	}
	delete(record, "digest")
	d := session.NewDigest()
	for _, ev := range before[began(before, stop):] {
		if ev.InvocationID != stop.InvocationID || !ev.Address.Under(stop.Address) {
			continue
		}
		if err := d.Add(whole.of(ev)); err != nil {
			return err.Error()
		}
	}
	if err := d.AddValue(record); err != nil {
		return err.Error()
	}
	if d.String() == sealed {
		return ""
	}
	if n, ok := record["events"].(json.Number); ok && n.String() != fmt.Sprint(d.Len()) {
		return fmt.Sprintf("the log has %d events of the loop, the record was made from %s", d.Len(), n)
	}
	return "an event, or the record, is not what it was"
}

// began is the index of the first event of the loop's run: behind the mark that
// says that its step started.
func began(before []*session.Event, stop *session.Event) int {
	for i := len(before) - 1; i >= 0; i-- {
		ev := before[i]
		if ev.Mark != nil && ev.Mark.Kind == session.MarkStepStarted && ev.Address == stop.Address && ev.InvocationID == stop.InvocationID {
			return i + 1
		}
	}
	return 0
}
