// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/prompt"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// ForkRequest says where to fork a run, and how the fork continues.
type ForkRequest struct {
	// Iteration and Loop, or Seq, name the place; the default is after the last iteration.
	// Iteration 0 is before the first one.
	Iteration *int            `json:"iteration"`
	Loop      session.Address `json:"loop"`
	Seq       int64           `json:"seq"`
	// Resume continues the fork, also with another definition or other limits.
	Resume bool `json:"resume"`
	ResumeRequest
}

// Fork makes a new run from the beginning of another, and returns its ID. The fork is paused, unless the
// request resumes it. A fork that cannot continue is not kept.
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
	var p *program.Program
	var def *definition.Definition
	if read := r.other(&req.ResumeRequest); read != nil {
		run, err := r.Brief(ctx, id, 0)
		if err != nil {
			return "", err
		}
		if p, err = program.Of(run); err != nil {
			return "", noProgram("The run cannot be continued here", err)
		}
		if def, err = read(p); err != nil {
			return "", err
		}
	}
	forked, err := ForkFitting(ctx, r.Supervisor, id, at, r.Code, p, def)
	if diverged, ok := errors.AsType[*agent.DivergedError](err); ok {
		return "", problem.New(http.StatusConflict, "does_not_fit", "The definition does not fit what the run has done", "%s", Misfit(diverged))
	}
	if err != nil || !req.Resume {
		return forked, err
	}
	if err := r.Resume(ctx, forked, &req.ResumeRequest); err != nil {
		return "", errors.Join(err, supervisor.Remove(ctx, r.Service, r.Key(forked)))
	}
	return forked, nil
}

// ForkFitting forks a run if the fork can continue with a definition, which is that of the program. A nil
// def means the definition of the run, which always fits. It fails with an [*agent.DivergedError] if the
// definition differs from the run's log up to the checkpoint; see [Misfit].
func ForkFitting(ctx context.Context, sup *supervisor.Supervisor, id string, at supervisor.Checkpoint, code program.Code,
	p *program.Program, def *definition.Definition) (string, error) {
	if def == nil {
		return sup.Fork(ctx, id, at)
	}
	return sup.ForkIf(ctx, id, at, func(events []*session.Event) error { return prompt.Fits(ctx, code, events, p, def) })
}

// Misfit returns why a run was not forked with a definition.
func Misfit(e *agent.DivergedError) string {
	return fmt.Sprintf("at %s the log has %s; now there is: %s. No fork was made: fork at an earlier place, or with a definition "+
		"that has the same steps up to there", e.Address, e.Recorded, e.Said)
}
