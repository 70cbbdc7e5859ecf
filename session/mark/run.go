// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"encoding/json"
	"time"
)

// RunStatus is the status of a run.
type RunStatus string

// The statuses of a run. If the log says that a run is running, but no process holds its lease, the run was
// interrupted. It can be resumed like a paused run.
const (
	RunRunning   RunStatus = "running"
	RunIsPaused  RunStatus = "paused"
	RunWaiting   RunStatus = "waiting" // for a person
	RunCompleted RunStatus = "completed"
	RunFailed    RunStatus = "failed"
	RunCanceled  RunStatus = "canceled"
)

// IsFinal reports whether the run has completed, failed or was canceled.
func (s RunStatus) IsFinal() bool { return s == RunCompleted || s == RunFailed || s == RunCanceled }

// Run is a session's record of its last run, stored under [KeyRun].
type Run struct {
	// ID is the ID of the invocation, Name the name of the definition or the root agent.
	ID     string    `json:"id"`
	Name   string    `json:"name,omitempty"`
	Status RunStatus `json:"status"`
	// Input is the beginning of the request; empty in logs of older versions.
	Input string `json:"input,omitempty"`
	// Started is when the run began.
	Started time.Time `json:"started"`
	// Active is how long the run was active before this record, in nanoseconds. Since is when a process
	// resumed the running run; zero means Started. Logs of older versions have neither.
	Active time.Duration `json:"active_ns,omitempty"`
	Since  time.Time     `json:"since,omitzero"`
	// Stop is the loop.StopReason of its loop; empty until the loop stops.
	Stop string `json:"stop,omitempty"`
	// Error is the reason why the run failed; empty if it did not fail.
	Error string `json:"error,omitempty"`
	// Deadline is when a waiting run continues without an answer; zero if never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Parent is the run that this one was forked from.
	Parent *RunParent `json:"parent,omitempty"`
	// Driver names the system that decides where the run is driven, such as a cluster; empty if any process
	// may continue it. See supervisor.Config.Driver.
	Driver string `json:"driver,omitempty"`
	// HandOver says that a run is paused because its process ended or its questions are answered, and
	// not because somebody asked for it. A process that drives such runs may continue it. False in logs
	// of older versions.
	HandOver bool `json:"hand_over,omitempty"`
}

// RunIn returns the record of a session's last run in a state delta; nil if the delta has none.
func RunIn(delta map[string]any) *Run {
	text, _ := delta[KeyRun].(string)
	run := new(Run)
	if text == "" || json.Unmarshal([]byte(text), run) != nil {
		return nil
	}
	return run
}

// ActiveAt returns how long the run was active up to a time. A run is active only while it is running, not
// while it waits or no process drives it.
func (r *Run) ActiveAt(at time.Time) time.Duration {
	if r.Status != RunRunning {
		return r.Active
	}
	since := r.Since
	if since.IsZero() {
		since = r.Started
	}
	return r.Active + max(0, at.Sub(since))
}

// RunParent names the run and the event from which a run was forked.
type RunParent struct {
	SessionID string `json:"session_id"`
	// Seq is the number of the last event that both have.
	Seq int64 `json:"seq"`
}

// RunStarted is the data of [KindRunStarted].
type RunStarted struct {
	// Name is the name of the definition or the root agent.
	Name string `json:"name,omitempty"`
	// Program is what the starter of the run needs to build its agents again. A run
	// keeps the program that it was started with.
	Program json.RawMessage `json:"program,omitempty"`
	// By names who started the run: a person, a schedule, or a process on a machine.
	By string `json:"by,omitempty"`
	// Session is the ID of the session in which the run began. The IDs of the run's calls
	// contain it, also after the log was copied into another session. Empty in logs of
	// older versions.
	Session string `json:"session,omitempty"`
	// Sealed says that every end of the run has a Seal, so that an end without one was
	// changed. False in logs of older versions.
	Sealed bool `json:"sealed,omitempty"`
}

// RunTaken is the data of [KindRunTaken].
type RunTaken struct {
	// By names who continued the run: a person, or the process that drives it now.
	By string `json:"by,omitempty"`
	// Program replaces [RunStarted.Program]; empty keeps it.
	Program json.RawMessage `json:"program,omitempty"`
}

// RunPaused is the data of [KindRunPaused].
type RunPaused struct {
	// By names who asked for the pause, Reason says why; both may be empty.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Edit says that files of the run's workspace which change until it goes on are changed on purpose.
	Edit bool `json:"edit,omitempty"`
	// Waits are the IDs of the questions without an answer.
	Waits []string `json:"waits,omitempty"`
	// Session is set where a fork begins: the ID of the fork's session, which the IDs of
	// its calls contain from here on. See [RunStarted].
	Session string `json:"session,omitempty"`
}

// RunEnded is the data of [KindRunEnded].
type RunEnded struct {
	Status RunStatus `json:"status"`
	// Error is why the run failed or was canceled.
	Error string `json:"error,omitempty"`
	By    string `json:"by,omitempty"`
	// Events is the number of events that Seal covers, from the run's first one on, without the end itself.
	// Last is the Seq of the last of them. 0 in logs of older versions.
	Events int64 `json:"events,omitempty"`
	Last   int64 `json:"last,omitempty"`
	// Seal is a hash over the whole run; see package seal. Empty in logs of older
	// versions.
	Seal string `json:"seal,omitempty"`
}
