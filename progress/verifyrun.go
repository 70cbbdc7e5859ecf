// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"

	"github.com/refrain-dev/refrain/session"
)

// RunSeal is the end of a run held against the events that it is about.
type RunSeal struct {
	// Run is the run's invocation ID, Seq the place of its end in the log.
	Run string `json:"run"`
	Seq int64  `json:"seq"`
	// Digest is what the end says of the run: see session.SealRun.
	Digest string `json:"digest"`
	// Problem says what does not agree; "" if all does.
	Problem string `json:"problem,omitempty"`
}

// VerifyRuns makes the hash again that each end of a run has over the whole run, and
// says which still agree. It covers what [Verify] does not: what runs were started
// with, such as their definitions and inputs, and steps in no loop. events are those
// of one session, oldest first, whole. Ends without a hash, as older versions have
// written them, are left out, and so are those of runs that began before the log does.
// The events may be an outline: whole reads one of them then, and may be nil otherwise.
func VerifyRuns(events []*session.Event, whole Whole) []RunSeal {
	var seals []RunSeal
	for i, ev := range events {
		if ev.Mark == nil || ev.Mark.Kind != session.MarkRunEnded || ev.Address != "" {
			continue
		}
		var end session.RunEnded
		if err := ev.Mark.Decode(&end); err != nil {
			seals = append(seals, RunSeal{Run: ev.InvocationID, Seq: ev.Seq, Problem: err.Error()})
			continue
		}
		if end.Seal == "" || events[0].Seq > 1 && !begins(events[:i], ev.InvocationID) {
			continue // the log of a part of the session has not all of it
		}
		seal := RunSeal{Run: ev.InvocationID, Seq: ev.Seq, Digest: end.Seal}
		switch made, err := session.SealRun(whole.all(events[:i]), ev.InvocationID, end); {
		case err != nil:
			seal.Problem = err.Error()
		case made != end.Seal:
			seal.Problem = "an event of it, or what it was started with (its definition, its inputs), is not what it was"
		}
		seals = append(seals, seal)
	}
	return seals
}

// begins reports whether the log has the beginning of a run.
func begins(events []*session.Event, id string) bool {
	i := slices.IndexFunc(events, func(ev *session.Event) bool { return ev.InvocationID == id })
	return i >= 0 && events[i].Mark != nil && events[i].Mark.Kind == session.MarkRunStarted
}
