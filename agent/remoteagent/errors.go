// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// TaskError reports that a remote agent ended its task without an answer.
type TaskError struct {
	// Task is the task's ID, assigned by the server.
	Task string
	// State is "failed", "rejected" or "canceled".
	State string
	// Message is the remote agent's explanation, at most 2000 characters; empty if it gave none.
	Message string
}

// Error returns the state of the task and the message of the remote agent.
func (e *TaskError) Error() string {
	text := fmt.Sprintf("the remote agent has %s the task", e.State)
	if e.State == "failed" {
		text = "the remote agent has failed"
	}
	if e.Message == "" {
		return text + ", and does not say why (task " + e.Task + ")"
	}
	return text + ": " + e.Message
}

// Permanent reports whether a retry is useless because the task was rejected.
func (e *TaskError) Permanent() bool { return e.State == "rejected" }

// LimitError reports that a server sent more than the limit.
type LimitError struct {
	// Limit is the limit in bytes.
	Limit int64
}

// Error returns the limit and says what to do.
func (e *LimitError) Error() string {
	return fmt.Sprintf("the answer is longer than the limit of %d bytes; raise the size limit if that is fine", e.Limit)
}

var (
	// errEnded: a stream ended, and the task did not.
	errEnded = errors.New("the server ended the stream before the task was over")
	// errNotAllowed: the card of an agent leads to another server.
	errNotAllowed = errors.New("requests go to the server of the agent's card only")
)

const maxMessage = 2000 // characters

// shortText is a text for an error: without control characters, and not too long.
func shortText(s string) string {
	return brief.Clip(strings.TrimSpace(brief.CleanText(s)), maxMessage)
}

// shownError is an error in words that can be shown.
type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }

func (e *shownError) Unwrap() error { return e.err }
