// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
)

// Config has the fields of all kinds of task. Only Name is required.
type Config struct {
	// Name is required, unique in the agent's tree, and not "user".
	Name string
	// Description tells other agents the purpose of this agent.
	Description string
	// BeforeAgentCallbacks and AfterAgentCallbacks run around the task; see
	// [agent.Config].
	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback

	// OutputKey is the state key for the result. It is written even if the result is an empty text;
	// null removes the key.
	OutputKey string
	// ResultKey is the state key for the whole result, a map whose fields depend on the kind of
	// task. If the task ran but failed, for example with an exit code or an HTTP status that means
	// failure, ResultKey is written and OutputKey is not.
	ResultKey string
	// ExitWhen is an expression. If it is true after the task, the agent asks to leave the nearest loop.
	// It reads the variables of [ExpressionConfig], and result, the map of ResultKey. Its variable state
	// includes the changes that the task has made. It is not evaluated if the task failed.
	ExitWhen string
	// ExitReason is the reason to leave the loop, as a template that may name result.FIELD too. The
	// default is the text of ExitWhen.
	ExitReason string
	// Effect is the task's effect on the outside world; the default is [agent.Idempotent], or
	// [agent.Pure] for an HTTP request that only reads. A resumed run uses it to decide whether to
	// repeat a task that was cut off.
	Effect agent.Effect
	// Reconcile finds out whether a task that was cut off has taken place. It is called before a person
	// is asked; see [NewCommandReconcile] and [NewHTTPReconcile]. It can be set only with the effect
	// [agent.AtMostOnce], for tasks that must not be done twice.
	Reconcile agent.Reconcile
	// Elsewhere runs a command or a request on another machine, with the environment, the files and
	// the network of that machine. With the zero value this machine runs it. Templates are filled on
	// this machine. If a task with the effect [agent.AtMostOnce] was cut off on this machine, it is in
	// doubt only if the other machine does not report the outcome; then Reconcile is called on this
	// machine. Other kinds of tasks ignore Elsewhere.
	Elsewhere elsewhere.Queue
}

func (c *Config) base() agent.Config {
	return agent.Config{
		Name: c.Name, Description: c.Description,
		BeforeAgentCallbacks: c.BeforeAgentCallbacks, AfterAgentCallbacks: c.AfterAgentCallbacks,
	}
}
