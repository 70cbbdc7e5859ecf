// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session/mark"
)

// Event is one thing that happened in a run: what an agent or the user said,
// with the changes of state that go with it.
//
// Whoever yields or appends an event gives it away: from then on it is shared
// with the log and with every reader, and must not be changed.
type Event struct {
	model.LLMResponse

	// ID names the event within its session. Appending sets it where it is
	// empty.
	ID string `json:"id"`
	// Timestamp is when the event was appended, unless its author set it. It
	// is for people; Seq gives the order.
	Timestamp time.Time `json:"timestamp"`
	// InvocationID names the call of a runner that the event belongs to.
	InvocationID string `json:"invocationId"`
	// Branch is the dotted path of parallel branches that the event was said
	// in; agents in sibling branches do not see it.
	Branch string `json:"branch,omitempty"`
	// Author is "user" or the name of the agent that said it.
	Author string `json:"author"`
	// Actions is what the event does besides saying something.
	Actions EventActions `json:"actions"`
	// LongRunningToolIDs lists the function calls whose answers come later.
	LongRunningToolIDs []string `json:"longRunningToolIds,omitempty"`

	// Seq is the event's place in its session, from 1; 0 until it is appended.
	Seq int64 `json:"seq,omitempty"`
	// Address is the step that said it.
	Address Address `json:"address,omitempty"`
	// Iteration is the pass of the nearest loop, from 1; 0 outside loops.
	Iteration int `json:"iteration,omitempty"`
	// Attempt counts the tries of the step, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Mark says what became of a step or a loop; nil on what agents say.
	Mark *mark.Mark `json:"mark,omitempty"`
	// Omitted is how many bytes of long texts are left out, of which only the beginnings
	// are there; 0 for all events but those of an outline. See [View.Outline].
	Omitted int64 `json:"-"`
}

// NewEvent returns an empty event of an invocation, ready to be filled in. Its
// StateDelta and ArtifactDelta can be written to. ID and Timestamp are set when it is appended.
//
// The context is ADK v2's; it is not read.
func NewEvent(_ context.Context, invocationID string) *Event {
	return &Event{InvocationID: invocationID, Actions: EventActions{
		StateDelta: make(map[string]any), ArtifactDelta: make(map[string]int64),
	}}
}

// NewEventWithContext is [NewEvent] under the name that ADK v1.5 gave it.
func NewEventWithContext(ctx context.Context, invocationID string) *Event {
	return NewEvent(ctx, invocationID)
}

// IsFinalResponse reports whether the event ends its agent's turn: it is not a
// piece of a stream and no tool call or tool answer is pending in it.
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

// Text is what the event says in words, without a model's thoughts.
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

// Speaks reports whether the event says something that can be a result: words,
// or data such as a picture. A model's thoughts and calls are none, nor is a
// question to a person.
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
