// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// InvocationContext is the argument of an agent's Run. It is valid until the agent's Run returns.
type InvocationContext interface {
	context.Context

	// Agent returns the agent that runs.
	Agent() Agent
	// Artifacts returns the store of the session's files, or nil if the runner has no artifact
	// service.
	Artifacts() Artifacts
	// Memory returns the store of earlier sessions, or nil if the runner has no memory service.
	Memory() Memory
	// Session returns the session of the invocation. The session includes every event that was
	// yielded. Its State().Set fails with session.ErrNotLogged, except for temp: keys: set a
	// key in a callback or a tool, or in the Actions.StateDelta of an event.
	Session() session.Session
	// InvocationID returns the ID of this call of the runner.
	InvocationID() string
	// Branch returns the path of the parallel branches around the agent, joined by dots.
	Branch() string
	// UserContent returns the message that started the invocation.
	UserContent() *genai.Content
	// RunConfig returns the caller's configuration of the run.
	RunConfig() *RunConfig
	// EndInvocation ends this agent. Its after callbacks do not run. Other agents continue.
	EndInvocation()
	// Ended reports whether EndInvocation was called on this context.
	Ended() bool
	// WithContext returns the same invocation under another context.Context.
	WithContext(ctx context.Context) InvocationContext
}

// ReadonlyContext describes an invocation to code that may not change it.
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

// Context is the argument of callbacks and tools. It has the method names of both generations of
// ADK.
type Context interface {
	ReadonlyContext
	InvocationContext

	// State reads and writes the session's state. A key that is set becomes part of the event
	// of this call. The call sees the new value at once. Others see it when the event is in the
	// log.
	State() session.State
	// Actions returns the actions of that event. Escalate leaves the loop, both in a callback
	// around an agent and in a tool.
	Actions() *session.EventActions
	// FunctionCallID returns the ID of the tool call, or "" in a callback.
	FunctionCallID() string
	// SearchMemory searches earlier sessions. It fails if the runner has no memory service.
	SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error)
	// ToolConfirmation returns a person's answer about this tool call, or nil if there is no
	// answer.
	ToolConfirmation() *toolconfirmation.ToolConfirmation
	// RequestConfirmation asks a person to confirm this tool call. It fails outside a tool
	// call.
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

// Memory searches earlier sessions.
type Memory interface {
	AddSessionToMemory(context.Context, session.Session) error
	SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error)
}

// StreamingMode says whether the run yields pieces of an answer as they arrive.
type StreamingMode string

// The streaming modes.
const (
	// StreamingModeNone yields whole answers only.
	StreamingModeNone StreamingMode = "none"
	// StreamingModeSSE yields pieces too, as events with Partial set.
	StreamingModeSSE StreamingMode = "sse"
)

// RunConfig configures a run. Its zero value is ADK's default.
type RunConfig struct {
	StreamingMode StreamingMode
	// SaveInputBlobsAsArtifacts stores the files in the user's message as artifacts, and replaces each by a text with its
	// name: artifact_INVOCATION_INDEX. Without an artifact service it has no effect, and the message keeps its files.
	SaveInputBlobsAsArtifacts bool
	// MaxLLMCalls fails the run after this many model calls. 0 means [DefaultMaxLLMCalls]; a
	// negative number means no limit. It guards against endless runs. To stop a loop at a limit
	// and keep its result, set Budget.
	MaxLLMCalls int
	// Budget limits what the model calls of the run use; nil sets no limit. If a call in a loop
	// exceeds it, the loop stops and hands back its result.
	Budget *budget.Limits
	// Meter is a budget, made with [budget.New], that runs share; nil means none. Budget applies below it. Meter counts
	// a run that is resumed in this process once, and a run that another process began as a whole.
	Meter *budget.Meter
	// Prices are the prices of models; with a Meter they are those of the Meter. The cost of a model without a price is unknown, and a
	// budget that limits cost refuses to call it.
	Prices budget.Prices
	// StateLimit fails a step that makes the state larger than this many bytes; 0 sets no limit.
	// The loops of the run can set lower limits.
	StateLimit int64
	// LogLimit fails the run when its log has more than about this many bytes, as [session.Event.Weight] counts
	// them; 0 sets no limit. What the log has stays, and with a higher limit the run can be retried.
	LogLimit int64
	// LogLimitName is what the error of such a run calls the limit, such as the setting that raises it. The default is "its
	// limit".
	LogLimitName string
	// Pause ends the run between two steps when it is asked to. A run without one cannot be
	// paused. A durable run with a Pause can wait for a person's answer.
	Pause *Pause
	// Hints are what people tell the run while it runs; nil means none. A durable run keeps in its log which
	// iteration got which.
	Hints *Hints
	// Observer is notified of each step of the run as it happens; nil means the observer that
	// observe.SetDefault has set, if any.
	Observer observe.Observer
}
