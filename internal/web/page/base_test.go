// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/web/page"
	"github.com/refrain-dev/refrain/server"
)

// U11: below a path of a proxy that passes on nothing else, whether it takes the path away or not, the page is loaded, a link leads to
// a run, a reload shows it again, and what is started is found.
func TestThePageBelowAPath(t *testing.T) {
	for name, takes := range map[string]bool{"passed on": false, "taken away": true} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string]string{"climb.yaml": quick}, func(cfg *server.Config) {
				cfg.BasePath, cfg.Page = "/refrain", webui.HandlerBelow("/refrain", webui.Files())
			})
			to, err := url.Parse(s.url)
			if err != nil {
				t.Fatal(err)
			}
			proxy := httputil.NewSingleHostReverseProxy(to)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rest, ok := strings.CutPrefix(r.URL.Path, "/refrain")
				if !ok {
					http.Error(w, "not below /refrain", http.StatusTeapot)
					return
				}
				if takes {
					r.URL.Path = rest
				}
				proxy.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close) // after the browser
			id := s.start(t, "climb")
			s.url = front.URL
			p := open(t, s)
			p.visit("/refrain/")
			p.until("the run", `!!document.querySelector('a[data-run]')`)
			p.js(`document.querySelector('a[data-run]').click(); true`)
			p.sees("Why it stopped")
			p.until("its address", `location.pathname === '/refrain/runs/`+id+`'`)
			p.until("the iteration", `!!document.querySelector('[data-key="climb[1]"]')`)
			p.js(`document.querySelector('[data-key="climb[1]"] .t').click(); true`)
			p.until("the iteration in it", `location.pathname === '/refrain/runs/`+id+`' && document.querySelector('.insp h2').innerText === 'Iteration 1'`)
			p.visit("/refrain/runs/" + id)
			p.sees("Why it stopped")
			p.press("Definitions")
			p.sees("climb.yaml")
			p.until("glyphs", `[...document.querySelectorAll('use')].every(u => u.href.baseVal.startsWith('/refrain/icons.svg#'))`)
			p.press("Run climb")
			p.confirms()
			p.until("another run", `location.pathname.startsWith('/refrain/runs/') && !location.pathname.endsWith(`+quote(id)+`)`)
			if got, err := http.Get(front.URL + "/refrain/api/v1/runs/nobody"); err != nil || got.StatusCode != http.StatusNotFound {
				t.Errorf("the API below the path: %v %v", got, err)
			}
		})
	}
}
