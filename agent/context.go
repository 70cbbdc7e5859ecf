// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// InvocationContext is what an agent is given when it runs. It is good until
// the agent's Run is over.
type InvocationContext interface {
	context.Context

	// Agent is the agent that runs.
	Agent() Agent
	// Artifacts stores files; nil if the runner has no artifact service.
	Artifacts() Artifacts
	// Memory searches earlier sessions; nil if the runner has none.
	Memory() Memory
	// Session is the thread that the invocation belongs to, kept up to date
	// with every event that was yielded.
	Session() session.Session
	// InvocationID names the call of the runner.
	InvocationID() string
	// Branch is the dotted path of parallel branches that the agent runs in.
	Branch() string
	// UserContent is what started the invocation.
	UserContent() *genai.Content
	// RunConfig is how the caller wants the run done.
	RunConfig() *RunConfig
	// EndInvocation asks that this agent does no more, not even its after
	// callbacks. Others go on.
	EndInvocation()
	// Ended reports whether EndInvocation was called on this context.
	Ended() bool
	// WithContext is the same invocation under another context.Context.
	WithContext(ctx context.Context) InvocationContext
}

// ReadonlyContext is what may be known where nothing may be changed.
type ReadonlyContext interface {
	context.Context
	UserContent() *genai.Content
	InvocationID() string
	AgentName() string
	ReadonlyState() session.ReadonlyState
	UserID() string
	AppName() string
	SessionID() string
	Branch() string
}

// Context is what callbacks and tools are given. It serves programs written for
// both generations of ADK, under the names that each has for it.
type Context interface {
	ReadonlyContext
	InvocationContext

	// State reads and writes the session's state. What is set becomes part of
	// the event that follows: the call sees it at once, others when that event
	// is in the log.
	State() session.State
	// Actions is what that event will do. In a callback around an agent
	// Escalate works as in a tool.
	Actions() *session.EventActions
	// FunctionCallID names the tool call; empty in a callback.
	FunctionCallID() string
	// SearchMemory looks for words in earlier sessions. It fails if the runner
	// has no memory service.
	SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error)
	// ToolConfirmation is a person's answer about this tool call; nil if none
	// was asked for or given.
	ToolConfirmation() *toolconfirmation.ToolConfirmation
	// RequestConfirmation asks a person about this tool call. It fails outside
	// one.
	RequestConfirmation(hint string, payload any) error
}

// The names that earlier versions of ADK have for [Context].
type (
	CallbackContext = Context
	ToolContext     = Context
)

// Artifacts stores the files of a session, by name and version.
type Artifacts interface {
	Save(ctx context.Context, name string, data *genai.Part) (*artifact.SaveResponse, error)
	List(context.Context) (*artifact.ListResponse, error)
	Load(ctx context.Context, name string) (*artifact.LoadResponse, error)
	LoadVersion(ctx context.Context, name string, version int) (*artifact.LoadResponse, error)
}

// Memory looks things up in earlier sessions.
type Memory interface {
	AddSessionToMemory(context.Context, session.Session) error
	SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error)
}

// StreamingMode says whether pieces of an answer are shown as they arrive.
type StreamingMode string

// The streaming modes.
const (
	// StreamingModeNone shows whole answers only.
	StreamingModeNone StreamingMode = "none"
	// StreamingModeSSE shows pieces too, as events marked Partial.
	StreamingModeSSE StreamingMode = "sse"
)

// RunConfig is how the caller wants a run done. The zero value is ADK's default.
type RunConfig struct {
	StreamingMode StreamingMode
	// SaveInputBlobsAsArtifacts stores files in the user's message as
	// artifacts and leaves their names in it.
	SaveInputBlobsAsArtifacts bool
	// MaxLLMCalls is how often the agents of the run may ask a model; 0 is
	// [DefaultMaxLLMCalls], less is no limit. It is a guard against a run
	// without end, and no budget: to reach it is a failure.
	MaxLLMCalls int
	// Budget bounds what the model calls of the run use; nil does not. To
	// reach it is no failure where a loop is around the call, which stops then
	// and hands back what it has.
	Budget *budget.Limits
	// Prices are what models charge. Without a model's price its cost is
	// unknown, and a budget that limits cost does not let it be asked.
	Prices budget.Prices
	// Pause asks the run to end between two steps; nil cannot. With it a durable
	// run can wait for a person too: see drive.Place.Ask.
	Pause *Pause
}
