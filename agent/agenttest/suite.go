// SPDX-License-Identifier: Apache-2.0

// Package agenttest checks that an agent keeps the promises of agent.Agent.
// Every kind of agent of this project passes it, and so should yours.
//
//	func TestAgent(t *testing.T) {
//		agenttest.TestAgent(t, func(t *testing.T) agent.Agent { return newCritic(t) })
//	}
package agenttest

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/refrain-dev/refrain/agent"
)

// Rule is one promise that the suite checks; it is the name of a subtest.
type Rule string

// The rules.
const (
	// Names: the agent has a name, and finds itself and what is below it.
	Names Rule = "names"
	// Lazy: Run does nothing until its sequence is ranged over.
	Lazy Rule = "lazy"
	// Stamped: every event says who said it, when, and where in the run.
	Stamped Rule = "stamped"
	// RangeAgain: ranging again runs again, with as many events by the same
	// authors.
	RangeAgain Rule = "range again"
	// Stops: it ends when its consumer leaves, and leaves nothing running.
	Stops Rule = "stops"
	// PanicsPass: a panic of its consumer is not its business.
	PanicsPass Rule = "panics pass"
	// CanceledBefore: under a canceled context it does nothing but say so.
	CanceledBefore Rule = "canceled before"
	// Canceled: it ends soon after its context is canceled, with the cause.
	Canceled Rule = "canceled"
	// Independent: invocations at the same time do not disturb one another.
	Independent Rule = "independent"
	// SameTraits: what it declares about itself (see drive.Traits) does not change by a run.
	SameTraits Rule = "same traits"
)

// TestAgent runs the suite. Each agent that newAgent makes must succeed when it
// is asked "Hello", end by itself, and say something. The rules that an agent
// means to break are named in except.
func TestAgent(t *testing.T, newAgent func(t *testing.T) agent.Agent, except ...Rule) {
	tests := []struct {
		rule Rule
		run  func(*suite)
	}{
		{Names, (*suite).names},
		{Lazy, (*suite).lazy},
		{Stamped, (*suite).stamped},
		{RangeAgain, (*suite).rangeAgain},
		{Stops, (*suite).stops},
		{PanicsPass, (*suite).panicsPass},
		{CanceledBefore, (*suite).canceledBefore},
		{Canceled, (*suite).canceled},
		{Independent, (*suite).independent},
		{SameTraits, (*suite).sameTraits},
	}
	for _, tt := range tests {
		if slices.Contains(except, tt.rule) {
			continue
		}
		t.Run(string(tt.rule), func(t *testing.T) {
			s := &suite{T: t, agent: newAgent(t)}
			running := goleak.IgnoreCurrent()
			tt.run(s)
			if err := goleak.Find(running); err != nil {
				t.Errorf("when a run is over, so is every goroutine that it started: %v", err)
			}
		})
	}
}

// suite is one subtest with its agent.
type suite struct {
	*testing.T
	agent agent.Agent
}
