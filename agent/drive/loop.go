// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"sync"
	"time"

	"github.com/refrain-dev/refrain/session"
)

// Loop has what the steps of a loop can know about it. The loop agent updates it between steps.
// Others only read it.
type Loop struct {
	// Name is the loop agent's name, and Address its address.
	Name    string
	Address session.Address
	// Goal and Instructions say what the loop is for and how to reach it. Agents in the loop
	// that ask a model add them to their prompts.
	Goal, Instructions string
	// Pass is the address of the running iteration, such as "story/refine[3]".
	Pass session.Address
	// Iteration counts from 1.
	Iteration int
	// MaxIterations is the loop's limit; 0 means no limit.
	MaxIterations uint
	// StateLimit is the largest state in bytes that a step of the loop can make; 0 means no limit.
	StateLimit int64
	// Outer is the loop around this one; nil if there is none.
	Outer *Loop
	// Started is when the loop began. It is zero if nothing in the loop reads it.
	Started time.Time
	// Score is the score of the previous iteration and BestScore the best so far; nil if there
	// is none.
	Score, BestScore *float64
	// Prev is the state after the previous iteration, and Best the state after the best one.
	// They are nil if there is no such iteration, or if the loop keeps no states.
	Prev, Best map[string]any
	// Rejected is the previous iteration if it was not accepted, or nil.
	Rejected *Rejected
	// History has the iterations before this one. It is nil unless a step is a [HistoryReader].
	History *History
	// Refusal returns why the agent at an address may not leave the loop, or "" if it may. A
	// nil function lets every agent leave.
	Refusal func(at session.Address) string
	// Kept has what loop agents inside this one keep from one pass to the next, under their own
	// keys. Loops within each other share it. It is nil if no loop needs it.
	Kept *sync.Map
}

// Rejected is an iteration that its loop has not accepted.
type Rejected struct {
	Iteration int
	// Reason says why, for people and models.
	Reason string
	// State is the state at the end of the iteration. It is nil if the loop keeps no states.
	State map[string]any
}

// snapshot is l as it is now, with the loops around it: for a step that may
// outlive the iteration.
func (l *Loop) snapshot() *Loop {
	if l == nil {
		return nil
	}
	now := *l
	now.Outer = l.Outer.snapshot()
	return &now
}

// Loop returns the nearest loop around the step, or nil.
func (p Place) Loop() *Loop {
	if inv := p.inv; inv != nil {
		return inv.loop
	}
	return nil
}

// ExitRefusal returns why the agent may not leave the nearest loop around it, as a text for a
// model. It returns "" if it may, or if there is no loop.
func (p Place) ExitRefusal() string {
	l := p.Loop()
	if l == nil || l.Refusal == nil {
		return ""
	}
	return l.Refusal(p.Address())
}

// Address returns the address of the step, or "" outside a step.
func (p Place) Address() session.Address {
	if inv := p.inv; inv != nil {
		return inv.address
	}
	return ""
}

// Within reports whether l or a loop around it has that name.
func (l *Loop) Within(name string) bool {
	for ; l != nil; l = l.Outer {
		if l.Name == name {
			return true
		}
	}
	return false
}

// Marks reports whether the run writes marks into its log.
func (p Place) Marks() bool {
	inv := p.inv
	return inv != nil && inv.run.Marks
}
