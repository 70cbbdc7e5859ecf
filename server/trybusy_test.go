// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/session"
)

// Only so many things are tried at once.
func TestTriesAreFew(t *testing.T) {
	s, err := New(Config{Config: operations.Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	ask := func() int {
		r := httptest.NewRequest("POST", "http://localhost/api/v1/definitions:try", strings.NewReader(`{"text": "name: x\ntext: y\n"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	for range tryMost {
		s.places.tries <- struct{}{}
	}
	if got := ask(); got != http.StatusTooManyRequests {
		t.Errorf("one more: %d", got)
	}
	<-s.places.tries
	if got := ask(); got != http.StatusOK {
		t.Errorf("after one has ended: %d", got)
	}
}
