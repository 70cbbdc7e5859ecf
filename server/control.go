// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"net/url"

	"github.com/refrain-dev/refrain/operations"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/runlog"
	"github.com/refrain-dev/refrain/server/internal/wire"
)

func (s *Server) startRun(w http.ResponseWriter, r *http.Request) error {
	body, err := s.Body(w, r, "application/json")
	if err != nil {
		return err
	}
	var req operations.StartRequest
	if err := wire.Decode(body, &req); err != nil {
		return err
	}
	return s.DoOnce(w, r, body, func() (int, any, error) {
		again, err := s.runs.Start(r.Context(), &req, r.Header.Get("Idempotency-Key"), body)
		if err != nil {
			return 0, nil, err
		}
		status := http.StatusCreated
		if again {
			w.Header().Set("Idempotent-Replayed", "true")
			status = http.StatusOK
		}
		row, err := s.runs.Row(r.Context(), req.ID)
		w.Header().Set("Location", "/api/v1/runs/"+url.PathEscape(req.ID))
		return status, row, err
	})
}

// acts does something to a run, once for each Idempotency-Key, and answers with the run. The body is
// JSON; an empty one leaves req as it is. A request that was taken is carried out even if its client
// has gone.
func (s *Server) acts(w http.ResponseWriter, r *http.Request, status int, req any, do func(ctx context.Context, id string) error) error {
	body, err := s.Body(w, r, "application/json")
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if err := wire.Decode(body, req); err != nil {
			return err
		}
	}
	ctx := context.WithoutCancel(r.Context())
	return s.DoOnce(w, r, body, func() (int, any, error) {
		id := r.PathValue("id")
		if err := do(ctx, id); err != nil {
			return 0, nil, problem.NoRun(id, err)
		}
		row, err := s.runs.Row(ctx, r.PathValue("id")) // a fork is another run
		return status, row, err
	})
}

// pause asks the run to pause at its next step boundary, or with now, cuts off what is running.
func (s *Server) pause(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Reason string `json:"reason"`
		Now    bool   `json:"now"`
	}
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error {
		return s.runs.Pause(ctx, id, req.Reason, req.Now)
	})
}

// cancel ends the run now.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Reason string `json:"reason"`
	}
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error {
		return s.runs.Cancel(ctx, id, req.Reason)
	})
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	var req operations.ResumeRequest
	return s.acts(w, r, http.StatusAccepted, &req, func(ctx context.Context, id string) error { return s.runs.Resume(ctx, id, &req) })
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	var req operations.AnswerRequest
	return s.acts(w, r, http.StatusOK, &req, func(ctx context.Context, id string) error { return s.runs.Answer(ctx, id, &req) })
}

// fork makes a new run of the beginning of another, and answers with that.
func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var req operations.ForkRequest
	return s.acts(w, r, http.StatusCreated, &req, func(ctx context.Context, id string) error {
		forked, err := s.runs.Fork(ctx, id, &req)
		if err != nil {
			return err
		}
		r.SetPathValue("id", forked)
		w.Header().Set("Location", "/api/v1/runs/"+url.PathEscape(forked))
		return nil
	})
}

// log reads the log of the run that a request is about.
func (s *Server) log(r *http.Request) (*runlog.Run, error) {
	return s.runs.ReadLog(r.Context(), r.PathValue("id"))
}
