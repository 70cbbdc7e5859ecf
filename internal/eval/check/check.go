// SPDX-License-Identifier: Apache-2.0

// Package check decides whether a run did what a case of an evaluation expects. A check reads what the run left, and
// gives a value from 0 to 1 with a reason.
//
//	c, err := check.Compile(check.Spec{Kind: check.Rouge1, Min: 0.7})
//	if err != nil {
//		return err
//	}
//	r := c.Run(ctx, &check.Subject{Case: refund, Turns: turns})
//	grade := check.Combine([]check.Result{r}, check.Pass{})
package check

import (
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Case is one example of an evaluation: what an agent is asked, and what is expected of it. Its JSON has the names of
// the fields in a file of cases.
type Case struct {
	// ID is unique in its set.
	ID string `json:"id"`
	// Turns are the messages of the conversation, at least one. Each is a run, and all are runs of one session.
	Turns []Turn `json:"turns"`
	// Values are the inputs of the definition, the field "set".
	Values map[string]any `json:"set,omitempty"`
	// State is the state with which the session begins.
	State map[string]any `json:"state,omitempty"`
	// Answers are the answers of people, by the name of the step that asks. A step that asks twice gets its answer twice.
	Answers map[string]any `json:"answers,omitempty"`
	// Group is the unit of the statistics: cases of one group depend on each other. Empty is a group of its own.
	Group string   `json:"group,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	// Weight is the weight of the case among others, at most [MaxWeight]; 0 means 1.
	Weight float64 `json:"weight,omitempty"`
	// Repeat is how often the case is run; 0 means as often as its set says.
	Repeat int `json:"repeat,omitempty"`
	// Checks are checks of this case, in addition to those of its set.
	Checks []Spec `json:"checks,omitempty"`
}

// Turn is one message of a case, and what is expected of its answer.
type Turn struct {
	// Input is the message; empty stands for the query of the definition.
	Input string `json:"input,omitempty"`
	// Expected is the answer that a person has given as the reference; nil if there is none.
	Expected *string `json:"expected,omitempty"`
	// Calls are the expected calls of tools in their order. nil means that no calls are known, and an empty list
	// that none is expected.
	Calls []Call `json:"calls,omitzero"`
	// Checks are checks of this turn alone.
	Checks []Spec `json:"checks,omitempty"`
}

// Call is one call of a tool.
type Call struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args,omitempty"`
}

// Subject is what a check sees: a case, and what one run of it left. The checks do not change it.
type Subject struct {
	Case Case
	// Turns are the outcomes of the turns of the case. There are fewer than in the case if the conversation ended early:
	// a turn that is missing counts as failed.
	Turns []Outcome
	// State is the state after the last turn.
	State map[string]any
	// Stop is the reason why the outermost loop of the last turn stopped; empty if the agents have no loop.
	Stop loop.StopReason
	// Score is the score of the handed-back iteration of that loop; nil if the loop has none.
	Score *float64
	// Iterations counts the iterations of that loop.
	Iterations int
	// Usage is the usage of model calls of all turns. Its cost is nil if a price is unknown.
	Usage loop.Usage
	// Time is the time for which all turns worked, without the time for which they waited for people.
	Time time.Duration
	// Errors are the messages of steps and tools that failed, in the order of the log.
	Errors []string
	// Ask asks a judge; nil if there is none. Rival is what the other version has left, for checks that compare; else nil.
	Ask   Ask
	Rival *Subject
	// Events returns the events of all turns as JSON values, for expressions that read them; nil stands for none.
	Events func() []any
}

// Outcome is what the run of a turn left.
type Outcome struct {
	// Answer is the result of the run, as people see it.
	Answer string
	// Calls are the calls of tools that models made, in the order of the log, without those that were superseded.
	Calls []Call
}

// Turn returns the part of the subject that concerns one turn, counted from 0. Values that only a whole run has, such
// as the state, stay as they are.
func (s *Subject) Turn(i int) *Subject {
	one := *s
	one.Case.Turns, one.Turns = nil, nil
	if i < len(s.Case.Turns) {
		one.Case.Turns = s.Case.Turns[i : i+1]
	}
	if i < len(s.Turns) {
		one.Turns = s.Turns[i : i+1]
	}
	if s.Rival != nil {
		one.Rival = s.Rival.Turn(i)
	}
	return &one
}

// Result is what a check found.
type Result struct {
	// Name is the name of the check in its file, or else its kind; see [Spec.Label].
	Name string `json:"name"`
	// Min is the least value that passes.
	Min float64 `json:"min,omitzero"`
	// Value is from 0 to 1. Passed reports whether it is at least the least value of the check. Both are nil if the check
	// was not evaluated, such as a comparison with a reference that the case does not have.
	Value  *float64 `json:"value,omitzero"`
	Passed *bool    `json:"passed,omitzero"`
	// Reason says in a sentence what the value means, or why the check was not evaluated.
	Reason string `json:"reason,omitzero"`
	// Informational results are shown, and decide nothing.
	Informational bool `json:"informational,omitzero"`
	// Weight is the weight of the value in a score; 0 means 1.
	Weight float64 `json:"weight,omitzero"`
	// Votes is the number of votes of judges, and Split whether votes on one statement differ.
	Votes int  `json:"votes,omitzero"`
	Split bool `json:"split,omitzero"`
	// Turns are the values of the turns, in the sense of Value, for a check that compares each turn with its reference. A turn without a
	// reference has nil.
	Turns []*float64 `json:"turns,omitzero"`
}

// Reached reports whether a value passes the check: it is at least Min, but for an error of rounding.
func (r *Result) Reached(value float64) bool { return value >= r.Min-slack }
