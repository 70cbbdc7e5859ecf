// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/refrain-dev/refrain/internal/values/canonical"
)

// AppendJSON appends the event's JSON, as stores keep it: the output of json.Marshal with the fields of all objects sorted by
// name, except in the data of its mark. It fails for an event that JSON cannot hold.
func (e *Event) AppendJSON(dst []byte) ([]byte, error) {
	w := canonical.Writer{Buf: dst, KeepRaw: true}
	if err := w.Record(e); err != nil {
		return dst, err
	}
	return w.Buf, nil
}

// AppendCanonical appends the event's canonical JSON, from which seals are computed: the event as a store
// returns it, with the fields of all objects sorted by name, without temp: keys, and with the timestamp in
// UTC and microseconds. [Event.Decode] reads it. AppendCanonical fails for an event that JSON cannot hold,
// and for an event without its long texts; see [Log.Outline].
func (e *Event) AppendCanonical(dst []byte) ([]byte, error) {
	if e.Omitted > 0 {
		return dst, fmt.Errorf("encode event %d: its long texts are cut off; read the event with Log.Full", e.Seq)
	}
	out, same, err := e.appendCanonical(dst)
	if err == nil && !same {
		var back Event
		if back.Decode(out[len(dst):]) == nil {
			out, _, err = back.appendCanonical(dst)
		}
	}
	if err != nil {
		return dst, fmt.Errorf("encode event %d: %w", e.Seq, err)
	}
	return out, nil
}

// appendCanonical appends the canonical JSON of the event in memory. same reports whether the event has the same JSON after
// it is read back.
func (e *Event) appendCanonical(dst []byte) (_ []byte, same bool, err error) {
	stored := *e.WithoutTemp()
	stored.Timestamp = e.Timestamp.UTC().Truncate(time.Microsecond)
	w := canonical.Writer{Buf: dst}
	err = w.Record(&stored)
	return w.Buf, !w.Other, err
}

// Decode reads an event from its JSON; e must be empty. The state delta has plain
// values; see [Plain]. Decode is for stores: it refuses a timestamp that is a number.
func (e *Event) Decode(data []byte) error {
	if err := json.Unmarshal(data, (*eventFields)(e)); err != nil {
		return err
	}
	return e.restore(data)
}

// eventFields is an Event without its method UnmarshalJSON, so that encoding/json reads it field by field.
type eventFields Event

// UnmarshalJSON reads an event. The state delta has plain values; see [Plain]. The
// timestamp may also be a number, as Python's ADK writes it: seconds since 1970, read
// to the microsecond.
func (e *Event) UnmarshalJSON(data []byte) error {
	err := json.Unmarshal(data, (*eventFields)(e))
	if err == nil {
		return e.restore(data)
	}
	var number struct {
		Timestamp *float64 `json:"timestamp"`
	}
	if json.Unmarshal(data, &number) != nil || number.Timestamp == nil {
		return err
	}
	at := time.UnixMicro(int64(math.Round(*number.Timestamp * 1e6))).UTC()
	if y := at.Year(); y < 1 || y > 9999 || math.Abs(*number.Timestamp) > 1e12 {
		return fmt.Errorf("timestamp %v of an event is not in seconds since 1970", *number.Timestamp)
	}
	rest := struct {
		*eventFields
		Timestamp json.RawMessage `json:"timestamp"` // hides the Timestamp of stored
	}{eventFields: (*eventFields)(e)}
	if err := json.Unmarshal(data, &rest); err != nil {
		return err
	}
	e.Timestamp = at
	return e.restore(data)
}
