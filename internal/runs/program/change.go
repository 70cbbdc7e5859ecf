// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Change has the settings with which a run continues in place of its own. The zero value changes nothing.
type Change struct {
	// Definition reads another definition into the program; nil keeps that of the run.
	Definition func(*Program) (*definition.Definition, error)
	// Limits replace those of the run, and AddIterations raises its limit of iterations. With either,
	// a run that a limit has stopped continues.
	Limits        definition.Limits
	AddIterations uint
	// Retry retries the failed step of a failed run.
	Retry bool
	// Model is the model of all agents in place of the definition's, as provider/name; empty changes nothing.
	Model string
	// Permissions are those of all coding agents in place of the definition's, and the failed step of a failed run is tried
	// again with them; empty changes nothing.
	Permissions string
	// Dir is the folder in which the run continues; see [Program.MoveTo]. Empty keeps its folder.
	Dir string
}

// Refusal is the reason for refusing a change.
type Refusal int

// The refusals.
const (
	CannotAdd Refusal = iota // there is no limit of iterations to raise
	NotFailed                // there is no failed step to try again
	HasFailed                // a higher limit does not help a run that has failed
	BadLimits                // the definition cannot have the limits
	Passed                   // the run has passed the limits
)

// ChangeError refuses a change of a run.
type ChangeError struct {
	Refusal Refusal
	Err     error
}

func (e *ChangeError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ChangeError) Unwrap() error { return e.Err }

// Of returns the program of the last run of a session. It fails with [supervisor.ErrNotFound] if the
// session does not record what the run was started with.
func Of(s session.Session) (*Program, error) {
	started, err := supervisor.StartedWith(s)
	if err != nil {
		return nil, err
	}
	return Decode(started)
}

// Apply changes the program of a run. It returns the definition, and how the supervisor is to resume
// the run; it writes nothing. Errors to expect are a [*ChangeError] and those of reading the
// definition.
func (p *Program) Apply(c *Change, view *session.View) (*definition.Definition, supervisor.ResumeOptions, error) {
	opts := supervisor.ResumeOptions{View: view}
	read := (*Program).Definition
	if c.Definition != nil {
		read = c.Definition
	}
	def, err := read(p)
	if err != nil {
		return nil, opts, err
	}
	p.Limits = p.Limits.With(c.Limits)
	if b := (definition.Limits{LoopBudget: p.Budget}); c.Limits.Budget != nil && def.Allows(b) == nil {
		p.Limits = p.Limits.With(b) // else there is no such loop
	}
	raised := c.Limits != definition.Limits{} || c.AddIterations > 0
	if c.AddIterations > 0 {
		if err := p.AddIterations(def, c.AddIterations); err != nil {
			return nil, opts, &ChangeError{CannotAdd, err}
		}
	}
	retry := c.Retry
	if run := session.RunOf(view); run != nil {
		retry = retry || c.Permissions != "" && run.Status == mark.RunFailed
		switch {
		case c.Retry && run.Status == mark.RunCompleted:
			return nil, opts, &ChangeError{NotFailed, errors.New("the run has not failed, it has completed")}
		case raised && !retry && run.Status == mark.RunFailed:
			return nil, opts, &ChangeError{HasFailed, errors.New("the run failed, and a higher limit does not change that")}
		}
	}
	if raised || c.Definition != nil {
		if err := def.Allows(p.Limits); err != nil {
			return nil, opts, &ChangeError{BadLimits, err}
		}
		if err := p.Follows(view, def); err != nil {
			return nil, opts, &ChangeError{Passed, err}
		}
	}
	opts.Continue = raised || retry
	if run := session.RunOf(view); run != nil && c.Definition != nil && run.Status == mark.RunCompleted {
		opts.Continue = opts.Continue || loop.StopReason(run.Stop).Limit() // the definition may have a higher one
	}
	if c.Model != "" {
		p.Model = c.Model
	}
	if c.Permissions != "" {
		p.Permissions = c.Permissions
	}
	if c.Dir != "" {
		if err := p.MoveTo(c.Dir); err != nil {
			return nil, opts, err
		}
	}
	if raised || c.Definition != nil || c.Model != "" || c.Permissions != "" || c.Dir != "" {
		started, err := p.Started(def)
		if err != nil {
			return nil, opts, err
		}
		opts.Program = started.Program
	}
	return def, opts, nil
}
