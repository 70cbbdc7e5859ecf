// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/values/deep"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// execute runs the agent's body between its callbacks. A step calls it for an agent that is built on Base.
func (b *Base) execute(inv *invocation, yield func(*session.Event, error) bool) {
	if len(b.cfg.BeforeAgentCallbacks) > 0 {
		over, ok := b.runCallbacks(inv, "before", b.cfg.BeforeAgentCallbacks, yield)
		if !ok || over || inv.Ended() {
			return
		}
	}
	if len(b.cfg.AfterAgentCallbacks) == 0 {
		b.runBody(inv, yield)
		return
	}
	over := false
	b.runBody(inv, func(ev *session.Event, err error) bool {
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
	b.runCallbacks(inv, "after", after, yield)
}

// hasNoCallbacks reports whether the agent has no callbacks, so that runBody does all that execute does.
func (b *Base) hasNoCallbacks() bool {
	return len(b.cfg.BeforeAgentCallbacks)+len(b.cfg.AfterAgentCallbacks) == 0
}

// runBody runs the agent's own code, without its callbacks.
func (b *Base) runBody(inv *invocation, yield func(*session.Event, error) bool) {
	switch {
	case b.body != nil:
		b.body(inv, yield)
	case b.cfg.Run != nil:
		rangeEvents(b.cfg.Run(inv), yield)
	}
}

// runCallbacks runs callbacks until one returns content. It yields an event with that content, or with the changes
// that the callbacks made. over reports that there is content, or a request to leave the loop; either replaces the
// agent's own work. ok reports that the step continues.
func (b *Base) runCallbacks(inv *invocation, when string, fns []agent.BeforeAgentCallback,
	yield func(*session.Event, error) bool) (over, ok bool) {
	ev := &session.Event{}
	cb := agent.NewCallbackContext(inv, &ev.Actions)
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
	if ev = At(inv).MatchCallbackEvent(ev); ev == nil {
		return false, true
	}
	a = &ev.Actions
	leaves := a.AsksToLeave() || a.Exit != nil // a loop may have refused the request by now
	return ev.Content != nil || leaves, yield(ev, nil)
}

// metadataCallback is a key of the CustomMetadata of an event that has the changes of callbacks.
const metadataCallback = "refrain:callback"

// MetadataTemp is a key of the CustomMetadata of an event. Its value holds the temp: keys of the event's delta on
// which a loop's decisions depend. A resumed run needs these keys, and stores drop all temp: keys.
const MetadataTemp = "refrain:temp"

// MatchCallbackEvent returns the event with the changes of callbacks, for the agent that has called them. ev has the
// changes, or is nil if there are none. A resumed run calls the callbacks again, but the first changes count. So
// MatchCallbackEvent returns the recorded event instead of ev. Only temp: keys, which the log does not have, are
// taken from ev.
func (p Place) MatchCallbackEvent(ev *session.Event) *session.Event {
	inv := p.inv
	if inv == nil || !inv.run.Marks {
		return ev
	}
	if inv.logged != nil {
		next := inv.run.Replay.firstUnreplayed(inv.logged)
		switch {
		case next == nil: // the log has no more events of the step
		case next.Mark != nil || next.Address != inv.address:
			inv.setTemp(ev)
			return nil
		case next.CustomMetadata[metadataCallback] == true:
			inv.setTemp(ev)
			return next
		}
	}
	if ev != nil {
		Annotate(ev, metadataCallback, true)
	}
	return ev
}

// Annotate sets a key of an event's CustomMetadata, in a copy of the map, because the map may be shared.
func Annotate(ev *session.Event, key string, value any) {
	m := maps.Clone(ev.CustomMetadata)
	if m == nil {
		m = make(map[string]any, 1)
	}
	m[key] = value
	ev.CustomMetadata = m
}

// setTemp sets the temp: keys of an event in the state. The log does not have them, because they last only for the
// invocation.
func (i *invocation) setTemp(ev *session.Event) {
	if ev == nil {
		return
	}
	for k, v := range ev.Actions.StateDelta {
		if strings.HasPrefix(k, session.KeyPrefixTemp) {
			_ = i.Session().State().Set(k, v)
		}
	}
}

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

// These callbacks run around a call of a tool, by the same rules.
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
	// OnEvent is called for each new event of a step, but not for marks. An event that the callback
	// returns replaces the event for all readers and for the log.
	OnEvent []func(agent.InvocationContext, *session.Event) (*session.Event, error)
}

// Callbacks returns the callbacks of the invocation, or nil.
func (p Place) Callbacks() *Callbacks {
	if p.inv == nil {
		return nil
	}
	return p.inv.run.Callbacks
}

// Before returns lists of the invocation's callbacks, each followed by the agent's own callbacks.
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

// wrapBase returns the base of a step's agent with the callbacks of the invocation. first reports that it is the
// invocation's first step. An agent without a base gets one if there are callbacks to add.
func (c *Callbacks) wrapBase(a agent.Agent, b Base, first bool) Base {
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

// metadataSourceHash is a key of the CustomMetadata of an event that OnEvent has changed. Its value is the hash of
// the event as the step yielded it, which a resumed run compares with the step's new event.
const metadataSourceHash = "refrain:said"

// callOnEvent lets the OnEvent callbacks change a new event of the step. It changes the event in place, because the
// agent may keep the pointer. It returns nil if the step must end.
func (s *Step) callOnEvent(ev *session.Event) *session.Event {
	run := s.inv.run
	if run.Callbacks == nil || len(run.Callbacks.OnEvent) == 0 || ev.Mark != nil {
		return ev
	}
	before := ""
	if run.Marks && !ev.Partial {
		before = hashOf(ev)
	}
	ev.Content = deep.Copy(ev.Content) // a cache may share the content
	if ev.Actions.StateDelta == nil {  // a callback may set keys, as it does in ADK
		ev.Actions.StateDelta = make(map[string]any)
	}
	if ev.Actions.ArtifactDelta == nil {
		ev.Actions.ArtifactDelta = make(map[string]int64)
	}
	other, err := run.onEvent(s.inv, ev)
	if err != nil {
		s.stopWith(fmt.Errorf("on event callback: %w", err))
		return nil
	}
	if other != nil && other != ev {
		next := *other
		next.Partial, next.Seq, next.Mark = ev.Partial, 0, nil
		*ev = next
	}
	s.setOrigin(ev)
	if err := ev.Normalize(); err != nil {
		s.stopWith(fmt.Errorf("event of an on event callback: %w", err))
		return nil
	}
	if before != "" && before != hashOf(ev) {
		Annotate(ev, metadataSourceHash, before)
	}
	return ev
}

// onEvent calls the callbacks until one returns an event or an error. Parallel steps wait for each other here.
func (r *runContext) onEvent(ctx agent.InvocationContext, ev *session.Event) (*session.Event, error) {
	r.eventMu.Lock()
	defer r.eventMu.Unlock()
	for _, f := range r.Callbacks.OnEvent {
		if other, err := f(ctx, ev); other != nil || err != nil {
			return other, err
		}
	}
	return nil, nil
}

// hashOf returns the hash of those parts of an event that stay the same when a resumed run repeats it.
func hashOf(ev *session.Event) string {
	sum := sha256.Sum256(stableJSON(ev))
	return hex.EncodeToString(sum[:])
}
