// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Run seals the end of a run: it sets Events, Last and Seal of its [mark.RunEnded]. end is an event with a
// [mark.KindRunEnded], and with the Seq, ID and Timestamp with which it will be stored. events are those of
// the session, in their order. Run fails for events that JSON cannot hold, and then does not change end.
func Run(events iter.Seq[*session.Event], end *session.Event) error {
	d, last, err := hashRun(events, end)
	if err != nil {
		return err
	}
	return d.seal(end, last)
}

// seal seals the end of the run whose events are in the hash; last is the Seq of the last.
func (d *Hash) seal(end *session.Event, last int64) error {
	var data mark.RunEnded
	err := end.Mark.Decode(&data)
	if err != nil {
		return err
	}
	data.Events, data.Last, data.Seal = int64(d.Len()), last, ""
	sealed := *end
	if sealed.Mark, err = mark.New(mark.KindRunEnded, data); err != nil {
		return err
	}
	if err := d.Add(&sealed); err != nil {
		return err
	}
	data.Seal = d.String()
	m, err := mark.New(mark.KindRunEnded, data)
	if err == nil {
		end.Mark = m
	}
	return err
}

// OfRun computes the hash that [mark.RunEnded.Seal] holds. The hash covers all events of the session from
// the run's first one up to its end, superseded ones included, and the end itself without its Seal. It
// therefore covers what the run was started with, such as the definition and the inputs. n is the number of
// events before the end. OfRun fails for events that JSON cannot hold.
func OfRun(events iter.Seq[*session.Event], end *session.Event) (seal string, n int64, err error) {
	d, _, err := hashRun(events, end)
	if err != nil {
		return "", 0, err
	}
	n = int64(d.Len())
	seal, err = d.Ended(end)
	return seal, n, err
}

// Ended returns the seal of a run whose events up to its end are in the hash, without its end. The hash stays as it is.
// Ended fails for an end that JSON cannot hold.
func (d *Hash) Ended(end *session.Event) (seal string, err error) {
	bare := *end
	if bare.Mark, err = without(end.Mark, "seal"); err != nil {
		return "", err
	}
	c := d.clone()
	if err := c.Add(&bare); err != nil {
		return "", err
	}
	return c.String(), nil
}

// hashRun is the hash of a run's events before its end, with the Seq of the last.
func hashRun(events iter.Seq[*session.Event], end *session.Event) (d *Hash, last int64, err error) {
	d = New()
	for ev := range events {
		if ev.Seq >= end.Seq {
			break
		}
		if d.Len() == 0 && ev.InvocationID != end.InvocationID {
			continue // before its first one
		}
		if err := d.Add(ev); err != nil {
			return nil, 0, err
		}
		last = ev.Seq
	}
	return d, last, nil
}

// Loop computes the digest of a loop's stop record again and replaces it; see [OfLoop].
func Loop(before iter.Seq[*session.Event], stop *session.Event) error {
	seal, _, err := OfLoop(before, stop)
	if err == nil {
		stop.Mark, err = with(stop.Mark, "digest", seal)
	}
	return err
}

// OfLoop computes the hash that a loop.StopRecord holds as its digest. The hash covers the events of
// the loop that are not superseded, from its beginning up to the record, and the record without its
// digest. stop is the event with the record, a [mark.KindLoopStopped]. before yields the session's earlier
// events, without those superseded by then, and is ranged twice; n is how many of them are the loop's.
// OfLoop fails for events that JSON cannot hold.
func OfLoop(before iter.Seq[*session.Event], stop *session.Event) (seal string, n int, err error) {
	began, i := 0, 0
	for ev := range before {
		if i++; starts(ev) && ev.Address == stop.Address && ev.InvocationID == stop.InvocationID {
			began = i
		}
	}
	d := New()
	i = 0
	for ev := range before {
		if i++; i <= began || ev.InvocationID != stop.InvocationID || !ev.Address.Under(stop.Address) {
			continue
		}
		if err := d.Add(ev); err != nil {
			return "", 0, err
		}
	}
	return d.stopped(stop)
}

// stopped is the digest of a loop whose events are in the hash, and how many those are.
func (d *Hash) stopped(stop *session.Event) (seal string, n int, err error) {
	bare, err := without(stop.Mark, "digest")
	if err != nil {
		return "", 0, err
	}
	c := d.clone()
	if err := c.AddValue(bare.Data); err != nil {
		return "", 0, err
	}
	return c.String(), c.Len(), nil
}

func starts(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted }

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
