// SPDX-License-Identifier: Apache-2.0

// Package wire reads requests and writes answers over HTTP, for all protocols of the server.
//
//	var req struct{ Text string }
//	if err := x.Read(w, r, &req); err != nil {
//		return err
//	}
//	return x.Send(w, http.StatusOK, map[string]any{"text": req.Text})
package wire

import (
	"log/slog"
	"net/http"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/session"
)

// Exchange reads requests and answers them.
type Exchange struct {
	// Log is told of internal errors, and MaxBody is the largest body of a request in bytes.
	Log     *slog.Logger
	MaxBody int64
	// Refusals counts the requests that were refused, and Replies has the answers to those with a key.
	Refusals *Refusals
	Replies  *Replies
}

// Route is one operation of an API.
type Route struct {
	Method, Path string
	// Role is the least role of a person who may do it; with access.None the server answers everybody.
	Role access.Role
	Do   func(http.ResponseWriter, *http.Request) error
	// Reads says that the operation changes nothing and needs no definitions, so that a server which only shows runs
	// offers it.
	Reads bool
}

// At returns the operation of a method and a path, for people with a role. It reads if the method is GET.
func At(method, path string, role access.Role, do func(http.ResponseWriter, *http.Request) error) Route {
	return Route{method, path, role, do, method == http.MethodGet}
}

// Reading returns the operation as one that reads.
func (r Route) Reading() Route {
	r.Reads = true
	return r
}

// Event returns an event as clients get it.
func Event(ev *session.Event) ([]byte, error) {
	text, err := progress.MarshalJSON(ev)
	if err != nil {
		return nil, err
	}
	return []byte(credential.Masked(string(text))), nil
}

// Write sends something at once. A client that does not take it in time is dropped.
func Write(w http.ResponseWriter, parts ...[]byte) error {
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return http.NewResponseController(w).Flush()
}
