// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"net/http"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/prompt"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// ForkRequest says where a run is forked, and how the fork goes on.
type ForkRequest struct {
	// Iteration and Loop, or Seq, say where; without them, it is behind the last iteration.
	// Iteration 0 is before the first one.
	Iteration *int            `json:"iteration"`
	Loop      session.Address `json:"loop"`
	Seq       int64           `json:"seq"`
	// Resume continues the fork, also with another definition or other limits.
	Resume bool `json:"resume"`
	ResumeRequest
}

// Fork makes a new run of the beginning of another, and returns its ID. It is paused, unless the request
// resumes it. One that cannot go on is not there.
func (r *Runs) Fork(ctx context.Context, id string, req *ForkRequest) (string, error) {
	at := supervisor.Checkpoint{Loop: req.Loop, Seq: req.Seq}
	if n := req.Iteration; n != nil {
		at.Iteration, at.First = *n, *n == 0
	}
	if req.Iteration != nil && req.Seq != 0 || at.Iteration < 0 || req.Seq < 0 {
		return "", problem.Bad("give either an iteration, from 0, or a seq, from 1")
	}
	if !req.Resume && req.ResumeRequest != (ResumeRequest{}) || req.Retry {
		return "", problem.Bad("a fork that goes on may have another definition and limits: give them with resume: true")
	}
	fits, err := r.fits(ctx, id, &req.ResumeRequest)
	if err != nil {
		return "", err
	}
	forked, err := r.Supervisor.ForkIf(ctx, id, at, fits)
	if err != nil || !req.Resume {
		return forked, err
	}
	if err := r.Resume(ctx, forked, &req.ResumeRequest); err != nil {
		return "", errors.Join(err, r.remove(ctx, forked))
	}
	return forked, nil
}

// fits returns the check that a fork of a run can continue with the definition that a request has; nil
// if it has none.
func (r *Runs) fits(ctx context.Context, id string, req *ResumeRequest) (func([]*session.Event) error, error) {
	if req.Definition == "" && req.Text == "" {
		return nil, nil
	}
	one, err := r.Brief(ctx, id, 0)
	if err != nil {
		return nil, err
	}
	started, err := supervisor.StartedWith(one)
	if err != nil {
		return nil, err
	}
	p, err := program.Decode(started)
	if err != nil {
		return nil, problem.New(http.StatusUnprocessableEntity, "no_definition", "The run cannot be continued here", "%v", err)
	}
	def, _, err := r.changed(p, req)
	if err != nil {
		return nil, err
	}
	return func(events []*session.Event) error {
		err := prompt.Fits(ctx, events, p, def)
		if diverged, ok := errors.AsType[*agent.DivergedError](err); ok {
			return problem.New(http.StatusConflict, "does_not_fit", "The definition does not fit what the run has done", "at %s the log has %s; "+
				"now there is: %s. No fork was made: fork at an earlier place, or with a definition that has the same steps up to there",
				diverged.Address, diverged.Recorded, diverged.Said)
		}
		return err
	}, nil
}
