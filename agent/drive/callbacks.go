// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// These callbacks run around a call of a model. The response of a before callback replaces the
// call of the model; that of an after callback replaces the model's response. The first callback
// that returns a response ends the list. A callback may change the request until it returns,
// because the parts that the request shares with the log are copied. Afterwards it may only read
// the request.
//
// The after callbacks also get a response without an answer, such as a refusal. The callbacks on
// errors run only if the model returned no response.
type (
	BeforeModelCallback  func(ctx agent.CallbackContext, llmRequest *model.LLMRequest) (*model.LLMResponse, error)
	AfterModelCallback   func(ctx agent.CallbackContext, llmResponse *model.LLMResponse, llmResponseError error) (*model.LLMResponse, error)
	OnModelErrorCallback func(ctx agent.CallbackContext, llmRequest *model.LLMRequest, llmResponseError error) (*model.LLMResponse, error)
)

// Callbacks around a call of a tool, likewise.
type (
	BeforeToolCallback  func(ctx agent.ToolContext, tool tool.Tool, args map[string]any) (map[string]any, error)
	AfterToolCallback   func(ctx agent.ToolContext, tool tool.Tool, args, result map[string]any, err error) (map[string]any, error)
	OnToolErrorCallback func(ctx agent.ToolContext, tool tool.Tool, args map[string]any, err error) (map[string]any, error)
)

// ModelCallbacks are the callbacks of an agent that asks a model.
type ModelCallbacks struct {
	BeforeModel  []BeforeModelCallback
	AfterModel   []AfterModelCallback
	OnModelError []OnModelErrorCallback
	BeforeTool   []BeforeToolCallback
	AfterTool    []AfterToolCallback
	OnToolError  []OnToolErrorCallback
}

// Callbacks are the callbacks of plugins, for all steps of an invocation. Each list is called before the
// agent's own list, and the first answer ends both.
type Callbacks struct {
	// BeforeRun is called in the first step of the invocation, before BeforeAgent.
	BeforeRun   []func(agent.InvocationContext) (*genai.Content, error)
	BeforeAgent []agent.BeforeAgentCallback
	AfterAgent  []agent.AfterAgentCallback
	ModelCallbacks
	// OnEvent is called for each new event of a step, but not for marks. An event that it returns replaces
	// the event for everybody.
	OnEvent []func(agent.InvocationContext, *session.Event) (*session.Event, error)
}

// Callbacks returns the callbacks of the invocation, or nil.
func (p Place) Callbacks() *Callbacks {
	if p.inv == nil {
		return nil
	}
	return p.inv.run.Callbacks
}

// Before returns the lists, each followed by the agent's own.
func (c *Callbacks) Before(own *ModelCallbacks) *ModelCallbacks {
	if c == nil {
		return own
	}
	return &ModelCallbacks{
		BeforeModel:  slices.Concat(c.BeforeModel, own.BeforeModel),
		AfterModel:   slices.Concat(c.AfterModel, own.AfterModel),
		OnModelError: slices.Concat(c.OnModelError, own.OnModelError),
		BeforeTool:   slices.Concat(c.BeforeTool, own.BeforeTool),
		AfterTool:    slices.Concat(c.AfterTool, own.AfterTool),
		OnToolError:  slices.Concat(c.OnToolError, own.OnToolError),
	}
}

// around returns the base of a step's agent with the callbacks of the invocation. First says that it is the
// invocation's first step. An agent without a base gets one if it needs it.
func (c *Callbacks) around(a agent.Agent, b Base, first bool) Base {
	if len(c.BeforeAgent)+len(c.AfterAgent) == 0 && !(first && len(c.BeforeRun) > 0) {
		return b
	}
	if b.self == nil {
		b = Base{cfg: agent.Config{Name: a.Name(), Run: a.Run}, self: a}
	}
	var before []agent.BeforeAgentCallback
	if first {
		for _, f := range c.BeforeRun {
			before = append(before, func(ctx agent.Context) (*genai.Content, error) {
				answer, err := f(ctx)
				if err != nil {
					err = fmt.Errorf("before run callback: %w", err)
				}
				return answer, err
			})
		}
	}
	b.cfg.BeforeAgentCallbacks = slices.Concat(before, c.BeforeAgent, b.cfg.BeforeAgentCallbacks)
	b.cfg.AfterAgentCallbacks = slices.Concat(c.AfterAgent, b.cfg.AfterAgentCallbacks)
	return b
}

// metadataSaid is a key of the CustomMetadata of an event that OnEvent has changed. Its value is the hash of
// the event as the step yielded it, which a resumed run compares with the step's new event.
const metadataSaid = "refrain:said"

// changed lets OnEvent change a new event of the step; nil ends the step. The event stays the same one, because
// the agent may keep it.
func (s *Step) changed(ev *session.Event) *session.Event {
	run := s.inv.run
	if run.Callbacks == nil || len(run.Callbacks.OnEvent) == 0 || ev.Mark != nil {
		return ev
	}
	said := ""
	if run.Marks && !ev.Partial {
		said = hashOf(ev)
	}
	ev.Content = apart(ev.Content)
	other, err := run.onEvent(s.inv, ev)
	if err != nil {
		s.fail(fmt.Errorf("on event callback: %w", err))
		return nil
	}
	if other != nil && other != ev {
		next := *other
		next.Partial, next.Seq, next.Mark = ev.Partial, 0, nil
		*ev = next
	}
	s.stamp(ev)
	if err := ev.Normalize(); err != nil {
		s.fail(fmt.Errorf("event of an on event callback: %w", err))
		return nil
	}
	if said != "" && said != hashOf(ev) {
		ev.CustomMetadata = with(ev.CustomMetadata, metadataSaid, said)
	}
	return ev
}

// onEvent calls the callbacks for one event of the invocation after the other.
func (r *shared) onEvent(ctx agent.InvocationContext, ev *session.Event) (*session.Event, error) {
	r.events.Lock()
	defer r.events.Unlock()
	for _, f := range r.Callbacks.OnEvent {
		if other, err := f(ctx, ev); other != nil || err != nil {
			return other, err
		}
	}
	return nil, nil
}

// apart returns a copy of a content, which may belong to a cache, with parts that may be edited.
func apart(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	own := &genai.Content{Role: c.Role, Parts: make([]*genai.Part, len(c.Parts))}
	for i, p := range c.Parts {
		if p != nil {
			part := *p
			own.Parts[i] = &part
		}
	}
	return own
}

// hashOf returns the hash of what lasts of an event.
func hashOf(ev *session.Event) string {
	sum := sha256.Sum256(lasting(ev))
	return hex.EncodeToString(sum[:])
}
