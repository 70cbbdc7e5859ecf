// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// The kinds of marks in a mailbox: a request to the run, and the confirmation that its driver has accepted a request.
const (
	markRequest   mark.Kind = "request"
	markConfirmed mark.Kind = "noted"
)

// runRequest is a request to a run: the data of markRequest.
type runRequest struct {
	// To is the token of the lease under which the run is driven. A later driver has another token and ignores the
	// request, unless it lasts.
	To     int64        `json:"to"`
	Do     string       `json:"do"`
	By     string       `json:"by,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Edit   bool         `json:"edit,omitempty"`
	Answer *mark.Answer `json:"answer,omitempty"`
	Hint   *mark.Hint   `json:"hint,omitempty"`
}

// isLasting reports whether every driver takes the request, because the driver that it was sent to may have died before it recorded the
// request in the log.
func (w *runRequest) isLasting() bool { return w.Do == doAnswer || w.Do == doTell }

// The kinds of requests.
const (
	doPause    = "pause"
	doPauseNow = "pause_now"
	doCancel   = "cancel"
	doAnswer   = "answer"
	doTell     = "tell"
)

// confirmation is the data of markNoted.
type confirmation struct {
	// Request is the sequence number of the request.
	Request int64 `json:"request"`
}

// mailbox returns the key of the session that holds the requests to a run.
func mailbox(key lease.Key) lease.Key {
	key.AppName += ".mail"
	return key
}

// Remove deletes the mailbox of a run and then its session. After an error, call it again. The caller
// must make sure that no process drives the run.
func Remove(ctx context.Context, service session.Service, key lease.Key) error {
	for _, one := range []lease.Key{mailbox(key), key} {
		if err := service.Delete(ctx, &session.DeleteRequest{AppName: one.AppName, UserID: one.UserID, SessionID: one.SessionID}); err != nil {
			return err
		}
	}
	return nil
}

// post appends an event with a mark to the mailbox of a run. It creates the mailbox if it does not exist.
func (s *Supervisor) post(ctx context.Context, key lease.Key, author string, kind mark.Kind,
	data any) (*session.Event, error) {
	box := mailbox(key)
	m, err := mark.New(kind, data)
	if err != nil {
		return nil, err
	}
	for {
		got, err := s.cfg.Service.Get(ctx, &session.GetRequest{AppName: box.AppName, UserID: box.UserID,
			SessionID: box.SessionID, NumRecentEvents: 1})
		if errors.Is(err, session.ErrNotFound) {
			_, err = s.cfg.Service.Create(ctx, &session.CreateRequest{AppName: box.AppName, UserID: box.UserID,
				SessionID: box.SessionID})
			if err == nil || errors.Is(err, session.ErrExists) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		ev := &session.Event{Author: author, Mark: m}
		if err = s.cfg.Service.AppendEvent(ctx, got.Session, ev); err == nil {
			return ev, nil
		}
		if !errors.Is(err, session.ErrConflict) {
			return nil, err
		}
	}
}

// confirmTimeout is how long send waits for the driver to confirm a request. After that the caller checks again whether a
// process drives the run.
const confirmTimeout = 2 * time.Second

// send writes a request into the mailbox of a run, and waits until the driver confirms it. It returns false if the driver
// has not confirmed it within patience, perhaps because the driver died.
func (s *Supervisor) send(ctx context.Context, key lease.Key, w *runRequest) (bool, error) {
	ev, err := s.post(ctx, key, "user", markRequest, w)
	if err != nil {
		return false, err
	}
	waits, cancel := context.WithTimeoutCause(ctx, confirmTimeout, errNotConfirmed)
	defer cancel()
	for answer, err := range s.watcher.Watch(waits, mailbox(key), ev.Seq) {
		if err != nil {
			return false, ignore(err, errNotConfirmed)
		}
		var n confirmation
		if answer.Mark != nil && answer.Mark.Kind == markConfirmed && answer.Mark.Decode(&n) == nil && n.Request == ev.Seq {
			return true, nil
		}
	}
	return false, nil
}

var errNotConfirmed = errors.New("the driver of the run takes long to answer")

// listen carries out the requests in the run's mailbox until ctx ends or the run is about to end.
func (r *Run) listen(ctx context.Context) {
	var seen int64
	for ctx.Err() == nil {
		for ev, err := range r.s.watcher.Watch(ctx, mailbox(r.key), seen) {
			if err != nil {
				break
			}
			seen = ev.Seq
			var w runRequest
			if ev.Mark == nil || ev.Mark.Kind != markRequest || ev.Mark.Decode(&w) != nil {
				continue
			}
			if w.To != r.lease.Token && !w.isLasting() {
				continue
			}
			if !r.accept(&w) {
				return
			}
			if w.To == r.lease.Token {
				r.confirm(ctx, ev.Seq)
			}
		}
		r.ensureMailbox(ctx)
	}
}

// confirm confirms a request to its sender, even if ctx has ended because the request ends the run. It ignores an error,
// because the sender then repeats the request.
func (r *Run) confirm(ctx context.Context, request int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), confirmTimeout)
	defer cancel()
	_, _ = r.s.post(ctx, r.key, "refrain", markConfirmed, confirmation{request})
}

// ensureMailbox creates the mailbox if it does not exist. If that fails, it waits one second, because the store may be unavailable.
func (r *Run) ensureMailbox(ctx context.Context) {
	box := mailbox(r.key)
	_, err := r.s.cfg.Service.Create(ctx, &session.CreateRequest{AppName: box.AppName, UserID: box.UserID,
		SessionID: box.SessionID})
	if err == nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Second):
	}
}

// accept carries out a request. It returns false if the run is about to end.
func (r *Run) accept(w *runRequest) bool {
	r.mu.Lock()
	if r.requests.closing {
		r.mu.Unlock()
		return false
	}
	if w.Do == doAnswer && w.Answer != nil {
		r.requests.answers = append(r.requests.answers, *w.Answer)
	}
	if w.Do == doTell && w.Hint != nil {
		r.hints.Add(*w.Hint)
	}
	r.mu.Unlock()
	switch w.Do {
	case doPause:
		r.askPause(&PausedError{By: w.By, Reason: w.Reason, Edit: w.Edit})
	case doPauseNow:
		r.cancel(&PausedError{By: w.By, Reason: w.Reason})
	case doCancel:
		r.cancel(&CanceledError{By: w.By, Reason: w.Reason})
	}
	return true
}

// takeOldRequests writes to the log the answers in the mailbox that an earlier driver confirmed but did not record before it
// died. It adds the hints there, of which recallHints finds those that the log has.
func (r *Run) takeOldRequests() error {
	box := mailbox(r.key)
	got, err := r.s.cfg.Service.Get(r.ctx, &session.GetRequest{AppName: box.AppName, UserID: box.UserID,
		SessionID: box.SessionID})
	if err != nil {
		return ignore(err, session.ErrNotFound)
	}
	any := false
	for ev := range got.Session.Events().All() {
		var w runRequest
		if ev.Mark != nil && ev.Mark.Kind == markRequest && ev.Mark.Decode(&w) == nil && w.isLasting() {
			any = any || w.Do == doAnswer
			r.accept(&w)
		}
	}
	if any {
		_, err = r.answer()
	}
	return err
}

// answer writes the answers that have arrived to the log, and returns the questions that are still open. It ignores an
// answer to a question that is not open.
func (r *Run) answer() ([]mark.Question, error) {
	r.mu.Lock()
	answers := r.requests.answers
	r.requests.answers = nil
	r.mu.Unlock()
	view, err := r.read(context.WithoutCancel(r.ctx))
	if err != nil {
		return nil, err
	}
	open, err := openQuestions(view, r.run.ID)
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	for _, a := range answers {
		i := slices.IndexFunc(open, func(q mark.Question) bool { return q.ID == a.ID })
		if i < 0 || open[i].Check(&a) != nil { // a process of an earlier version may have sent it unchecked
			continue
		}
		if err := r.appendMark(mark.KindAnswered, a, func(*mark.Run) {}); err != nil {
			return nil, err
		}
		open = append(open[:i:i], open[i+1:]...)
	}
	return open, nil
}
