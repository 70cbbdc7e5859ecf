// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// QuestionKind says what a question asks of a person.
type QuestionKind string

// The kinds of question, each with the Value of its [Answer].
const (
	// AskApproval: true or false.
	AskApproval QuestionKind = "approve"
	// AskText: a text.
	AskText QuestionKind = "answer"
	// AskEdit: an object, the new values of state keys.
	AskEdit QuestionKind = "edit"
	// AskConfirmation of a tool call: a toolconfirmation.ToolConfirmation.
	AskConfirmation QuestionKind = "confirm"
	// AskResolution of a call that may or may not have taken place, or of files that somebody else has
	// changed: a [Resolution].
	AskResolution QuestionKind = "resolve"
	// AskForm for data that a tool's server needs: a [FormAnswer].
	AskForm QuestionKind = "form"
)

// Question is what a step asks a person. It is the data of [KindAsked].
type Question struct {
	// ID is the same each time the run is resumed.
	ID   string       `json:"id"`
	Kind QuestionKind `json:"kind"`
	Text string       `json:"text,omitempty"`
	// Call is the ID of the tool call that the question is about; empty if it is about none.
	Call string `json:"call,omitempty"`
	// Options are the answers to choose from; empty if any answer will do.
	Options []string `json:"options,omitempty"`
	// Keys are the state keys to edit, with their values.
	Keys map[string]any `json:"keys,omitempty"`
	// Form is the JSON Schema of the data that AskForm needs, an object of plain fields; see [Question.Fields].
	Form json.RawMessage `json:"form,omitempty"`
	// Deadline is when Default becomes the answer; the zero time means never.
	Deadline time.Time       `json:"deadline,omitzero"`
	Default  json.RawMessage `json:"default,omitempty"`
}

// Answer is a person's answer to a [Question]. It is the data of [KindAnswered].
type Answer struct {
	// ID is the ID of the question.
	ID    string          `json:"id"`
	Value json.RawMessage `json:"value,omitempty"`
	// Reason is the person's comment.
	Reason string `json:"reason,omitempty"`
	// By is who answered, as the process knows it that took the answer: the name of a token, "token", "local", or the
	// owner of the process.
	By string `json:"by,omitempty"`
	// ClaimedBy is who answered, as the client says it. Nothing has checked that. In logs of older versions By was the
	// client's claim, too.
	ClaimedBy string `json:"claimed_by,omitempty"`
	// Key is the sender's ID of the answer, such as a message ID. An answer that is sent again with its Key
	// does not answer the next question.
	Key string `json:"key,omitempty"`
}

// Resolution says whether a call in doubt took place, and with which result, or what to do with the
// files that somebody else has changed.
type Resolution struct {
	// Action is one of the question's Options.
	Action string `json:"action"`
	// Result is the call's result.
	Result string `json:"result,omitempty"`
}

// The actions of a [Resolution] of a call.
const (
	ResolveResult = "result" // the call took place, with this Result
	ResolveRetry  = "retry"  // the call did not take place; make it now
	ResolveSkip   = "skip"   // continue without the call
)

// The actions of a [Resolution] of changed files.
const (
	ResolveKeep    = "keep"    // continue with the changed files
	ResolveDiscard = "discard" // continue with the files of the run
	ResolveBase    = "base"    // continue with the changed files, and compare later changes with them
)

// What an answer to [AskResolution] can say.
var (
	resolutions     = []string{ResolveResult, ResolveRetry, ResolveSkip}
	editResolutions = []string{ResolveKeep, ResolveDiscard, ResolveBase}
)

// InDoubt returns a question that asks whether an interrupted call took place. The caller sets its ID and
// deadline.
func InDoubt(text string) Question {
	return Question{Kind: AskResolution, Text: text, Options: slices.Clone(resolutions)}
}

// Edited returns a question that asks what to do with files that somebody else has changed. The caller
// sets its ID and deadline.
func Edited(text string) Question {
	return Question{Kind: AskResolution, Text: text, Options: slices.Clone(editResolutions)}
}

// IsEdited reports whether a question is one of [Edited].
func (q *Question) IsEdited() bool {
	return q.Kind == AskResolution && slices.Contains(q.Options, ResolveKeep)
}

// Resolution decodes the answer to a question of [InDoubt]. It fails for an answer to another question.
func (a *Answer) Resolution() (Resolution, error) { return a.resolution(resolutions) }

// EditResolution decodes the answer to a question of [Edited]. It fails for an answer to another question.
func (a *Answer) EditResolution() (Resolution, error) { return a.resolution(editResolutions) }

func (a *Answer) resolution(options []string) (Resolution, error) {
	var r Resolution
	if err := json.Unmarshal(a.Value, &r); err != nil {
		return r, fmt.Errorf("answer to question %s: %w", a.ID, err)
	}
	if !slices.Contains(options, r.Action) {
		return r, fmt.Errorf("answer to question %s: the action is %s, not %q", a.ID, choice(options), r.Action)
	}
	return r, nil
}

// choice lists options in a sentence.
func choice(options []string) string {
	last := len(options) - 1
	return strings.Join(options[:last], ", ") + " or " + options[last]
}

// Check returns an error if the answer does not fit the question.
func (q *Question) Check(a *Answer) error {
	wrong := func(what string) error {
		return fmt.Errorf("the answer to %s is %s, not %s", q.ID, what, cmp.Or(string(a.Value), "missing"))
	}
	switch q.Kind {
	case AskApproval:
		var yes *bool
		if json.Unmarshal(a.Value, &yes) != nil || yes == nil {
			return wrong("true or false")
		}
	case AskText:
		var text *string
		if json.Unmarshal(a.Value, &text) != nil || text == nil {
			return wrong("a text")
		}
		if len(q.Options) > 0 && !slices.Contains(q.Options, *text) {
			return wrong("one of " + strings.Join(q.Options, ", "))
		}
	case AskEdit:
		var edit map[string]any
		keys := slices.Sorted(maps.Keys(q.Keys))
		if json.Unmarshal(a.Value, &edit) != nil || edit == nil {
			return wrong("an object with values for " + strings.Join(keys, ", "))
		}
		for _, key := range slices.Sorted(maps.Keys(edit)) {
			if !slices.Contains(keys, key) {
				return fmt.Errorf("the answer to %s sets %q; only %s can be edited", q.ID, key,
					strings.Join(keys, ", "))
			}
		}
	case AskConfirmation:
		var c struct{ Confirmed *bool }
		if json.Unmarshal(a.Value, &c) != nil || c.Confirmed == nil {
			return wrong(`{"confirmed": true} or {"confirmed": false}`)
		}
	case AskResolution:
		options := resolutions
		if q.IsEdited() {
			options = editResolutions
		}
		if _, err := a.resolution(options); err != nil {
			return wrong("an object whose action is " + choice(options))
		}
	case AskForm:
		return q.checkForm(a)
	default:
		return fmt.Errorf("this version of refrain does not know questions of the kind %q; install a newer one", q.Kind)
	}
	return nil
}
