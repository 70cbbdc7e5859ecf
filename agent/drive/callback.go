// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// execute runs the agent's body between its callbacks. It is what a step does
// to an agent that is built on Base.
func (b *Base) execute(inv *invocation, yield func(*session.Event, error) bool) {
	if len(b.cfg.BeforeAgentCallbacks) > 0 {
		over, ok := b.call(inv, "before", b.cfg.BeforeAgentCallbacks, yield)
		if !ok || over || inv.Ended() {
			return
		}
	}
	if len(b.cfg.AfterAgentCallbacks) == 0 {
		b.do(inv, yield)
		return
	}
	over := false
	b.do(inv, func(ev *session.Event, err error) bool {
		if !yield(ev, err) || err != nil {
			over = true
		}
		return !over
	})
	if over || inv.Ended() || inv.Err() != nil {
		return
	}
	// The two callback types have one underlying type; only the name differs.
	after := make([]agent.BeforeAgentCallback, len(b.cfg.AfterAgentCallbacks))
	for i, f := range b.cfg.AfterAgentCallbacks {
		after[i] = agent.BeforeAgentCallback(f)
	}
	b.call(inv, "after", after, yield)
}

// bare reports whether the agent has no callbacks, so that do is all of execute.
func (b *Base) bare() bool {
	return len(b.cfg.BeforeAgentCallbacks)+len(b.cfg.AfterAgentCallbacks) == 0
}

// do is what the agent does itself.
func (b *Base) do(inv *invocation, yield func(*session.Event, error) bool) {
	switch {
	case b.body != nil:
		b.body(inv, yield)
	case b.cfg.Run != nil:
		each(b.cfg.Run(inv), yield)
	}
}

// call runs callbacks until one answers. It yields the answer, or the changes that the
// callbacks made. Over reports an answer, or a request to leave the loop; either replaces the
// agent's own work. Ok reports that the step goes on.
func (b *Base) call(inv *invocation, when string, fns []agent.BeforeAgentCallback,
	yield func(*session.Event, error) bool) (over, ok bool) {
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
			break
		}
	}
	a := &ev.Actions
	if ev.Content == nil && len(a.StateDelta) == 0 && len(a.ArtifactDelta) == 0 && !a.AsksToLeave() &&
		a.TransferToAgent == "" {
		ev = nil
	}
	if ev = At(inv).Decided(ev); ev == nil {
		return false, true
	}
	a = &ev.Actions
	leaves := a.AsksToLeave() || a.Exit != nil // a loop may have refused it by now
	return ev.Content != nil || leaves, yield(ev, nil)
}

// NewCallbackContext returns the context of a callback. Its changes are written to actions,
// which are those of the callback's event.
func NewCallbackContext(ctx agent.InvocationContext, actions *session.EventActions) agent.Context {
	return NewToolContext(ctx, "", actions, nil)
}

// NewToolContext returns the context of a tool call. Its changes are written to actions; nil
// means new ones.
func NewToolContext(ctx agent.InvocationContext, functionCallID string, actions *session.EventActions,
	confirmation *toolconfirmation.ToolConfirmation) agent.Context {
	if actions == nil {
		actions = new(session.EventActions)
	}
	c := &callContext{InvocationContext: ctx, callID: functionCallID, actions: actions, confirmation: confirmation}
	c.session = callSession{ctx.Session(), c}
	return c
}

// callContext is the Context of a callback or of a tool call.
type callContext struct {
	agent.InvocationContext
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
func (c *callContext) State() session.State           { return At(c).State() }
func (c *callContext) ReadonlyState() session.ReadonlyState {
	return At(c).State()
}

func (c *callContext) ToolConfirmation() *toolconfirmation.ToolConfirmation { return c.confirmation }

func (c *callContext) Artifacts() agent.Artifacts {
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

// trackedArtifacts records saved artifacts in an event.
type trackedArtifacts struct {
	agent.Artifacts
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

// metadataCallback marks an event with the changes of callbacks.
const metadataCallback = "refrain:callback"

// MetadataTemp is a key of the CustomMetadata of an event. Its value holds those temp: keys of
// the event's delta that a loop decides by: stores drop temp: keys, and a resumed run needs
// these.
const MetadataTemp = "refrain:temp"

// Decided is for an agent that has called callbacks. ev has their changes, or is nil if they
// changed nothing. In a resumed run, which calls callbacks again, Decided returns the recorded
// event instead, because their first changes count. Only temp: keys, which the log does not
// have, are taken from ev.
func (p Place) Decided(ev *session.Event) *session.Event {
	inv := p.inv
	if inv == nil || !inv.run.Marks {
		return ev
	}
	if inv.record != nil {
		next := inv.run.Replay.unread(inv.record)
		switch {
		case next == nil: // it goes on from here
		case next.Mark != nil || next.Address != inv.address:
			inv.keepTemp(ev)
			return nil
		case next.CustomMetadata[metadataCallback] == true:
			inv.keepTemp(ev)
			return next
		}
	}
	if ev != nil {
		ev.CustomMetadata = with(ev.CustomMetadata, metadataCallback, true)
	}
	return ev
}

// with returns a copy of an event's metadata with one more key; the original may be shared.
func with(m map[string]any, key string, value any) map[string]any {
	if m = maps.Clone(m); m == nil {
		m = make(map[string]any, 1)
	}
	m[key] = value
	return m
}

// keepTemp sets the keys that no log has, because they end with the invocation.
func (i *invocation) keepTemp(ev *session.Event) {
	if ev == nil {
		return
	}
	for k, v := range ev.Actions.StateDelta {
		if strings.HasPrefix(k, session.KeyPrefixTemp) {
			_ = i.Session().State().Set(k, v)
		}
	}
}
