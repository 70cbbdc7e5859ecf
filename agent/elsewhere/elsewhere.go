// SPDX-License-Identifier: Apache-2.0

// Package elsewhere has attempts of steps done on other machines: a command, a request, a call of a
// model, a call of a remote agent. The step stays where the run is driven, with its placeholders,
// callbacks, retries and record; only what it does travels, as data, and what came of it comes back.
//
// Agents ask a [Queue]. Behind it is a [Dispatcher], such as that of package temporal, and at its
// other end somebody who does tasks, such as a stephost.Host:
//
//	var ended processEnd
//	err := cfg.Elsewhere.Do(ctx, elsewhere.Call{Kind: "command", Spec: order}, &ended)
//
// A task has an ID that is the same when the run is resumed by another process: that one gets the
// result of the task that the first one has begun.
package elsewhere

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// Task is what one attempt of a step does, as data.
type Task struct {
	// ID names the task: run, address, call ID and try. Two tasks with one ID are the same task.
	ID string `json:"id"`
	// Queue is what the workers listen to that may do the task.
	Queue string `json:"queue"`
	// Kind says who understands Spec.
	Kind string          `json:"kind"`
	Spec json.RawMessage `json:"spec"`
	// CallID is [drive.Place.CallID], the same in each attempt. Address is the step's.
	CallID  string          `json:"call_id"`
	Address session.Address `json:"address"`
	// Effect says whether the task may be begun again if its worker has died: not with
	// [agent.AtMostOnce].
	Effect agent.Effect `json:"effect,omitempty"`
}

// Dispatcher has tasks done. It must be safe for concurrent use.
type Dispatcher interface {
	// Do has a worker do a task and returns its result. If a task of that ID was begun before, by
	// whomever, Do waits for that one. When ctx ends, Do returns its cause; it leaves the task if
	// [Leaves] reports true, and else has it canceled. Errors to expect are a [*LostError], a
	// [*SizeError] and what says that the task cannot be done. A failure that the step is to have is
	// part of the result.
	Do(ctx context.Context, t *Task) (json.RawMessage, error)
	// Known reports whether a task was begun, and Do would return its result.
	Known(ctx context.Context, t *Task) (bool, error)
}

// Doer does tasks where it is.
type Doer interface {
	// Do does a task and returns its result. The error says that it cannot do tasks of that kind.
	Do(ctx context.Context, t *Task) (json.RawMessage, error)
}

// Leaves reports whether a step that ends by this cause leaves its task: the run goes on later, and
// takes the result. A task of any other step that is cut off is to be canceled.
func Leaves(cause error) bool {
	_, waits := errors.AsType[*agent.WaitingError](cause)
	_, log := errors.AsType[*agent.LogError](cause)
	return waits || log || errors.Is(cause, agent.ErrPaused) || errors.Is(cause, lease.ErrLost)
}

// LostError says that a task was begun and has no result: its worker died, or somebody ended it.
// It may have been done, wholly or in part.
type LostError struct {
	// Task is the ID of the task.
	Task string
	// Reason says why there is no result.
	Reason string
}

func (e *LostError) Error() string {
	return fmt.Sprintf("task %s has no result, and may have been done: %s", e.Task, e.Reason)
}

// SizeError says that a task, or its result, is too large to be sent.
type SizeError struct {
	// What is too large: "task" or "result".
	What string
	// Size and Limit are in bytes.
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("the %s of the step is too large for its task queue: %d bytes, and the limit is %d; write what "+
		"is large into a file or a store that both machines reach", e.What, e.Size, e.Limit)
}

// Permanent reports true: a retry is as large.
func (e *SizeError) Permanent() bool { return true }

// ErrNoDispatcher says that a step has a task queue, and its driver nobody who sends tasks there.
var ErrNoDispatcher = errors.New("the step has a task queue, and this driver has no workers to send it to")

// Queue is where a step is done. The zero value is here.
type Queue struct {
	// Name is the task queue; empty means here.
	Name string
	// Dispatcher has tasks done there. Without one the step fails with [ErrNoDispatcher].
	Dispatcher Dispatcher
}

// Call is what a step wants done.
type Call struct {
	// Kind and Effect are those of the [Task]; Spec becomes its JSON.
	Kind   string
	Effect agent.Effect
	Spec   any
	// Part tells several calls of one attempt apart, such as the second turn of a conversation. It has
	// to be the same when the run is resumed.
	Part string
}

// Do has a call of the step done, and decodes the result.
func (q Queue) Do(ctx agent.InvocationContext, c Call, result any) error {
	if q.Dispatcher == nil {
		return ErrNoDispatcher
	}
	t, err := q.task(ctx, &c)
	if err != nil {
		return err
	}
	data, err := q.Dispatcher.Do(ctx, t)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("task queue %q: %w", q.Name, err)
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("task queue %q: read the result: %w", q.Name, err)
	}
	return nil
}

// Known reports whether the call was begun, and Do would return its result.
func (q Queue) Known(ctx agent.InvocationContext, c Call) (bool, error) {
	if q.Dispatcher == nil {
		return false, ErrNoDispatcher
	}
	c.Spec = nil
	t, err := q.task(ctx, &c)
	if err != nil {
		return false, err
	}
	return q.Dispatcher.Known(ctx, t)
}

// longest is how many bytes of an address are in the ID of a task.
const longest = 300

func (q Queue) task(ctx agent.InvocationContext, c *Call) (*Task, error) {
	at := drive.At(ctx)
	spec, err := json.Marshal(c.Spec)
	if err != nil {
		return nil, fmt.Errorf("task queue %q: write the task: %w", q.Name, err)
	}
	where := brief.EndBytes(string(at.CallAddress()), longest)
	id := ctx.Session().ID() + "/" + where + "/" + at.CallID() + "/" + at.AttemptPath()
	if c.Part != "" {
		id += "/" + c.Part
	}
	return &Task{ID: id, Queue: q.Name, Kind: c.Kind, Spec: spec, CallID: at.CallID(), Address: at.Address(),
		Effect: c.Effect}, nil
}
