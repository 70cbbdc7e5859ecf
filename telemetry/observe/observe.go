// SPDX-License-Identifier: Apache-2.0

// Package observe defines the interface for observers of runs in progress, such as package telemetry, which
// makes traces and metrics of runs.
//
//	cfg := agent.RunConfig{Observer: mine}
//	for ev, err := range r.Run(ctx, "ana", "s1", msg, cfg) {
//
// An observer is notified only of work that is done now. A step that a resumed run finds finished in its
// log does not run again, and the observer is not notified of it.
package observe

import (
	"context"

	"github.com/refrain-dev/refrain/model"
)

// Observer is notified when a piece of work of a run begins. A method gets the context of the surrounding
// work. It returns the context for this work, which is the same or derived from it, and a function that is
// called with the work's error when the work has ended. Work that ignores the end of its context may be
// abandoned: then the function is called again when that work returns, perhaps at the same time as the
// first call. Only the first call counts.
//
// The methods are called from several goroutines. They must not block, as the run waits for them. A panic
// fails the step that the work belongs to, or the run, with an *agent.PanicError. They must not keep or
// change their arguments after the function was called.
type Observer interface {
	// Run is called once for each part of a run that a process drives: from its start or its resume
	// to its end or its pause.
	Run(ctx context.Context, r *Run) (context.Context, func(error))
	// Step is called for each run of an agent.
	Step(ctx context.Context, s *Step) (context.Context, func(error))
	// Iteration is called when the first step of an iteration begins.
	Iteration(ctx context.Context, it *Iteration) (context.Context, func(error))
	// Stopped is called when a loop has decided why it stops, with the context of the loop's step. It is
	// not called for a loop that is cut off because its run waits, is paused or was canceled.
	Stopped(ctx context.Context, s Stop)
	// ModelCall is called for each request to a model, retries included.
	ModelCall(ctx context.Context, c *ModelCall) (context.Context, func(error))
	// ToolCall is called for each tool that a model has asked for.
	ToolCall(ctx context.Context, c *ToolCall) (context.Context, func(error))
}

// Run is a part of a run.
type Run struct {
	// Agent is the name of the root agent.
	Agent string
	// InvocationID is the ID of the run's events. It is the same in all parts of a run.
	InvocationID string
	// AppName, UserID and SessionID are those of the session.
	AppName, UserID, SessionID string
	// Resumed says that the log has an earlier part of the run.
	Resumed bool
}

// Step is a run of an agent.
type Step struct {
	// Agent is the agent's name, Description what it is for, and Type its kind: see agent.Type.
	Agent, Description, Type string
	// Address is where the step stands in the run, such as "story/refine[3]/critic".
	Address string
	// Iteration is the iteration of the nearest loop around the step; 0 if there is none. Attempt
	// counts from 1.
	Iteration, Attempt int
	// Resumed says that the log has an earlier part of this step.
	Resumed bool
}

// Iteration is one pass of a loop.
type Iteration struct {
	// Loop is the loop agent's name, Address that of the iteration, such as "story/refine[3]".
	Loop, Address string
	// Number counts from 1.
	Number int

	// The rest is set when the iteration has ended.

	// Score is nil if the iteration has none. Scorer names what the score was made from; "" is an
	// expression or a function.
	Score  *float64
	Scorer string
	// Best says that the iteration is the best so far.
	Best bool
	// Rejected says why the iteration was rejected; "" if it was accepted, or cut short.
	Rejected string
	// Complete is false if the iteration was cut short.
	Complete bool
	// Failures is the number of its failed steps.
	Failures int
}

// Stop says why a loop stopped, and with what result.
type Stop struct {
	// Loop is the loop agent's name. Outermost says that no other loop is around it.
	Loop      string
	Outermost bool
	// Reason is the stop reason, such as "target_reached".
	Reason string
	// Iterations is the number of complete iterations.
	Iterations int
	// BestScore and BestIteration are set if at least one iteration was scored.
	BestScore     *float64
	BestIteration int
}

// ModelCall is one request to a model.
type ModelCall struct {
	// Model is the model's name, and Provider its provider, such as "openai"; "" if that is not known.
	Model, Provider string
	// Agent is the name of the agent that asks.
	Agent string
	// Attempt counts the requests of one turn, from 1.
	Attempt int
	// Request is the request to the model.
	Request *model.LLMRequest
	// Response is the last whole response, set when the call has ended. It is nil if there is none.
	Response *model.LLMResponse
}

// ToolCall is one call of a tool.
type ToolCall struct {
	// Tool is the tool's name, and Description what it is for.
	Tool, Description string
	// Agent is the name of the agent whose model calls the tool.
	Agent string
	// ID is the ID that the model has given the call.
	ID string
	// Arguments are the arguments that the model has given.
	Arguments map[string]any
	// Result is the answer to the model, set when the call has ended. It is nil if the answer comes later.
	Result map[string]any
}

// ProviderOf returns the Provider of a model: the result of its method Provider() string, or "" if it
// has no such method. The names are those of OpenTelemetry's gen_ai.provider.name.
func ProviderOf(m model.LLM) string {
	if p, ok := m.(interface{ Provider() string }); ok {
		return p.Provider()
	}
	return ""
}
