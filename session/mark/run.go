// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"time"
)

// RunStatus says how a run stands.
type RunStatus string

// The states of a run. A run that is running by its log, and that nobody holds the
// lease of, was interrupted: it can be resumed as one that is paused can.
const (
	RunRunning   RunStatus = "running"
	RunIsPaused  RunStatus = "paused"
	RunWaiting   RunStatus = "waiting" // for a person
	RunCompleted RunStatus = "completed"
	RunFailed    RunStatus = "failed"
	RunCanceled  RunStatus = "canceled"
)

// Over reports whether nothing of the run is still to come, unless somebody
// continues it.
func (s RunStatus) Over() bool { return s == RunCompleted || s == RunFailed || s == RunCanceled }

// Run is what a session says of its last run: [KeyRun].
type Run struct {
	// ID is the invocation's, Name that of the definition or the root agent.
	ID     string    `json:"id"`
	Name   string    `json:"name,omitempty"`
	Status RunStatus `json:"status"`
	// Started is when the run began.
	Started time.Time `json:"started"`
	// Stop is why its loop stopped: a loop.StopReason. Empty as long as it has not.
	Stop string `json:"stop,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
	// Deadline is when somebody has to go on with a run that waits, answer or
	// not; zero if there is no such time.
	Deadline time.Time `json:"deadline,omitzero"`
	// Parent is the run that this one was forked from.
	Parent *RunParent `json:"parent,omitempty"`
}

// RunParent says where a run was forked off.
type RunParent struct {
	SessionID string `json:"session_id"`
	// Seq is the last event that both have.
	Seq int64 `json:"seq"`
}

// RunStarted is the data of [KindRunStarted].
type RunStarted struct {
	// Name is that of the definition or the root agent.
	Name string `json:"name,omitempty"`
	// Program is what whoever started the run needs to build its agents again. A
	// run keeps what it was started with.
	Program json.RawMessage `json:"program,omitempty"`
	// By says who started it, such as a process on a machine.
	By string `json:"by,omitempty"`
	// Session is the ID of the session in which the run began. What the run does to
	// the outside is named by it, also where the log was copied into another
	// session. Empty in logs of older versions.
	Session string `json:"session,omitempty"`
	// Sealed says that every end of the run has a Seal: one that has none was changed.
	// False in logs of older versions.
	Sealed bool `json:"sealed,omitempty"`
}

// RunTaken is the data of [KindRunTaken].
type RunTaken struct {
	// By says who has taken the run up.
	By string `json:"by,omitempty"`
	// Program takes the place of [RunStarted.Program]; empty leaves it.
	Program json.RawMessage `json:"program,omitempty"`
}

// RunPaused is the data of [KindRunPaused].
type RunPaused struct {
	// By says who asked for it, Reason why, if anybody said so.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Waits are the IDs of questions that have no answer yet.
	Waits []string `json:"waits,omitempty"`
	// Session is set where a fork begins, and is its session's ID: what it does to
	// the outside from here on is named by that. See [RunStarted].
	Session string `json:"session,omitempty"`
}

// RunEnded is the data of [KindRunEnded].
type RunEnded struct {
	Status RunStatus `json:"status"`
	// Error is why it failed, or was canceled.
	Error string `json:"error,omitempty"`
	By    string `json:"by,omitempty"`
	// Events is how many events Seal is over, from the run's first one on, the end itself
	// aside, and Last is the Seq of the last of them. 0 in logs of older versions.
	Events int64 `json:"events,omitempty"`
	Last   int64 `json:"last,omitempty"`
	// Seal is a hash over the whole run: see [RunSeal]. Empty in logs of older versions.
	Seal string `json:"seal,omitempty"`
}
