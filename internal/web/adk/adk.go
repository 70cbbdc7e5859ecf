// SPDX-License-Identifier: Apache-2.0

// Package adk serves the REST API of Google's ADK: its clients find each definition as an application.
//
//	api := &adk.API{Exchange: x, Runs: runs, Place: place, Closing: closing}
//	for _, r := range api.Routes() {
//		mux.Handle(r.Method+" /api"+r.Path, x.Answering(r.Do))
//	}
package adk

import (
	"context"
	"net/http"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
)

// API answers the clients of ADK.
type API struct {
	*wire.Exchange
	Runs *operations.Runs
	// Place takes a place among the streams of the server, and Closing is closed when they have to end.
	Place   func(context.Context) (leave func(), err error)
	Closing <-chan struct{}
	// Pieces has those of streamed answers. Required.
	Pieces *Pieces
}

// Routes are the operations of the API.
func (a *API) Routes() []wire.Route {
	all := []wire.Route{
		wire.At("GET", "/list-apps", access.Reader, a.apps),
		wire.At("GET", "/health", access.Reader, a.health),
		wire.At("GET", "/apps/{app}/app-info", access.Reader, a.appInfo),
		wire.At("POST", "/run", access.Operator, a.run),
		wire.At("POST", "/run_sse", access.Operator, a.runSSE),
		wire.At("GET", "/run_live", access.Reader, a.notHere),
		wire.At("GET", "/apps/{app}/users/{user}/sessions", access.Reader, a.sessions),
		wire.At("POST", "/apps/{app}/users/{user}/sessions", access.Operator, a.create),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}", access.Reader, withKey(a.session)),
		wire.At("POST", "/apps/{app}/users/{user}/sessions/{session}", access.Operator, a.create),
		wire.At("PATCH", "/apps/{app}/users/{user}/sessions/{session}", access.Operator, withKey(a.patch)),
		wire.At("DELETE", "/apps/{app}/users/{user}/sessions/{session}", access.Author, withKey(a.delete)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/artifacts", access.Reader, withKey(a.artifacts)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/artifacts/{artifact}", access.Reader, withKey(a.artifact)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/artifacts/{artifact}/versions/{version}", access.Reader, withKey(a.artifact)),
		wire.At("DELETE", "/apps/{app}/users/{user}/sessions/{session}/artifacts/{artifact}", access.Operator, withKey(a.deleteArtifact)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/events/{event}/graph", access.Reader, a.notHere),
		wire.At("GET", "/debug/trace/{event}", access.Reader, a.notHere),
		wire.At("GET", "/debug/trace/session/{session}", access.Reader, a.sessionTrace),
	}
	all = append(append(all, a.evalRoutes("")...), a.evalRoutes("/dev")...)
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} { // the tools of ADK's page for developers
		all = append(all, wire.At(method, "/dev/apps/{app}/{rest...}", access.Reader, a.notHere))
	}
	return all
}

// health answers whoever asks whether the API is up.
func (a *API) health(w http.ResponseWriter, _ *http.Request) error {
	return a.Send(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (a *API) notHere(http.ResponseWriter, *http.Request) error {
	return problem.New(http.StatusNotImplemented, "not_here", "This server has no such thing", "")
}

// sessionTrace has no spans: the events tell all there is.
func (a *API) sessionTrace(w http.ResponseWriter, _ *http.Request) error {
	return a.Send(w, http.StatusOK, []any{})
}
