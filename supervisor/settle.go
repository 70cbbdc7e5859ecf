// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/history/questions"
	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// settle records in the log how a segment of the run has ended. It returns true if the run continues at once, because
// all answers that it waited for have arrived. Otherwise it returns why the run does not continue.
func (r *Run) settle(end *segment) (again bool, err error) {
	if lost := context.Cause(r.ctx); errors.Is(lost, lease.ErrLost) || errors.Is(lost, session.ErrNotFound) {
		r.close()
		return false, lost // another process may write the log now, or the session was deleted
	}
	if errors.Is(end.err, lease.ErrLost) {
		r.close()
		return false, end.err
	}
	_, known, err := r.s.get(context.WithoutCancel(r.ctx), r.ID(), true)
	if err != nil || known.ID != r.run.ID {
		r.close()
		return false, errors.Join(end.err, ignore(err, ErrNotFound))
	}
	if r.cannotContinue(end) {
		r.close()
		return false, errors.Join(end.err, r.restore())
	}
	// A resumed segment does not yield all earlier marks again, so read the missing ones from the log.
	if errors.Is(end.err, runner.ErrFinished) || end.fin != nil && end.stop() == "" && r.takeover != nil {
		view, err := r.read(context.WithoutCancel(r.ctx))
		if err == nil {
			err = end.read(view, r.run.ID)
		}
		if err != nil {
			r.close()
			return false, err
		}
	}
	if end.fin != nil {
		r.close()
		return false, r.recordEnd(end)
	}
	for {
		open, err := r.answer()
		switch {
		case err != nil:
			r.close()
			return false, errors.Join(end.err, err)
		case errors.Is(end.err, agent.ErrWaiting) && len(open) == 0 && r.requestedStop() == nil:
			return true, nil
		case r.answerEdits(open):
		case r.close(): // false if one more answer has arrived
			return false, r.recordInterruption(end, open)
		}
	}
}

// answerEdits answers the questions about files that somebody has changed while the run was paused for that. It reports whether there
// are such questions.
func (r *Run) answerEdits(open []mark.Question) bool {
	if r.editor == nil {
		return false
	}
	value, err := json.Marshal(mark.Resolution{Action: mark.ResolveBase})
	edits := slices.DeleteFunc(slices.Clone(open), func(q mark.Question) bool { return err != nil || !q.IsEdited() })
	for _, q := range edits {
		a := &mark.Answer{ID: q.ID, Value: value, Reason: "the run was paused to edit its files", By: *r.editor}
		if !r.accept(&runRequest{Do: doAnswer, Answer: a}) {
			return false
		}
	}
	return len(edits) > 0
}

// findEditor returns who has paused a run to edit its files; nil if nobody has since a step last began with other files or changed them.
// Steps without files do not count.
func findEditor(view *session.View, id string) (by *string) {
	gone := view.Log().Superseded()
	for ev := range view.Log().Outline() {
		if ev.InvocationID != id || gone.Has(ev.Seq) {
			continue
		}
		var paused mark.RunPaused
		if ev.Mark != nil && ev.Mark.Kind == mark.KindRunPaused && ev.Mark.Decode(&paused) == nil && paused.Edit {
			by = &paused.By
		}
		for key := range ev.Actions.StateDelta {
			if key == files || strings.HasPrefix(key, files+"_") {
				by = nil
			}
		}
	}
	return by
}

// files is the state key of the files of a run, and files_NAME that of a branch.
const files = "workspace"

// requestedStop returns the cause of a requested cancellation or pause of the run, or nil if there is no such request.
func (r *Run) requestedStop() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cause := context.Cause(r.ctx); cause != nil {
		return cause
	}
	return r.requests.pauseCause
}

// close makes accept refuse further requests, and returns true. It returns false, and changes nothing, while there are
// answers that are not in the log.
func (r *Run) close() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests.closing = len(r.requests.answers) == 0
	return r.requests.closing
}

// recordEnd records that the run has ended.
func (r *Run) recordEnd(end *segment) error {
	failed := end.err
	data := mark.RunEnded{Status: mark.RunCompleted, By: r.owner}
	if end.fin.Error != "" {
		data.Status, data.Error = mark.RunFailed, end.fin.Error
		if failed == nil || errors.Is(failed, runner.ErrFinished) {
			failed = errors.New(end.fin.Error)
		}
	} else if _, ok := errors.AsType[*agent.PanicError](failed); !ok { // an observer that is notified of the end may panic
		failed = nil
	}
	err := r.finish(data, func(run *mark.Run) {
		run.Status, run.Error, run.Stop = data.Status, data.Error, end.stop()
	})
	return errors.Join(failed, err)
}

// cannotContinue reports whether a resumed run could not continue, so that its earlier status must be restored.
func (r *Run) cannotContinue(end *segment) bool {
	if r.takeover == nil {
		return false
	}
	switch r.takeover.before.Status {
	case mark.RunCompleted, mark.RunFailed:
		_, stays := errors.AsType[*loop.StoppedError](end.err)
		return stays || !end.hasEvents
	case mark.RunCanceled, mark.RunIsPaused:
		finished := errors.Is(end.err, runner.ErrFinished) // all steps have finished; only the end is not in the log
		return r.requestedStop() == nil && (errors.Is(end.err, agent.ErrDiverged) || end.err != nil && !end.hasEvents && !finished)
	}
	return false
}

// restore records again the status that the run had before it was taken up, paused or ended, with the reason that the
// log gives for it.
func (r *Run) restore() error {
	before := r.takeover.before
	if err := r.giveBack(); err != nil {
		return err
	}
	view, err := r.read(context.WithoutCancel(r.ctx))
	if err != nil {
		return err
	}
	var paused mark.RunPaused
	ended := mark.RunEnded{Status: before.Status, Error: before.Error, By: r.owner}
	for ev := range view.Log().OutlineByKind(mark.KindRunPaused, mark.KindRunEnded) {
		if ev.InvocationID != r.run.ID {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindRunPaused:
			paused = mark.RunPaused{}
			err = ev.Mark.Decode(&paused)
		case mark.KindRunEnded:
			ended = mark.RunEnded{}
			err = ev.Mark.Decode(&ended)
		}
		if err != nil {
			return err
		}
	}
	if err := view.Err(); err != nil {
		return err
	}
	back := func(run *mark.Run) {
		*run = before
		run.HandOver = false // a person must act before the run can continue
	}
	if !before.Status.IsFinal() {
		paused.Session = "" // only the first pause of a fork has this field
		return r.appendMark(mark.KindRunPaused, paused, back)
	}
	ended.Status, ended.Seal = before.Status, ""
	return r.finish(ended, back)
}

// finish records that the run has ended, with a hash over its whole log.
func (r *Run) finish(end mark.RunEnded, change func(*mark.Run)) error {
	view, err := r.read(context.WithoutCancel(r.ctx))
	if err != nil {
		return err
	}
	now := time.Now()
	run := r.statusAt(view, mark.KindRunEnded, now, change)
	ev, err := session.NewRunEvent(run, author(mark.KindRunEnded), mark.KindRunEnded, end)
	if err != nil {
		return err
	}
	ev.Seq, ev.Timestamp = view.LastSeq()+1, now
	ev.ID = strconv.FormatInt(ev.Seq, 10) // the ID that stores give to an event
	chain, err := view.Chain(r.run.ID)
	if failed := view.Err(); failed != nil {
		return failed
	}
	if err == nil { // else a value in memory has no JSON; then the event has no seal
		_ = seal.Run(chain, ev)
	}
	return r.append(view, run, ev)
}

// giveBack records that the run has its earlier program again, if Resume replaced the program.
func (r *Run) giveBack() error {
	if r.takeover == nil || r.takeover.Program == nil {
		return nil
	}
	return r.appendMark(mark.KindRunTaken, mark.RunTaken{By: r.owner, Program: r.takeover.oldProgram}, func(*mark.Run) {})
}

// recordInterruption records that the run is paused, waits for answers or was canceled. open has its unanswered questions.
func (r *Run) recordInterruption(end *segment, open []mark.Question) error {
	why := end.err
	if cause := r.requestedStop(); cause != nil {
		why = cause
	}
	if canceled, ok := errors.AsType[*CanceledError](why); ok {
		return errors.Join(why, r.recordCancellation(canceled))
	}
	if errors.Is(why, agent.ErrDiverged) {
		if err := r.giveBack(); err != nil {
			return errors.Join(why, err)
		}
	}
	data := mark.RunPaused{By: r.owner, Waits: questionIDs(open)}
	status := mark.RunIsPaused
	switch paused, ok := errors.AsType[*PausedError](why); {
	case ok:
		data.By, data.Reason, data.Edit = paused.By, paused.Reason, paused.Edit
	case errors.Is(why, agent.ErrWaiting):
		status = mark.RunWaiting
	case why != nil:
		data.Reason = why.Error()
	}
	err := r.appendMark(mark.KindRunPaused, data, func(run *mark.Run) {
		run.Status, run.Deadline, run.HandOver = status, time.Time{}, handsOver(why)
		if status == mark.RunWaiting {
			run.Deadline = earliestDeadline(open)
		}
	})
	return errors.Join(why, err)
}

// recordCancellation records that the run was canceled.
func (r *Run) recordCancellation(why *CanceledError) error {
	data := mark.RunEnded{Status: mark.RunCanceled, Error: why.Reason, By: why.By}
	return r.finish(data, func(run *mark.Run) {
		run.Status, run.Error, run.Deadline, run.HandOver = mark.RunCanceled, why.Error(), time.Time{}, false
	})
}

// appendMark appends an event with a mark of the run as a whole. change makes the run's new status from the present one.
func (r *Run) appendMark(kind mark.Kind, data any, change func(*mark.Run)) error {
	view, err := r.read(context.WithoutCancel(r.ctx))
	if err != nil {
		return err
	}
	now := time.Now()
	run := r.statusAt(view, kind, now, change)
	ev, err := session.NewRunEvent(run, author(kind), kind, data)
	if err != nil {
		return err
	}
	ev.Timestamp = now
	return r.append(view, run, ev)
}

// statusAt returns the run's status for an event that is written now. It adds the active time: until now if this process
// drives the run; otherwise, and when the run is taken up, until the last event that is not an answer.
func (r *Run) statusAt(view *session.View, kind mark.Kind, now time.Time, change func(*mark.Run)) mark.Run {
	run, until := r.run, now
	if kind == mark.KindRunTaken || r.cancel == nil {
		until = time.Time{}
		evs := view.Events()
		for i := evs.Len() - 1; i >= 0 && until.IsZero(); i-- {
			if ev := evs.At(i); ev.Mark == nil || ev.Mark.Kind != mark.KindAnswered {
				until = ev.Timestamp
			}
		}
	}
	active := r.run.ActiveAt(until)
	change(&run)
	if run.Active, run.Since = active, (time.Time{}); run.Status == mark.RunRunning {
		run.Since = now
	}
	return run
}

// append appends all of the events or none. run is the status of the run after them.
func (r *Run) append(view *session.View, run mark.Run, evs ...*session.Event) error {
	if err := store.AppendAll(context.WithoutCancel(r.ctx), r.s.cfg.Service, view, slices.Values(evs)); err != nil {
		return err
	}
	r.mu.Lock()
	r.run = run
	r.mu.Unlock()
	for _, ev := range evs {
		r.showEvent(ev)
	}
	return nil
}

// author returns the author of an event with a mark: "user" for an answer, "refrain" for all others.
func author(kind mark.Kind) string {
	if kind == mark.KindAnswered {
		return "user"
	}
	return "refrain"
}

// ignore returns nil if errors.Is finds known in err, and err otherwise.
func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

func questionIDs(open []mark.Question) (all []string) {
	for _, q := range open {
		all = append(all, q.ID)
	}
	return all
}

// earliestDeadline returns the earliest deadline of the questions; zero if they have none.
func earliestDeadline(open []mark.Question) (at time.Time) {
	for _, q := range open {
		if !q.Deadline.IsZero() && (at.IsZero() || q.Deadline.Before(at)) {
			at = q.Deadline
		}
	}
	return at
}

// hasQuestion reports whether the log contains a question of any run.
func hasQuestion(view *session.View) bool {
	for range view.Log().OutlineByKind(mark.KindAsked) {
		return true
	}
	return false
}

// openQuestions returns the open questions of a run, in the order in which they were asked.
func openQuestions(view *session.View, id string) (open []mark.Question, err error) {
	if !hasQuestion(view) {
		return nil, view.Err()
	}
	var asked questions.Fold
	for ev := range currentMarks(view, id, mark.KindAsked, mark.KindAnswered, mark.KindStepFinished) {
		if err := asked.Add(ev); err != nil {
			return nil, err
		}
	}
	for _, q := range asked.Open() {
		open = append(open, q.Question)
	}
	return open, view.Err()
}
