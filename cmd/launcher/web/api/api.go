// SPDX-License-Identifier: Apache-2.0

// Package api serves ADK's REST API: each agent of the program is an application.
//
//	l := universal.NewLauncher(web.NewLauncher(api.NewLauncher()))
package api

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/internal/door"
	"github.com/refrain-dev/refrain/cmd/launcher/web"
	"github.com/refrain-dev/refrain/server/adkrest"
)

type api struct {
	door.Flags
	prefix, web string
	sse         time.Duration
	traces      int
}

// NewLauncher returns the sublauncher with the keyword api. Its flags are -path_prefix (default /api) and
// -sse-write-timeout (the longest time that a stream of /run_sse lasts; the run goes on; default 0, no limit).
func NewLauncher() web.Sublauncher {
	a := &api{Flags: door.NewFlags("api", "ADK's REST API")}
	a.Set.StringVar(&a.prefix, "path_prefix", "/api", "`path` that all routes begin with")
	a.Set.DurationVar(&a.sse, "sse-write-timeout", 0, "`time` that a stream of /run_sse lasts at most; 0 means no limit")
	a.Set.StringVar(&a.web, "webui_address", "", "no effect, because requests from pages of other `host`s are refused")
	a.Set.IntVar(&a.traces, "trace_capacity", 0, "no effect, because the log of a run has all `events`")
	return a
}

func (a *api) Parse(args []string) ([]string, error) {
	rest, err := a.Flags.Parse(args)
	a.prefix = "/" + strings.Trim(a.prefix, "/")
	switch {
	case err != nil:
		return nil, err
	case a.sse < 0:
		return nil, fmt.Errorf("-sse-write-timeout %s is negative", a.sse)
	case path.Clean(a.prefix) != a.prefix || strings.ContainsAny(a.prefix, "{}?#% \\"):
		return nil, errors.New("-path_prefix is not a plain path; give a path such as /api")
	}
	return rest, nil
}

func (a *api) SetupSubrouters(mux *http.ServeMux, config *launcher.Config) error {
	h, err := door.Served(config)
	if err != nil {
		return err
	}
	routes := adkrest.Routes(h, a.sse)
	if a.prefix != "/" {
		routes = http.StripPrefix(a.prefix, routes)
	}
	mux.Handle(strings.TrimSuffix(a.prefix, "/")+"/", routes)
	return nil
}

func (a *api) UserMessage(webURL string, printer func(v ...any)) {
	printer("ADK's REST API is at " + webURL + strings.TrimSuffix(a.prefix, "/") + "/list-apps")
}
