// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// asks takes a question of a step.
func (l *Live) asks(s *Step, q mark.Question) {
	if l.asked == nil {
		l.asked = make(map[string]*Step)
	}
	l.asked[q.ID] = s
	s.open = new(append(s.questions(), q))
	s.Asks = q.Text
}

// answered takes an answer. Those that come while nothing is under way end no step:
// it hears of them when the run goes on.
func (l *Live) answered(a mark.Answer) {
	s := l.asked[a.ID]
	if s == nil {
		return
	}
	delete(l.asked, a.ID)
	open := slices.DeleteFunc(s.questions(), func(q mark.Question) bool { return q.ID == a.ID })
	s.open = &open
	if s.Asks = ""; len(open) > 0 {
		s.Asks = open[len(open)-1].Text
	}
}

// suspend gives steps that a pause has cut off their true status, because they continue with the run. By its own
// marks a waiting step looks like a canceled one.
func (l *Live) suspend() {
	l.tree.Paused = true
	if l.tree.Root != nil {
		l.tree.Root.suspend()
	}
}

// end takes the end of the run. One that was paused, and then canceled, has steps
// that do not go on.
func (l *Live) end(ended mark.RunEnded) {
	l.tree.Paused = false
	if l.tree.Root != nil && ended.Status == mark.RunCanceled {
		l.tree.Root.giveUp()
	}
}

// Halted reports whether the end or a pause of the run cut off the step.
func (s Status) Halted() bool {
	return s == StatusCanceled || s == StatusPaused || s == StatusWaiting
}

// suspend reports whether the step, or one below it, waits for a person.
func (s *Step) suspend() (waits bool) {
	if !s.Status.Halted() {
		return false
	}
	if open := s.questions(); len(open) > 0 {
		waits, s.Asks = true, open[len(open)-1].Text
	}
	if l := s.Loop; l != nil {
		waits = l.suspend() || waits
	}
	for _, c := range s.Steps {
		waits = c.suspend() || waits
	}
	s.Status = suspendedStatus(waits)
	return waits
}

func suspendedStatus(waits bool) Status {
	if waits {
		return StatusWaiting
	}
	return StatusPaused
}

func (l *Loop) suspend() (waits bool) {
	if l.Stop != nil && l.Stop.Reason == loop.ReasonCanceled {
		l.cut, l.Stop = l.Stop, nil
	}
	for _, it := range l.Iterations {
		if it.Record != nil || !it.Status.Halted() {
			continue
		}
		asked := false
		for _, c := range it.Steps {
			if c.Status == StatusSkipped {
				c.Status = StatusPending // its turn is still to come
			}
			asked = c.suspend() || asked
		}
		it.Status = suspendedStatus(asked)
		waits = waits || asked
	}
	if f := l.Finalizer; f != nil {
		if f.Status == StatusSkipped {
			f.Status = StatusPending
		}
		waits = f.suspend() || waits
	}
	return waits
}

// giveUp is the opposite of suspend.
func (s *Step) giveUp() {
	if !s.Status.Halted() {
		return
	}
	s.Status, s.Asks = StatusCanceled, ""
	if l := s.Loop; l != nil {
		if l.cut != nil {
			l.Stop, l.cut = l.cut, nil
		}
		for _, it := range l.Iterations {
			if it.Status.Halted() {
				it.Status = StatusCanceled
			}
			for _, c := range it.Steps {
				c.giveUp()
				c.close(StatusCanceled, c.Ended)
			}
		}
		if l.Finalizer != nil {
			l.Finalizer.giveUp()
			l.Finalizer.close(StatusCanceled, l.Finalizer.Ended)
		}
	}
	for _, c := range s.Steps {
		c.giveUp()
	}
}
