// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// An answer with a large state is written key by key: it allocates not much more than to read the run.
func TestLargeStateIsStreamed(t *testing.T) {
	longtest.WithoutRace(t)
	const keys, size = 32, 1 << 20
	for name, events := range map[string]int{"an event a key": keys, "one event": 1} {
		t.Run(name, func(t *testing.T) {
			store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), sqlite.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			const id = "counting/ana/large"
			made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: id})
			if err != nil {
				t.Fatal(err)
			}
			for e := range events {
				ev, err := session.NewRunEvent(mark.Run{ID: "e", Name: "large", Status: mark.RunCompleted}, "user", mark.KindRunStarted, mark.RunStarted{})
				if err != nil {
					t.Fatal(err)
				}
				for k := e; k < keys; k += events {
					ev.Actions.StateDelta[fmt.Sprintf("k%d", k)] = strings.Repeat("x", size)
				}
				if err := store.AppendEvent(t.Context(), made.Session, ev); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, nil, func(c *server.Config) { c.Service = store })
			read := allocated(func() {
				if _, err := runlog.Read(t.Context(), store, lease.Key{AppName: "app", UserID: "ana", SessionID: id}); err != nil {
					t.Fatal(err)
				}
			})
			served := allocated(func() {
				if got := s.length("/api/v1/runs/counting%2Fana%2Flarge/state"); got < keys*size {
					t.Fatalf("the state has %d bytes", got)
				}
			})
			if served > read*3 { // the race detector has pools forget their buffers
				t.Errorf("to serve a state of 32 MiB allocates %d MiB, and to read the run %d", served>>20, read>>20)
			}
			if got := allocated(func() { s.length("/api/v1/runs/counting%2Fana%2Flarge/definition") }); got > size {
				t.Errorf("to serve what has no state in it allocates %d MiB", got>>20)
			}
		})
	}
}

// What is written key by key is what the encoder makes of the whole, without secrets.
func TestStreamedStateIsTheSameJSON(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	const id = "counting/ana/small"
	made, err := s.store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	ev := session.NewEvent(t.Context(), "e")
	ev.Timestamp = time.UnixMicro(1_500_000)
	ev.Actions.StateDelta = map[string]any{"b": map[string]any{}, "a<": []any{1.5, nil, true}, "at": "https://me:mine@host/?token=abc",
		"key": "sk-abcdefghij", "seen": "\u009b<é>"}
	if err := s.store.AppendEvent(t.Context(), made.Session, ev); err != nil {
		t.Fatal(err)
	}
	state := `"state":{"a\u003c":[1.5,null,true],"at":"https://host/?token=[secret]","b":{},"key":"[secret]","seen":"\u009b\u003cé\u003e"}`
	if got := string(s.do("GET", "/api/v1/runs/counting%2Fana%2Fsmall/state", nil).body); got != `{"seq":1,`+state+"}\n" {
		t.Errorf("the state is %s", got)
	}
	got := string(s.do("GET", "/api/apps/counting/users/ana/sessions/small", nil).body)
	if !strings.HasPrefix(got, `{"id":"small","appName":"counting","userId":"ana",`+state+`,"events":[{"`) ||
		!strings.HasSuffix(got, `}],"lastUpdateTime":1.5}`+"\n") {
		t.Errorf("the session is %s", got)
	}
	got = string(s.do("POST", "/api/apps/counting/users/ana/sessions/empty", nil).body)
	if !strings.HasPrefix(got, `{"id":"empty","appName":"counting","userId":"ana","state":{},"events":[],"lastUpdateTime":`) {
		t.Errorf("the new session is %s", got)
	}
}

// allocated is how many bytes of memory something allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// length is that of an answer, which is not kept.
func (s *site) length(path string) int64 {
	s.Helper()
	resp, err := http.Get(s.url + path)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return n
}
