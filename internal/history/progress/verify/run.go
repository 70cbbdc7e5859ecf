// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"iter"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
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

// Runs returns the comparison of each run's end with the run's events. It covers what [Log.Loops] does not: what runs were
// started with, such as their definitions and inputs, and steps outside loops. It also finds events after an end that
// neither continue that run nor begin another.
//
// A run of a supervisor ([mark.KindRunStarted]) that has not ended has a RunSeal with Unsealed:
// its last events could have been removed unnoticed.
func (l *Log) Runs() []RunSeal {
	v := &l.runs
	if v.run == nil || v.over {
		return v.seals
	}
	return append(v.seals[:len(v.seals):len(v.seals)], RunSeal{
		Run: v.run.InvocationID, Seq: v.before.Seq, Open: true,
		Unsealed: "it has not ended, and nothing holds its last events",
	})
}

// runs goes through a log.
type runs struct {
	events iter.Seq[*session.Event]
	first  int64          // the Seq of the first event
	mixed  bool           // the numbers of the events do not rise
	before *session.Event // the event before
	forked *int           // index of the last mark with which a fork begins; nil: the log was not read for it
	seals  []RunSeal

	run    *session.Event // with which the last run has begun; nil if the log does not say
	sealed bool           // each end of it has a seal
	over   bool           // the event before is an end

	known      map[string]bool // the invocations so far
	invocation string          // the last of them
	hash       *seal.Hash      // of the events since its first one, for ends of older versions
	chains     *seal.Chains    // of the events before
}

func (v *runs) add(i int, ev *session.Event, data []byte) {
	if v.before == nil {
		v.first = ev.Seq
	} else {
		v.mixed = v.mixed || ev.Seq <= v.before.Seq
	}
	v.mark(i, ev)
	if !v.known[ev.InvocationID] {
		v.known[ev.InvocationID], v.invocation, v.hash = true, ev.InvocationID, seal.New()
	}
	v.hash.AddData(data)
	v.before = ev
}

func (v *runs) mark(i int, ev *session.Event) {
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
				Run: v.run.InvocationID, Seq: v.before.Seq, Open: true,
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
func (v *runs) ended(i int, ev *session.Event) RunSeal {
	seal := RunSeal{Run: ev.InvocationID, Seq: ev.Seq}
	begun := v.run != nil && v.run.InvocationID == ev.InvocationID
	var end mark.RunEnded
	switch err := ev.Mark.Decode(&end); {
	case err != nil:
		seal.Problem = err.Error()
	case ev.Address != "":
		seal.Problem = "its end has the address of a step"
	case !begun && v.first > 1:
		seal.Unsealed = "the log lacks its beginning"
	case end.Seal != "" && end.Events > 0:
		seal.Digest = end.Seal
		seal.Problem = v.differs(i, ev, end)
	case begun && v.sealed:
		seal.Problem = "its end has no seal: it was taken out"
	default:
		seal.Unsealed = "its end has no seal: it was written before ends had one, or the seal was taken out"
	}
	return seal
}

// differs says what does not agree with the seal of the i-th event, an end.
func (v *runs) differs(i int, ev *session.Event, end mark.RunEnded) string {
	if seal.IsChained(end.Seal) {
		return v.chainDiffers(i, ev, end)
	}
	if !v.mixed && v.invocation == ev.InvocationID { // what a seal covers goes by the numbers
		if made, err := v.hash.Ended(ev); err == nil && made == end.Seal {
			return ""
		}
	}
	made, n, err := seal.OfRun(counting(v.events, i, nil), ev)
	switch {
	case err != nil:
		return err.Error()
	case made == end.Seal:
		return ""
	}
	return otherEvents(n, ev, end)
}

// chainDiffers does what differs does, for a chained seal.
func (v *runs) chainDiffers(i int, ev *session.Event, end mark.RunEnded) string {
	chain, err := v.chains.Of(counting(v.events, i, nil), ev.InvocationID, seal.All)
	if err != nil {
		return err.Error()
	}
	switch made, err := seal.EndOf(chain, ev); {
	case err != nil:
		return err.Error()
	case made == end.Seal:
		return ""
	}
	return otherEvents(chain.Events, ev, end)
}

// otherEvents says why a seal does not match the n events before an end.
func otherEvents(n int64, ev *session.Event, end mark.RunEnded) string {
	if n != end.Events || ev.Seq != end.Last+1 {
		return fmt.Sprintf("the log has %d events of it up to its end, which is event %d; its seal is over %d, up to "+
			"event %d", n, ev.Seq, end.Events, end.Last)
	}
	return "an event of it, or what it was started with (its definition, its inputs), was changed"
}

// copied reports whether the i-th event was copied into a fork: a later one is the mark with which the fork begins.
func (v *runs) copied(i int) bool {
	if v.forked == nil {
		v.forked = new(-1)
		n := 0
		for ev := range v.events {
			if forks(ev) {
				*v.forked = n
			}
			n++
		}
	}
	return i < *v.forked
}

// continues reports whether the i-th event is one with which a run goes on behind its end,
// or another one begins. It says that the run is not over any more, so that nobody takes
// what comes behind it for what has ended.
func (v *runs) continues(i int, ev *session.Event) bool {
	if ev.Mark == nil || ev.Address != "" {
		return false
	}
	mine := ev.InvocationID == v.before.InvocationID
	r := mark.RunIn(ev.Actions.StateDelta)
	switch ev.Mark.Kind {
	case mark.KindRunStarted: // what the user says, with the state
		return !mine
	case mark.KindRunResumed: // by a runner that nobody supervises
		return mine
	case mark.KindRunTaken: // a fork leaves out what its events said of the run
		return mine && onlyOfLog(ev) && (r != nil && r.Status == mark.RunRunning || r == nil && v.copied(i))
	case mark.KindRunPaused:
		return mine && onlyOfLog(ev) && (forks(ev) || r == nil && v.copied(i))
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
