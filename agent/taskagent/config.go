// SPDX-License-Identifier: Apache-2.0

package taskagent

import "github.com/refrain-dev/refrain/agent"

// Config is what all kinds of task have in common. Every field but Name may be
// left at its zero value.
type Config struct {
	// Name is required, unique in the agent's tree, and not "user".
	Name string
	// Description tells other agents what this one is for.
	Description string
	// BeforeAgentCallbacks and AfterAgentCallbacks run around the task; see
	// [agent.Config].
	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback

	// OutputKey is the state key for the result, and is written even if that
	// is an empty text: an empty output is an output. Null removes the key.
	OutputKey string
	// ResultKey is the state key for all there is to know about the result, as
	// a map; what is in it depends on the kind. It is written, and nothing else
	// is, if the task was done and its result is a failure, such as a command's
	// exit code or a status of HTTP.
	ResultKey string
	// ExitWhen is an expression that asks to leave the nearest loop when it is
	// true. It reads the variables of [ExpressionConfig] and result, the map of
	// ResultKey; state already has what the task has set. It is not looked at
	// if the task failed.
	ExitWhen string
	// ExitReason says why, as a template that may name result.FIELD too. The
	// default is the text of ExitWhen.
	ExitReason string
	// Effect is what the task does to the world outside; the default is
	// [agent.Idempotent], for an HTTP request that only reads [agent.Pure]. See
	// there what a resumed run makes of it.
	Effect agent.Effect
	// Reconcile finds out by itself what became of a task that must not be done
	// twice and was cut off, before a person is asked; see [NewCommandReconcile] and
	// [NewHTTPReconcile]. It is for the effect [agent.AtMostOnce] only.
	Reconcile agent.Reconcile
}

func (c *Config) base() agent.Config {
	return agent.Config{
		Name: c.Name, Description: c.Description,
		BeforeAgentCallbacks: c.BeforeAgentCallbacks, AfterAgentCallbacks: c.AfterAgentCallbacks,
	}
}
