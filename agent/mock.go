// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// StrictContextMock is a [Context] for tests of tools and callbacks. Embed it and override the methods that the
// code under test calls. Any other method panics with its name, except those of context.Context, which are
// those of Ctx. It is a Context behind a pointer only.
type StrictContextMock struct {
	// Ctx answers Deadline, Done, Err and Value. They panic if it is nil.
	Ctx context.Context
}

// NewStrictContextMock returns a mock over ctx.
func NewStrictContextMock(ctx context.Context) StrictContextMock { return StrictContextMock{Ctx: ctx} }

func (m *StrictContextMock) under() context.Context {
	if m.Ctx == nil {
		panic("agent.StrictContextMock: Ctx is nil: use NewStrictContextMock")
	}
	return m.Ctx
}

// unexpected says that the code under test calls a method that the test has not overridden.
func unexpected(method string) string {
	return "agent.StrictContextMock: " + method + " is called: override it in the test"
}

// Deadline is that of Ctx.
func (m *StrictContextMock) Deadline() (time.Time, bool) { return m.under().Deadline() }

// Done is that of Ctx.
func (m *StrictContextMock) Done() <-chan struct{} { return m.under().Done() }

// Err is that of Ctx.
func (m *StrictContextMock) Err() error { return m.under().Err() }

// Value is that of Ctx.
func (m *StrictContextMock) Value(key any) any { return m.under().Value(key) }

// Actions panics.
func (*StrictContextMock) Actions() *session.EventActions { panic(unexpected("Actions")) }

// Agent panics.
func (*StrictContextMock) Agent() Agent { panic(unexpected("Agent")) }

// AgentName panics.
func (*StrictContextMock) AgentName() string { panic(unexpected("AgentName")) }

// AppName panics.
func (*StrictContextMock) AppName() string { panic(unexpected("AppName")) }

// Artifacts panics.
func (*StrictContextMock) Artifacts() Artifacts { panic(unexpected("Artifacts")) }

// Branch panics.
func (*StrictContextMock) Branch() string { panic(unexpected("Branch")) }

// EndInvocation panics.
func (*StrictContextMock) EndInvocation() { panic(unexpected("EndInvocation")) }

// Ended panics.
func (*StrictContextMock) Ended() bool { panic(unexpected("Ended")) }

// FunctionCallID panics.
func (*StrictContextMock) FunctionCallID() string { panic(unexpected("FunctionCallID")) }

// InvocationID panics.
func (*StrictContextMock) InvocationID() string { panic(unexpected("InvocationID")) }

// Memory panics.
func (*StrictContextMock) Memory() Memory { panic(unexpected("Memory")) }

// ReadonlyState panics.
func (*StrictContextMock) ReadonlyState() session.ReadonlyState { panic(unexpected("ReadonlyState")) }

// RequestConfirmation panics.
func (*StrictContextMock) RequestConfirmation(string, any) error {
	panic(unexpected("RequestConfirmation"))
}

// RunConfig panics.
func (*StrictContextMock) RunConfig() *RunConfig { panic(unexpected("RunConfig")) }

// SearchMemory panics.
func (*StrictContextMock) SearchMemory(context.Context, string) (*memory.SearchResponse, error) {
	panic(unexpected("SearchMemory"))
}

// Session panics.
func (*StrictContextMock) Session() session.Session { panic(unexpected("Session")) }

// SessionID panics.
func (*StrictContextMock) SessionID() string { panic(unexpected("SessionID")) }

// State panics.
func (*StrictContextMock) State() session.State { panic(unexpected("State")) }

// ToolConfirmation panics.
func (*StrictContextMock) ToolConfirmation() *toolconfirmation.ToolConfirmation {
	panic(unexpected("ToolConfirmation"))
}

// UserContent panics.
func (*StrictContextMock) UserContent() *genai.Content { panic(unexpected("UserContent")) }

// UserID panics.
func (*StrictContextMock) UserID() string { panic(unexpected("UserID")) }

// WithContext panics.
func (*StrictContextMock) WithContext(context.Context) InvocationContext {
	panic(unexpected("WithContext"))
}

// ContextMock is a [Context] for tests whose methods all return zero values. Embed it and override what the code
// under test needs. It is a Context behind a pointer only.
type ContextMock struct{}

// Deadline returns no deadline.
func (*ContextMock) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done returns nil: the context does not end.
func (*ContextMock) Done() <-chan struct{} { return nil }

// Err returns nil.
func (*ContextMock) Err() error { return nil }

// Value returns nil.
func (*ContextMock) Value(any) any { return nil }

// Actions returns nil.
func (*ContextMock) Actions() *session.EventActions { return nil }

// Agent returns nil.
func (*ContextMock) Agent() Agent { return nil }

// AgentName returns an empty text.
func (*ContextMock) AgentName() string { return "" }

// AppName returns an empty text.
func (*ContextMock) AppName() string { return "" }

// Artifacts returns nil.
func (*ContextMock) Artifacts() Artifacts { return nil }

// Branch returns an empty text.
func (*ContextMock) Branch() string { return "" }

// EndInvocation does nothing.
func (*ContextMock) EndInvocation() {}

// Ended returns false.
func (*ContextMock) Ended() bool { return false }

// FunctionCallID returns an empty text.
func (*ContextMock) FunctionCallID() string { return "" }

// InvocationID returns an empty text.
func (*ContextMock) InvocationID() string { return "" }

// Memory returns nil.
func (*ContextMock) Memory() Memory { return nil }

// ReadonlyState returns nil.
func (*ContextMock) ReadonlyState() session.ReadonlyState { return nil }

// RequestConfirmation returns nil.
func (*ContextMock) RequestConfirmation(string, any) error { return nil }

// RunConfig returns nil.
func (*ContextMock) RunConfig() *RunConfig { return nil }

// SearchMemory returns nothing.
func (*ContextMock) SearchMemory(context.Context, string) (*memory.SearchResponse, error) {
	return nil, nil
}

// Session returns nil.
func (*ContextMock) Session() session.Session { return nil }

// SessionID returns an empty text.
func (*ContextMock) SessionID() string { return "" }

// State returns nil.
func (*ContextMock) State() session.State { return nil }

// ToolConfirmation returns nil.
func (*ContextMock) ToolConfirmation() *toolconfirmation.ToolConfirmation { return nil }

// UserContent returns nil.
func (*ContextMock) UserContent() *genai.Content { return nil }

// UserID returns an empty text.
func (*ContextMock) UserID() string { return "" }

// WithContext returns nil.
func (*ContextMock) WithContext(context.Context) InvocationContext { return nil }

var (
	_ Context = (*StrictContextMock)(nil)
	_ Context = (*ContextMock)(nil)
)
