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

// limitMost is the default of [OnLimit].AtMost.
const limitMost = 6 * time.Hour

// limitSteps lists the waits in order, for a program that does not report when its limit ends. The last one is repeated.
var limitSteps = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute}

// limit is a limit of a provider, as the program reports it.
type limit struct {
	until time.Time     // the end of the limit; zero means that it is unknown
	least time.Duration // the wait that the provider has last asked for
}

// waiting has the facts about the waits of a step. All of its waits are in the log.
type waiting struct {
	n     int       // the number of waits
	begun time.Time // the beginning of the first wait
	until time.Time // the end of the last wait
}

// next returns the time until which the step waits now. ok is false if the step may not wait, because most, the longest time
// after the beginning of the first wait, is over or is too short. Only the first wait may be as short as the program reports,
// because a program may report each time that its limit ends in a second.
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

// wait waits after a task has failed because of a limit, and reports whether the task must be done again. If it returns
// false, *err is the error to yield; nil means that wait has yielded everything itself.
func (t *task) wait(ctx agent.InvocationContext, w *waiting, out *outcome, err *error,
	yield func(*session.Event, error) bool) (more bool) {
	now := time.Now()
	until, ok := w.next(now, out.limit, t.waits)
	failed, is := errors.AsType[*CLIError](*err)
	if !is { // the task has failed for another reason too
		return false
	}
	if !ok {
		failed.GivenUp = true
		return false
	}
	*err = nil
	m, e := mark.New(mark.KindLimited, mark.Limited{Until: until.UTC(), Why: brief.Line(failed.Message, lineLength)})
	if e != nil {
		yield(nil, e)
		return false
	}
	ev := &session.Event{Timestamp: now, Mark: m}
	out.spent(ev)
	return t.rest(ctx, w, ev, yield)
}

// rest yields ev, the mark of a wait, waits, and yields the mark of the wait's end. It returns false if the step is over.
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

// note adds the wait that the mark of ev describes to w, and yields ev.
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

// replays yields the waits of the step that are in the log, and waits for the rest of the last one. It returns false
// if the log also has the task's result, or if the step is over.
func (t *task) replays(ctx agent.InvocationContext, w *waiting, yield func(*session.Event, error) bool) (todo bool) {
	for {
		known := drive.At(ctx).Recorded()
		switch {
		case known == nil:
			return true
		case known.Mark == nil:
			replayEvent(known, yield)
			return false
		case known.Mark.Kind != mark.KindLimited:
			yield(nil, fmt.Errorf("the log has a mark %s of the step, which it does not write", known.Mark.Kind))
			return false
		}
		if a, ok := ctx.Agent().(drive.UsageReader); ok {
			used := a.Used(known, nil)
			drive.At(ctx).Budget().Book(used)
			for range used.Calls {
				_ = drive.At(ctx).CountModelCall() // an error is ignored, because the calls are already made
			}
		}
		if !t.rest(ctx, w, known, yield) {
			return false
		}
	}
}
