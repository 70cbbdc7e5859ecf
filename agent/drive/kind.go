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

	// Effector is an agent with an effect on the outside world. An agent that is no Effector has the effect
	// [agent.Idempotent].
	Effector interface{ Effect() agent.Effect }

	// Waiter is an agent that sets [StepConfig.Grace] for the steps that it runs. Grace returns that time; 0 means no
	// grace. durable reports that the run writes marks.
	Waiter interface {
		Grace(durable bool) time.Duration
	}

	// Inline is an agent that can run in the goroutine of its caller, because it runs its sub-agents and no other code
	// of users. Inline reports whether this is so in a run that writes marks (durable) or not. A step with a grace
	// then starts no goroutine for the agent, and the agent gives the grace to its own steps: see [Place.Grace].
	Inline interface{ Inline(durable bool) bool }

	// Ender is an agent that stops when its context ends, but needs up to EndsWithin to end what it has started. 0
	// means that it ends at once. A step does not abandon such an agent before that time.
	Ender interface{ EndsWithin() time.Duration }

	// Rester is an agent that may call [Place.WaitIdle].
	Rester interface{ Rests() bool }

	// Brief is an agent that only computes. It never waits, so it ends soon and need not watch its context. A durable
	// run may store its events together with the next ones.
	Brief interface{ Brief() bool }

	// Recaller is an agent that gets its own events of the run before the run is resumed.
	Recaller interface{ Recall(*session.Event) }

	// Meter is an agent that computes the usage of its recorded answers.
	Meter interface {
		Used(*session.Event, budget.Prices) budget.Usage
	}

	// Reporter is an agent that can set state values which describe one of its calls. Compared returns such a value
	// without the fields that differ in every call, and any other value as it is. A loop takes two outputs to be equal
	// if the results of Compared are equal.
	Reporter interface {
		Compared(ev *session.Event, v any) any
	}

	// Spender is an agent that learns the usage of an attempt only when the attempt ends. CutOff returns the
	// usage to count for an attempt whose process was killed, unless the attempt was resting then: see
	// [Place.WaitIdle].
	Spender interface{ CutOff() budget.Usage }

	// Requester is an agent whose first event in a run with marks is a mark.KindRequested. Requests reports that the
	// agent only computes before that event.
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

// effectOf returns the effect of an [Effector]; empty for any other agent.
func effectOf(a agent.Agent) agent.Effect {
	if e, ok := a.(Effector); ok {
		return e.Effect()
	}
	return ""
}
