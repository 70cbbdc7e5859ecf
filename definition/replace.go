// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"fmt"
	"iter"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/session"
)

// outcome is what a step of [BuildConfig.Replace] hands back in place of its work.
type outcome struct {
	words  string         // the answer
	value  any            // for output_key
	result map[string]any // for result_key and exit_when
}

// outcomeOf returns the outcome that a value stands for. A text is the answer; of any other value, the JSON is. A step whose
// output is JSON gets the value of a text.
func outcomeOf(a *Agent, value any) (o outcome, err error) {
	text, isText := value.(string)
	if !isText {
		data, err := json.Marshal(value)
		if err != nil {
			return o, fmt.Errorf("the outcome of %q: %w", a.Name, err)
		}
		text = string(data)
	}
	o = outcome{words: text, value: value}
	inJSON := !isText
	if a.Command != nil && a.Command.JSON || a.HTTP != nil && a.HTTP.JSON {
		if inJSON = true; isText {
			if o.value, err = session.PlainJSON([]byte(text)); err != nil {
				return o, fmt.Errorf("the outcome of %q is not JSON, which the step's output is: %w", a.Name, err)
			}
		}
	}
	switch {
	case a.Command != nil:
		o.result = map[string]any{"exit_code": firstCode(a.Command.OKExitCodes, 0), "stdout": text, "stderr": ""}
	case a.HTTP != nil:
		o.result = map[string]any{"status": firstCode(a.HTTP.OKStatus, 200), "headers": map[string]any{}, "body": text}
	default:
		o.result = map[string]any{"text": text}
	}
	if inJSON {
		o.result["json"] = o.value
	}
	return o, nil
}

// firstCode returns the first of some codes, or a default.
func firstCode(codes []int, otherwise int) int {
	if len(codes) > 0 {
		return codes[0]
	}
	return otherwise
}

// replaced returns an agent that hands back an outcome and does nothing, without the step's callbacks.
func (b *builder) replaced(a *Agent, value any) (agent.Agent, error) {
	o, err := outcomeOf(a, value)
	if err != nil {
		return nil, err
	}
	var leave expr.Program
	if a.ExitWhen != "" {
		if leave, err = expr.Compile(a.ExitWhen, taskagent.Variables()...); err != nil {
			return nil, fmt.Errorf("exit_when of %q: %w", a.Name, err)
		}
	}
	return agent.New(agent.Config{Name: a.Name, Description: a.Description,
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) { yield(o.event(ctx, a, leave)) }
		}})
}

// event returns the event of a step that hands back the outcome.
func (o *outcome) event(ctx agent.InvocationContext, a *Agent, leave expr.Program) (*session.Event, error) {
	ev := &session.Event{Actions: session.EventActions{StateDelta: make(map[string]any)}}
	if a.OutputKey != "" {
		ev.Actions.StateDelta[a.OutputKey] = o.value
	}
	if a.ResultKey != "" {
		ev.Actions.StateDelta[a.ResultKey] = o.result
	}
	if o.words != "" {
		ev.Content = genai.NewContentFromText(o.words, genai.RoleModel)
	}
	if leave == nil {
		return ev, nil
	}
	yes, err := leave.Test(taskagent.ExitScope(ctx, ev.Actions.StateDelta, o.result))
	if err != nil {
		return nil, fmt.Errorf("evaluate the exit condition: %w", err)
	}
	if yes.Holds {
		ev.Actions.Escalate, ev.Actions.Exit = true, &session.Exit{By: a.Name, Reason: a.ExitWhen}
	}
	return ev, nil
}
