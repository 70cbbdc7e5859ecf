// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"fmt"
	"time"
)

// Circuit stops running a step after Failures failures in a row. The circuit is then open, and
// the step fails at once. After Cooldown of the loop's active time the step gets one more
// attempt. A loop that has nothing else to run waits for this attempt.
//
// An answer from the cache neither opens nor closes a circuit.
type Circuit struct {
	Failures uint     `json:"failures"`
	Cooldown Duration `json:"cooldown"`
	// Endpoint is a name for what the step depends on. Steps of a loop with the same Endpoint
	// share a circuit: their failures count together, a success of any of these steps closes
	// the circuit, and while it is open none of them runs. They must have the same Failures and
	// Cooldown. Empty means that the step has its own circuit.
	Endpoint string `json:"endpoint,omitzero"`
}

// circuit is the step at which the circuit of a step is counted: the first that
// shares it.
func (p *Plan) circuit(step int) int {
	name := p.Steps[step].Circuit.Endpoint
	if name == "" {
		return step
	}
	for i := range step {
		if c := p.Steps[i].Circuit; c != nil && c.Endpoint == name {
			return i
		}
	}
	return step
}

// count notes in the step's circuit how it went.
func (p *Plan) count(t *Tally, o *incoming, kind string) {
	at := p.circuit(o.Step)
	st := t.stepTally(at)
	switch {
	case kind == CircuitOpen || kind == BudgetSpent || kind == TotalTimeout:
		return // not the step's doing
	case o.Cached, o.Failure == nil && st.Failures == 0 && st.OpenedAt == nil:
		return
	case o.Failure == nil:
		st.Failures, st.OpenedAt = 0, nil
	default:
		st.Failures++
		if st.Failures >= p.Steps[o.Step].Circuit.Failures {
			st.OpenedAt = new(t.Active)
		}
	}
	p.keep(t, at, st)
}

// open reports whether a step's circuit is open, and when it is tried again.
func (p *Plan) open(t *Tally, step int) (wait time.Duration, open bool) {
	c := p.Steps[step].Circuit
	if c == nil {
		return 0, false
	}
	at := t.stepTally(p.circuit(step)).OpenedAt
	if at == nil {
		return 0, false
	}
	wait = time.Duration(c.Cooldown) - (t.Active - *at)
	return wait, wait > 0
}

// refusal says why a step with an open circuit is not run.
func (p *Plan) refusal(t *Tally, step int, wait time.Duration) *Failure {
	who := "it"
	if name := p.Steps[step].Circuit.Endpoint; name != "" {
		who = fmt.Sprintf("endpoint %q", clip(name))
	}
	return &Failure{Kind: CircuitOpen, Message: fmt.Sprintf(
		"not run: %s failed %d times running and is tried again after %s", who, t.stepTally(p.circuit(step)).Failures,
		wait.Round(time.Millisecond))}
}
