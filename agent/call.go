// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// NewContext returns a Context over ctx for code outside of callbacks and tool calls. Changes made through it are not
// part of any event.
func NewContext(ctx InvocationContext) Context { return newCallContext(ctx, "", nil, nil) }

// NewCallbackContext returns the context of a callback. Its changes are written to actions,
// which are those of the callback's event; nil means new ones.
func NewCallbackContext(ctx InvocationContext, actions *session.EventActions) Context {
	return newCallContext(ctx, "", actions, nil)
}

// NewToolContext returns the context of a tool call, such as for the test of a tool. Its changes are
// written to actions; nil means new ones. An empty functionCallID means a new one.
func NewToolContext(ctx InvocationContext, functionCallID string, actions *session.EventActions,
	confirmation *toolconfirmation.ToolConfirmation) Context {
	if functionCallID == "" {
		functionCallID = platform.NewUUID(ctx)
	}
	return newCallContext(ctx, functionCallID, actions, confirmation)
}

func newCallContext(ctx InvocationContext, functionCallID string, actions *session.EventActions,
	confirmation *toolconfirmation.ToolConfirmation) *callContext {
	if actions == nil {
		actions = new(session.EventActions)
	}
	c := &callContext{InvocationContext: ctx, callID: functionCallID, actions: actions, confirmation: confirmation}
	c.session = callSession{ctx.Session(), c}
	return c
}

// callContext is the Context of a callback or of a tool call.
type callContext struct {
	InvocationContext
	callID       string
	actions      *session.EventActions
	confirmation *toolconfirmation.ToolConfirmation
	session      callSession

	mu sync.Mutex // guards actions.StateDelta
}

func (c *callContext) AgentName() string              { return c.Agent().Name() }
func (c *callContext) UserID() string                 { return c.Session().UserID() }
func (c *callContext) AppName() string                { return c.Session().AppName() }
func (c *callContext) SessionID() string              { return c.Session().ID() }
func (c *callContext) Actions() *session.EventActions { return c.actions }
func (c *callContext) FunctionCallID() string         { return c.callID }
func (c *callContext) Session() session.Session       { return &c.session }

// State is the state as the step sees it, with the iteration: keys of its own loops and the changes of this call.
func (c *callContext) State() session.State {
	var at session.Address
	if p, ok := c.Value(driver.AddressKey{}).(*session.Address); ok {
		at = *p
	}
	return c.session.StateAt(at)
}

func (c *callContext) ReadonlyState() session.ReadonlyState { return c.State() }

func (c *callContext) ToolConfirmation() *toolconfirmation.ToolConfirmation { return c.confirmation }

func (c *callContext) Artifacts() Artifacts {
	a := c.InvocationContext.Artifacts()
	if a == nil {
		return nil
	}
	return &trackedArtifacts{Artifacts: a, actions: c.actions}
}

func (c *callContext) SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error) {
	m := c.Memory()
	if m == nil {
		return nil, errors.New("search memory: the runner has no MemoryService; set one in runner.Config")
	}
	return m.SearchMemory(ctx, query)
}

func (c *callContext) RequestConfirmation(hint string, payload any) error {
	if c.callID == "" {
		return errors.New("request confirmation: only a tool call can; call RequestConfirmation in a tool")
	}
	if c.actions.RequestedToolConfirmations == nil {
		c.actions.RequestedToolConfirmations = make(map[string]toolconfirmation.ToolConfirmation)
	}
	c.actions.RequestedToolConfirmations[c.callID] = toolconfirmation.ToolConfirmation{Hint: hint, Payload: payload}
	c.actions.SkipSummarization = true
	return nil
}

// trackedArtifacts records saved artifacts in an event.
type trackedArtifacts struct {
	Artifacts
	actions *session.EventActions
}

func (t *trackedArtifacts) Save(ctx context.Context, name string, data *genai.Part) (*artifact.SaveResponse, error) {
	resp, err := t.Artifacts.Save(ctx, name, data)
	if err == nil && resp != nil {
		if t.actions.ArtifactDelta == nil {
			t.actions.ArtifactDelta = make(map[string]int64)
		}
		t.actions.ArtifactDelta[name] = resp.Version
	}
	return resp, err
}
