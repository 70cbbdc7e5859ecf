// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"context"
	"iter"

	"github.com/refrain-dev/refrain/progress"
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
	whole := w.view.Whole(ev)
	if err := w.view.Err(); err != nil {
		w.Err = err
	}
	return whole
}

// All are events with all their texts.
func (w *Wholes) All(events []*session.Event) iter.Seq[*session.Event] {
	return progress.Whole(w.Of).All(events)
}

// recentTexts bounds the texts that are shown of a whole run, in bytes.
const recentTexts = 8 << 20

// Recent are events for whoever shows what was said: the newest ones whole, and of
// the texts of older ones the beginnings.
func (w *Wholes) Recent(events []*session.Event) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		first, room := len(events), int64(recentTexts)
		for first > 0 && room >= events[first-1].Omitted {
			first--
			room -= events[first].Omitted
		}
		for i, ev := range events {
			if i >= first {
				ev = w.Of(ev)
			}
			if !yield(ev) {
				return
			}
		}
	}
}
