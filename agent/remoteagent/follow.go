// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/internal/values/sleep"
)

const (
	pollFirst = 200 * time.Millisecond // before the task is asked for the first time
	pollMost  = 5 * time.Second

	maxCuts    = 10                     // of the streams of one task
	maxTries   = 3                      // to reach the server again, one after another
	retryFirst = 200 * time.Millisecond // before the first of them; then twice as long
)

// send sends a message and follows the resulting task. It retries, because a task that has just
// asked a question may not be ready for the answer yet.
func (r *run) send(msg *a2a.Message) error {
	req, err := r.prepare(msg)
	if req == nil || err != nil {
		return err
	}
	if r.isFar() {
		return r.exchange(opSend, req)
	}
	return r.deliver(req)
}

// deliver is send for a request that is ready.
func (r *run) deliver(req *a2a.SendMessageRequest) error {
	for tries := 0; ; tries++ {
		err := r.sendOnce(req)
		no, refused := errors.AsType[notTaken](err)
		switch {
		case !refused:
			return err
		case r.waitsForSignIn():
			return r.await(nil, pollFirst)
		case req.Message.TaskID == "" || definite(no.error) || tries == maxTries || !r.sleep(retryFirst<<tries):
			return r.failed("send a message", no.error)
		}
	}
}

// notTaken is the server's error in the place of an answer to a message.
type notTaken struct{ error }

func (r *run) sendOnce(req *a2a.SendMessageRequest) error {
	if r.conn.streams {
		return r.await(r.conn.SendStreamingMessage(r.ctx, req), 0)
	}
	result, err := r.conn.SendMessage(r.ctx, req)
	if err != nil && saidByServer(err) {
		return notTaken{err}
	}
	if err == nil {
		err = r.take(result)
	}
	switch {
	case err != nil:
		return r.failed("send a message", err)
	case r.got.settled || r.left:
		return nil
	}
	return r.await(nil, pollFirst)
}

// await follows a task until it is settled: by the events of a stream, and where
// there are none by looking at it, the first time after a pause. If the connection
// is cut it tries to reach the server again.
func (r *run) await(events iter.Seq2[a2a.Event, error], pause time.Duration) error {
	if r.isFar() {
		return r.exchange(opAwait, nil)
	}
	cut, deaf := events == nil, !r.conn.streams || !r.patience.IsZero() // a stream might tell nothing
	sent, before := events != nil, r.heard
	for tries, cuts := 0, 0; ; {
		var err error
		heard := r.heard
		if events != nil {
			err = r.follow(events)
		} else if r.sleep(pause) {
			err = r.look()
		}
		if r.heard > heard {
			tries = 0
		}
		// The stream of a task that has just finished may be gone.
		streamGone := cut && events != nil && errors.Is(err, a2a.ErrTaskNotFound)
		switch {
		case r.left || r.ctx.Err() != nil:
			return nil
		case err == nil && r.got.settled:
			return r.complete(cut && events != nil)
		case err == nil && !deaf:
			events, cut = r.conn.SubscribeToTask(r.ctx, &a2a.SubscribeToTaskRequest{ID: r.task.TaskID}), true
			continue
		case err == nil:
			pause = min(max(pause, pollFirst)*3/2, pollMost)
			continue
		case sent && !cut && r.heard == before && saidByServer(err):
			return notTaken{err}
		case r.task.TaskID == "" || definite(err) && !streamGone || tries >= maxTries:
			if r.task.TaskID == "" {
				return r.failed("send a message", err)
			}
			return r.failed("follow the remote task", err)
		}
		// A server that cannot be listened to again, or whose streams do not last,
		// can still be asked.
		if events != nil {
			cuts++
			deaf = deaf || cuts > maxCuts || cut && saidByServer(err)
		}
		events, cut = nil, true
		pause = retryFirst << tries
		tries++
	}
}

// follow takes events until the task is settled. It fails if they end before.
func (r *run) follow(events iter.Seq2[a2a.Event, error]) error {
	for ev, err := range events {
		if err != nil {
			return err
		}
		if err := r.take(ev); err != nil || r.got.settled || r.left || r.ctx.Err() != nil {
			return err // nil if there is no more to hear
		}
	}
	return errEnded
}

// look asks how the task is.
func (r *run) look() error {
	if r.isFar() {
		return r.exchange(opLook, nil)
	}
	task, err := r.conn.GetTask(r.ctx, &a2a.GetTaskRequest{ID: r.task.TaskID, HistoryLength: new(0)})
	if errors.Is(err, a2a.ErrTaskNotFound) {
		r.open = false
		return fmt.Errorf("the server no longer knows the task: %w", err)
	}
	if err != nil {
		return err
	}
	return r.take(task)
}

// complete fetches the whole answer if the agent may have missed a part.
func (r *run) complete(again bool) error {
	if again && r.task.TaskID != "" {
		// If the request fails, the parts received so far are the answer.
		if got := r.got; r.look() != nil {
			r.got = got
		}
	}
	return nil
}

// sleep waits; false if the run is over before.
func (r *run) sleep(d time.Duration) bool {
	return sleep.For(r.ctx, d) == nil && r.ctx.Err() == nil
}

// failed returns the error of a request, with a description of the request.
func (r *run) failed(what string, err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if _, ok := errors.AsType[*LimitError](err); ok || r.conn.wire.exceeded.Load() {
		return &LimitError{Limit: r.cfg.SizeLimit}
	}
	err = r.conn.reason(err)
	if said, ok := errors.AsType[*a2a.Error](err); ok {
		said.Message = r.conn.wire.words(said.Message)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// saidByServer reports whether an error is the server's answer.
func saidByServer(err error) bool {
	return errors.As(err, new(*a2a.Error)) || errors.Is(err, a2a.ErrInternalError) ||
		a2a.ErrorReason(err) != a2a.ErrorReason(a2a.ErrInternalError)
}

type invalidError string

func errInvalid(what string) error { return invalidError(what) }

func (e invalidError) Error() string { return "the server does not keep to A2A: it sent " + string(e) }

// refusal is an error after which the task is not wanted any more.
type refusal struct{ error }

func (e refusal) Unwrap() error { return e.error }

// definite reports whether it is no use to try to reach the server again.
func definite(err error) bool {
	if errors.Is(err, a2a.ErrUnauthenticated) || errors.Is(err, a2a.ErrUnauthorized) ||
		errors.Is(err, a2a.ErrTaskNotFound) || errors.Is(err, errNotAllowed) {
		return true
	}
	_, tooLong := errors.AsType[*LimitError](err)
	_, invalid := errors.AsType[invalidError](err)
	_, no := errors.AsType[refusal](err)
	return tooLong || invalid || no
}
