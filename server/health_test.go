// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
	"github.com/refrain-dev/refrain/supervisor"
)

// unwritable is a store that counts what it is asked to make, and makes it only if it is not full.
type unwritable struct {
	*sessiontest.Counted
	asked atomic.Int64
	full  atomic.Bool
}

func (u *unwritable) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	u.asked.Add(1)
	if u.full.Load() {
		return nil, errors.New("no room")
	}
	return u.Counted.Create(ctx, req)
}

// G8: /readyz writes into the store once a second, however many ask, and leaves nothing there.
func TestReadyTriesTheStoreOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := &unwritable{Counted: sessiontest.Count(session.InMemoryService())}
		srv, err := server.New(server.Config{Config: operations.Config{Service: svc, AppName: "app", UserID: "ana", Dir: t.TempDir(), Leases: supervisor.Leases{Owner: "the test"}}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := srv.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		ask := func() int {
			w := httptest.NewRecorder()
			srv.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/readyz", nil))
			return w.Code
		}
		for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusOK} {
			svc.full.Store(want != http.StatusOK)
			before := svc.asked.Load()
			for range 50 {
				if got := ask(); got != want {
					t.Errorf("full: %v: got %d, want %d", svc.full.Load(), got, want)
				}
			}
			if n := svc.asked.Load() - before; n != 1 {
				t.Errorf("50 requests within a second try the store %d times, want 1", n)
			}
			time.Sleep(time.Second)
		}
		left, err := svc.List(t.Context(), &session.ListRequest{AppName: "refrain-readyz"})
		if err != nil || len(left.Sessions) > 0 {
			t.Errorf("the probe leaves nothing: got %v and %v", left, err)
		}
	})
}
