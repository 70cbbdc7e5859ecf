// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"iter"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// OfRun computes the hash that [mark.RunEnded.Seal] has in logs of older versions. The hash covers all events of the session from
// the run's first one up to its end, superseded ones included, and the end itself without its Seal. It
// therefore covers what the run was started with, such as the definition and the inputs. n is the number of
// events before the end. OfRun fails for events that JSON cannot hold.
func OfRun(events iter.Seq[*session.Event], end *session.Event) (seal string, n int64, err error) {
	d, err := hashRun(events, end)
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

// hashRun returns the hash of a run's events before its end.
func hashRun(events iter.Seq[*session.Event], end *session.Event) (*Hash, error) {
	d := New()
	for ev := range events {
		if ev.Seq >= end.Seq {
			break
		}
		if d.Len() == 0 && ev.InvocationID != end.InvocationID {
			continue // before its first one
		}
		if err := d.Add(ev); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// OfLoop computes the hash that a loop.StopRecord has as its digest in logs of older versions. The hash covers the events of
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
