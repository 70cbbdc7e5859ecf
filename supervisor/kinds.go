// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"net/http"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/session"
)

// Kind is a kind of error of an operation on runs, with the forms in which clients, scripts and clusters see
// it.
type Kind struct {
	// Err is the error that errors.Is finds in an error of this kind.
	Err error
	// Name is the type of the failure in Temporal; "" for a kind that no request to a cluster returns.
	Name string
	// Problem is the type of the problem that the HTTP API, MCP and A2A answer with, and Title its text for
	// people. Status is the HTTP status of that problem. The error codes of MCP and A2A follow from it.
	Problem, Title string
	Status         int
	// Exit is the exit code of the command.
	Exit int
}

// kinds lists the kinds. The first one whose Err is in an error is the kind of that error.
var kinds = []Kind{
	{ErrNotFound, "not_found", "run_not_found", "There is no such run", http.StatusNotFound, 1},
	{session.ErrNotFound, "", "run_not_found", "There is no such run", http.StatusNotFound, 1},
	{artifact.ErrNotFound, "", "artifact_not_found", "There is no such artifact", http.StatusNotFound, 1},
	{artifact.ErrInvalid, "", "bad_request", "The request is not valid", http.StatusBadRequest, 1},
	{session.ErrExists, "", "run_exists", "There is such a run already", http.StatusConflict, 1},
	{ErrOver, "over", "run_over", "The run has ended", http.StatusConflict, 1},
	{ErrPaused, "paused", "run_paused", "The run is paused already", http.StatusConflict, 1},
	{ErrUnderWay, "running", "run_under_way", "The run is running", http.StatusConflict, 1},
	{ErrDriver, "driver", "other_driver", "The run is not driven here", http.StatusConflict, 1},
	{ErrNoQuestion, "no_question", "no_question", "The run asks no such question", http.StatusConflict, 1},
	{ErrNoHint, "", "bad_request", "The request is not valid", http.StatusBadRequest, 2},
	{ErrNoCheckpoint, "", "no_checkpoint", "There is no such checkpoint", http.StatusUnprocessableEntity, 2},
	{ErrQueueFull, "", "queue_full", "Too many runs wait for their turn", http.StatusTooManyRequests, 1},
	{ErrClosed, "", "closing", "The server is stopping", http.StatusServiceUnavailable, 1},
	{agent.ErrDiverged, "", "diverged", "The definition does not fit the run", http.StatusConflict, 1},
	{session.ErrInvalid, "", "bad_value", "A value cannot be stored", http.StatusUnprocessableEntity, 1},
}

// KindOf returns the kind of an error; ok is false if the error has none, such as a failure of the store.
func KindOf(err error) (k Kind, ok bool) {
	return find(func(k *Kind) bool { return errors.Is(err, k.Err) })
}

// KindNamed returns the kind with that [Kind.Name]; ok is false if there is none.
func KindNamed(name string) (k Kind, ok bool) {
	return find(func(k *Kind) bool { return name != "" && k.Name == name })
}

// find returns the first kind for which fits returns true; ok is false if there is none.
func find(fits func(*Kind) bool) (Kind, bool) {
	for i := range kinds {
		if fits(&kinds[i]) {
			return kinds[i], true
		}
	}
	return Kind{}, false
}
