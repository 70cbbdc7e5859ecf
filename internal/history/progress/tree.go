// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"iter"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Status is the status of a step or of an iteration.
type Status string

// The states of a step and of an iteration.
const (
	StatusPending   Status = "pending"   // its turn has not come yet
	StatusRunning   Status = "running"   // it is under way
	StatusCompleted Status = "completed" // it came to its end
	StatusFailed    Status = "failed"    // it ended with an error, or was cut short by one
	StatusRejected  Status = "rejected"  // an iteration that was not accepted
	StatusCanceled  Status = "canceled"  // it was cut off from outside
	StatusPaused    Status = "paused"    // it was cut off by a pause, and goes on when the run does
	StatusWaiting   Status = "waiting"   // the same, and somebody is asked in it
	StatusSkipped   Status = "skipped"   // its turn never came
)

// Tree is a run at one moment, step by step. Times are on the run's own clock, which stands still
// while the run is paused, waits for a person, or no process drives it.
type Tree struct {
	// Root is the root agent's step; nil before it begins.
	Root *Step `json:"root,omitempty"`
	// Now is the time of the last event on the run's clock, in nanoseconds; At is its date and
	// time.
	Now time.Duration `json:"now_ns"`
	At  time.Time     `json:"at,omitzero"`
	// Forked is the time on the run's clock at which the run was forked from another; 0 if it was not.
	Forked time.Duration `json:"forked_ns,omitempty"`
	// Paused says that no step runs until the run is resumed.
	Paused bool `json:"paused,omitempty"`
	// Tasks says how far the run is with the tasks of its plan; nil without a plan.
	Tasks *Tasks `json:"tasks,omitempty"`
}

// Step is one agent's turn.
type Step struct {
	// Name is the agent's name; a second run of it under the same parent is "critic#2".
	Name string `json:"name"`
	// Address is empty as long as the step is pending.
	Address session.Address `json:"address,omitempty"`
	// Attempt counts the attempts, from 1. An attempt that a pause kept from beginning does not count.
	Attempt int    `json:"attempt,omitempty"`
	Status  Status `json:"status"`
	// Began and Ended are on the run's clock, in nanoseconds. While the step is running, Ended is
	// the time of its last event.
	Began time.Duration `json:"began_ns,omitempty"`
	Ended time.Duration `json:"ended_ns,omitempty"`
	// Text is the text of the step, one paragraph for each message, at most 32 KiB. It grows while a model's answer
	// is streamed.
	Text string `json:"text,omitempty"`
	Activity
	// Error is why the step, or its last attempt, failed. It is empty if a step below has the same error.
	Error string `json:"error,omitempty"`
	// Again says that the last attempt failed and another one follows.
	Again bool `json:"again,omitempty"`
	// Cached says that the step did not run, because an earlier result was used.
	Cached bool `json:"cached,omitempty"`
	// Exit is the step's request to leave a loop.
	Exit *session.Exit `json:"exit,omitempty"`
	// CanExit says that the step may end its loop, if not all steps may; Finalizer that it writes the loop's result.
	CanExit   bool `json:"can_exit,omitempty"`
	Finalizer bool `json:"finalizer,omitempty"`
	// Steps are the steps of an agent that is not a loop; Loop is set for a loop.
	Steps []*Step `json:"steps,omitempty"`
	Loop  *Loop   `json:"loop,omitempty"`
	// Race says which of the loops in Steps has won, if they race; nil before that is known.
	Race *mark.RaceDecided `json:"race,omitempty"`

	// Most steps of a long run have none of these, and the tree of such a run has many steps.
	used   stepUsage
	output string
	open   *[]mark.Question // that it has asked, and that have no answer
}

// Activity is what a running step does or waits for at the moment. It is zero for a step that does not run.
type Activity struct {
	// Doing is the tool for which the step waits.
	Doing string `json:"doing,omitempty"`
	// Line is the current work of a coding agent, as it reports it: "runs go test ./...".
	Line string `json:"line,omitempty"`
	// Limited is the time until which the step waits for its provider to accept requests; zero if it does not wait.
	Limited time.Time `json:"limited,omitzero"`
	// Asks is the question that the step asks a person.
	Asks string `json:"asks,omitempty"`
}

// stepUsage is what the model calls of a step used, without those of the steps below it. A nil part used nothing.
type stepUsage struct {
	ended   *Usage // of attempts that have ended
	current *Usage // of model calls since
}

// addUsage adds v to a usage that may be nil.
func addUsage(u **Usage, v Usage) {
	if v == (Usage{}) {
		return
	}
	if *u == nil {
		*u = new(Usage)
	}
	(*u).Add(v)
}

// value returns the usage; a nil one is zero.
func (u *Usage) value() Usage {
	if u == nil {
		return Usage{}
	}
	return *u
}

// questions returns the open questions of the step.
func (s *Step) questions() []mark.Question {
	if s.open == nil {
		return nil
	}
	return *s.open
}

// Loop is the part of a [Step] that only a loop agent has.
type Loop struct {
	Plan       *loop.Plan   `json:"plan"`
	Iterations []*Iteration `json:"iterations,omitempty"`
	// Finalizer is the step that writes the result; nil if there is none.
	Finalizer *Step `json:"finalizer,omitempty"`
	// Stop is why the loop stopped; nil if it is running or paused.
	Stop *loop.StopRecord `json:"stop,omitempty"`

	cut      *loop.StopRecord // what was said of its stop when it was paused
	account  *account         // nil: no mark has said what the loop is
	state    int              // the iteration after which the state is as it is now
	omission omission
}

// Iteration is one pass of a loop.
type Iteration struct {
	Number int    `json:"number"`
	Status Status `json:"status"`
	// Record is the iteration's record; nil before its end.
	Record *loop.IterationRecord `json:"record,omitempty"`
	// Provisional is the score so far. It may change until the iteration ends.
	Provisional *float64 `json:"provisional,omitempty"`
	// From is the iteration from whose version this one was written; 0 is the state at the loop's start. It is the
	// previous iteration, unless that was undone.
	From int `json:"from"`
	// RolledBack says that the iteration's changes to the state were undone, BackTo the iteration whose version was
	// restored; 0 is the state at the loop's start.
	RolledBack bool `json:"rolled_back,omitempty"`
	BackTo     int  `json:"back_to,omitempty"`
	// Hints are what people have told the run for the iteration.
	Hints []mark.Hint `json:"hints,omitempty"`
	// Task is the task of a plan on which the iteration works; nil without a plan.
	Task *Task `json:"task,omitempty"`
	// Began and Ended are as in a [Step].
	Began time.Duration `json:"began_ns"`
	Ended time.Duration `json:"ended_ns"`
	Steps []*Step       `json:"steps"`

	before     any              // the value of the loop's score expression when it began
	dimensions []loop.Dimension // of the provisional score
}

// Active returns the time in which the run was active. For a fork it does not include the time of the original run.
func (t *Tree) Active() time.Duration { return t.Now - t.Forked }

// Took returns how long the step has been running at a time of the run's clock.
func (s *Step) Took(now time.Duration) time.Duration {
	return took(s.Status, s.Began, s.Ended, now)
}

// Took returns how long the iteration has been running at a time of the run's clock.
func (it *Iteration) Took(now time.Duration) time.Duration {
	return took(it.Status, it.Began, it.Ended, now)
}

func took(s Status, began, ended, now time.Duration) time.Duration {
	switch s {
	case StatusPending, StatusSkipped:
		return 0
	case StatusRunning:
		return max(0, max(now, ended)-began)
	}
	return max(0, ended-began)
}

// Children yields the steps directly below; those of a loop in the order of the iterations, with
// the finalizer last.
func (s *Step) Children() iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		if l := s.Loop; l != nil {
			for _, it := range l.Iterations {
				for _, c := range it.Steps {
					if !yield(c) {
						return
					}
				}
			}
			if l.Finalizer != nil && !yield(l.Finalizer) {
				return
			}
		}
		for _, c := range s.Steps {
			if !yield(c) {
				return
			}
		}
	}
}

// Usage returns what the model calls of the step and of those below it used.
func (s *Step) Usage() Usage {
	u := s.used.ended.value()
	if s.Status != StatusRunning {
		if u.Unknown && u.Cost == 0 { // its mark has no part of the cost, but those below may
			u.Cost += s.below().Cost
		}
		return u
	}
	u.Add(s.used.current.value())
	u.Add(s.below())
	return u
}

// below returns what the steps below used.
func (s *Step) below() (u Usage) {
	if s.Loop != nil {
		u = s.Loop.omission.usage
	}
	for c := range s.Children() {
		u.Add(c.Usage())
	}
	return u
}

// Usage returns what the model calls of the iteration used.
func (it *Iteration) Usage() Usage {
	var u Usage
	for _, s := range it.Steps {
		u.Add(s.Usage())
	}
	return u
}

// Failed reports whether anything in the iteration has failed.
func (it *Iteration) Failed() bool {
	return it.Status == StatusFailed || slices.ContainsFunc(it.Steps, (*Step).Failed)
}

// Failed reports whether the step, or anything below it, has failed.
func (s *Step) Failed() bool {
	if s.Status == StatusFailed || s.Error != "" || s.Loop != nil && s.Loop.omission.failed {
		return true
	}
	for c := range s.Children() {
		if c.Failed() {
			return true
		}
	}
	return false
}

// Find returns the step at an address; nil if there is none.
func (t *Tree) Find(at session.Address) *Step {
	s := t.Root
	for s != nil && s.Address != at {
		var next *Step
		for c := range s.Children() {
			if c.Address != "" && at.Under(c.Address) {
				next = c
			}
		}
		s = next
	}
	return s
}

// Main returns the step of the loop to show first: the first outermost loop that is running, or
// else the last one; nil if there is none. Of loops that have raced it is the winner.
func (t *Tree) Main() *Step {
	var found *Step
	var visit func(*Step)
	visit = func(s *Step) {
		if s == nil || found != nil && found.Status == StatusRunning {
			return
		}
		if s.Loop != nil {
			found = s
			return
		}
		for c := range s.Children() {
			if s.Race == nil || c.Name == s.Race.Winner {
				visit(c)
			}
		}
	}
	visit(t.Root)
	return found
}

// Loops yields the steps of the loops, outer ones before those in them.
func (t *Tree) Loops() iter.Seq[*Step] {
	if t.Root == nil {
		return func(func(*Step) bool) {}
	}
	return t.Root.Loops()
}

// Loops yields the loops among the step and the steps below it, outer ones before those in them.
func (s *Step) Loops() iter.Seq[*Step] {
	return func(yield func(*Step) bool) { s.visit(yield) }
}

func (s *Step) visit(yield func(*Step) bool) bool {
	if s.Loop != nil && !yield(s) {
		return false
	}
	for c := range s.Children() {
		if !c.visit(yield) {
			return false
		}
	}
	return true
}

// Current returns the running iteration, or else the last one; nil before the first.
func (l *Loop) Current() *Iteration {
	if len(l.Iterations) == 0 {
		return nil
	}
	return l.Iterations[len(l.Iterations)-1]
}

// Best returns the iteration with the best score so far; nil if none has a score.
func (l *Loop) Best() *Iteration {
	for _, it := range slices.Backward(l.Iterations) {
		if it.Record != nil && it.Record.Best {
			return it
		}
	}
	return nil
}

// Usage is what model calls used.
type Usage struct {
	Calls        int64 `json:"calls,omitempty"`
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	// CachedTokens of the input came from the provider's cache; CacheWriteTokens were written into it for
	// five minutes, CacheWrite1hTokens for an hour.
	CachedTokens       int64 `json:"cached_tokens,omitempty"`
	CacheWriteTokens   int64 `json:"cache_write_tokens,omitempty"`
	CacheWrite1hTokens int64 `json:"cache_write_1h_tokens,omitempty"`
	// CacheSaved is how much less the input has cost than without a cache, as far as prices are known.
	CacheSaved float64 `json:"cache_saved,omitempty"`
	// Cost is the known cost; Unknown says that a part of the cost is unknown.
	Cost    float64 `json:"cost,omitempty"`
	Unknown bool    `json:"unknown,omitempty"`
	// Estimated says that a provider did not report its usage.
	Estimated bool `json:"estimated,omitempty"`
}

// Tokens returns the sum of input and output tokens.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Add adds v to u.
func (u *Usage) Add(v Usage) {
	u.Calls += v.Calls
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.CachedTokens += v.CachedTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.CacheWrite1hTokens += v.CacheWrite1hTokens
	u.CacheSaved += v.CacheSaved
	u.Cost += v.Cost
	u.Unknown = u.Unknown || v.Unknown
	u.Estimated = u.Estimated || v.Estimated
}
