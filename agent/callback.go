// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// execute runs the agent's body between its callbacks. It is what a step does
// to an agent that is built on Base.
func (b *Base) execute(inv *invocation, yield func(*session.Event, error) bool) {
	if len(b.cfg.BeforeAgentCallbacks) > 0 {
		answered, ok := b.call(inv, "before", b.cfg.BeforeAgentCallbacks, yield)
		if !ok || answered {
			return
		}
	}
	if len(b.cfg.AfterAgentCallbacks) == 0 {
		b.body(inv, yield)
		return
	}
	over := false
	b.body(inv, func(ev *session.Event, err error) bool {
		if !yield(ev, err) || err != nil {
			over = true
		}
		return !over
	})
	if over || inv.Ended() || inv.Err() != nil {
		return
	}
	// The two callback types have one underlying type; only the name differs.
	after := make([]BeforeAgentCallback, len(b.cfg.AfterAgentCallbacks))
	for i, f := range b.cfg.AfterAgentCallbacks {
		after[i] = BeforeAgentCallback(f)
	}
	b.call(inv, "after", after, yield)
}

// call runs callbacks until one answers. It yields the answer, or the changes
// that the callbacks made. Answered says that there was one, ok that the step
// is not over.
func (b *Base) call(inv *invocation, when string, fns []BeforeAgentCallback, yield func(*session.Event, error) bool) (answered, ok bool) {
	ev := &session.Event{}
	cb := NewCallbackContext(inv, &ev.Actions)
	for _, f := range fns {
		content, err := f(cb)
		if err != nil {
			yield(nil, fmt.Errorf("%s agent callback: %w", when, err))
			return false, false
		}
		if content != nil {
			ev.Content = content
			ev.Author = b.cfg.Name
			return true, yield(ev, nil)
		}
	}
	a := &ev.Actions
	if len(a.StateDelta) == 0 && len(a.ArtifactDelta) == 0 && !a.Escalate && a.TransferToAgent == "" {
		return false, true
	}
	return false, yield(ev, nil)
}

// NewCallbackContext returns the context of a callback. What it changes is
// written to actions, which belong to the event that follows.
func NewCallbackContext(ctx InvocationContext, actions *session.EventActions) Context {
	return NewToolContext(ctx, "", actions, nil)
}

// NewToolContext returns the context of one tool call. A nil actions stands for
// new ones.
func NewToolContext(ctx InvocationContext, functionCallID string, actions *session.EventActions, confirmation *toolconfirmation.ToolConfirmation) Context {
	if actions == nil {
		actions = new(session.EventActions)
	}
	return &callContext{InvocationContext: ctx, callID: functionCallID, actions: actions, confirmation: confirmation}
}

// callContext is the Context of a callback or of a tool call.
type callContext struct {
	InvocationContext
	callID       string
	actions      *session.EventActions
	confirmation *toolconfirmation.ToolConfirmation
}

func (c *callContext) AgentName() string              { return c.Agent().Name() }
func (c *callContext) UserID() string                 { return c.Session().UserID() }
func (c *callContext) AppName() string                { return c.Session().AppName() }
func (c *callContext) SessionID() string              { return c.Session().ID() }
func (c *callContext) Actions() *session.EventActions { return c.actions }
func (c *callContext) FunctionCallID() string         { return c.callID }
func (c *callContext) ReadonlyState() session.ReadonlyState {
	return StateOf(c.InvocationContext)
}

func (c *callContext) ToolConfirmation() *toolconfirmation.ToolConfirmation { return c.confirmation }

func (c *callContext) State() session.State {
	return &deltaState{State: StateOf(c.InvocationContext), actions: c.actions}
}

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
		return errors.New("request confirmation: only a tool call can ask for one")
	}
	if c.actions.RequestedToolConfirmations == nil {
		c.actions.RequestedToolConfirmations = make(map[string]toolconfirmation.ToolConfirmation)
	}
	c.actions.RequestedToolConfirmations[c.callID] = toolconfirmation.ToolConfirmation{Hint: hint, Payload: payload}
	c.actions.SkipSummarization = true
	return nil
}

// StateOf is the session's state as the step of ctx sees it, with the
// iteration: keys of its own loops.
func StateOf(ctx InvocationContext) session.State { return stateAt(ctx.Session(), AddressOf(ctx)) }

func stateAt(s session.Session, at session.Address) session.State {
	if v, ok := s.(scoped); ok {
		return v.StateAt(at)
	}
	return s.State()
}

// deltaState is a state whose changes also become part of an event.
type deltaState struct {
	session.State
	actions *session.EventActions
}

func (s *deltaState) Set(key string, value any) error {
	if s.actions.StateDelta == nil {
		s.actions.StateDelta = make(map[string]any)
	}
	s.actions.StateDelta[key] = value
	return s.State.Set(key, value)
}

// trackedArtifacts notes in an event what was saved.
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
