// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"errors"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// sendObserved calls send, and reports the model call to the run's observer.
func (x *exchange) sendObserved(o observe.Observer, in agent.InvocationContext) error {
	r := x.run
	call := &observe.ModelCall{Model: x.req.Model, Provider: observe.ProviderOf(r.cfg.Model), Agent: r.Name(),
		Attempt: x.tries.all(), Request: x.req}
	if call.Model == "" {
		call.Model = r.cfg.Model.Name()
	}
	ctx, end := o.ModelCall(in, call)
	defer func() { end(x.failed) }()
	return x.send(in.WithContext(ctx), call)
}

// callTool runs one call, and reports it to the run's observer if there is one; see callIn.
func (r *run) callTool(in agent.InvocationContext, req *model.LLMRequest, call *genai.FunctionCall,
	answer *toolconfirmation.ToolConfirmation, done *toolResult) {
	o := r.ctx.RunConfig().Observer
	if o == nil {
		_ = r.callIn(in, req, call, answer, done) // done already has the error for the model
		return
	}
	seen := &observe.ToolCall{Tool: call.Name, Agent: r.Name(), ID: call.ID, Arguments: call.Args}
	if t, ok := toolOf(req, call.Name).(tool.Tool); ok {
		seen.Description = t.Description()
	}
	ctx, end := o.ToolCall(in, seen)
	in, err := in.WithContext(ctx), errors.New("the tool ended its goroutine by runtime.Goexit; it must return instead")
	defer func() {
		if in.Ended() {
			r.ctx.EndInvocation()
		}
		seen.Result = done.result
		end(err)
	}()
	err = r.callIn(in, req, call, answer, done)
}
