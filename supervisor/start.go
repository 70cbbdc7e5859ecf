// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/session"
)

// Start starts a run and returns as soon as it is in the log: from then on it can
// be found and resumed, whatever happens. The run does not end with ctx. If
// there is no place for it yet it begins later.
//
// Errors to expect are [ErrUnderWay] if the session's last run is not over, a
// [*session.HeldError], and what Build said; nothing is in the log then.
func (s *Supervisor) Start(ctx context.Context, req Request) (*Run, error) {
	r, err := s.admit(ctx, req.SessionID)
	if err != nil {
		req.Program.close()
		return nil, fmt.Errorf("start run: %w", err)
	}
	r.run = session.Run{ID: "e-" + uuid.NewString(), Name: req.Started.Name, Status: session.RunRunning, Started: time.Now()}
	req.Started.By, req.Started.Session = s.cfg.Owner, r.ID()
	if !r.Queued() {
		if req.Program == nil {
			if req.Program, err = s.cfg.Build(r.ctx, req.Started); err != nil {
				r.undo()
				return nil, fmt.Errorf("start run: %w", err)
			}
		}
		go r.drive(req.Program, &req)
		if err := <-r.began; err != nil {
			<-r.done
			return nil, fmt.Errorf("start run: %w", err)
		}
		return r, nil
	}
	if err := r.submit(&req); err != nil {
		r.undo()
		req.Program.close()
		return nil, fmt.Errorf("start run: %w", err)
	}
	go r.drive(req.Program, nil)
	return r, nil
}

// Submit puts a run into the log and leaves it to others to drive it: they Resume
// it, or Recover what there is. It returns the run's ID. The errors are those of
// Start, Build's aside: it is not called.
func (s *Supervisor) Submit(ctx context.Context, req Request) (string, error) {
	defer req.Program.close()
	r, err := s.admit(ctx, req.SessionID)
	if err != nil {
		return "", fmt.Errorf("submit run: %w", err)
	}
	r.run = session.Run{ID: "e-" + uuid.NewString(), Name: req.Started.Name, Status: session.RunRunning, Started: time.Now()}
	req.Started.By, req.Started.Session = s.cfg.Owner, r.ID()
	if err := r.submit(&req); err != nil {
		r.undo()
		return "", fmt.Errorf("submit run: %w", err)
	}
	s.queue.leave(r.place)
	s.release(r.lease)
	r.dismiss()
	return r.ID(), nil
}

// admit makes the session of a new run, or finds it, and takes its lease.
func (s *Supervisor) admit(ctx context.Context, id string) (*Run, error) {
	made, id, err := s.session(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := s.enroll(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.made = made; made {
		return r, nil
	}
	// Only now nobody else can begin one.
	_, last, err := s.get(ctx, id, true)
	if err != nil && !errors.Is(err, ErrNotFound) || last != nil && !last.Status.Over() {
		r.undo()
		if err == nil {
			err = fmt.Errorf("%w: the last run of session %q is %s: resume or cancel it first", ErrUnderWay, id, last.Status)
		}
		return nil, err
	}
	return r, nil
}

// session makes a session if there is none of that ID.
func (s *Supervisor) session(ctx context.Context, id string) (made bool, got string, err error) {
	given := id != ""
	for {
		if !given {
			id = "r_" + uuid.NewString()[:8]
		}
		_, err := s.cfg.Service.Create(ctx, &session.CreateRequest{AppName: s.cfg.AppName, UserID: s.cfg.UserID, SessionID: id})
		switch {
		case err == nil:
			return true, id, nil
		case errors.Is(err, session.ErrExists) && given:
			return false, id, nil
		case !errors.Is(err, session.ErrExists):
			return false, "", err
		}
	}
}

// submit writes the run's first event.
func (r *Run) submit(req *Request) error {
	view, _, err := r.s.get(r.ctx, r.ID(), true)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	ev, err := session.NewRunEvent(r.run, "user", session.MarkRunStarted, req.Started)
	if err != nil {
		return err
	}
	maps.Copy(ev.Actions.StateDelta, req.State)
	ev.Content = req.Message
	return r.s.cfg.Service.AppendEvent(r.ctx, view, ev)
}

// undo takes back a run that is not in the log.
func (r *Run) undo() {
	r.s.queue.leave(r.place)
	if r.made {
		r.s.deleteEmpty(r.key)
	}
	r.s.release(r.lease)
	r.dismiss()
}

// deleteEmpty removes a session in which nothing was said.
func (s *Supervisor) deleteEmpty(key session.Key) {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.LeaseTTL)
	defer cancel()
	got, err := s.cfg.Service.Get(ctx, &session.GetRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID, NumRecentEvents: 1})
	if err == nil && got.Session.Events().Len() == 0 {
		_ = s.cfg.Service.Delete(ctx, &session.DeleteRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID})
	}
}
