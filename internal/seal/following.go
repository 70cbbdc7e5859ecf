// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"slices"
	"sync"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Following computes the hash of a loop or of a run while events are added to the view that drives it, so
// that the log need not be read at the end. A nil Following has no hash.
type Following struct {
	view       *session.View
	loop       session.Address // empty: the run as a whole
	invocation string
	gone       mark.Spans // what was superseded when it began
	end        func()

	mu    sync.Mutex
	hash  *Hash // nil: events are missing in it
	err   error // of the first event that has no JSON
	known int64 // the Seq of the last event that was there when it began
	last  int64 // the Seq of the last event
	stuck bool  // of a run: the events behind the last are missing
}

// recent is how many events a Following looks back: those of other branches since a loop has
// begun.
const recent = 64

// FollowLoop follows the loop at an address, which has just begun, in the run with that invocation ID. In a
// resumed run the loop may begin again; the hash then includes the events replayed so far, if they come in
// the order of the log.
func FollowLoop(view *session.View, loop session.Address, invocation string) *Following {
	f := &Following{view: view, loop: loop, invocation: invocation, gone: view.Log().Superseded()}
	if !f.begin() {
		f.End()
	}
	return f
}

// FollowRun follows a run that has just begun in a new session.
func FollowRun(view *session.View, invocation string) *Following {
	f := &Following{view: view, invocation: invocation}
	if !f.begin() {
		f.End()
	}
	return f
}

// FollowAgain follows a run that is about to be resumed, from its replayed events on: see
// [session.View.NotifyReplayed].
func FollowAgain(view *session.View, invocation string) *Following {
	f := &Following{view: view, invocation: invocation, hash: New()}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _, f.end = view.Follow("", f.add)
	f.known = view.LastSeq()
	return f
}

// begin takes in the events that are in the log already. Those that come meanwhile wait. It
// reports whether they are all there.
func (f *Following) begin() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var log, before session.Events
	log, before, f.end = f.view.Follow(f.loop, f.add)
	if f.take(log) || before == nil || f.loop == "" {
		return f.hash != nil
	}
	return f.take(before) // it begins again, in a run that was resumed: its events come again
}

// take takes in the events of a log, and reports whether the loop or the run begins in it, not too
// far back.
func (f *Following) take(log session.Events) bool {
	n := log.Len()
	from := n
	for from > max(0, n-recent) && !f.begins(log.At(from-1)) {
		from--
	}
	if from == 0 || !f.begins(log.At(from-1)) {
		return false
	}
	f.known = log.At(n - 1).Seq
	if f.hash, f.last = New(), f.known; f.loop == "" {
		from-- // a loop's own beginning is not in its hash, that of a run is
	}
	for ; from < n && f.err == nil; from++ {
		if ev := log.At(from); f.loop == "" || ev.Address.Under(f.loop) && f.counts(ev) {
			f.err = f.hash.Add(ev)
		}
	}
	return true
}

// begins reports whether the loop or the run begins with an event.
func (f *Following) begins(ev *session.Event) bool {
	if f.loop == "" {
		return ev.Seq == 1 && ev.InvocationID == f.invocation
	}
	return ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && ev.Address == f.loop && f.counts(ev)
}

func (f *Following) counts(ev *session.Event) bool {
	return ev.InvocationID == f.invocation && !f.gone.Has(ev.Seq)
}

// add adds an event that was added to the view.
func (f *Following) add(ev *session.Event, data []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.hash == nil || f.err != nil:
		return
	case f.loop == "" && !f.follows(ev):
		return
	case f.loop != "" && (!f.counts(ev) || ev.Seq <= f.known): // it comes again, and is in the hash
		return
	case f.loop != "" && (ev.Seq <= f.last || ev.Omitted > 0):
		f.hash = nil
		return
	}
	if f.last, f.err = ev.Seq, err; err == nil {
		f.hash.AddData(data)
	}
}

// follows reports whether an event of the session is the next one of the run.
func (f *Following) follows(ev *session.Event) bool {
	switch {
	case f.stuck || ev.Seq <= f.last:
		return false
	case f.last == 0: // before its first one, or new while none has come again
		return ev.Seq <= f.known && ev.InvocationID == f.invocation && ev.Omitted == 0
	}
	f.stuck = ev.Seq != f.last+1 || ev.Omitted > 0
	return !f.stuck
}

// End stops following the view. The hash stays as it is.
func (f *Following) End() {
	if f != nil {
		f.end()
	}
}

// Follows reports whether f follows a view and has missed no event of it, so that f can continue. A
// nil Following follows no view.
func (f *Following) Follows(view *session.View) bool {
	if f == nil || f.view != view {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hash != nil && !f.stuck
}

// Hash returns a copy of the hash over the events so far; nil if events are missing, so that the log must
// be read. The error is that of [Hash.Add] for the first event that has no JSON.
func (f *Following) Hash() (*Hash, error) {
	d, _, err := f.upTo()
	return d, err
}

// upTo is Hash, and the Seq of the last event.
func (f *Following) upTo() (*Hash, int64, error) {
	if f == nil || !slices.Equal(f.gone, f.view.Log().Superseded()) && f.loop != "" {
		return nil, 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hash == nil || f.err != nil {
		return nil, 0, f.err
	}
	return f.hash.clone(), f.last, nil
}

// Run seals the end of a run as the function [Run] does. log is the log of the session; Run reads only
// those of its events that were added after the followed ones.
func (f *Following) Run(log session.Events, end *session.Event) error {
	d, last, err := f.upTo()
	if err != nil {
		return err
	}
	i := log.Len() // behind the last of them
	if d != nil && i > 0 {
		i -= int(log.At(i-1).Seq - last)
	}
	if d == nil || i < 1 || i > log.Len() || log.At(i-1).Seq != last {
		return Run(log.All(), end)
	}
	for ; i < log.Len() && log.At(i).Seq < end.Seq; i++ {
		if err := d.Add(log.At(i)); err != nil {
			return err
		}
		last = log.At(i).Seq
	}
	return d.seal(end, last)
}
