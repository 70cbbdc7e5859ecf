// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"sync"
	"time"

	"github.com/refrain-dev/refrain/session"
)

// Loop is what the steps of a loop may know about it. The loop agent that runs
// them keeps it up to date between steps; to everybody else it is read-only.
type Loop struct {
	// Name is the loop agent's name, and Address its address.
	Name    string
	Address session.Address
	// Goal and Instructions are what the loop is for and how it is to go
	// about it. Agents in it that ask a model pass them on.
	Goal, Instructions string
	// Pass is the address of the running iteration, such as "story/refine[3]".
	Pass session.Address
	// Iteration counts from 1.
	Iteration int
	// MaxIterations is the limit; 0 is none.
	MaxIterations uint
	// Outer is the loop around this one; nil if there is none.
	Outer *Loop
	// Started is when the loop began; zero if nobody asked for the time.
	Started time.Time
	// Score is the last iteration's score and BestScore the best so far; nil
	// where there is none.
	Score, BestScore *float64
	// Prev is the state after the iteration before, and Best after the best
	// one; nil where there is none, or where the loop does not keep them.
	Prev, Best map[string]any
	// Rejected is the iteration before, if it was not accepted; else nil.
	Rejected *Rejected
	// History is all the iterations before; nil unless a step reads it, see
	// [HistoryReader].
	History *History
	// Refusal says why the agent at an address may not leave the loop; "" if it
	// may. nil refuses nobody.
	Refusal func(at session.Address) string
	// Kept is for loop agents: what one in this loop remembers from one pass to the
	// next. Its keys are theirs. Loops within each other share it; nil if there is
	// none that asks.
	Kept *sync.Map
}

// Rejected is an iteration that its loop has not accepted.
type Rejected struct {
	Iteration int
	// Reason says why, for people and models.
	Reason string
	// State is what the iteration had made of the state; nil where the loop
	// does not keep it.
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

// Loop is the nearest loop that the step runs in; nil outside loops.
func (p Place) Loop() *Loop {
	if inv := p.inv; inv != nil {
		return inv.loop
	}
	return nil
}

// ExitRefusal says why the agent may not leave the nearest loop around it, in
// words for a model; "" if it may, or if there is no loop.
func (p Place) ExitRefusal() string {
	l := p.Loop()
	if l == nil || l.Refusal == nil {
		return ""
	}
	return l.Refusal(p.Address())
}

// Address is the address of the step; empty if it is not one.
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
