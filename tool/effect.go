// SPDX-License-Identifier: Apache-2.0

package tool

import "github.com/refrain-dev/refrain/agent"

// Effect says what a call of a tool does to the world outside: see
// [agent.Effect].
type Effect = agent.Effect

// EffectOf is what a tool says of itself by a method Effect() Effect; without one
// it is [agent.Idempotent]: it may be called again with the same
// drive.ToolCallID when a run is resumed that was cut off during the call.
func EffectOf(t Tool) Effect {
	if e, ok := t.(interface{ Effect() Effect }); ok && e.Effect() != "" {
		return e.Effect()
	}
	return agent.Idempotent
}

// Reconciler is a tool that can find out by itself what became of a call that must not
// be made twice, and was cut off. Its ctx is a [Context] of the call.
type Reconciler interface {
	// Reconcile is nil if it cannot. See [agent.Reconcile].
	Reconcile() agent.Reconcile
}

// ReconcileOf is what a tool says by a method Reconcile() agent.Reconcile; nil if it
// has none: then a person is asked.
func ReconcileOf(t Tool) agent.Reconcile {
	if r, ok := t.(Reconciler); ok {
		return r.Reconcile()
	}
	return nil
}
