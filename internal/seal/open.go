// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"slices"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Open has the hashes of the steps under way in a log that is read once, each from its beginning. The zero value is
// ready to use.
type Open struct{ steps []openStep }

type openStep struct {
	address    session.Address
	invocation string
	began      int64 // the Seq of its start
	hash       *Hash
}

// maxOpen bounds the steps that an Open has: a log may have starts of steps that never end.
const maxOpen = 256

// Add adds the next event of the log that is not superseded, and its canonical JSON.
func (o *Open) Add(ev *session.Event, data []byte) {
	for i := range o.steps {
		if s := &o.steps[i]; s.invocation == ev.InvocationID && ev.Address.Under(s.address) {
			s.hash.AddData(data)
		}
	}
	if ev.Mark == nil || ev.Mark.Kind != mark.KindStepStarted && ev.Mark.Kind != mark.KindStepFinished {
		return
	}
	o.steps = slices.DeleteFunc(o.steps, func(s openStep) bool { return s.address == ev.Address && s.invocation == ev.InvocationID })
	if starts(ev) {
		if len(o.steps) == maxOpen {
			o.steps = slices.Delete(o.steps, 0, 1)
		}
		o.steps = append(o.steps, openStep{ev.Address, ev.InvocationID, ev.Seq, New()})
	}
}

// Supersede drops the hashes that may have superseded events.
func (o *Open) Supersede(s mark.Spans) {
	if len(s) > 0 {
		o.steps = slices.DeleteFunc(o.steps, func(of openStep) bool { return of.began <= s[len(s)-1].Last })
	}
}

// Loop returns what [OfLoop] returns; ok is false if o does not have the loop's hash.
func (o *Open) Loop(stop *session.Event) (seal string, ok bool) {
	for _, s := range o.steps {
		if s.address == stop.Address && s.invocation == stop.InvocationID {
			seal, _, err := s.hash.stopped(stop)
			return seal, err == nil
		}
	}
	return "", false
}
