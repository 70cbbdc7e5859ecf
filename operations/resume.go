// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// ResumeRequest says how a run goes on.
type ResumeRequest struct {
	// Definition and Text give the run another definition from here on.
	Definition string `json:"definition"`
	Text       string `json:"text"`
	// AddIterations raises the limit of iterations; Limits replaces limits. With either a run goes on
	// that a limit has stopped.
	AddIterations uint   `json:"add_iterations"`
	Limits        Limits `json:"limits"`
	// Retry tries the failed step of a failed run again.
	Retry bool `json:"retry"`
}

// Resume continues a run.
func (r *Runs) Resume(ctx context.Context, id string, req *ResumeRequest) error {
	if r.closing.Load() {
		return supervisor.ErrClosed
	}
	one, err := r.Session(ctx, id)
	if err != nil {
		return err
	}
	view := session.ViewOf(one)
	if run := session.RunOf(view); run != nil && run.Driver != "" {
		if *req != (ResumeRequest{}) {
			return problem.New(http.StatusConflict, "other_driver", "The run is not driven here", "it belongs to %s, which "+
				"continues it as it is; resume it without a change", run.Driver)
		}
		return r.Supervisor.HandTo(ctx, id, run.Driver)
	}
	view.Remember()
	started, err := supervisor.StartedWith(view)
	if err != nil {
		return err
	}
	p, err := program.Decode(started)
	if err != nil {
		return problem.New(http.StatusUnprocessableEntity, "no_definition", "The run cannot be resumed here", "%v", err)
	}
	if p.Dir != r.Dir {
		return problem.New(http.StatusConflict, "another_folder", "The run was started in another folder",
			"it was started in %s; resume it there with: refrain resume %s", p.Dir, id)
	}
	opts := supervisor.ResumeOptions{View: view}
	def, changed, err := r.changed(p, req)
	if err != nil {
		return err
	}
	raised, err := req.Limits.put(p)
	if err != nil {
		return err
	}
	if req.AddIterations > 0 {
		if req.Limits.MaxIterations != nil {
			return problem.Bad("give either add_iterations or limits.max_iterations")
		}
		if err := p.AddIterations(def, req.AddIterations); err != nil {
			return problem.Bad("add_iterations: %v", err)
		}
		raised = true
	}
	if run := session.RunOf(view); run != nil {
		switch {
		case req.Retry && run.Status == mark.RunCompleted:
			return problem.New(http.StatusConflict, "not_failed", "The run has not failed", "it has completed")
		case raised && !req.Retry && run.Status == mark.RunFailed:
			return problem.New(http.StatusConflict, "failed", "The run has failed", "a higher limit does not change that; "+
				"with retry the failed step is tried again")
		}
	}
	if raised || changed {
		if err := def.Allows(definition.Assumed{MaxIterations: p.MaxIterations, Timeout: p.Timeout}); err != nil {
			return problem.New(http.StatusUnprocessableEntity, "bad_limits", "The run cannot have these limits", "%v", err)
		}
		if err := p.Follows(view, def); err != nil {
			return problem.New(http.StatusConflict, "bad_limits", "The run cannot have these limits", "%v", err)
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
	made, err := p.Build(ctx, r.env(), def) // before anything is written
	if err != nil {
		return CannotBuild(r.Here(err))
	}
	made.Close()
	_, err = r.Supervisor.Resume(ctx, id, opts)
	return err
}

// changed gives the program the definition that a request has, if it has one.
func (r *Runs) changed(p *program.Program, req *ResumeRequest) (*definition.Definition, bool, error) {
	if req.Definition == "" && req.Text == "" {
		def, err := p.Definition()
		return def, false, err
	}
	next, def, err := r.program(req.Definition, req.Text)
	if err != nil {
		return nil, false, err
	}
	p.File, p.Path, p.Files, p.Untrusted = next.File, next.Path, next.Files, p.Untrusted || next.Untrusted
	return def, true, nil
}

// Wake continues a run that has its answers, unless somebody drives it or it cannot go on here. The
// process that has paused it drives it for a moment longer, and may take the answers or not.
func (r *Runs) Wake(ctx context.Context, id string) error {
	over := time.After(LetsGo)
	for {
		held, err := r.Supervisor.Driver(ctx, id)
		if err != nil {
			return err
		}
		if held == nil {
			if err = r.Resume(ctx, id, &ResumeRequest{}); !errors.Is(err, supervisor.ErrUnderWay) {
				if errors.Is(err, supervisor.ErrOver) {
					err = nil
				}
				return err
			}
		}
		one, err := r.Brief(ctx, id, 1)
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

// LetsGo is how long a process may take to let go of a run that waits.
const LetsGo = 10 * time.Second
