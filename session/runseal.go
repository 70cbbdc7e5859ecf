// SPDX-License-Identifier: Apache-2.0

package session

import "iter"

// SealRun is a hash over a run up to its end: over all its events that come before,
// what it was started with among them (the definition, the inputs, what the user has
// said), whether or not they count, and over what the end says, its Seal aside. Events
// are those of the session, in their order, up to the mark with the end.
//
// [RunEnded.Seal] has it, and progress.VerifyRuns makes it again. It fails for events
// that JSON cannot hold.
func SealRun(events iter.Seq[*Event], id string, end RunEnded) (string, error) {
	d := NewDigest()
	for ev := range events {
		if ev.InvocationID != id {
			continue
		}
		if err := d.Add(ev); err != nil {
			return "", err
		}
	}
	end.Seal = ""
	if err := d.AddValue(end); err != nil {
		return "", err
	}
	return d.String(), nil
}
