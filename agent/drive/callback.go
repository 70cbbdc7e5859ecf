// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"
	"maps"
	"strings"

	"github.com/refrain-dev/refrain/agent"
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

// NewCallbackContext is [agent.NewCallbackContext].
func NewCallbackContext(ctx agent.InvocationContext, actions *session.EventActions) agent.Context {
	return agent.NewCallbackContext(ctx, actions)
}

// NewToolContext is [agent.NewToolContext].
func NewToolContext(ctx agent.InvocationContext, functionCallID string, actions *session.EventActions,
	confirmation *toolconfirmation.ToolConfirmation) agent.Context {
	return agent.NewToolContext(ctx, functionCallID, actions, confirmation)
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
