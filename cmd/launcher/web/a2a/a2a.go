// SPDX-License-Identifier: Apache-2.0

// Package a2a serves the agents of the program over A2A, the Agent2Agent protocol. The address of the agent story is
// /a2a/v1/story, and that for clients of version 0.3 is /a2a/story. The root agent is also where ADK serves it: at
// /a2a/v1/invoke and /a2a/invoke, with its card at /.well-known/agent-card.json.
//
//	l := universal.NewLauncher(web.NewLauncher(a2a.NewLauncher()))
package a2a

import (
	"errors"
	"net/http"
	"slices"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/internal/door"
	"github.com/refrain-dev/refrain/cmd/launcher/web"
	"github.com/refrain-dev/refrain/internal/runs/program"
)

type a2a struct {
	door.Flags
	url string
}

// NewLauncher returns the sublauncher with the keyword a2a.
func NewLauncher() web.Sublauncher {
	a := &a2a{Flags: door.NewFlags("a2a", "the agents over A2A, with their agent cards")}
	a.Set.StringVar(&a.url, "a2a_agent_url", "", "no effect, because a card names the `address` at which its client has asked for the card")
	return a
}

func (a *a2a) SetupSubrouters(mux *http.ServeMux, config *launcher.Config) error {
	if len(config.A2AOptions) > 0 {
		return errors.New("Config.A2AOptions are not available here, because a task is a run of the program; to use the options, " +
			"give a2asrv.NewHandler an executor of package adka2a")
	}
	h, err := door.Served(config)
	if err != nil {
		return err
	}
	const card = "/.well-known/agent-card.json"
	root := program.DefinitionName(config.AgentLoader.RootAgent().Name())
	mux.Handle("/a2a/", h)
	mux.Handle(card, at(h, "/a2a/"+root+card)) // the card there is for both versions
	if !slices.ContainsFunc(config.AgentLoader.ListAgents(), func(name string) bool { return program.DefinitionName(name) == "invoke" }) {
		mux.Handle("/a2a/invoke", at(h, "/a2a/"+root))
		mux.Handle("/a2a/v1/invoke", at(h, "/a2a/v1/"+root))
	}
	return nil
}

// at returns a handler that answers as h does below another path.
func at(h http.Handler, path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = path, ""
		h.ServeHTTP(w, r)
	})
}

func (a *a2a) UserMessage(webURL string, printer func(v ...any)) {
	printer("Agent cards are at " + webURL + "/a2a/v1/NAME/.well-known/agent-card.json")
}
