// SPDX-License-Identifier: Apache-2.0

package loop

import "slices"

// Exit is a step's request to leave the loop.
type Exit struct {
	// By is the name of the agent that asks; "" means the step.
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Status is "" if the work is done, else StatusImpossible or StatusBlocked.
	Status string `json:"status,omitzero"`
	// Scope says which loops to leave: "" for the nearest one, a loop's name for that loop, or
	// "all".
	Scope string `json:"scope,omitzero"`
	// Score is the agent's own score of the iteration, which replaces the plan's.
	Score *float64 `json:"score,omitzero"`
	// Waits says that the step waits for a person's answer. Such an exit needs no
	// permission.
	Waits bool `json:"waits,omitzero"`
	// Escalated is true for a plain Escalate flag without a call of exit_loop.
	Escalated bool `json:"escalated,omitzero"`
}

// The statuses of an exit that gives up.
const (
	StatusImpossible = "impossible"
	StatusBlocked    = "blocked"
)

func (e *Exit) reason() StopReason {
	switch {
	case e.Status == StatusImpossible:
		return ReasonImpossible
	case e.Status == StatusBlocked:
		return ReasonBlocked
	case e.Escalated:
		return ReasonEscalated
	}
	return ReasonExit
}

// Refusal is an exit that was not allowed.
type Refusal struct {
	Iteration int    `json:"iteration"`
	By        string `json:"by"`
	Reason    string `json:"reason,omitzero"`
}

// refusals counts the exits that were refused.
type refusals struct {
	Refusals int       `json:"refusals,omitzero"`
	Refused  []Refusal `json:"refused,omitzero"` // the last 5
}

func (r *refusals) refuse(one Refusal) {
	r.Refusals++
	all := append(slices.Clone(r.Refused), one)
	r.Refused = all[max(0, len(all)-maxRefusals):]
}

// exit accepts a request to leave the loop, or refuses it if the agent may not leave.
func (p *Plan) exit(t *Tally, o *addedOutcome) {
	if o.Exit == nil {
		return
	}
	e := *o.Exit
	e.By = p.asker(o)
	e.Reason, e.Scope, e.Status = truncate(e.Reason), truncate(e.Scope), truncate(e.Status)
	if e.Score != nil && !isFinite(*e.Score) {
		e.Score = nil // JSON has no such number
	}
	if e.Waits || p.MayExit(e.By) {
		t.Exit = &e
		return
	}
	t.refuse(Refusal{Iteration: t.Iteration, By: e.By, Reason: e.Reason})
}

// asker returns the name of the agent that asks to leave.
func (p *Plan) asker(o *addedOutcome) string {
	if o.Exit.By != "" {
		return o.Exit.By
	}
	return p.nameOf(o.Step)
}
