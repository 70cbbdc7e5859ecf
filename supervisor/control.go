// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Pause asks a run to pause at its next step boundary, in whichever process drives it. Steps that
// are running end first. Pause returns when the driver has accepted the request; a run that was
// interrupted is recorded as paused at once. Wait waits for the pause itself. Errors to expect are
// [ErrNotFound], [ErrOver] and [ErrPaused].
func (s *Supervisor) Pause(ctx context.Context, id, reason string) error {
	return s.ask(ctx, id, "pause", &runRequest{Do: doPause, Reason: reason})
}

// PauseNow pauses a run as Pause does, but cuts off the steps that are running. The resumed run repeats them.
func (s *Supervisor) PauseNow(ctx context.Context, id, reason string) error {
	return s.ask(ctx, id, "pause", &runRequest{Do: doPauseNow, Reason: reason})
}

// PauseToEdit pauses a run as Pause does, so that somebody can edit the files of its workspace. The run then continues with the
// changed files, and compares later changes with them, without a question. A run that is paused already can be told so too.
func (s *Supervisor) PauseToEdit(ctx context.Context, id, reason string) error {
	return s.ask(ctx, id, "pause", &runRequest{Do: doPause, Reason: reason, Edit: true})
}

// Cancel ends a run now, in whichever process drives it, even if it is paused, waits or was interrupted.
// Resume can continue it later. Cancel returns when the driver has accepted the request. Errors to expect
// are [ErrNotFound] and [ErrOver].
func (s *Supervisor) Cancel(ctx context.Context, id, reason string) error {
	return s.ask(ctx, id, "cancel", &runRequest{Do: doCancel, Reason: reason})
}

// Answer answers a question of a run. A run that a process drives continues when it has all answers
// that it waits for; any other run must be resumed. Answer returns the questions that are still
// open. Errors to expect are [ErrNotFound], [ErrNoQuestion] and that of [mark.Question.Check] for an answer that
// does not fit, which leaves the question open.
func (s *Supervisor) Answer(ctx context.Context, id string, a mark.Answer) (open []mark.Question, err error) {
	open, err = s.Questions(ctx, id)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(open, func(q mark.Question) bool { return q.ID == a.ID })
	if i < 0 {
		return open, fmt.Errorf("answer %q of run %q: %w", a.ID, id, ErrNoQuestion)
	}
	if until := open[i].Deadline; !until.IsZero() && time.Now().After(until) {
		return open, fmt.Errorf("answer %q of run %q: it is too late: the deadline was %s, and the default is the "+
			"answer when the run is resumed", a.ID, id, until.Local().Format(time.DateTime))
	}
	if err := open[i].Check(&a); err != nil {
		return open, fmt.Errorf("answer run %q: %w; the question is still open", id, err)
	}
	if a.By == "" {
		a.By = s.asker(ctx)
	}
	if err := s.ask(ctx, id, "answer", &runRequest{Do: doAnswer, Answer: &a}); err != nil {
		return open, err
	}
	return append(open[:i:i], open[i+1:]...), nil
}

// Questions returns the open questions of a run, in the order in which they were asked.
func (s *Supervisor) Questions(ctx context.Context, id string) ([]mark.Question, error) {
	view, run, err := s.get(ctx, id, false)
	if err != nil {
		return nil, err
	}
	if run.Status.IsFinal() {
		return nil, nil
	}
	return openQuestions(view, run.ID)
}

// As returns a context in which Start, Resume, Fork, Pause, PauseNow, Cancel, Tell and Answer are recorded as requests of who, not of
// [Config.Owner].
func As(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

type callerKey struct{}

func (s *Supervisor) asker(ctx context.Context) string { return askerOr(ctx, s.cfg.Owner) }

// askerOr returns who asks in ctx, see [As]; owner if it has nobody.
func askerOr(ctx context.Context, owner string) string {
	if who, ok := ctx.Value(callerKey{}).(string); ok {
		return who
	}
	return owner
}

// ask sends a request to the process that drives a run, or carries it out here if no process drives the run. It tries
// again until one of the two succeeds or ctx ends. what is the verb for its errors, such as "pause".
func (s *Supervisor) ask(ctx context.Context, id, what string, w *runRequest) error {
	w.By = s.asker(ctx)
	for {
		done, err := s.tryAsk(ctx, id, w)
		switch {
		case err != nil:
			return fmt.Errorf("%s run %q: %w", what, id, err)
		case done:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s run %q: %w", what, id, context.Cause(ctx))
		}
	}
}

// tryAsk tries once to have a request carried out. It returns false if it must be tried again, because the driver was
// about to stop or did not reply.
func (s *Supervisor) tryAsk(ctx context.Context, id string, w *runRequest) (done bool, err error) {
	if r := s.driving(id); r != nil {
		if r.accept(w) {
			return true, nil
		}
		_, err := r.Wait(ctx) // the run is about to stop; the next try finds it without a driver
		return false, err
	}
	key := s.key(id)
	l, err := s.acquire(ctx, key, &ResumeOptions{})
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		w.To = held.Token
		return s.send(ctx, key, w)
	}
	if err != nil {
		return false, err
	}
	defer s.release(l)
	view, run, err := s.get(ctx, id, false)
	if err != nil {
		return false, err
	}
	return true, s.undrivenRun(ctx, l, run).carryOutUndriven(view, w)
}

// undrivenRun returns a Run to write to the log of a run that no process drives. The caller holds the lease l.
func (s *Supervisor) undrivenRun(ctx context.Context, l *lease.Lease, run *mark.Run) *Run {
	return &Run{s: s, key: l.Key, owner: l.Owner, lease: l, ctx: lease.With(context.WithoutCancel(ctx), l), run: *run}
}

// carryOutUndriven carries out a request on a run that no process drives. If the run was interrupted, it first
// records that it was taken up, so that the time since the interruption does not count as active time.
func (r *Run) carryOutUndriven(view *session.View, w *runRequest) error {
	if r.run.Status == mark.RunRunning && w.Do != doAnswer {
		r.view = view
		if err := r.appendMark(mark.KindRunTaken, mark.RunTaken{By: r.owner}, func(*mark.Run) {}); err != nil {
			return err
		}
		view = r.view
	}
	switch status := r.run.Status; {
	case status.IsFinal():
		did := map[mark.RunStatus]string{mark.RunCompleted: "completed", mark.RunFailed: "failed",
			mark.RunCanceled: "was canceled"}
		return fmt.Errorf("%w: it %s", ErrOver, did[status])
	case w.Do == doCancel:
		if err := r.closeSteps(view); err != nil {
			return err
		}
		return r.recordCancellation(&CanceledError{By: w.By, Reason: w.Reason})
	case w.Do == doAnswer:
		return r.answerUndriven(w.Answer)
	case status == mark.RunWaiting && !r.run.HandOver:
		return fmt.Errorf("%w: it waits for a person", ErrPaused)
	case status != mark.RunRunning && !r.run.HandOver && !w.Edit:
		return ErrPaused
	case status == mark.RunRunning || r.run.HandOver:
		w.Reason = cmp.Or(w.Reason, "it was interrupted before")
	}
	return r.appendMark(mark.KindRunPaused, mark.RunPaused{By: w.By, Reason: w.Reason, Edit: w.Edit}, func(run *mark.Run) {
		run.Status, run.HandOver = mark.RunIsPaused, false
	})
}

// answerUndriven appends the answer to a question and the new status of a waiting run together. If it appended one after the
// other, a process killed in between would leave a run that waits although all questions are answered.
func (r *Run) answerUndriven(a *mark.Answer) error {
	view, err := r.read(context.WithoutCancel(r.ctx))
	if err != nil {
		return err
	}
	open, err := openQuestions(view, r.run.ID)
	if err != nil {
		return fmt.Errorf("read questions: %w", err)
	}
	i := slices.IndexFunc(open, func(q mark.Question) bool { return q.ID == a.ID })
	if i < 0 {
		return nil
	}
	open = slices.Delete(open, i, i+1)
	kinds, data := []mark.Kind{mark.KindAnswered}, []any{a}
	if r.run.Status == mark.RunWaiting {
		kinds, data = append(kinds, mark.KindRunPaused), append(data, mark.RunPaused{By: a.By, Reason: "answered", Waits: questionIDs(open)})
	}
	now, run := time.Now(), r.run
	var evs []*session.Event
	for i, kind := range kinds {
		run = r.statusAt(view, kind, now, func(run *mark.Run) {
			if run.Status != mark.RunWaiting {
				return
			}
			if run.Deadline = earliestDeadline(open); len(open) == 0 {
				run.Status, run.HandOver = mark.RunIsPaused, true
			}
		})
		ev, err := session.NewRunEvent(run, author(kind), kind, data[i])
		if err != nil {
			return err
		}
		ev.Timestamp = now
		evs = append(evs, ev)
	}
	return r.append(view, run, evs...)
}

// closeSteps records that the steps are canceled that had not finished when the run lost its driver, the innermost step
// first. It is called before a run is canceled, so that no step of a canceled run seems to be running.
func (r *Run) closeSteps(view *session.View) error {
	var open []*session.Event
	for ev := range currentMarks(view, r.run.ID, mark.KindStepStarted, mark.KindStepFinished) {
		switch ev.Mark.Kind {
		case mark.KindStepStarted:
			open = append(open, ev)
		case mark.KindStepFinished:
			open = slices.DeleteFunc(open, func(began *session.Event) bool { return began.Address == ev.Address })
		}
	}
	if err := view.Err(); err != nil {
		return err
	}
	fin := mark.StepFinished{Error: "the run was interrupted, and then canceled", Kind: mark.FailureCanceled,
		Canceled: true}
	for i := len(open) - 1; i >= 0; i-- {
		began := open[i]
		mark, err := mark.New(mark.KindStepFinished, fin)
		if err != nil {
			return err
		}
		ev := &session.Event{
			InvocationID: began.InvocationID, Author: began.Author, Branch: began.Branch,
			Address: began.Address, Iteration: began.Iteration, Attempt: began.Attempt, Mark: mark,
		}
		if err := r.s.cfg.Service.AppendEvent(r.ctx, view, ev); err != nil {
			return err
		}
	}
	return nil
}
