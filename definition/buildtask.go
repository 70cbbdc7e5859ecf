// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
)

// newTask makes the agent of a task.
func newTask(a *Agent, cfg BuildConfig, cb around) (agent.Agent, error) {
	base := taskagent.Config{
		Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after, Effect: a.Effect, Reconcile: reconcileOf(a, cfg),
		OutputKey: outputKey(a), ResultKey: a.ResultKey, ExitWhen: a.ExitWhen, ExitReason: a.ExitReason,
	}
	switch a.Type {
	case TypeCommand:
		c := a.Command
		return taskagent.NewCommand(taskagent.CommandConfig{
			Config: base, Args: c.Args, Stdin: c.Stdin, Env: c.Env, CleanEnv: c.CleanEnv, Root: cfg.Root, Dir: c.Dir,
			OutputLimit: c.OutputLimit, Timeout: c.Timeout, JSON: c.JSON, OKExitCodes: c.OKExitCodes, Unsafe: c.Unsafe,
		})
	case TypeExpression:
		return taskagent.NewExpression(taskagent.ExpressionConfig{Config: base, Set: a.Expression.Set, Value: a.Expression.Value})
	case TypeHTTP:
		h := a.HTTP
		return taskagent.NewHTTP(taskagent.HTTPConfig{
			Config: base, URL: h.URL, Method: h.Method, Headers: h.Headers, Body: h.Body, BodyJSON: clone(h.BodyJSON),
			JSON: h.JSON, Timeout: requestTime(a), SizeLimit: h.SizeLimit, OKStatus: h.OKStatus, RedirectHosts: h.RedirectHosts,
		})
	case TypeTemplate:
		return taskagent.NewText(taskagent.TextConfig{Config: base, Text: a.Text})
	}
	return nil, fmt.Errorf("build agent %q: there is no type %q", a.Name, a.Type)
}

// requestTime is how long a request may take by itself. Where its loop bounds it
// that is longer, so that it is the loop's bound which ends it.
func requestTime(a *Agent) time.Duration {
	bound := time.Duration(0)
	if s := a.Step; s != nil {
		bound = s.Timeout
		if s.Adaptive != nil {
			bound = max(bound, time.Duration(s.Adaptive.Max))
		}
	}
	if bound == 0 {
		return a.HTTP.Timeout
	}
	return bound + time.Minute
}
