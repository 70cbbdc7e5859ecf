// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// A service may be closed while somebody watches, and while somebody begins to.
func TestCloseWhileSomebodyWatches(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	key := lease.Key{AppName: "app", UserID: "user", SessionID: "s"}
	for range 100 {
		svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "user", SessionID: "s"}); err != nil &&
			!errors.Is(err, session.ErrExists) {
			t.Fatal(err)
		}
		var watching sync.WaitGroup
		for range 8 {
			watching.Go(func() {
				for _, err := range svc.Watch(t.Context(), key, 0) {
					if !errors.Is(err, session.ErrClosed) {
						t.Errorf("a watcher of a closed service gets %v", err)
					}
				}
			})
		}
		if err := svc.Close(); err != nil {
			t.Fatal(err)
		}
		watching.Wait()
	}
}
