// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"context"
	"iter"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
)

// Wholes reads events of an outline with all their texts. What a command keeps of a
// log is its outline: the log itself may be larger than the memory.
type Wholes struct {
	Fetch func(context.Context) (*session.View, error)
	view  *session.View
	Err   error
}

// Of is an event with all its texts. If they cannot be read err says why.
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
	whole := w.view.FullEvent(ev)
	if err := w.view.Err(); err != nil {
		w.Err = err
	}
	return whole
}

// All are events with all their texts.
func (w *Wholes) All(events iter.Seq[*session.Event]) iter.Seq[*session.Event] {
	return progress.Whole(w.Of).All(events)
}

// Recent are events for whoever shows what was said: the newest ones whole, and of
// the texts of older ones the beginnings.
func (w *Wholes) Recent(events iter.Seq[*session.Event]) iter.Seq[*session.Event] {
	return Recent(events, w.Of)
}

// Of the texts of events, Recent yields the newest: so many bytes, in so many events.
const (
	recentTexts  = 8 << 20
	recentEvents = 4096
)

// Recent yields the events of an outline, of which it keeps no more than whole reads: the newest ones with all their
// texts, as whole returns them, and the others as they are.
func Recent(events iter.Seq[*session.Event], whole progress.Whole) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		var behind []*session.Event // those of the newest with a long text, and what follows them
		var texts int64
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
