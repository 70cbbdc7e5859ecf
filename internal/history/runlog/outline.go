// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"context"
	"iter"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
)

// Wholes reads the complete events for the events of an outline. A command keeps only the outline of a log, because the
// log itself may be larger than the memory.
type Wholes struct {
	Fetch func(context.Context) (*session.View, error) // gets the session; called again if the log has grown
	view  *session.View                                // the last one from Fetch
	Err   error                                        // the last error; nil if there was none
}

// Of returns an event with all its texts. If it cannot read them, it sets w.Err; the texts may then be incomplete.
func (w *Wholes) Of(ev *session.Event) *session.Event {
	if ev.Omitted == 0 {
		return ev
	}
	if w.view == nil || ev.Seq > w.view.LastSeq() {
		view, err := w.Fetch(context.Background())
		if err != nil {
			w.Err = err
			return ev
		}
		w.view = view
	}
	whole := w.view.Log().Full(ev)
	if err := w.view.Err(); err != nil {
		w.Err = err
	}
	return whole
}

// All yields the events with all their texts.
func (w *Wholes) All(events iter.Seq[*session.Event]) iter.Seq[*session.Event] {
	return progress.Whole(w.Of).All(events)
}

// Recent yields the events for a reader of the newest texts: the newest events have all their texts, and older ones are
// as in the outline.
func (w *Wholes) Recent(events iter.Seq[*session.Event]) iter.Seq[*session.Event] {
	return Recent(events, w.Of)
}

// Recent yields complete texts for at most recentEvents events at the end of the log, with at most recentTexts bytes.
const (
	recentTexts  = 8 << 20
	recentEvents = 4096
)

// Recent yields the events of an outline. The newest events have all their texts, as whole returns them; the others are
// unchanged. Recent keeps only the newest events in memory.
func Recent(events iter.Seq[*session.Event], whole progress.Whole) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		// behind holds back the newest events. Its first event has a long text, unless behind is empty.
		var behind []*session.Event
		var texts int64 // the bytes that the events in behind lack
		for ev := range events {
			behind = append(behind, ev)
			texts += ev.Omitted
			for ; len(behind) > 0; behind = behind[1:] {
				if behind[0].Omitted > 0 && texts <= recentTexts && len(behind) <= recentEvents {
					break
				}
				texts -= behind[0].Omitted
				if !yield(behind[0]) {
					return
				}
			}
		}
		for _, ev := range behind {
			if !yield(whole.Of(ev)) {
				return
			}
		}
	}
}
