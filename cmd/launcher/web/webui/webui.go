// SPDX-License-Identifier: Apache-2.0

// Package webui serves the page that shows the runs of the program, and starts, answers and pauses them.
//
//	l := universal.NewLauncher(web.NewLauncher(webui.NewLauncher()))
package webui

import (
	"net/http"
	"net/url"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/internal/door"
	"github.com/refrain-dev/refrain/cmd/launcher/web"
)

type webui struct {
	door.Flags
	api string
}

// NewLauncher returns the sublauncher with the keyword webui.
func NewLauncher() web.Sublauncher {
	w := &webui{Flags: door.NewFlags("webui", "the page, with the API that it uses")}
	w.Set.StringVar(&w.api, "api_server_address", "", "no effect, because the page calls the `server` that has served it")
	return w
}

func (w *webui) SetupSubrouters(mux *http.ServeMux, config *launcher.Config) error {
	h, err := door.Served(config)
	if err != nil {
		return err
	}
	mux.Handle("/api/v1/", h)
	mux.Handle("/", h)
	for _, others := range []string{"/api/", "/a2a/", "/mcp"} { // what other launchers serve, or none
		if _, pattern := mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: others}}); pattern == "/" {
			mux.Handle(others, http.NotFoundHandler())
		}
	}
	mux.Handle("/ui/", http.RedirectHandler("/", http.StatusFound))
	return nil
}

func (w *webui) UserMessage(webURL string, printer func(v ...any)) {
	printer("The page is at " + webURL)
}
