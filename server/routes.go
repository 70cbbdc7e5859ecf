// SPDX-License-Identifier: Apache-2.0

package server

import (
	_ "embed"
	"net/http"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/adk"
	"github.com/refrain-dev/refrain/internal/web/wire"
)

// v1 returns the routes of the API, which openapi.json describes, with the role that each needs. A path that ends in {id}:verb is an
// action on a run.
func (s *Server) v1() []wire.Route {
	return []wire.Route{
		wire.At("GET", "/definitions", access.Reader, s.listDefinitions),
		wire.At("GET", "/definitions/{name}", access.Reader, s.getDefinition),
		wire.At("PUT", "/definitions/{name}", access.Author, s.putDefinition),
		wire.At("DELETE", "/definitions/{name}", access.Author, s.deleteDefinition),
		wire.At("POST", "/definitions:validate", access.Author, s.validate),
		wire.At("POST", "/definitions:edit", access.Author, s.edit),
		wire.At("POST", "/definitions:outline", access.Reader, s.outline),
		wire.At("POST", "/definitions:complete", access.Author, s.complete),
		wire.At("POST", "/definitions:try", access.Author, s.try),
		wire.At("GET", "/schema/definition.json", access.Reader, s.schema),
		wire.At("GET", "/schema/fields.json", access.Reader, s.fields),

		wire.At("GET", "/runs", access.Reader, s.listRuns),
		wire.At("POST", "/runs", access.Operator, s.startRun),
		wire.At("GET", "/runs/{id}", access.Reader, s.getRun),
		wire.At("DELETE", "/runs/{id}", access.Author, s.deleteRun),
		wire.At("GET", "/runs/{id}/events", access.Reader, s.events),
		wire.At("GET", "/runs/{id}/iterations", access.Reader, s.iterations),
		wire.At("GET", "/runs/{id}/scores", access.Reader, s.scores),
		wire.At("GET", "/runs/{id}/view", access.Reader, s.view),
		wire.At("GET", "/runs/{id}/view/iterations", access.Reader, s.viewIterations),
		wire.At("GET", "/runs/{id}/view/step", access.Reader, s.viewStep),
		wire.At("GET", "/runs/{id}/prompt", access.Reader, s.prompt),
		wire.At("GET", "/runs/{id}/transcript", access.Reader, s.transcript),
		wire.At("GET", "/runs/{id}/state", access.Reader, s.state),
		wire.At("GET", "/runs/{id}/diff", access.Reader, s.diff),
		wire.At("GET", "/runs/{id}/files", access.Reader, s.files),
		wire.At("GET", "/runs/{id}/files/iterations", access.Reader, s.filesBy),
		wire.At("GET", "/runs/{id}/files/diff", access.Reader, s.fileDiff),
		wire.At("GET", "/runs/{id}/files/patch", access.Reader, s.patch),
		wire.At("GET", "/runs/{id}/export", access.Reader, s.export),
		wire.At("GET", "/runs/{id}/definition", access.Reader, s.runDefinition),
		wire.At("POST", "/runs/{id}:pause", access.Operator, s.pause),
		wire.At("POST", "/runs/{id}:tell", access.Operator, s.hint),
		wire.At("POST", "/runs/{id}:resume", access.Operator, s.resume),
		wire.At("POST", "/runs/{id}:cancel", access.Operator, s.cancel),
		wire.At("POST", "/runs/{id}:fork", access.Operator, s.fork),
		wire.At("POST", "/runs/{id}:answer", access.Operator, s.answer),
		wire.At("POST", "/runs/{id}:case", access.Author, s.makeCase),
		wire.At("POST", "/runs:backtest", access.Reader, s.backtest).Reading(),
		wire.At("GET", "/runs:backtest", access.Reader, s.study),

		wire.At("GET", "/evals", access.Reader, s.listEvals),
		wire.At("GET", "/evals/{id}", access.Reader, s.getEval),

		wire.At("GET", "/schedules", access.Reader, s.listSchedules),
		wire.At("POST", "/schedules/{id}:pause", access.Operator, s.pauseSchedule),
		wire.At("POST", "/schedules/{id}:continue", access.Operator, s.continueSchedule),

		wire.At("GET", "/server", access.Reader, s.about),
		wire.At("GET", "/openapi.json", access.Reader, s.openAPI),
	}
}

// metricsPath is the path of the metrics for Prometheus.
const metricsPath = "/metrics"

// mcpPath is the path of the Model Context Protocol. adkPath is the prefix of the routes of ADK's API. v1Path, below adkPath,
// is the prefix of the routes of the server's own API, which the page and programs use.
const (
	mcpPath = "/mcp"
	adkPath = "/api/"
	v1Path  = adkPath + "v1/"
)

// routes returns the handler of all paths.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	if s.runs.Offers(true) { // a client of ADK must create sessions, so a read-only server has nothing for it
		api := &adk.API{Exchange: s.Exchange, Runs: s.runs, Place: s.place, Closing: s.closing, Pieces: &s.pieces}
		s.register(mux, strings.TrimSuffix(adkPath, "/"), api.Routes())
	}
	s.register(mux, strings.TrimSuffix(v1Path, "/"), s.v1())
	s.agents(mux)
	s.register(mux, "", []wire.Route{
		wire.At("GET", "/healthz", access.None, s.healthy),
		wire.At("GET", "/readyz", access.None, s.ready),
		wire.At("GET", metricsPath, access.Reader, s.metrics),
	})
	s.allRoutes = append(s.allRoutes, wire.At("POST", mcpPath, access.Reader, nil)) // and each tool has a role
	mux.Handle(mcpPath, s.Answering(requireRole(access.Reader, s.handleMCP())))
	for _, rest := range []string{adkPath, "/healthz", "/readyz", metricsPath} {
		mux.Handle(rest, s.Answering(s.noRoute))
	}
	if s.cfg.Page != nil {
		mux.Handle("/", s.cfg.Page)
	} else {
		mux.Handle("GET /{$}", s.Answering(s.index))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, a2aPath) { // without the mux, which cleans a path and could change a task's ID in it
			s.a2a.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// agents registers the routes of A2A, which serves each definition as an agent.
func (s *Server) agents(mux *http.ServeMux) {
	one, all := s.sendOnlyCard, s.handleA2A
	if !s.runs.Offers(true) {
		one, all = refuseChange, refuseChange
	}
	s.allRoutes = append(s.allRoutes, a2aRoutes()...)
	mux.Handle("GET "+cardPath, s.Answering(requireRole(access.Reader, one)))
	s.a2a = s.Answering(requireRole(access.Reader, all)) // and each route and method has a role
}

// requireRole returns an operation that refuses people without a role.
func requireRole(role access.Role, do func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := operations.Permit(r.Context(), role); err != nil {
			return err
		}
		return do(w, r)
	}
}

// refuseChange refuses a request that would change something, because the server is read-only.
func refuseChange(http.ResponseWriter, *http.Request) error { return operations.ErrReadOnly }

// register adds routes below a path. The mux has no patterns such as {id}:verb. So all routes that differ only in the verb
// share one pattern, whose handler chooses the route by the verb.
func (s *Server) register(mux *http.ServeMux, below string, routes []wire.Route) {
	verbs := make(map[string]map[string]http.Handler)
	for _, r := range routes {
		s.allRoutes = append(s.allRoutes, wire.At(r.Method, below+r.Path, r.Role, nil))
		if !s.runs.Offers(!r.Reads) {
			r.Do = refuseChange
		}
		r.Do = requireRole(r.Role, r.Do)
		before, verb, acts := strings.Cut(r.Path, "}:")
		if !acts {
			mux.Handle(r.Method+" "+below+r.Path, s.Answering(r.Do))
			continue
		}
		pattern := r.Method + " " + below + before + "}"
		if verbs[pattern] == nil {
			verbs[pattern] = make(map[string]http.Handler)
		}
		verbs[pattern][verb] = s.Answering(r.Do)
	}
	for pattern, byVerb := range verbs {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			id := r.PathValue("id")
			i := strings.LastIndexByte(id, ':')
			do := byVerb[id[i+1:]]
			if i < 0 || do == nil {
				do = s.Answering(s.noRoute)
			} else {
				r.SetPathValue("id", id[:i])
			}
			do.ServeHTTP(w, r)
		})
	}
}

// noRoute answers a request that no route fits. If the path has other methods, it answers with status 405 and lists them;
// otherwise with 404.
func (s *Server) noRoute(_ http.ResponseWriter, r *http.Request) error {
	var methods []string
	for _, known := range s.allRoutes {
		if !fitsRoute(known, r.URL.EscapedPath()) {
			continue
		}
		if methods = append(methods, known.Method); known.Method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	if len(methods) == 0 {
		return problem.New(http.StatusNotFound, "no_route", "There is no such path", "GET /api/v1/openapi.json lists the paths")
	}
	slices.Sort(methods)
	allow := strings.Join(slices.Compact(methods), ", ")
	return problem.New(http.StatusMethodNotAllowed, "wrong_method", "The path has no such method", "the methods of this path are %s",
		allow).With("Allow", allow)
}

// fitsRoute reports whether the escaped path of a request fits the pattern of a route.
func fitsRoute(r wire.Route, path string) bool {
	want, got := strings.Split(r.Path, "/"), strings.Split(path, "/")
	if n := len(want) - 1; strings.HasSuffix(want[n], "...}") && len(got) > n { // {name...} fits any rest of a path
		want, got = want[:n], got[:n]
	}
	return slices.EqualFunc(want, got, func(want, got string) bool {
		name, verb, acts := strings.Cut(want, "}:")
		switch {
		case !strings.HasPrefix(want, "{"):
			return want == got
		case acts:
			id, found := strings.CutSuffix(got, ":"+verb)
			return found && id != ""
		}
		return got != "" && !(name == "{id}" && strings.Contains(got, ":")) // actions on a run have their own routes
	})
}

// openapi describes the operations in v1.
//
//go:embed openapi.json
var openapi []byte

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openapi)
	return nil
}
