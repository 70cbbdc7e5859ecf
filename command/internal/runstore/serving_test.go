// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// The servers of two stores in one folder are found by their stores, also after one of them has ended.
func TestServersOfStoresInOneFolder(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	e := &term.Env{Getenv: func(name string) string {
		if name == "REFRAIN_STATE_DIR" {
			return state
		}
		return ""
	}}
	stocks := []*Stock{{spec: "sqlite:refrain.db", Dir: dir}, {spec: "sqlite:other.db", Dir: dir}}
	var urls []string
	var silences []func()
	for _, s := range stocks {
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(srv.Close)
		silence, err := s.Announce(e, srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		urls, silences = append(urls, srv.URL), append(silences, silence)
	}
	for i, s := range stocks {
		if got := s.Served(t.Context(), e, "r"); got != urls[i]+"/runs/r" {
			t.Errorf("%s is served at %q, not at %s", s.spec, got, urls[i])
		}
	}
	silences[1]()
	if got := stocks[0].Served(t.Context(), e, "r"); !strings.HasPrefix(got, urls[0]) {
		t.Errorf("after the end of the other server %s is served at %q", stocks[0].spec, got)
	}
	if got := stocks[1].Served(t.Context(), e, "r"); got != "" {
		t.Errorf("%s has no server, and is served at %q", stocks[1].spec, got)
	}
}
