// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Deed is what somebody can do to a run.
type Deed string

// The deeds.
const (
	Started   Deed = "started"
	Forked    Deed = "forked"
	Continued Deed = "continued"
	Paused    Deed = "paused"
	Canceled  Deed = "canceled"
	Answered  Deed = "answered"
	Told      Deed = "told"
)

// Act says who has done what to a run. What processes do on their own, and what the user of the machine does, is no act.
type Act struct {
	At   time.Time `json:"at,omitzero"`
	Deed Deed      `json:"deed"`
	By   string    `json:"by"`
	// Text is the reason for a pause or a cancellation, or the text that the run was told.
	Text string `json:"text,omitempty"`
}

// mostActs is how many acts a fold keeps: the first one, and the last ones.
const mostActs = 100

// Acts is the fold of the acts of a run. The zero value is ready to use.
type Acts struct{ all []Act }

// All returns the acts, the oldest first. A fork begins with the act that made it.
func (a *Acts) All() []Act { return slices.Clone(a.all) }

// Add takes the next event of the run, also one that is superseded.
func (a *Acts) Add(ev *session.Event) {
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindRunStarted:
		a.add(ev, Started, decoded[mark.RunStarted](ev).By, "")
	case mark.KindRunTaken:
		a.add(ev, Continued, decoded[mark.RunTaken](ev).By, "")
	case mark.KindRunPaused:
		d := decoded[mark.RunPaused](ev)
		if d.Session == "" {
			a.add(ev, Paused, d.By, d.Reason)
			return
		}
		a.all = nil // what was before was done to another run
		a.add(ev, Forked, d.By, "")
	case mark.KindRunEnded:
		if d := decoded[mark.RunEnded](ev); d.Status == mark.RunCanceled {
			a.add(ev, Canceled, d.By, d.Error)
		}
	case mark.KindAnswered:
		d := decoded[mark.Answer](ev)
		a.add(ev, Answered, d.By, d.Reason)
	case mark.KindHinted:
		for _, h := range decoded[mark.Hinted](ev).Hints {
			a.add(ev, Told, h.By, h.Text)
		}
	}
}

func (a *Acts) add(ev *session.Event, deed Deed, by, text string) {
	if by == "" || by == "local" || lease.IsProcess(by) {
		return
	}
	if len(a.all) == mostActs {
		a.all = slices.Delete(a.all, 1, 2)
	}
	a.all = append(a.all, Act{ev.Timestamp, deed, by, text})
}

// decoded returns the data of an event's mark; the zero value if it cannot be read.
func decoded[T any](ev *session.Event) (data T) {
	_ = ev.Mark.Decode(&data)
	return data
}
