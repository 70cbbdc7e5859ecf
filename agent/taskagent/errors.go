// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"fmt"
	"net/http"
	"time"

	"github.com/refrain-dev/refrain/session/mark"
)

// QuestionError is an error of [CommandConfig].Around: the command cannot begin before a person has
// answered. The run waits, and the step begins again when it is resumed; the answer is then one of
// [drive.Place.Answers]. The question's ID is of [drive.Place.QuestionIDOf].
type QuestionError struct{ Question mark.Question }

func (e *QuestionError) Error() string { return "a person has to answer first: " + e.Question.Text }

// ExitError says that a command ended with an exit code that means failure.
type ExitError struct {
	// Command is the program's name, as the config has it.
	Command string
	// Code is the exit code; -1 if a signal ended the command.
	Code int
	// State says in words how it ended: "exit status 1", "signal: killed".
	State string
	// Stderr is the end of its standard error, at most 10 lines and 2 kB.
	Stderr string
}

// Brief returns the error without the standard error, for a place that is not to have what a program prints.
func (e *ExitError) Brief() string { return fmt.Sprintf("run command %q: %s", e.Command, e.State) }

func (e *ExitError) Error() string {
	text := e.Brief()
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// StatusError says that a server answered with a status that means failure.
type StatusError struct {
	// URL is the requested URL without its query.
	URL string
	// Status is the status code.
	Status int
	// Body is the end of the answer's text, at most 10 lines and 2 kB.
	Body string
	// RetryAfter is the wait that the server asks for by its header Retry-After; 0 if it does not
	// ask.
	RetryAfter time.Duration
}

// RetryDelay returns RetryAfter. A loop that retries its steps uses it.
func (e *StatusError) RetryDelay() time.Duration { return e.RetryAfter }

func (e *StatusError) Error() string {
	text := fmt.Sprintf("request %s: status %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// LimitError says that the output was longer than the limit.
type LimitError struct {
	// Stream is "stdout", "stderr", "body" or "headers".
	Stream string
	// Limit is the limit in bytes.
	Limit int64
}

func (e *LimitError) Error() string {
	field := "the output limit"
	verb := "is"
	switch e.Stream {
	case "body":
		field = "the size limit"
	case "headers":
		field, verb = "the size limit", "are"
	}
	return fmt.Sprintf("%s %s longer than the limit of %d bytes; raise %s if that is fine", e.Stream, verb, e.Limit,
		field)
}
