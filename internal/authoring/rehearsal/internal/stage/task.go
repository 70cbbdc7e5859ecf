// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/session"
)

// standIn makes the stand-in of a task that reaches outside of the process, and of an expression
// that must not end its loop; nil for all other agents.
func (p *play) standIn(a *definition.Agent) (agent.Agent, error) {
	if a.Type == definition.TypeExpression {
		if p.Never && a.ExitWhen != "" && p.LoopAround(a) == p.Target {
			return p.staying(a)
		}
		return nil, nil
	}
	if a.Type == definition.TypeLLM || !study.Reaches(a) {
		return nil, nil
	}
	var leave expr.Program
	if a.ExitWhen != "" {
		var err error
		if leave, err = expr.Compile(a.ExitWhen, taskagent.Variables()...); err != nil {
			return nil, fmt.Errorf("exit_when of %q: %w", a.Name, err)
		}
	}
	return agent.New(agent.Config{
		Name: a.Name, Description: a.Description,
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				if ctx.Err() != nil {
					yield(nil, context.Cause(ctx))
					return
				}
				ev, err := p.act(a, leave, ctx)
				if err != nil {
					yield(nil, err)
					return
				}
				yield(ev, nil)
			}
		},
	})
}

// staying is an expression agent without its exit_when.
func (p *play) staying(a *definition.Agent) (agent.Agent, error) {
	x := a.Expression
	if len(x.Set) == 0 && (x.Value == "" || a.OutputKey == "" && a.ResultKey == "") {
		return agent.New(agent.Config{Name: a.Name, Description: a.Description})
	}
	return taskagent.NewExpression(taskagent.ExpressionConfig{
		Config: taskagent.Config{Name: a.Name, Description: a.Description, OutputKey: a.OutputKey,
			ResultKey: a.ResultKey},
		Set: x.Set, Value: x.Value,
	})
}

// act is what a stand-in does instead of the task.
func (p *play) act(a *definition.Agent, leave expr.Program, ctx agent.InvocationContext) (*session.Event, error) {
	at := placeOf(ctx)
	if p.Fail != nil && a.Type == definition.TypeA2A {
		if f := p.Fail(a, at); f != nil {
			return nil, fmt.Errorf("%s: %s", a.Name, f.Message)
		}
	}
	l := p.line(a, at)
	delta := make(map[string]any)
	if a.OutputKey != "" && !study.Editing(a) && !(a.OutputKey == definition.LoopOutput &&
		p.LoopAround(p.LoopAround(a)) != nil) {
		delta[a.OutputKey] = l.Value
	}
	result := study.Result(a, l)
	if a.ResultKey != "" {
		delta[a.ResultKey] = result
	}
	ev := &session.Event{Actions: session.EventActions{StateDelta: delta}}
	if l.Words != "" {
		ev.Content = genai.NewContentFromText(l.Words, genai.RoleModel)
	}
	if p.Escalate == a.Name {
		ev.Actions.Escalate = true
	}
	if m, _ := l.Value.(map[string]any); study.Approving(a) && a.CanExitLoop && m["approved"] == true {
		ev.Actions.Escalate = true
		ev.Actions.Exit = &session.Exit{By: a.Name, Reason: "approved, in the rehearsal"}
	}
	if leave == nil || p.Never && p.LoopAround(a) == p.Target {
		return ev, nil
	}
	yes, err := leave.Test(taskagent.ExitScope(ctx, delta, result))
	if err != nil {
		return nil, fmt.Errorf("evaluate the exit condition: %w", err)
	}
	if yes.Holds {
		ev.Actions.Escalate = true
		ev.Actions.Exit = &session.Exit{By: a.Name, Reason: a.ExitWhen}
	}
	return ev, nil
}
