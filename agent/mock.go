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
func (*StrictContextMock) unexpected(method string) string {
	return "agent.StrictContextMock: " + method + " is called: override it in the test"
}

// Deadline returns the deadline of Ctx.
func (m *StrictContextMock) Deadline() (time.Time, bool) { return m.under().Deadline() }

// Done returns the channel of Ctx.
func (m *StrictContextMock) Done() <-chan struct{} { return m.under().Done() }

// Err returns the error of Ctx.
func (m *StrictContextMock) Err() error { return m.under().Err() }

// Value returns the value of a key in Ctx.
func (m *StrictContextMock) Value(key any) any { return m.under().Value(key) }

// Actions panics.
func (m *StrictContextMock) Actions() *session.EventActions { panic(m.unexpected("Actions")) }

// Agent panics.
func (m *StrictContextMock) Agent() Agent { panic(m.unexpected("Agent")) }

// AgentName panics.
func (m *StrictContextMock) AgentName() string { panic(m.unexpected("AgentName")) }

// AppName panics.
func (m *StrictContextMock) AppName() string { panic(m.unexpected("AppName")) }

// Artifacts panics.
func (m *StrictContextMock) Artifacts() Artifacts { panic(m.unexpected("Artifacts")) }

// Branch panics.
func (m *StrictContextMock) Branch() string { panic(m.unexpected("Branch")) }

// EndInvocation panics.
func (m *StrictContextMock) EndInvocation() { panic(m.unexpected("EndInvocation")) }

// Ended panics.
func (m *StrictContextMock) Ended() bool { panic(m.unexpected("Ended")) }

// FunctionCallID panics.
func (m *StrictContextMock) FunctionCallID() string { panic(m.unexpected("FunctionCallID")) }

// InvocationID panics.
func (m *StrictContextMock) InvocationID() string { panic(m.unexpected("InvocationID")) }

// Memory panics.
func (m *StrictContextMock) Memory() Memory { panic(m.unexpected("Memory")) }

// ReadonlyState panics.
func (m *StrictContextMock) ReadonlyState() session.ReadonlyState {
	panic(m.unexpected("ReadonlyState"))
}

// RequestConfirmation panics.
func (m *StrictContextMock) RequestConfirmation(string, any) error {
	panic(m.unexpected("RequestConfirmation"))
}

// RunConfig panics.
func (m *StrictContextMock) RunConfig() *RunConfig { panic(m.unexpected("RunConfig")) }

// SearchMemory panics.
func (m *StrictContextMock) SearchMemory(context.Context, string) (*memory.SearchResponse, error) {
	panic(m.unexpected("SearchMemory"))
}

// Session panics.
func (m *StrictContextMock) Session() session.Session { panic(m.unexpected("Session")) }

// SessionID panics.
func (m *StrictContextMock) SessionID() string { panic(m.unexpected("SessionID")) }

// State panics.
func (m *StrictContextMock) State() session.State { panic(m.unexpected("State")) }

// ToolConfirmation panics.
func (m *StrictContextMock) ToolConfirmation() *toolconfirmation.ToolConfirmation {
	panic(m.unexpected("ToolConfirmation"))
}

// UserContent panics.
func (m *StrictContextMock) UserContent() *genai.Content { panic(m.unexpected("UserContent")) }

// UserID panics.
func (m *StrictContextMock) UserID() string { panic(m.unexpected("UserID")) }

// WithContext panics.
func (m *StrictContextMock) WithContext(context.Context) InvocationContext {
	panic(m.unexpected("WithContext"))
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
