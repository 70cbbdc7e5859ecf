// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// limitMost is the longest time of the waits, unless the config has another.
const limitMost = 6 * time.Hour

// limitSteps are the waits, one after the other, if the program does not report when its limit ends. The last one is repeated.
var limitSteps = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}

// limit is what a program reports of the limit that its provider has set.
type limit struct {
	until time.Time     // its end; zero is unknown
	least time.Duration // the wait that the provider has last asked for
}

// waiting is what a step knows of its waits, all of which are in the log.
type waiting struct {
	n     int // how many there were
	begun time.Time
	until time.Time // the end of the last one, if it is not over
}

// next is until when to wait now, if at_most leaves that: it limits the time from the first wait on. A program may say
// each time that its limit ends in a second, so only the first wait is as short as it says.
func (w *waiting) next(now time.Time, l *limit, most time.Duration) (until time.Time, ok bool) {
	if w.begun.IsZero() || w.begun.After(now) { // the clock was set back
		w.begun = now
	}
	end := w.begun.Add(most)
	known := l.until.After(now)
	if known && (l.until.After(end) || w.n == 0) {
		return l.until, !l.until.After(end)
	}
	until = now.Add(max(l.least, limitSteps[min(w.n, len(limitSteps)-1)]))
	if known && l.until.After(until) {
		until = l.until
	}
	if until.After(end) {
		until = end
	}
	return until, until.After(now)
}

// wait waits when the task has failed for a limit, and reports whether it is to be done again. If not, err is nil when
// there is nothing more to say.
func (t *task) wait(ctx agent.InvocationContext, w *waiting, out *outcome, err *error,
	yield func(*session.Event, error) bool) (more bool) {
	now := time.Now()
	until, ok := w.next(now, out.limit, t.waits)
	failed, is := errors.AsType[*CLIError](*err)
	if !is { // of something else besides
		return false
	}
	if !ok {
		failed.GivenUp = true
		return false
	}
	*err = nil
	m, e := mark.New(mark.KindLimited, mark.Limited{Until: until.UTC(), Why: brief.Line(failed.Said, lineLength)})
	if e != nil {
		yield(nil, e)
		return false
	}
	ev := &session.Event{Timestamp: now, Mark: m}
	out.spent(ev)
	return t.rest(ctx, w, ev, yield)
}

// rest yields that the task waits, and waits. It returns false if the step is over.
func (t *task) rest(ctx agent.InvocationContext, w *waiting, ev *session.Event, yield func(*session.Event, error) bool) bool {
	if !w.note(ev, yield) {
		return false
	}
	until := w.until
	if most := time.Now().Add(t.waits); until.After(most) { // the clock was set back
		until = most
	}
	if err := drive.At(ctx).WaitIdle(until); err != nil {
		yield(nil, err)
		return false
	}
	over := drive.At(ctx).Recorded()
	if over == nil {
		over = &session.Event{Mark: &mark.Mark{Kind: mark.KindLimitOver}}
	}
	return yield(over, nil)
}

// note yields that the task waits.
func (w *waiting) note(ev *session.Event, yield func(*session.Event, error) bool) bool {
	var l mark.Limited
	if err := ev.Mark.Decode(&l); err != nil {
		yield(nil, err)
		return false
	}
	if w.begun.IsZero() {
		w.begun = ev.Timestamp
	}
	w.n++
	w.until = l.Until
	return yield(ev, nil)
}

// replays goes through the waits that the log has of the step, and waits what is left of the last one. It returns false
// if the task was done after them, or the step is over.
func (t *task) replays(ctx agent.InvocationContext, w *waiting, yield func(*session.Event, error) bool) (todo bool) {
	for {
		known := drive.At(ctx).Recorded()
		switch {
		case known == nil:
			return true
		case known.Mark == nil:
			again(known, yield)
			return false
		case known.Mark.Kind != mark.KindLimited:
			yield(nil, fmt.Errorf("the log has a mark %s of the step, which it does not write", known.Mark.Kind))
			return false
		}
		if a, ok := ctx.Agent().(drive.Meter); ok {
			used := a.Used(known, nil)
			drive.At(ctx).Budget().Book(used)
			for range used.Calls {
				_ = drive.At(ctx).CountModelCall() // they were made
			}
		}
		if !t.rest(ctx, w, known, yield) {
			return false
		}
	}
}
