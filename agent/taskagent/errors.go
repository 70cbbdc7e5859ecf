// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
	"github.com/refrain-dev/refrain/session/mark"
)

// QuestionError is the error with which [CommandConfig].Around reports that the command cannot
// begin before a person has answered. The run waits. When it is resumed, the step begins again, and
// [drive.Place.Answers] has the answer. The question's ID comes from [drive.Place.QuestionIDOf].
type QuestionError struct{ Question mark.Question }

// Error includes the text of the question.
func (e *QuestionError) Error() string { return "a person has to answer first: " + e.Question.Text }

// ExitError reports that a command ended with an exit code that means failure.
type ExitError struct {
	// Command is the program's name, the first of the command's arguments.
	Command string
	// Code is the exit code; -1 if a signal ended the command.
	Code int
	// State says how the command ended, such as "exit status 1" or "signal: killed".
	State string
	// Stderr is the end of its standard error or, if that is empty, of its standard output: at most 10 lines and 2 kB.
	Stderr string
}

// Brief returns the error's text without the standard error, for a place that must not show a program's
// output.
func (e *ExitError) Brief() string { return fmt.Sprintf("run command %q: %s", e.Command, e.State) }

// Error returns the text of Brief and the end of the standard error.
func (e *ExitError) Error() string {
	text := e.Brief()
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// StatusError reports that a server answered with a status that means failure.
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

// Error returns the URL, the status and the end of the answer.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("request %s: status %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// LimitError reports that an output was longer than the limit.
type LimitError struct {
	// Stream is "stdout", "stderr", "body" or "headers", or the path of the file of [CommandConfig].Tests.
	Stream string
	// Limit is the limit in bytes.
	Limit int64
}

// Error names the output and the limit, and says what to do.
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

// NoProgramError reports that the program of a coding agent is not installed. It wraps
// [exec.ErrNotFound].
type NoProgramError struct {
	Program string
	// Install is the command that installs it, if that is known.
	Install string
}

// Error names the program and says how to install it.
func (e *NoProgramError) Error() string {
	return fmt.Sprintf("there is no program %q: install it%s, or put its folder into PATH", e.Program, after(" with ", e.Install))
}

// Permanent returns true, because another attempt cannot succeed.
func (e *NoProgramError) Permanent() bool { return true }

// Unwrap returns [exec.ErrNotFound].
func (e *NoProgramError) Unwrap() error { return exec.ErrNotFound }

// CLIOutcome says how the call of a coding agent ended.
type CLIOutcome = codingcli.Outcome

// The outcomes of a [CLIError] for which a caller can give advice.
const (
	CLIDenied  CLIOutcome = codingcli.Denied  // the agent was not allowed to use a tool
	CLILimited CLIOutcome = codingcli.Limited // the agent's provider accepts no requests for now
)

// CLIError reports that a coding agent did not do its task.
type CLIError struct {
	// Program is the program's name.
	Program string
	// Outcome is denied, limited, not_configured, failed, crashed or no_result.
	Outcome CLIOutcome
	// Message is the end of the program's message about its failure, at most 10 lines and 2 kB.
	Message string
	// Denied are the names of the tools that it was not allowed to use.
	Denied []string
	// Until is the time at which its provider accepts requests again; zero if this is not known.
	Until time.Time
	// GivenUp reports that the step has waited for the provider, or would have to wait, for longer than CLI.OnLimit
	// allows.
	GivenUp bool
}

// Permanent reports whether another attempt is useless.
func (e *CLIError) Permanent() bool {
	return e.GivenUp || e.Outcome == codingcli.Denied || e.Outcome == codingcli.NotConfigured
}

// Error returns the outcome and says what to do.
func (e *CLIError) Error() string {
	text := e.Program + ": "
	switch e.Outcome {
	case codingcli.Denied:
		how := "allow the tool with args"
		if codingcli.Programs[e.Program] == nil {
			how = "allow it in the program's own settings"
		}
		return text + "it was not allowed to use " + strings.Join(e.Denied, ", ") +
			"; give it permissions: all, " + how + ", or say denied: allow if that is fine"
	case codingcli.NotConfigured:
		text += "it is not signed in, or has no credit"
		_, signIn, _ := CLIHelp(e.Program)
		text += "; " + cmp.Or(signIn, "run it by hand and sign in, or name the variable of its key with inherit")
	case codingcli.Limited:
		text += "its provider takes no more requests "
		if e.Until.IsZero() {
			text += "for now"
		} else {
			text += "until " + e.Until.UTC().Format("2006-01-02 15:04 MST")
		}
		if e.GivenUp {
			text += ", which is longer than at_most of on_limit"
		}
	case codingcli.NoResult, codingcli.Crashed:
		return text + "it ended without a result" + after(": ", e.Message)
	default:
		text += "it failed"
	}
	return text + after(". It says: ", e.Message)
}

// after returns before and text together, or "" if text is empty.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// idleError reports that a program has printed nothing for this time, which is its limit.
type idleError time.Duration

func (e idleError) Error() string {
	return fmt.Sprintf("it printed nothing for its idle_timeout of %s", time.Duration(e))
}
