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
	unexpected
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

// Deadline returns the deadline of Ctx.
func (m *StrictContextMock) Deadline() (time.Time, bool) { return m.under().Deadline() }

// Done returns the channel of Ctx.
func (m *StrictContextMock) Done() <-chan struct{} { return m.under().Done() }

// Err returns the error of Ctx.
func (m *StrictContextMock) Err() error { return m.under().Err() }

// Value returns the value of a key in Ctx.
func (m *StrictContextMock) Value(key any) any { return m.under().Value(key) }

// unexpected has the methods of a Context besides those of context.Context. Each panics with its name, because the
// code under test calls a method that the test has not overridden.
type unexpected struct{}

func (*unexpected) call(method string) string {
	return "agent.StrictContextMock: " + method + " is called: override it in the test"
}

func (u *unexpected) Actions() *session.EventActions        { panic(u.call("Actions")) }
func (u *unexpected) Agent() Agent                          { panic(u.call("Agent")) }
func (u *unexpected) AgentName() string                     { panic(u.call("AgentName")) }
func (u *unexpected) AppName() string                       { panic(u.call("AppName")) }
func (u *unexpected) Artifacts() Artifacts                  { panic(u.call("Artifacts")) }
func (u *unexpected) Branch() string                        { panic(u.call("Branch")) }
func (u *unexpected) EndInvocation()                        { panic(u.call("EndInvocation")) }
func (u *unexpected) Ended() bool                           { panic(u.call("Ended")) }
func (u *unexpected) FunctionCallID() string                { panic(u.call("FunctionCallID")) }
func (u *unexpected) InvocationID() string                  { panic(u.call("InvocationID")) }
func (u *unexpected) Memory() Memory                        { panic(u.call("Memory")) }
func (u *unexpected) ReadonlyState() session.ReadonlyState  { panic(u.call("ReadonlyState")) }
func (u *unexpected) RequestConfirmation(string, any) error { panic(u.call("RequestConfirmation")) }
func (u *unexpected) RunConfig() *RunConfig                 { panic(u.call("RunConfig")) }
func (u *unexpected) SearchMemory(context.Context, string) (*memory.SearchResponse, error) {
	panic(u.call("SearchMemory"))
}
func (u *unexpected) Session() session.Session { panic(u.call("Session")) }
func (u *unexpected) SessionID() string        { panic(u.call("SessionID")) }
func (u *unexpected) State() session.State     { panic(u.call("State")) }
func (u *unexpected) ToolConfirmation() *toolconfirmation.ToolConfirmation {
	panic(u.call("ToolConfirmation"))
}
func (u *unexpected) UserContent() *genai.Content                   { panic(u.call("UserContent")) }
func (u *unexpected) UserID() string                                { panic(u.call("UserID")) }
func (u *unexpected) WithContext(context.Context) InvocationContext { panic(u.call("WithContext")) }

// ContextMock is a [Context] for tests whose methods all return zero values. Embed it and override what the code
// under test needs. It is a Context behind a pointer only.
type ContextMock struct{ zeroes }

// zeroes has the methods of a Context. Each returns zero values and does nothing.
type zeroes struct{}

func (*zeroes) Deadline() (time.Time, bool)                                          { return time.Time{}, false }
func (*zeroes) Done() <-chan struct{}                                                { return nil }
func (*zeroes) Err() error                                                           { return nil }
func (*zeroes) Value(any) any                                                        { return nil }
func (*zeroes) Actions() *session.EventActions                                       { return nil }
func (*zeroes) Agent() Agent                                                         { return nil }
func (*zeroes) AgentName() string                                                    { return "" }
func (*zeroes) AppName() string                                                      { return "" }
func (*zeroes) Artifacts() Artifacts                                                 { return nil }
func (*zeroes) Branch() string                                                       { return "" }
func (*zeroes) EndInvocation()                                                       {}
func (*zeroes) Ended() bool                                                          { return false }
func (*zeroes) FunctionCallID() string                                               { return "" }
func (*zeroes) InvocationID() string                                                 { return "" }
func (*zeroes) Memory() Memory                                                       { return nil }
func (*zeroes) ReadonlyState() session.ReadonlyState                                 { return nil }
func (*zeroes) RequestConfirmation(string, any) error                                { return nil }
func (*zeroes) RunConfig() *RunConfig                                                { return nil }
func (*zeroes) SearchMemory(context.Context, string) (*memory.SearchResponse, error) { return nil, nil }
func (*zeroes) Session() session.Session                                             { return nil }
func (*zeroes) SessionID() string                                                    { return "" }
func (*zeroes) State() session.State                                                 { return nil }
func (*zeroes) ToolConfirmation() *toolconfirmation.ToolConfirmation                 { return nil }
func (*zeroes) UserContent() *genai.Content                                          { return nil }
func (*zeroes) UserID() string                                                       { return "" }
func (*zeroes) WithContext(context.Context) InvocationContext                        { return nil }
