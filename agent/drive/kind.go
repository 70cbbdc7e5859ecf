// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// An agent can have the methods of the interfaces below. They tell whoever runs
// the agent what its name and its sub-agents do not tell. All of them are
// optional.
type (
	// Continuer is an agent that, in a resumed run, takes up what it has said
	// instead of saying it again: see [Place.Recorded].
	Continuer interface{ Continues() bool }

	// Effector is an agent that says what it does to the world outside. Without
	// it the effect is [agent.Idempotent].
	Effector interface{ Effect() agent.Effect }

	// Waiter is an agent that runs others with a grace: see [StepConfig.Grace].
	// Durable says that the run writes marks. 0 is no grace.
	Waiter interface {
		Grace(durable bool) time.Duration
	}

	// Recaller is an agent that wants to be given what it has said, before a run
	// is resumed.
	Recaller interface{ Recall(*session.Event) }

	// Meter is an agent that says what an answer of its has used.
	Meter interface {
		Used(*session.Event, budget.Prices) budget.Usage
	}

	// Reopener is a loop that can go on after it has stopped. GoesOn returns an
	// error if the limits that it has now stop it again; plan is the mark with the
	// plan by which it has stopped.
	Reopener interface {
		GoesOn(stopped, plan *mark.Mark) error
	}

	// HistoryReader is an agent that reads [Loop.History]. A loop remembers its
	// iterations only if an agent below it says so.
	HistoryReader interface{ ReadsHistory() bool }

	// StateReader is an agent that decides by state keys. Keys are those that it
	// reads; all says that it may read any.
	StateReader interface {
		Reads() (keys []string, all bool)
	}

	// Returner is an agent that can hand the conversation back to the agent above
	// it.
	Returner interface{ CanTransferToParent() bool }
)

// An error of a step can have the methods of the interfaces below. A loop asks
// for them by errors.As before it tries the step again.
type (
	// TimeoutError is an error that says whether the step had no more time.
	TimeoutError interface {
		error
		Timeout() bool
	}

	// PermanentError is an error that says whether another try is of no use.
	PermanentError interface {
		error
		Permanent() bool
	}

	// RetryError is an error that says how long to wait before the next try.
	RetryError interface {
		error
		RetryDelay() time.Duration
	}
)

// effectOf returns the effect that an agent says it has; empty if it says none.
func effectOf(a agent.Agent) agent.Effect {
	if e, ok := a.(Effector); ok {
		return e.Effect()
	}
	return ""
}
