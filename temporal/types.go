// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Names in a Temporal cluster. They are part of the history of runs and never change.
const (
	// Workflow is the type of a run's workflow. Its ID is the run's.
	Workflow = "refrain.Run"
	// Query answers with the [Status] that the workflow knows. This is the status when the run
	// last waited, was paused, or got a request. For a run that a worker drives, the heartbeat of
	// the activity has the progress.
	Query = "refrain.standing"
	// Update sends a request. Its argument is a [Request], and its result a [Status].
	Update = "refrain.ask"
	// Look is a signal without a value. It reports that something was written into the log of
	// the run.
	Look = "refrain.look"

	activityDrive = "refrain.Drive"
	activityAsk   = "refrain.Ask"
	activityStep  = "refrain.Step"
	workflowStep  = "refrain.StepAlone"
)

// Search attributes of a run's workflow, all of the type Keyword. They are set if
// [Config.SearchAttributes] says so.
const (
	AttributeDefinition = "RefrainDefinition"
	AttributeStatus     = "RefrainStatus"
	AttributeStop       = "RefrainStop"
)

// Driver returns the name that supervisors use for the workers of a task queue; see
// supervisor.Config.Driver.
func Driver(taskQueue string) string { return "temporal:" + taskQueue }

// The values of [Request].Do.
const (
	// Pause pauses the run at its next step boundary, PauseNow cuts off the steps that are running.
	Pause    = "pause"
	PauseNow = "pause_now"
	// Cancel ends the run.
	Cancel = "cancel"
	// Answer answers the question Request.Answer.ID.
	Answer = "answer"
	// Resume continues a run that is paused, waits or was canceled. With Program and Continue it also
	// continues a run that a limit has stopped or that has failed.
	Resume = "resume"
	// Raise continues a run that is paused, or that a limit has stopped, with the limits in
	// Request.Limits.
	Raise = "raise"
	// look only looks how the run stands.
	look = "look"
)

// Types of application errors. Another type with which an update fails is the Name of a supervisor.Kind.
const (
	KindRequest = "request" // of an update: the request is not valid
	KindFailed  = "failed"  // of the workflow: the run has failed
)

// Kinds of the application errors of steps.
const (
	kindUnable = "unable"  // the worker cannot do such steps
	kindCutOff = "cut_off" // the worker has stopped in the middle of it
)

// Request asks a worker to do something to a run.
type Request struct {
	// Do is the action: [Pause], [PauseNow], [Cancel], [Answer], [Resume] or [Raise].
	Do string `json:"do"`
	// By names who asks, for the log; "" means the worker that carries out the request.
	By string `json:"by,omitempty"`
	// Reason is the reason for the request, for the log. Optional.
	Reason string `json:"reason,omitempty"`
	// Answer is the answer to a question.
	Answer *mark.Answer `json:"answer,omitempty"`
	// Program and Continue are those of supervisor.ResumeOptions.
	Program  json.RawMessage `json:"program,omitempty"`
	Continue bool            `json:"continue,omitempty"`
	// Limits are fields that replace those of the run's program, which must be a JSON object. For a
	// program.Program they are fields such as {"max_iterations": 9} or, in nanoseconds, {"timeout":
	// 3600000000000}.
	Limits json.RawMessage `json:"limits,omitempty"`
}

func (r *Request) resumes() bool { return r.Do == Resume || r.Do == Raise }

// Status is the present status of a run.
type Status struct {
	RunID string `json:"run_id"`
	// Name is the name of the definition.
	Name     string         `json:"name,omitempty"`
	Status   mark.RunStatus `json:"status"`
	HandOver bool           `json:"hand_over,omitempty"` // see mark.Run
	Stop     string         `json:"stop,omitempty"`
	// Error is why the run has failed, or why it is paused if nobody asked for the pause.
	Error    string    `json:"error,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Seq is the sequence number of the last event of the log.
	Seq int64 `json:"seq"`
	// Open are the IDs of the questions for which the run waits.
	Open []string `json:"open,omitempty"`
	// Worker names the worker that reported this status. Iteration and Score are those that the
	// run has reached on this worker.
	Worker    string   `json:"worker,omitempty"`
	Iteration int      `json:"iteration,omitempty"`
	Score     *float64 `json:"score,omitempty"`
}

// Progress is the data in the heartbeats of a run that a worker drives.
type Progress struct {
	Worker string `json:"worker"`
	// Step is the address of the last step that has begun or ended. Iteration and Score are those of
	// its loop.
	Step      string   `json:"step,omitempty"`
	Iteration int      `json:"iteration,omitempty"`
	Score     *float64 `json:"score,omitempty"`
}

// Input is the input of the workflow. [Start] makes it.
type Input struct {
	RunID string `json:"run_id"`
	// Heartbeat is how long a worker may send no heartbeat before another worker gets the run;
	// 0 means 10 s.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	// Attributes says that the namespace has the search attributes.
	Attributes bool `json:"attributes,omitempty"`
	// Now is the status of the run when the previous workflow continued as this one.
	Now *Status `json:"now,omitempty"`
}

// leg is the input of Drive: the run up to its end, its next pause or its next question.
type leg struct {
	RunID string `json:"run_id"`
	// After is the last event that the workflow knows of: what somebody wanted since stands.
	After    int64           `json:"after"`
	Program  json.RawMessage `json:"program,omitempty"`
	Limits   json.RawMessage `json:"limits,omitempty"`
	Continue bool            `json:"continue,omitempty"`
}

// asking is the input of Ask.
type asking struct {
	RunID string `json:"run_id"`
	Request
}

func standingOf(id, worker string, st supervisor.Status) Status {
	r := st.Run
	return Status{
		RunID: id, Name: r.Name, Status: r.Status, HandOver: r.HandOver, Stop: r.Stop, Error: r.Error,
		Deadline: r.Deadline, Seq: st.Seq, Open: st.Open, Worker: worker,
	}
}

// attributes are the search attributes of a run that stands so.
func (s *Status) attributes() []temporal.SearchAttributeUpdate {
	return []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(AttributeDefinition).ValueSet(s.Name),
		temporal.NewSearchAttributeKeyKeyword(AttributeStatus).ValueSet(string(s.Status)),
		temporal.NewSearchAttributeKeyKeyword(AttributeStop).ValueSet(s.Stop),
	}
}

// goesOn reports whether a worker is to drive the run.
func (s *Status) goesOn() bool { return s.Status == mark.RunRunning || s.HandOver }
