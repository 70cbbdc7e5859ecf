// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Traits is what a caller must know of an agent before it runs it, beside the agent's name and its sub-agents. The zero
// value suits most agents.
type Traits struct {
	// Effect is the agent's effect on the outside world; empty means [agent.Idempotent].
	Effect agent.Effect

	// Continues reports that in a resumed run the agent continues after its last event. All other agents that run no
	// sub-agents start again. See [Place.Recorded].
	Continues bool

	// ComputesOnly reports that the agent never waits. It ends soon and need not watch its context, and a durable run
	// may store its events together with the next ones.
	ComputesOnly bool

	// RequestsFirst reports that the agent's first event in a run with marks is a mark.KindRequested, and that the
	// agent only computes before that event.
	RequestsFirst bool

	// Inline reports that the agent can run in the goroutine of its caller, because it runs its sub-agents and no other
	// code of users. A step with a grace then starts no goroutine for the agent, and the agent gives the grace to its
	// own steps: see [Place.Grace].
	Inline bool

	// StepGrace is the agent's setting for [StepConfig.Grace] of the steps that it runs; 0 means no grace.
	StepGrace time.Duration

	// EndsWithin is how long the agent may take to end what it has started after its context has ended; 0 means that it
	// ends at once. A step does not abandon the agent before that time.
	EndsWithin time.Duration

	// CanIdle reports that the agent may call [Place.WaitIdle].
	CanIdle bool

	// ReadsHistory reports that the agent reads [Loop.History]. A loop keeps its history only if an agent below it
	// reads it.
	ReadsHistory bool

	// ReadsState has the state keys that the agent's decisions depend on. With ReadsAnyState they may depend on any key.
	ReadsState    []string
	ReadsAnyState bool

	// TransfersToParent reports that the agent can transfer the conversation to the agent above it.
	TransfersToParent bool
}

// A Describer is an agent that has traits. Traits returns the same for each call with the same argument. durable
// reports that the run writes marks.
type Describer interface{ Traits(durable bool) Traits }

// TraitsOf returns the traits of an agent; the zero value for one that is no [Describer].
func TraitsOf(a agent.Agent, durable bool) Traits {
	if d, ok := a.(Describer); ok {
		return d.Traits(durable)
	}
	return Traits{}
}

// An agent can also implement the interfaces below, all of which are optional.
type (
	// Recaller is an agent that gets its own events of the run before the run is resumed.
	Recaller interface{ Recall(*session.Event) }

	// UsageReader is an agent that computes what its calls of models used. Used returns the usage of an event of the log;
	// zero for an event that is no answer. InterruptedUsage returns the usage to count for an attempt whose process was
	// killed and whose events have none, unless the attempt was resting then (see [Place.WaitIdle]); it is for agents
	// that learn their usage only when the attempt ends.
	UsageReader interface {
		Used(*session.Event, budget.Prices) budget.Usage
		InterruptedUsage() budget.Usage
	}

	// Reporter is an agent that can set state values which describe one of its calls. Compared returns such a value
	// without the fields that differ in every call, and any other value as it is. A loop takes two outputs to be equal
	// if the results of Compared are equal.
	Reporter interface {
		Compared(ev *session.Event, v any) any
	}

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
