// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// flaky is a network between a store and the server that breaks now and then:
// it passes what a client says on, or does not, and hangs up before the answer.
type flaky struct {
	likely  float64 // how likely a message of a client's is its last
	cuts    atomic.Int64
	refused atomic.Int64 // connections while the server was away
}

// between returns the DSN of the server behind a network that passes connections on, each until pass returns.
func between(t *testing.T, pass func(client net.Conn, wg *sync.WaitGroup)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "network") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
		os.RemoveAll(dir)
	})
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { pass(client, &wg) })
		}
	})
	return strings.Replace(cluster.dsn, "host="+cluster.dir, "host="+dir, 1)
}

// between returns the DSN of the server behind such a network.
func (f *flaky) between(t *testing.T) string {
	t.Helper()
	return between(t, f.pass)
}

func (f *flaky) pass(client net.Conn, wg *sync.WaitGroup) {
	defer client.Close()
	server, err := net.Dial("unix", filepath.Join(cluster.dir, ".s.PGSQL.5432"))
	if err != nil {
		f.refused.Add(1)
		return
	}
	defer server.Close()
	wg.Go(func() {
		defer client.Close()
		_, _ = io.Copy(client, server)
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		last := rand.Float64() < f.likely
		if last {
			f.cuts.Add(1)
			if rand.IntN(2) == 0 {
				return // before
			}
			client.Close() // after: the answer finds nobody
		}
		if _, err := server.Write(buf[:n]); err != nil || last {
			return
		}
	}
}

// E4: connections break at any moment, in the middle of commits too.
func TestServiceOverABreakingNetwork(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	f := &flaky{likely: 0.01}
	open := func(t *testing.T) session.Service { return openFlaky(t, f) }
	t.Cleanup(func() { t.Logf("%d connections were cut", f.cuts.Load()) }) // behind the last subtest
	sessiontest.TestService(t, open)
	t.Run("lease", func(t *testing.T) { sessiontest.TestLeaser(t, open) })
	t.Run("watch", func(t *testing.T) { sessiontest.TestWatcher(t, open) })
}

// openFlaky opens a service over a network that breaks. Its tests run beside one
// another: they wait for the next try.
func openFlaky(t *testing.T, f *flaky) *postgres.Service {
	t.Helper()
	t.Parallel()
	dsn := f.between(t)
	cfg := postgres.Config{Schema: "flaky " + strconv.FormatInt(schemas.Add(1), 10)}
	svc, err := postgres.Open(t.Context(), dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svc.Close() })
	return svc
}

// Each append meets a network that breaks every few messages.
func TestAppendOverABreakingNetworkIsNeitherLostNorDoubled(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	const writers = 4
	each := longtest.N(40, 100)
	f := &flaky{likely: 0.03}
	svc := openFlaky(t, f)
	var wg sync.WaitGroup
	for i := range writers {
		id := "s" + strconv.Itoa(i)
		s := create(t, svc, id)
		wg.Go(func() {
			for n := range each {
				if err := svc.AppendEvent(t.Context(), s, numbered(n+1)); err != nil {
					t.Errorf("append %d to %s: %v", n+1, id, err)
					return
				}
			}
			wantCount(t, get(t, svc, id), each)
		})
	}
	wg.Wait()
	t.Logf("%d connections were cut in %d appends", f.cuts.Load(), writers*each)
	if f.cuts.Load() == 0 {
		t.Error("no connection was cut")
	}
}

// What was not done must not pass for done because the answer got lost.
func TestRefusalOverABreakingNetworkStaysOne(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	f := &flaky{likely: 0.1}
	svc := openFlaky(t, f)
	stranger := session.NewView(session.ViewConfig{AppName: app, UserID: ana, SessionID: "s1"})
	for range longtest.N(40, 100) {
		if err := svc.AppendEvent(t.Context(), stranger, &session.Event{Author: "a"}); !errors.Is(err, session.ErrNotFound) {
			t.Fatalf("append to a session that is not there: %v", err)
		}
	}
}

// What was done must not be refused because the answer got lost.
func TestCreateOverABreakingNetworkIsDoneOnce(t *testing.T) {
	if cluster.missing != "" {
		t.Skip(cluster.missing)
	}
	f := &flaky{likely: 0.1}
	svc := openFlaky(t, f)
	for i := range longtest.N(20, 60) {
		resp, err := svc.Create(t.Context(), &session.CreateRequest{
			AppName: app, UserID: ana, SessionID: strconv.Itoa(i), State: map[string]any{"n": i},
		})
		if err != nil {
			t.Fatalf("create session %d: %v", i, err)
		}
		if n, err := resp.Session.State().Get("n"); err != nil || n != float64(i) {
			t.Errorf("session %d starts with n = %v (%v)", i, n, err)
		}
	}
}
