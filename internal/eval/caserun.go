// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/history/questions"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// job is a case-run.
type job struct {
	side string
	of   *check.Case
	n    int
	run  string // the ID of its session

	by       *side         // what runs; nil is the version of side
	limit    time.Duration // of its time; 0 is that of the cases
	compares bool          // it compares the runs of both versions with its number
}

// play runs a case-run to its end, from where it stands: it starts the runs of the turns that have not begun, continues one that
// was cut off, and answers questions. The error is the cause of ctx, or about the store. why says why the case-run has no result.
func (e *Eval) play(ctx context.Context, j *job) (why string, err error) {
	over := make(<-chan time.Time)
	if d := cmp.Or(j.limit, e.Set.Timeout); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	for {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		view, err := e.session(ctx, j.run)
		if err != nil {
			return "", err
		}
		var run *supervisor.Run
		switch last, turns := lastRun(view); {
		case last == nil:
			run, err = e.start(ctx, j, 0)
		case last.Status == mark.RunCompleted && turns < len(j.of.Turns):
			run, err = e.start(ctx, j, turns)
		case last.Status == mark.RunCompleted:
			return "", nil
		case last.Status.IsFinal():
			return cmp.Or(last.Error, "it was "+string(last.Status)), nil
		default:
			if why, err = e.answer(ctx, j, view); err == nil && why == "" {
				run, err = e.Supervisor.Resume(ctx, j.run, supervisor.ResumeOptions{})
			}
			_, held := errors.AsType[*lease.HeldError](err)
			if held || errors.Is(err, supervisor.ErrUnderWay) { // somebody has resumed it
				if _, err = e.Supervisor.Wait(ctx, j.run); err == nil || errors.Is(err, supervisor.ErrInterrupted) {
					continue
				}
			}
			if errors.Is(err, supervisor.ErrOver) {
				continue // somebody was faster
			}
		}
		if err != nil || why != "" {
			return why, err
		}
		if why, err = e.wait(ctx, j, run, over); err != nil || why != "" {
			return why, err
		}
	}
}

// session fetches the session of a case-run; nil if it has not begun.
func (e *Eval) session(ctx context.Context, id string) (*session.View, error) {
	got, err := e.Service.Get(ctx, &session.GetRequest{AppName: e.AppName, UserID: e.UserID, SessionID: id})
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return session.ViewOf(got.Session), nil
}

// lastRun returns the last run of a session, and how many runs the session has; nil if it has none.
func lastRun(view *session.View) (last *mark.Run, turns int) {
	if view == nil {
		return nil, 0
	}
	for range view.Log().OutlineByKind(mark.KindRunStarted) {
		turns++
	}
	return session.RunOf(view), turns
}

// start starts the run of a turn.
func (e *Eval) start(ctx context.Context, j *job, turn int) (*supervisor.Run, error) {
	v := cmp.Or(j.by, e.sides[j.side])
	req := supervisor.Request{SessionID: j.run, Started: v.started,
		Message: genai.NewContentFromText(cmp.Or(j.of.Turns[turn].Input, v.def.Query), genai.RoleUser)}
	if turn == 0 {
		var err error
		if req.State, err = v.state(j.of); err != nil {
			return nil, err
		}
	}
	return e.Supervisor.Start(ctx, req)
}

// wait waits until the supervisor no longer drives a run. why says why it cannot go on.
func (e *Eval) wait(ctx context.Context, j *job, run *supervisor.Run, over <-chan time.Time) (why string, err error) {
	select {
	case <-run.Done():
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-over:
		why := "it took longer than the timeout of the cases, " + cmp.Or(j.limit, e.Set.Timeout).String()
		if err := e.Supervisor.Cancel(ctx, run.ID(), why); err != nil && !errors.Is(err, supervisor.ErrOver) {
			return "", err
		}
		<-run.Done()
		return why, nil
	}
	end, err := run.Wait(ctx)
	if err != nil {
		return "", err
	}
	if end.Dropped() {
		return "", fmt.Errorf("case-run %s: %w", run.ID(), end.Err)
	}
	if end.Run.Status == mark.RunIsPaused {
		if paused, ok := errors.AsType[*supervisor.PausedError](end.Err); ok && paused.HandOver {
			return "", supervisor.ErrClosed
		}
		return end.Err.Error(), nil
	}
	return "", nil
}

// answer answers the questions of a run from its case. why says that the case has no fitting answer.
func (e *Eval) answer(ctx context.Context, j *job, view *session.View) (why string, err error) {
	run, gone := session.RunOf(view), view.Log().Superseded()
	var asked questions.Fold
	for ev := range view.Log().OutlineByKind(mark.KindAsked, mark.KindAnswered, mark.KindStepFinished) {
		if ev.InvocationID == run.ID && !gone.Has(ev.Seq) {
			if err := asked.Add(ev); err != nil {
				return "", err
			}
		}
	}
	if run.Status != mark.RunWaiting {
		return "", view.Err()
	}
	for _, q := range asked.Open() {
		step := q.At.Agent()
		value, ok := j.of.Answers[step]
		if !ok {
			return fmt.Sprintf("step %q asks a person, and the case has no answer of it: %s", step, cmp.Or(q.Text, string(q.Kind))), nil
		}
		a := mark.Answer{ID: q.ID, By: author, Value: valueOf(&q.Question, value)}
		if err := q.Check(&a); err != nil {
			return fmt.Sprintf("answers.%s: %v", step, err), nil
		}
		_, err := e.Supervisor.Answer(ctx, j.run, a)
		if err != nil && !errors.Is(err, supervisor.ErrNoQuestion) {
			return "", err
		}
	}
	return "", view.Err()
}

// valueOf returns the answer of a case in the form that a question needs.
func valueOf(q *mark.Question, answer any) json.RawMessage {
	switch v := answer.(type) {
	case string:
		return operations.AnswerValue(q, v)
	case bool:
		if q.Kind == mark.AskConfirmation {
			answer = map[string]any{"confirmed": v}
		}
	}
	data, err := json.Marshal(answer)
	if err == nil && q.Kind == mark.AskText {
		data, err = json.Marshal(string(data))
	}
	if err != nil {
		return nil // Check refuses it
	}
	return data
}
