// SPDX-License-Identifier: Apache-2.0

package tool

import "github.com/refrain-dev/refrain/agent"

// Effect is a tool call's effect on the outside world: see [agent.Effect].
type Effect = agent.Effect

// EffectOf returns the result of a tool's method Effect() Effect. For a tool without it, EffectOf
// returns [agent.Idempotent]: if a run was cut off during the call, the resumed run may call the
// tool again with the same [drive.Place.ToolCallID].
func EffectOf(t Tool) Effect {
	if e, ok := t.(interface{ Effect() Effect }); ok && e.Effect() != "" {
		return e.Effect()
	}
	return agent.Idempotent
}

// Reconciler is a tool that can find out whether an [agent.AtMostOnce] call that was cut off took
// place. Its ctx is the Context of the call.
type Reconciler interface {
	// Reconcile returns nil if the tool cannot find out. See [agent.Reconcile].
	Reconcile() agent.Reconcile
}

// ReconcileOf returns the Reconcile of a tool that is a [Reconciler]. It returns nil for any other
// tool, about which a run asks a person.
func ReconcileOf(t Tool) agent.Reconcile {
	if r, ok := t.(Reconciler); ok {
		return r.Reconcile()
	}
	return nil
}
