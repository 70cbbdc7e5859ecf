// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/refrain-dev/refrain/tool/toolconfirmation"

// EventActions holds the effects of an event besides its content.
type EventActions struct {
	// StateDelta is merged into the session's state when the event is
	// appended. A nil value removes its key. Yielding or appending the event replaces
	// each value by its plain form; see [Plain].
	StateDelta map[string]any `json:"stateDelta,omitempty"`
	// ArtifactDelta names the artifacts saved, with their new versions.
	ArtifactDelta map[string]int64 `json:"artifactDelta,omitempty"`
	// RequestedToolConfirmations asks a person to confirm tool calls, by call ID.
	RequestedToolConfirmations map[string]toolconfirmation.ToolConfirmation `json:"requestedToolConfirmations,omitempty"`
	// TransferToAgent names the agent that takes over the conversation.
	TransferToAgent string `json:"transferToAgent,omitempty"`
	// Exit records who asks to leave a loop, and why. If a tool sets only Escalate, the loop
	// that handles it adds an Exit.
	Exit *Exit `json:"exit,omitempty"`
	// SkipSummarization ends the agent's turn with the tool's answer.
	SkipSummarization bool `json:"skipSummarization,omitempty"`
	// Escalate asks to leave the nearest loop.
	Escalate bool `json:"escalate,omitempty"`
}

// AsksToLeave reports whether the actions ask to leave a loop: by Escalate, or by an
// Exit that was not refused.
func (a *EventActions) AsksToLeave() bool {
	if a.Exit != nil {
		return a.Exit.Refused == ""
	}
	return a.Escalate
}

// Exit statuses: why an agent asks to leave a loop. The empty status means that the work is done.
const (
	// ExitDone: the goal of the loop is reached.
	ExitDone = ""
	// ExitImpossible: the agent gives up because the goal cannot be reached.
	ExitImpossible = "impossible"
	// ExitBlocked: the agent needs something from outside before it can continue.
	ExitBlocked = "blocked"
)

// ScopeAll is the [Exit] scope that leaves every enclosing loop.
const ScopeAll = "all"

// Exit is the record of one request to leave a loop.
type Exit struct {
	// By is the name of the agent that asked. The loop that handles the request sets it and overwrites the
	// agent's value.
	By string `json:"by,omitempty"`
	// Reason is the agent's own text; empty if it gave none.
	Reason string `json:"reason,omitempty"`
	// Status is [ExitDone], [ExitImpossible] or [ExitBlocked].
	Status string `json:"status,omitempty"`
	// Score is the agent's own score of the result; nil if it gave none.
	Score *float64 `json:"score,omitempty"`
	// Scope says which loops to leave: empty for the nearest loop, a name for the loop of that name and all
	// loops inside it, or [ScopeAll].
	Scope string `json:"scope,omitempty"`
	// Plain is true for an Escalate without a call of exit_loop.
	Plain bool `json:"plain,omitempty"`
	// HandledBy is the outermost loop that ended because of this request.
	HandledBy Address `json:"handledBy,omitempty"`
	// Refused says why the request was refused; empty if it was not.
	Refused string `json:"refused,omitempty"`
}
