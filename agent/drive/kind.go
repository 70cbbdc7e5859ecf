// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// An agent can implement the interfaces below, all of which are optional. They tell its caller
// more about the agent than its name and its sub-agents do.
type (
	// Continuer is an agent that, in a resumed run, continues after its last event. All other
	// agents that run no sub-agents start again. See [Place.Recorded].
	Continuer interface{ Continues() bool }

	// Effector is an agent with an effect on the outside world. Without it the effect is
	// [agent.Idempotent].
	Effector interface{ Effect() agent.Effect }

	// Waiter is an agent that gives the steps that it runs a grace: see [StepConfig.Grace].
	// durable reports that the run writes marks. 0 means no grace.
	Waiter interface {
		Grace(durable bool) time.Duration
	}

	// Inline is an agent that runs its sub-agents, and no other code that a user has written, in a run that writes
	// marks (durable) or not. A step with a grace runs it in the goroutine of its caller, and the agent gives the
	// grace to its own steps: see [Place.Grace].
	Inline interface{ Inline(durable bool) bool }

	// Ender is an agent that heeds its context, but takes up to EndsWithin to end what it has
	// started; 0 means that it ends at once. A step that runs such an agent is not left behind before
	// that time.
	Ender interface{ EndsWithin() time.Duration }

	// Rester is an agent that may call [Place.WaitIdle].
	Rester interface{ Rests() bool }

	// Brief is an agent that ends at once, whatever its context says, because it only computes and
	// never waits. A durable run may store its events together with the next ones.
	Brief interface{ Brief() bool }

	// Recaller is an agent that gets its own events of the run before the run is resumed.
	Recaller interface{ Recall(*session.Event) }

	// Meter is an agent that computes the usage of its recorded answers.
	Meter interface {
		Used(*session.Event, budget.Prices) budget.Usage
	}

	// Reporter is an agent whose events can set values of the state that report a call. Compared returns such a value
	// without what no two calls have in common, and any other value as it is. A loop takes two outputs for the same if
	// their values so compared are equal.
	Reporter interface {
		Compared(ev *session.Event, v any) any
	}

	// Spender is an agent that learns the usage of an attempt only when the attempt ends. CutOff returns the
	// usage to count for an attempt whose process was killed, unless the attempt was resting then: see
	// [Place.WaitIdle].
	Spender interface{ CutOff() budget.Usage }

	// Requester is an agent of which the first event in a run with marks is a mark.KindRequested. Requests reports
	// that it only computes before that.
	Requester interface{ Requests() bool }

	// Reopener is a loop that can continue after it has stopped. GoesOn returns an error if its
	// present limits would stop it at once. stopped is the mark with its stop record, and plan
	// the mark with the plan that stopped it.
	Reopener interface {
		GoesOn(stopped, plan *mark.Mark) error
	}

	// Skipper is an agent that can continue after one of its steps has failed. Skips reports
	// whether it does so after the error.
	Skipper interface {
		Skips(step string, err error) bool
	}

	// HistoryReader is an agent that reads [Loop.History]. A loop keeps its history only if an
	// agent below it reads it.
	HistoryReader interface{ ReadsHistory() bool }

	// StateReader is an agent whose decisions depend on keys of the state. If all is true it
	// can read any key.
	StateReader interface {
		Reads() (keys []string, all bool)
	}

	// Returner is an agent that can transfer the conversation to the agent above it.
	Returner interface{ CanTransferToParent() bool }
)

// An error of a step can implement the interfaces below. A loop finds them by errors.As before
// it retries the step.
type (
	// TimeoutError is an error that reports whether the step exceeded a time limit.
	TimeoutError interface {
		error
		Timeout() bool
	}

	// PermanentError is an error that reports whether a retry is useless.
	PermanentError interface {
		error
		Permanent() bool
	}

	// RetryError is an error that says how long to wait before a retry.
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
