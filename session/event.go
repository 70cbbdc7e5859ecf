// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session/mark"
)

// Event records one thing that happened in a run, such as a message of an agent or the user, with its state
// changes.
//
// Do not change an event after you have yielded or appended it, because the log and its readers share it.
type Event struct {
	model.LLMResponse

	// ID names the event within its session. Appending sets an empty ID.
	ID string `json:"id"`
	// Timestamp is when the event was appended, unless its author set it. It is for people to read; Seq
	// gives the order of events.
	Timestamp time.Time `json:"timestamp"`
	// InvocationID names the call of a runner that the event belongs to.
	InvocationID string `json:"invocationId"`
	// Branch is the dotted path of the parallel branches that the event belongs to.
	// Agents in sibling branches do not see the event.
	Branch string `json:"branch,omitempty"`
	// Author is "user" or the name of an agent.
	Author string `json:"author"`
	// Actions holds the effects of the event besides its content.
	Actions EventActions `json:"actions"`
	// LongRunningToolIDs lists the function calls whose answers come later.
	LongRunningToolIDs []string `json:"longRunningToolIds,omitempty"`

	// Seq is the event's place in its session, from 1; 0 until it is appended.
	Seq int64 `json:"seq,omitempty"`
	// Address names the step that yielded the event.
	Address Address `json:"address,omitempty"`
	// Iteration is the iteration of the nearest loop, from 1; 0 outside loops.
	Iteration int `json:"iteration,omitempty"`
	// Attempt is the attempt of the step, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Mark is a durable runner's record about the run; nil for an agent's own events.
	Mark *mark.Mark `json:"mark,omitempty"`
	// Omitted is the number of bytes cut off long texts. It is 0 except in events of
	// an outline; see [Log.Outline].
	Omitted int64 `json:"-"`
}

// NewEvent returns an empty event of an invocation. Its StateDelta and ArtifactDelta are empty maps. If ctx
// has a provider for the ID or the Timestamp, NewEvent sets it; otherwise appending the event does. See
// package platform.
func NewEvent(ctx context.Context, invocationID string) *Event {
	ev := &Event{InvocationID: invocationID, Actions: EventActions{
		StateDelta: make(map[string]any), ArtifactDelta: make(map[string]int64),
	}}
	if id := platform.UUIDProviderOf(ctx); id != nil {
		ev.ID = id()
	}
	if now := platform.TimeProviderOf(ctx); now != nil {
		ev.Timestamp = now()
	}
	return ev
}

// NewEventWithContext does the same as [NewEvent], under its name in ADK v1.5.
func NewEventWithContext(ctx context.Context, invocationID string) *Event {
	return NewEvent(ctx, invocationID)
}

// IsFinalResponse reports whether the event ends its agent's turn: it is not part of
// a stream, and no tool call or tool answer is pending in it.
func (e *Event) IsFinalResponse() bool {
	if e.Actions.SkipSummarization || len(e.LongRunningToolIDs) > 0 {
		return true
	}
	if e.Partial {
		return false
	}
	if e.Content == nil || len(e.Content.Parts) == 0 {
		return true
	}
	for _, p := range e.Content.Parts {
		if p != nil && (p.FunctionCall != nil || p.FunctionResponse != nil) {
			return false
		}
	}
	last := e.Content.Parts[len(e.Content.Parts)-1]
	return last == nil || last.CodeExecutionResult == nil
}

// Text returns the event's text, without a model's thoughts.
func (e *Event) Text() string {
	if e.Content == nil {
		return ""
	}
	if parts := e.Content.Parts; len(parts) == 1 && parts[0] != nil && !parts[0].Thought {
		return parts[0].Text
	}
	var b strings.Builder
	for _, p := range e.Content.Parts {
		if p != nil && !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Speaks reports whether the event has text or data, such as a picture, that can be a result. A model's
// thoughts, its calls and a question to a person do not count.
func (e *Event) Speaks() bool {
	if e.Content == nil || e.Mark != nil && e.Mark.Kind == mark.KindAsked {
		return false
	}
	for _, p := range e.Content.Parts {
		if p != nil && !p.Thought && (p.Text != "" || p.InlineData != nil || p.FileData != nil) {
			return true
		}
	}
	return false
}

// WithoutTemp returns the event as stores keep it: without temp: keys, because they end with the
// invocation. If the event has no temp: keys, WithoutTemp returns e itself, else a copy.
func (e *Event) WithoutTemp() *Event {
	for key := range e.Actions.StateDelta {
		if !temporary(key, nil) {
			continue
		}
		kept := *e
		kept.Actions.StateDelta = maps.Clone(e.Actions.StateDelta)
		maps.DeleteFunc(kept.Actions.StateDelta, temporary)
		return &kept
	}
	return e
}

// temporary reports whether a key has the prefix temp:. Its second parameter is for maps.DeleteFunc.
func temporary(key string, _ any) bool { return strings.HasPrefix(key, KeyPrefixTemp) }
