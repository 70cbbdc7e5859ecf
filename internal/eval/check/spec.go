// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"

	"github.com/refrain-dev/refrain/internal/eval/rouge"
)

// Kind says how a check finds its value.
type Kind string

// The kinds. Each names the fields of [Spec] that it reads.
const (
	// Equals is 1 if the answer is one of Texts. Both are in NFC, without space at their ends.
	Equals Kind = "equals"
	// Contains is the share of Texts that the answer contains.
	Contains Kind = "contains"
	// Matches is the share of Texts, which are regular expressions of package regexp, that match a part of the answer.
	Matches Kind = "matches"
	// Schema is 1 if the answer is JSON that fits Schema, with nothing around it but space or one code fence. A null counts as
	// a value, also of a property that may be missing.
	Schema Kind = "schema"
	// Rouge1 is the F measure of ROUGE-1 between the answer and the expected text, as ADK's response_match_score.
	Rouge1 Kind = "rouge1"
	// Expr is the value of Expr: 1 for true, 0 for false, or a number from 0 to 1.
	Expr Kind = "expr"
	// Calls compares the calls of tools with the expected ones by Order, IgnoreArgs and Ignore, as ADK's
	// tool_trajectory_avg_score.
	Calls Kind = "calls"
	// Stop is 1 if the run stopped for one of Reasons.
	Stop Kind = "stop"
	// Max is 1 if the run used at most Max. It fails if a limited cost is unknown.
	Max Kind = "max"
	// Completed is 1 if all turns of the case have ended, and no loop stopped because of an error.
	Completed Kind = "completed"
	// Rubric is the share of Texts, which are statements, that a judge finds true of the answer. Statements on which no vote has an
	// opinion do not count.
	Rubric Kind = "rubric"
	// Agrees is 1 if a judge finds that the answer agrees with the expected text.
	Agrees Kind = "agrees"
	// Pairwise compares the answers of two versions by Texts[0], or else by how much they help. It is the share of the votes for the
	// answer. It never passes or fails a case, and is evaluated only where two versions run.
	Pairwise Kind = "pairwise"
	// Unsupported is a check that this program cannot run. It is never evaluated, and Text says why.
	Unsupported Kind = "unsupported"
)

// MaxWeight is the largest weight of a case or a check. Sums of larger weights may have no number.
const MaxWeight = 1e6

// Order says which order the calls of tools must have.
type Order string

// The orders.
const (
	Exact    Order = "exact"     // the expected calls and no others
	InOrder  Order = "in_order"  // the expected calls in their order; others may stand between them
	AnyOrder Order = "any_order" // the expected calls in any order, among others
)

// Limits are the largest usage of a case-run; nil means no limit.
type Limits struct {
	Cost       *float64 `json:"cost,omitzero"` // in the currency of the price list
	Seconds    *float64 `json:"seconds,omitzero"`
	Tokens     *int64   `json:"tokens,omitzero"`
	Calls      *int64   `json:"calls,omitzero"` // of models
	Iterations *int64   `json:"iterations,omitzero"`
}

// Spec describes a check, as a file does. Fields of other kinds than its own are empty.
type Spec struct {
	Kind Kind `json:"kind"`
	// Texts is for Equals, Contains, Matches and the kinds that ask a judge. If it is empty, Equals and Contains compare each turn with its expected
	// text.
	Texts []string `json:"texts,omitempty"`
	// Schema is a JSON Schema: an object, or true or false.
	Schema any    `json:"schema,omitzero"`
	Expr   string `json:"expr,omitzero"`
	// Order is Exact if it is empty. With IgnoreArgs only the names of the tools are compared. Calls of the tools in
	// Ignore do not count.
	Order      Order    `json:"order,omitzero"`
	IgnoreArgs bool     `json:"ignore_args,omitzero"`
	Ignore     []string `json:"ignore,omitempty"`
	Reasons    []string `json:"reasons,omitempty"`
	Max        *Limits  `json:"max,omitzero"`
	// Model is the judge as provider/name, and Samples how often it votes on each statement: 3 times if it is 0, for Pairwise 4
	// times. With EachTurn a Rubric is about the answers of all turns, and with Whole about the conversation.
	Model    string `json:"model,omitzero"`
	Samples  int    `json:"samples,omitzero"`
	EachTurn bool   `json:"each_turn,omitzero"`
	Whole    bool   `json:"whole,omitzero"`
	// Text is the reason of a check of the kind Unsupported.
	Text string `json:"text,omitzero"`

	// Name is shown, and is what a comparison of versions names; empty stands for the kind.
	Name string `json:"name,omitzero"`
	// Weight is the weight of the value in the score of a case, at most [MaxWeight]; 0 means 1.
	Weight float64 `json:"weight,omitzero"`
	// Min is the least value that passes. 0 means 1, for Rouge1 0.8.
	Min float64 `json:"min,omitzero"`
	// Not turns the value into 1 minus the value, before it is compared with Min.
	Not bool `json:"not,omitzero"`
	// Informational checks never pass or fail a case.
	Informational bool `json:"informational,omitzero"`
	// Of is the key of the state whose value takes the place of the answer; empty means the answer.
	Of string `json:"of,omitzero"`
}

// Label returns the name of the check for people.
func (s Spec) Label() string {
	kind := string(s.Kind)
	if s.Not {
		kind = "not " + kind
	}
	return cmp.Or(s.Name, kind)
}

// least returns the least value that passes.
func (s Spec) least() float64 {
	switch {
	case s.Min != 0:
		return s.Min
	case s.Kind == Rouge1 && !s.Not:
		return 0.8
	}
	return 1
}

// Error is a mistake in a spec.
type Error struct {
	// Field is the field of the file with the mistake, such as "expr" or "matches[1]".
	Field string
	// Line and Column are the place in the field's text, counted from 1; 0 if the whole field is meant.
	Line, Column  int
	Message, Hint string
	// Err is the cause; nil if there is none.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.Field, e.Line, e.Column, e.Message)
	}
	return e.Field + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Misreads says why the check would give every answer the same value with an expected text; "" if it would not.
func (s Spec) Misreads(expected string) string {
	switch {
	case s.Kind == Rouge1 && len(rouge.Words(expected)) == 0:
		return fmt.Sprintf("%s has no word, so that rouge1 is 0 for every answer", quote(expected))
	case s.Kind == Contains && s.ReadsExpected() && trim(expected) == "":
		return "every answer contains the empty text"
	}
	return ""
}

// ReadsExpected reports whether the check compares the answer with the expected text of a turn.
func (s Spec) ReadsExpected() bool {
	return s.Kind == Rouge1 || s.Kind == Agrees || len(s.Texts) == 0 && (s.Kind == Equals || s.Kind == Contains)
}
