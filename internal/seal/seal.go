// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// IsChained reports whether a seal was computed from a chain. Seals of older versions were not; see [OfRun] and [OfLoop].
func IsChained(seal string) bool { return strings.HasPrefix(seal, session.ChainPrefix) }

// Value returns the seal of a record without a seal, after the events of a chain: the chain continued by the record. It
// fails for a record that JSON cannot hold.
func Value(c session.Chain, record any) (seal string, err error) {
	data, err := canonical.AppendJSON(nil, record)
	if err != nil {
		return "", err
	}
	c = c.Copy()
	c.AddData(0, data)
	return c.String(), nil
}

// Run seals the end of a run after the events of a chain: it sets Events, Last and Seal of its [mark.RunEnded]. end is an
// event with a [mark.KindRunEnded], and with the Seq, ID and Timestamp with which it will be stored. Run fails for an event
// that JSON cannot hold, and then does not change end.
func Run(c session.Chain, end *session.Event) error {
	var data mark.RunEnded
	err := end.Mark.Decode(&data)
	if err != nil {
		return err
	}
	data.Events, data.Last, data.Seal = c.Events, c.Last, ""
	sealed := *end
	if sealed.Mark, err = mark.New(mark.KindRunEnded, data); err != nil {
		return err
	}
	if data.Seal, err = EndOf(c, &sealed); err != nil {
		return err
	}
	m, err := mark.New(mark.KindRunEnded, data)
	if err == nil {
		end.Mark = m
	}
	return err
}

// EndOf returns the seal that the end of a run must have after the events of a chain. It ignores the seal that end has.
func EndOf(c session.Chain, end *session.Event) (seal string, err error) {
	bare := *end
	if bare.Mark, err = without(end.Mark, "seal"); err != nil {
		return "", err
	}
	c = c.Copy()
	if err := c.Add(&bare); err != nil {
		return "", err
	}
	return c.String(), nil
}

// StopOf returns the seal that a loop's stop record must have after the events of a chain. stop is the event with the
// record, a [mark.KindLoopStopped]. StopOf ignores the seal that the record has.
func StopOf(c session.Chain, stop *session.Event) (seal string, err error) {
	bare, err := without(stop.Mark, "digest")
	if err != nil {
		return "", err
	}
	return Value(c, bare.Data)
}

// Loop seals a loop's stop record after the events of a chain, in place of the seal that it has.
func Loop(c session.Chain, stop *session.Event) (err error) {
	if stop.Mark, err = with(stop.Mark, "events", c.Events); err != nil {
		return err
	}
	made, err := StopOf(c, stop)
	if err == nil {
		stop.Mark, err = with(stop.Mark, "digest", made)
	}
	return err
}

// without is the mark without a field of its data, whatever else the data has.
func without(m *mark.Mark, field string) (*mark.Mark, error) { return with(m, field, nil) }

// with is the mark with another value of a field; nil leaves the field out.
func with(m *mark.Mark, field string, value any) (*mark.Mark, error) {
	data := make(map[string]any)
	dec := json.NewDecoder(bytes.NewReader(m.Data))
	dec.UseNumber()
	if err := dec.Decode(&data); err != nil {
		return nil, fmt.Errorf("decode mark %s: %w", m.Kind, err)
	}
	if delete(data, field); value != nil {
		data[field] = value
	}
	return mark.New(m.Kind, data)
}
