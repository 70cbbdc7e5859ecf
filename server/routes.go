// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/server/internal/adk"
)

// route is one operation. A path that ends in {id}:verb stands for an action on a run.
type route struct {
	method, path string
	do           func(*Server, http.ResponseWriter, *http.Request) error
}

// v1 are the operations of the API, which openapi.json describes.
var v1 = []route{
	{"GET", "/definitions", (*Server).listDefinitions},
	{"GET", "/definitions/{name}", (*Server).getDefinition},
	{"PUT", "/definitions/{name}", (*Server).putDefinition},
	{"DELETE", "/definitions/{name}", (*Server).deleteDefinition},
	{"POST", "/definitions:validate", (*Server).validate},
	{"POST", "/definitions:edit", (*Server).edit},
	{"POST", "/definitions:outline", (*Server).outline},
	{"POST", "/definitions:complete", (*Server).complete},
	{"POST", "/definitions:try", (*Server).try},
	{"GET", "/schema/definition.json", (*Server).schema},
	{"GET", "/schema/fields.json", (*Server).fields},

	{"GET", "/runs", (*Server).listRuns},
	{"POST", "/runs", (*Server).startRun},
	{"GET", "/runs/{id}", (*Server).getRun},
	{"DELETE", "/runs/{id}", (*Server).deleteRun},
	{"GET", "/runs/{id}/events", (*Server).events},
	{"GET", "/runs/{id}/iterations", (*Server).iterations},
	{"GET", "/runs/{id}/scores", (*Server).scores},
	{"GET", "/runs/{id}/view", (*Server).view},
	{"GET", "/runs/{id}/view/iterations", (*Server).viewIterations},
	{"GET", "/runs/{id}/view/step", (*Server).viewStep},
	{"GET", "/runs/{id}/prompt", (*Server).prompt},
	{"GET", "/runs/{id}/state", (*Server).state},
	{"GET", "/runs/{id}/diff", (*Server).diff},
	{"GET", "/runs/{id}/files", (*Server).files},
	{"GET", "/runs/{id}/files/iterations", (*Server).filesBy},
	{"GET", "/runs/{id}/files/diff", (*Server).fileDiff},
	{"GET", "/runs/{id}/files/patch", (*Server).patch},
	{"GET", "/runs/{id}/export", (*Server).export},
	{"GET", "/runs/{id}/definition", (*Server).runDefinition},
	{"POST", "/runs/{id}:pause", (*Server).pause},
	{"POST", "/runs/{id}:resume", (*Server).resume},
	{"POST", "/runs/{id}:cancel", (*Server).cancel},
	{"POST", "/runs/{id}:fork", (*Server).fork},
	{"POST", "/runs/{id}:answer", (*Server).answer},
	{"POST", "/runs:backtest", (*Server).backtest},
	{"GET", "/runs:backtest", (*Server).study},

	{"GET", "/server", (*Server).about},
	{"GET", "/openapi.json", (*Server).openAPI},
}

// health are the operations of whoever watches over the server.
var health = []route{
	{"GET", "/healthz", (*Server).healthy},
	{"GET", "/readyz", (*Server).ready},
	{"GET", metricsPath, (*Server).metrics},
}

// metricsPath is where Prometheus asks.
const metricsPath = "/metrics"

// mcpPath is where clients of the Model Context Protocol are served.
const mcpPath = "/mcp"

// routes is the handler of all paths.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	if s.cfg.ReadOnly {
		s.register(mux, "/api/v1", looking())
	} else {
		s.register(mux, "/api/v1", v1)
		s.register(mux, "/api", s.adk())
	}
	s.agents(mux)
	s.register(mux, "", health)
	mux.Handle(mcpPath, s.answering(s.overMCP()))
	for _, rest := range []string{"/api/", "/healthz", "/readyz", metricsPath} {
		mux.Handle(rest, s.answering((*Server).noRoute))
	}
	if s.cfg.Page != nil {
		mux.Handle("/", s.cfg.Page)
	} else {
		mux.Handle("GET /{$}", s.answering((*Server).index))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, a2aPath) { // as it is: the mux would clean a task's ID out of it
			s.a2a.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// adk are the operations of ADK's REST API.
func (s *Server) adk() (all []route) {
	api := &adk.API{Exchange: s.Exchange, Runs: s.runs, Place: s.place, Closing: s.closing, Pieces: &s.pieces}
	for _, r := range api.Routes() {
		all = append(all, route{r.Method, r.Path, func(_ *Server, w http.ResponseWriter, req *http.Request) error { return r.Do(w, req) }})
	}
	return all
}

// agents serves the definitions as agents.
func (s *Server) agents(mux *http.ServeMux) {
	one, all := (*Server).onlyCard, (*Server).overA2A
	if s.cfg.ReadOnly {
		one, all = (*Server).onlyRead, (*Server).onlyRead
	}
	s.known = append(append(s.known, a2aRoutes()...), route{method: http.MethodGet, path: cardPath})
	mux.Handle("GET "+cardPath, s.answering(one))
	s.a2a = s.answering(all)
}

// looking are the operations of a server that is only read: the others refuse what they are asked.
func looking() []route {
	all := slices.Clone(v1)
	for i, r := range all {
		if r.method != "GET" && r.path != "/runs:backtest" {
			all[i].do = (*Server).onlyRead
		}
	}
	return all
}

func (s *Server) onlyRead(http.ResponseWriter, *http.Request) error {
	return problem.New(http.StatusForbidden, "read_only", "This server changes nothing", "it shows runs as they were written down")
}

// register adds routes below a path. The mux has no patterns such as {id}:verb: those of one method
// and path share a pattern, and the verb decides.
func (s *Server) register(mux *http.ServeMux, below string, routes []route) {
	verbs := make(map[string]map[string]http.Handler)
	for _, r := range routes {
		s.known = append(s.known, route{method: r.method, path: below + r.path})
		before, verb, acts := strings.Cut(r.path, "}:")
		if !acts {
			mux.Handle(r.method+" "+below+r.path, s.answering(r.do))
			continue
		}
		pattern := r.method + " " + below + before + "}"
		if verbs[pattern] == nil {
			verbs[pattern] = make(map[string]http.Handler)
		}
		verbs[pattern][verb] = s.answering(r.do)
	}
	for pattern, byVerb := range verbs {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			id := r.PathValue("id")
			i := strings.LastIndexByte(id, ':')
			do := byVerb[id[i+1:]]
			if i < 0 || do == nil {
				do = s.answering((*Server).noRoute)
			} else {
				r.SetPathValue("id", id[:i])
			}
			do.ServeHTTP(w, r)
		})
	}
}

// noRoute is the answer to a request that no operation takes: its path may have other methods.
func (s *Server) noRoute(_ http.ResponseWriter, r *http.Request) error {
	var methods []string
	for _, known := range s.known {
		if !known.has(r.URL.EscapedPath()) {
			continue
		}
		if methods = append(methods, known.method); known.method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	if len(methods) == 0 {
		return problem.New(http.StatusNotFound, "no_route", "There is no such path", "GET /api/v1/openapi.json lists the paths")
	}
	slices.Sort(methods)
	allow := strings.Join(slices.Compact(methods), ", ")
	p := problem.New(http.StatusMethodNotAllowed, "wrong_method", "The path has no such method", "the methods of this path are %s", allow)
	p.Header = map[string]string{"Allow": allow}
	return p
}

// has reports whether the path of a request, which is escaped, is one of the route's.
func (r *route) has(path string) bool {
	want, got := strings.Split(r.path, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(want, got string) bool {
		name, verb, acts := strings.Cut(want, "}:")
		switch {
		case !strings.HasPrefix(want, "{"):
			return want == got
		case acts:
			id, found := strings.CutSuffix(got, ":"+verb)
			return found && id != ""
		}
		return got != "" && !(name == "{id}" && strings.Contains(got, ":")) // what acts on a run has its own routes
	})
}

// answering makes a handler of an operation.
func (s *Server) answering(do func(*Server, http.ResponseWriter, *http.Request) error) http.Handler {
	return s.Answering(func(w http.ResponseWriter, r *http.Request) error { return do(s, w, r) })
}
