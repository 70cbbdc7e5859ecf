// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// Effect says what a step or a tool does to the world outside, and with it what a
// resumed run does about a call that was cut off.
type Effect string

// The effects. A call that came to its end is never made again, whatever it does.
const (
	// Pure: nothing, or nothing that anybody minds. It is made again.
	Pure Effect = "pure"
	// Idempotent: something that happens once for one call ID ([CallID]), or
	// that may happen twice. It is made again, with the same ID. The default.
	Idempotent Effect = "idempotent"
	// AtMostOnce: something that must not happen twice. The intent is in the log
	// before it happens. After a crash nobody knows whether it has: the run
	// waits for a person to say so, or fails where it cannot wait.
	AtMostOnce Effect = "at_most_once"
	// Transactional: it only writes what the log keeps, which counts if the step
	// came to its end. It is made again.
	Transactional Effect = "transactional"
)

// Check refuses what is none of the effects. Empty is the default.
func (e Effect) Check() error {
	switch e {
	case "", Pure, Idempotent, AtMostOnce, Transactional:
		return nil
	}
	return fmt.Errorf("effect %q: it is %s, %s, %s or %s", string(e), Pure, Idempotent, AtMostOnce, Transactional)
}

// CallID names what the step of ctx does to the outside. It is the same in every
// attempt, and when the run is resumed, also where its log was copied into another
// session; and another one for every other step and run. A fork has the same for
// steps that began before it, and others for those that begin later. Services that
// know such keys do a thing once for each. Of an agent that is a tool it is
// [ToolCallID] of the call.
func CallID(ctx InvocationContext) string {
	at := AddressOf(ctx)
	if c, ok := ctx.Value(toolCallKey{}).(toolCall); ok && at != c.at && at.Under(c.at) {
		// Where it is says how often its agent was called since the process began.
		_, below, _ := strings.Cut(string(at[len(c.at)+1:]), "/")
		if below == "" {
			return c.id
		}
		return callID(c.id, below)
	}
	return callID(naming(ctx, ""), ctx.InvocationID(), string(at))
}

type toolCallKey struct{}

// toolCall is the call of a tool that a step runs for.
type toolCall struct {
	id string
	at session.Address // of the step that calls it
}

// WithinToolCall is the context for agents that run for the call of a tool: what they
// do to the outside has IDs that are made of the call's. It is for tools that run
// agents.
func WithinToolCall(ctx ToolContext) context.Context {
	return context.WithValue(ctx, toolCallKey{}, toolCall{id: ToolCallID(ctx, ctx.FunctionCallID()), at: AddressOf(ctx)})
}

// ToolCallID is [CallID] for a function call of the step's model.
func ToolCallID(ctx InvocationContext, functionCallID string) string {
	return callID(naming(ctx, functionCallID), ctx.InvocationID(), string(AddressOf(ctx)), functionCallID)
}

func callID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "call-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}
