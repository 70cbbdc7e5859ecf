// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/seal"
	"github.com/refrain-dev/refrain/session/statekey"
)

// RunSeal is the result of comparing the end of a run with the run's events, or stands for a run
// without an end in the log.
type RunSeal struct {
	// Run is the run's invocation ID, Seq the sequence number of its end in the log, or of its last
	// event.
	Run string `json:"run"`
	Seq int64  `json:"seq"`
	// Open says that the run has no end in the log.
	Open bool `json:"open,omitempty"`
	// Digest is the seal that the end of the run holds: see [seal.OfRun]. Empty if it could
	// not be compared.
	Digest string `json:"digest,omitempty"`
	// Problem says what differs; empty if nothing does.
	Problem string `json:"problem,omitempty"`
	// Unsealed says why nothing could be compared, although no error is known; empty if it could.
	Unsealed string `json:"unsealed,omitempty"`
}

// Runs computes the hash of each run again and compares it with the one at the run's end. It
// covers what [Loops] does not: what runs were started with, such as their definitions and inputs,
// and steps outside loops. It also finds events after an end that neither continue that run nor
// begin another. events is the whole log of one session, oldest first. If the events are an
// outline, whole reads one of them in full; otherwise it may be nil.
//
// A run of a supervisor ([mark.KindRunStarted]) that has not ended has a RunSeal with Unsealed:
// its last events could have been removed unnoticed.
func Runs(events []*session.Event, whole progress.Whole) []RunSeal {
	v := verifier{events: events, whole: whole, forked: -1}
	for i, ev := range events {
		if forks(ev) {
			v.forked = i
		}
	}
	for i, ev := range events {
		v.add(i, ev)
	}
	if v.run != nil && !v.over {
		v.seals = append(v.seals, RunSeal{
			Run: v.run.InvocationID, Seq: events[len(events)-1].Seq, Open: true,
			Unsealed: "it has not ended, and nothing holds its last events",
		})
	}
	return v.seals
}

// verifier goes through a log.
type verifier struct {
	events []*session.Event
	whole  progress.Whole
	forked int // index of the last mark with which a fork begins; -1: there is none
	seals  []RunSeal

	run    *session.Event // with which the last run has begun; nil if the log does not say
	sealed bool           // each end of it has a seal
	over   bool           // the event before is an end
}

func (v *verifier) add(i int, ev *session.Event) {
	behind := v.over
	if v.over = false; behind && !v.continues(i, ev) {
		end := &v.seals[len(v.seals)-1]
		if end.Problem == "" {
			end.Problem = fmt.Sprintf("event %d after its end neither continues the run nor begins another", ev.Seq)
		}
		v.run = nil
	}
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindRunStarted:
		if v.run != nil && v.sealed && !behind {
			v.seals = append(v.seals, RunSeal{
				Run: v.run.InvocationID, Seq: v.events[i-1].Seq, Open: true,
				Problem: fmt.Sprintf("it has no end, and event %d begins another run", ev.Seq),
			})
		}
		var data mark.RunStarted
		if err := ev.Mark.Decode(&data); err != nil {
			v.seals = append(v.seals, RunSeal{Run: ev.InvocationID, Seq: ev.Seq, Problem: err.Error()})
		}
		v.run, v.sealed = ev, data.Sealed
	case mark.KindRunEnded:
		v.seals = append(v.seals, v.ended(i, ev))
		v.over = true
	}
}

// ended holds an end against what comes before it.
func (v *verifier) ended(i int, ev *session.Event) RunSeal {
	seal := RunSeal{Run: ev.InvocationID, Seq: ev.Seq}
	begun := v.run != nil && v.run.InvocationID == ev.InvocationID
	var end mark.RunEnded
	switch err := ev.Mark.Decode(&end); {
	case err != nil:
		seal.Problem = err.Error()
	case ev.Address != "":
		seal.Problem = "its end has the address of a step"
	case !begun && v.events[0].Seq > 1:
		seal.Unsealed = "the log lacks its beginning"
	case end.Seal != "" && end.Events > 0:
		seal.Digest = end.Seal
		seal.Problem = v.differs(i, end)
	case begun && v.sealed:
		seal.Problem = "its end has no seal: it was taken out"
	default:
		seal.Unsealed = "its end has no seal: it was written before ends had one, or the seal was taken out"
	}
	return seal
}

// differs says what does not agree with the seal of the i-th event, an end.
func (v *verifier) differs(i int, end mark.RunEnded) string {
	made, n, err := seal.OfRun(v.whole.All(v.events[:i]), v.events[i])
	switch {
	case err != nil:
		return err.Error()
	case made == end.Seal:
		return ""
	case n != end.Events || v.events[i].Seq != end.Last+1:
		return fmt.Sprintf("the log has %d events of it up to its end, which is event %d; its seal is over %d, up to "+
			"event %d", n, v.events[i].Seq, end.Events, end.Last)
	}
	return "an event of it, or what it was started with (its definition, its inputs), was changed"
}

// continues reports whether the i-th event is one with which a run goes on behind its end,
// or another one begins. It says that the run is not over any more, so that nobody takes
// what comes behind it for what has ended.
func (v *verifier) continues(i int, ev *session.Event) bool {
	if ev.Mark == nil || ev.Address != "" {
		return false
	}
	mine := ev.InvocationID == v.events[i-1].InvocationID
	r := mark.RunIn(ev.Actions.StateDelta)
	switch ev.Mark.Kind {
	case mark.KindRunStarted: // what the user says, with the state
		return !mine
	case mark.KindRunResumed: // by a runner that nobody supervises
		return mine
	case mark.KindRunTaken: // a fork leaves out what its events said of the run
		return mine && onlyOfLog(ev) && (r != nil && r.Status == mark.RunRunning || r == nil && i < v.forked)
	case mark.KindRunPaused:
		return mine && onlyOfLog(ev) && (forks(ev) || r == nil && i < v.forked)
	}
	return false
}

// forks reports whether a fork begins with an event: what comes before was copied.
func forks(ev *session.Event) bool {
	if ev.Mark == nil || ev.Mark.Kind != mark.KindRunPaused {
		return false
	}
	var data mark.RunPaused
	if ev.Mark.Decode(&data) == nil && data.Session != "" {
		return true
	}
	r := mark.RunIn(ev.Actions.StateDelta)
	return r != nil && r.Status == mark.RunIsPaused && r.Parent != nil && r.Parent.Seq == ev.Seq-1
}

// onlyOfLog reports whether an event changes nothing of the state but the log's own keys.
func onlyOfLog(ev *session.Event) bool {
	for key := range ev.Actions.StateDelta {
		if !statekey.OfLog(key) {
			return false
		}
	}
	return true
}
