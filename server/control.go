// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/prompt"
	"github.com/refrain-dev/refrain/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// acts does something to a run, once for each Idempotency-Key, and answers with the run. The body is
// JSON; an empty one leaves req as it is. A request that was taken is carried out even if its client
// has gone.
func (s *Server) acts(w http.ResponseWriter, r *http.Request, req any, do func(ctx context.Context, id string) (int, any, error)) error {
	body, err := s.body(w, r, "application/json")
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if err := decode(body, req); err != nil {
			return err
		}
	}
	ctx := context.WithoutCancel(r.Context())
	return s.doOnce(w, r, body, func() (int, any, error) {
		id := r.PathValue("id")
		status, v, err := do(ctx, id)
		if err != nil || v != nil {
			return status, v, noRun(id, err)
		}
		row, err := s.row(ctx, id)
		return status, row, err
	})
}

// pause asks the run to pause at its next step boundary, or with now, cuts off what is running.
func (s *Server) pause(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Reason string `json:"reason"`
		Now    bool   `json:"now"`
	}
	return s.acts(w, r, &req, func(ctx context.Context, id string) (int, any, error) {
		if req.Now {
			return http.StatusAccepted, nil, s.sup.PauseNow(ctx, id, req.Reason)
		}
		return http.StatusAccepted, nil, s.sup.Pause(ctx, id, req.Reason)
	})
}

// cancel ends the run now.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		Reason string `json:"reason"`
	}
	return s.acts(w, r, &req, func(ctx context.Context, id string) (int, any, error) {
		return http.StatusAccepted, nil, s.sup.Cancel(ctx, id, req.Reason)
	})
}

// resumeRequest says how a run goes on.
type resumeRequest struct {
	// Definition and Text give the run another definition from here on.
	Definition string `json:"definition"`
	Text       string `json:"text"`
	// AddIterations raises the limit of iterations; Limits replaces limits. With either a run goes on
	// that a limit has stopped.
	AddIterations uint   `json:"add_iterations"`
	Limits        limits `json:"limits"`
	// Retry tries the failed step of a failed run again.
	Retry bool `json:"retry"`
}

func (s *Server) resume(w http.ResponseWriter, r *http.Request) error {
	var req resumeRequest
	return s.acts(w, r, &req, func(ctx context.Context, id string) (int, any, error) {
		return http.StatusAccepted, nil, s.goOn(ctx, id, &req)
	})
}

// goOn continues a run.
func (s *Server) goOn(ctx context.Context, id string, req *resumeRequest) error {
	if s.draining.Load() {
		return supervisor.ErrClosed
	}
	one, err := s.session(ctx, id)
	if err != nil {
		return err
	}
	view := session.ViewOf(one)
	if run := session.RunOf(view); run != nil && run.Driver != "" {
		if *req != (resumeRequest{}) {
			return fault(http.StatusConflict, "other_driver", "The run is not driven here", "it belongs to %s, which "+
				"continues it as it is; resume it without a change", run.Driver)
		}
		return s.sup.HandTo(ctx, id, run.Driver)
	}
	view.Remember()
	started, err := supervisor.StartedWith(view)
	if err != nil {
		return err
	}
	p, err := program.Decode(started)
	if err != nil {
		return fault(http.StatusUnprocessableEntity, "no_definition", "The run cannot be resumed here", "%v", err)
	}
	if p.Dir != s.cfg.Dir {
		return fault(http.StatusConflict, "another_folder", "The run was started in another folder",
			"it was started in %s; resume it there with: refrain resume %s", p.Dir, id)
	}
	opts := supervisor.ResumeOptions{View: view}
	def, changed, err := s.changed(p, req)
	if err != nil {
		return err
	}
	raised, err := req.Limits.put(p)
	if err != nil {
		return err
	}
	if req.AddIterations > 0 {
		if req.Limits.MaxIterations != nil {
			return bad("give either add_iterations or limits.max_iterations")
		}
		if err := p.AddIterations(def, req.AddIterations); err != nil {
			return bad("add_iterations: %v", err)
		}
		raised = true
	}
	if run := session.RunOf(view); run != nil {
		switch {
		case req.Retry && run.Status == mark.RunCompleted:
			return fault(http.StatusConflict, "not_failed", "The run has not failed", "it has completed")
		case raised && !req.Retry && run.Status == mark.RunFailed:
			return fault(http.StatusConflict, "failed", "The run has failed", "a higher limit does not change that; "+
				"with retry the failed step is tried again")
		}
	}
	if raised || changed {
		if err := def.Allows(p.Limits); err != nil {
			return fault(http.StatusUnprocessableEntity, "bad_limits", "The run cannot have these limits", "%v", err)
		}
		if err := p.Follows(view, def); err != nil {
			return fault(http.StatusConflict, "bad_limits", "The run cannot have these limits", "%v", err)
		}
	}
	opts.Continue = raised || req.Retry
	if changed || raised {
		now, err := p.Started(def)
		if err != nil {
			return err
		}
		opts.Program = now.Program
	}
	made, err := p.Build(ctx, s.env(), def) // before anything is written
	if err != nil {
		return cannotBuild(s.errHere(err))
	}
	made.Close()
	_, err = s.sup.Resume(ctx, id, opts)
	return err
}

// changed gives the program the definition that a request has, if it has one.
func (s *Server) changed(p *program.Program, req *resumeRequest) (*definition.Definition, bool, error) {
	if req.Definition == "" && req.Text == "" {
		def, err := p.Definition()
		return def, false, err
	}
	next, def, err := s.program(req.Definition, req.Text)
	if err != nil {
		return nil, false, err
	}
	p.File, p.Path, p.Files, p.Untrusted = next.File, next.Path, next.Files, p.Untrusted || next.Untrusted
	return def, true, nil
}

// fork makes a new run of the beginning of another. It is paused, unless resume asks for more: then it
// goes on, also with another definition or other limits. One that cannot go on is not there.
func (s *Server) fork(w http.ResponseWriter, r *http.Request) error {
	var req struct {
		// Iteration and Loop, or Seq, say where; without them, it is behind the last iteration.
		// Iteration 0 is before the first one.
		Iteration *int            `json:"iteration"`
		Loop      session.Address `json:"loop"`
		Seq       int64           `json:"seq"`
		Resume    bool            `json:"resume"`
		resumeRequest
	}
	return s.acts(w, r, &req, func(ctx context.Context, id string) (int, any, error) {
		at := supervisor.Checkpoint{Loop: req.Loop, Seq: req.Seq}
		if n := req.Iteration; n != nil {
			at.Iteration, at.First = *n, *n == 0
		}
		if req.Iteration != nil && req.Seq != 0 || at.Iteration < 0 || req.Seq < 0 {
			return 0, nil, bad("give either an iteration, from 0, or a seq, from 1")
		}
		if !req.Resume && req.resumeRequest != (resumeRequest{}) || req.Retry {
			return 0, nil, bad("a fork that goes on may have another definition and limits: give them with resume: true")
		}
		fits, err := s.fits(ctx, id, &req.resumeRequest)
		if err != nil {
			return 0, nil, err
		}
		forked, err := s.sup.ForkIf(ctx, id, at, fits)
		if err != nil {
			return 0, nil, err
		}
		if req.Resume {
			if err := s.goOn(ctx, forked, &req.resumeRequest); err != nil {
				return 0, nil, errors.Join(err, s.remove(ctx, forked))
			}
		}
		row, err := s.row(ctx, forked)
		w.Header().Set("Location", "/api/v1/runs/"+url.PathEscape(forked))
		return http.StatusCreated, row, err
	})
}

// fits returns the check that a fork of a run can continue with the definition that a request has; nil
// if it has none.
func (s *Server) fits(ctx context.Context, id string, req *resumeRequest) (func([]*session.Event) error, error) {
	if req.Definition == "" && req.Text == "" {
		return nil, nil
	}
	one, err := s.brief(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	started, err := supervisor.StartedWith(one)
	if err != nil {
		return nil, err
	}
	p, err := program.Decode(started)
	if err != nil {
		return nil, fault(http.StatusUnprocessableEntity, "no_definition", "The run cannot be continued here", "%v", err)
	}
	def, _, err := s.changed(p, req)
	if err != nil {
		return nil, err
	}
	return func(events []*session.Event) error {
		err := prompt.Fits(ctx, s.cfg.Code, events, p, def)
		if diverged, ok := errors.AsType[*agent.DivergedError](err); ok {
			return fault(http.StatusConflict, "does_not_fit", "The definition does not fit what the run has done", "at %s the log has %s; "+
				"now there is: %s. No fork was made: fork at an earlier place, or with a definition that has the same steps up to there",
				diverged.Address, diverged.Recorded, diverged.Said)
		}
		return err
	}, nil
}

// answerRequest answers a question of a run.
type answerRequest struct {
	// Question is its ID; it may be left out if there is only one.
	Question string          `json:"question"`
	Value    json.RawMessage `json:"value"`
	Reason   string          `json:"reason"`
	By       string          `json:"by"`
	// Wait leaves a run that no process drives as it is.
	Wait bool `json:"wait"`

	key string // of the message over A2A
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	var req answerRequest
	return s.acts(w, r, &req, func(ctx context.Context, id string) (int, any, error) {
		return http.StatusOK, nil, s.answerTo(ctx, id, &req)
	})
}

// answerTo answers a question of the run. A run that no process drives goes on when it has all answers
// that it waits for.
func (s *Server) answerTo(ctx context.Context, id string, req *answerRequest) error {
	open, err := s.sup.Questions(ctx, id)
	if err != nil {
		return err
	}
	if req.Question == "" && len(open) == 1 {
		req.Question = open[0].ID
	}
	a := mark.Answer{ID: req.Question, Value: req.Value, Reason: req.Reason, By: req.By, Key: req.key}
	for _, q := range open {
		if q.ID != a.ID {
			continue
		}
		if err := q.Check(&a); err != nil {
			return fault(http.StatusUnprocessableEntity, "bad_answer", "The answer does not fit", "%v", err)
		}
	}
	left, err := s.sup.Answer(ctx, id, a)
	if err != nil || len(left) > 0 || req.Wait {
		return err
	}
	return s.wake(ctx, id)
}

// wake continues a run that has its answers, unless somebody drives it or it cannot go on here. The
// process that has paused it drives it for a moment longer, and may take the answers or not.
func (s *Server) wake(ctx context.Context, id string) error {
	over := time.After(letsGo)
	for {
		held, err := s.sup.Driver(ctx, id)
		if err != nil {
			return err
		}
		if held == nil {
			if err = s.goOn(ctx, id, &resumeRequest{}); !errors.Is(err, supervisor.ErrUnderWay) {
				if errors.Is(err, supervisor.ErrOver) {
					err = nil
				}
				return err
			}
		}
		one, err := s.brief(ctx, id, 1)
		if err != nil {
			return err
		}
		if run := session.RunOf(one); run == nil || run.Status != mark.RunWaiting {
			return nil // it goes on
		}
		select {
		case <-over:
			return nil // whoever drives it has the answers
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// letsGo is how long a process may take to let go of a run that waits.
const letsGo = 10 * time.Second

// log reads the log of the run that a request is about.
func (s *Server) log(r *http.Request) (*runlog.Run, error) {
	id := r.PathValue("id")
	run, err := runlog.Read(r.Context(), s.cfg.Service, s.key(id))
	return run, noRun(id, err)
}
