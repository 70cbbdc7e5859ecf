// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

var (
	// ErrConfirmationRequired reports that a call waits for a person's consent.
	ErrConfirmationRequired = errors.New("requires confirmation, please approve or reject")
	// ErrConfirmationRejected reports that a person has refused a call.
	ErrConfirmationRejected = errors.New("call is rejected")
)

// ConfirmationProvider decides from the tool and its arguments whether a person is asked before a
// call.
type ConfirmationProvider func(toolName string, toolInput any) bool

// Confirm returns nil if a tool may continue with the call of ctx. If required, and no person has
// answered, it asks a person and returns [ErrConfirmationRequired]; the agent calls the tool again
// after the answer. If a person refused, it returns [ErrConfirmationRejected], required or not. The model reads
// both errors as ADK writes them.
func Confirm(ctx Context, name string, required bool) error {
	if answer := ctx.ToolConfirmation(); answer != nil {
		if !answer.Confirmed && answer.Form == nil { // a form is asked only after the consent
			return fmt.Errorf("error tool %q %w", name, ErrConfirmationRejected)
		}
		return nil
	}
	if !required {
		return nil
	}
	hint := fmt.Sprintf("Please approve or reject the tool call %s() by responding with a FunctionResponse with an "+
		"expected ToolConfirmation payload.", name)
	if err := ctx.RequestConfirmation(hint, nil); err != nil {
		return fmt.Errorf("tool %q: %w", name, err)
	}
	ctx.Actions().SkipSummarization = true
	return fmt.Errorf("error tool %q %w", name, ErrConfirmationRequired)
}

// RequestForm asks a person for data that the call of ctx needs, and returns [ErrConfirmationRequired]. form is the JSON
// Schema of an object of plain fields. The agent calls the tool again after the answer; then [FormAnswer] has it, with state.
func RequestForm(ctx Context, name, text string, form, state json.RawMessage) error {
	if err := ctx.RequestConfirmation(text, nil); err != nil {
		return fmt.Errorf("tool %q: %w", name, err)
	}
	actions := ctx.Actions()
	asked := actions.RequestedToolConfirmations[ctx.FunctionCallID()]
	asked.Form = &toolconfirmation.Form{Schema: form, State: state}
	actions.RequestedToolConfirmations[ctx.FunctionCallID()] = asked
	actions.SkipSummarization = true
	return fmt.Errorf("error tool %q %w", name, ErrConfirmationRequired)
}

// FormAnswer returns a person's answer to the form that the call of ctx has requested; nil if the call has requested none.
func FormAnswer(ctx Context) *toolconfirmation.ToolConfirmation {
	if answer := ctx.ToolConfirmation(); answer != nil && answer.Form != nil {
		return answer
	}
	return nil
}

// WithConfirmation returns a toolset whose functions need a person's consent: for every call, or if
// there is a provider, for the calls that it selects. Tools that are not a Function stay unchanged.
func WithConfirmation(ts Toolset, requireConfirmation bool, requireConfirmationProvider ConfirmationProvider) Toolset {
	return &confirming{Toolset: ts, required: requireConfirmation, provider: requireConfirmationProvider}
}

type confirming struct {
	Toolset
	required bool
	provider ConfirmationProvider
}

// ProcessRequest lets the toolset prepare the request, if it does that.
func (c *confirming) ProcessRequest(ctx Context, req *model.LLMRequest) error {
	return ProcessSet(ctx, req, c.Toolset)
}

func (c *confirming) Tools(ctx agent.ReadonlyContext) ([]Tool, error) {
	all, err := c.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	wrapped := make([]Tool, len(all))
	for i, t := range all {
		wrapped[i] = t
		if f, ok := t.(Function); ok {
			wrapped[i] = &confirmingTool{Function: f, set: c}
		}
	}
	return wrapped, nil
}

// confirmingTool is a function that asks first.
type confirmingTool struct {
	Function
	set *confirming
}

// Effect returns the function's effect.
func (c *confirmingTool) Effect() Effect { return EffectOf(c.Function) }

// Reconcile returns the function's Reconcile.
func (c *confirmingTool) Reconcile() agent.Reconcile { return ReconcileOf(c.Function) }

// ProcessRequest lets the function prepare the request, and takes its place
// there.
func (c *confirmingTool) ProcessRequest(ctx Context, req *model.LLMRequest) error {
	p, ok := c.Function.(RequestProcessor)
	if !ok {
		return Pack(req, c)
	}
	if err := p.ProcessRequest(ctx, req); err != nil {
		return err
	}
	if _, ok := req.Tools[c.Name()]; ok {
		req.Tools[c.Name()] = c
	}
	return nil
}

func (c *confirmingTool) Run(ctx Context, args any) (map[string]any, error) {
	required := c.set.required
	if c.set.provider != nil && ctx.ToolConfirmation() == nil {
		required = c.set.provider(c.Name(), args)
	}
	if err := Confirm(ctx, c.Name(), required); err != nil {
		return nil, err
	}
	return c.Function.Run(ctx, args)
}
