// SPDX-License-Identifier: Apache-2.0

package adkrest_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/server/adkrest"
	"github.com/refrain-dev/refrain/session"
)

// A server without a loader keeps sessions, as in ADK.
func TestServerWithoutALoader(t *testing.T) {
	api, err := adkrest.NewServer(adkrest.ServerConfig{SessionService: session.InMemoryService()})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Shutdown(t.Context())
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/health", "", `{"status":"ok"}`},
		{"GET", "/list-apps", "", `[]`},
		{"POST", "/apps/any/users/ana/sessions/s1", `{"state":{"theme":"dark"}}`, `"dark"`},
		{"GET", "/apps/any/users/ana/sessions", "", `"dark"`},
		{"POST", "/run", `{"appName":"any","userId":"ana","sessionId":"s1","newMessage":{"role":"user","parts":[{"text":"Hi"}]}}`, `definition_not_found`},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		if api.ServeHTTP(w, r); !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %s", c.method, c.path, w.Code, w.Body, c.want)
		}
	}
}
