// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// smallDisk is a file system of two megabytes. fill leaves no room on it, and the function that it returns makes room again.
func smallDisk(t *testing.T) (dir string, fill func() (room func())) {
	t.Helper()
	dir = t.TempDir()
	err := syscall.Mount("refrain", dir, "tmpfs", 0, "size=2m")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("NOT TESTED: what the server does on a full disk; run the tests as root, who may mount one")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, func() func() {
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the disk is not full: %v", err)
		}
		return func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// G8: on a full disk the server is not ready, and the log says what to do about a run that was dropped there.
func TestFullDisk(t *testing.T) {
	dir, fill := smallDisk(t)
	svc, err := sqlite.Open(t.Context(), filepath.Join(dir, "refrain.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := svc.Close(); err != nil {
			t.Error(err)
		}
	})
	g := newGate(t)
	dropped := make(chan struct{})
	s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private, func(c *server.Config) {
		c.Service = svc
		c.Observe = func(sup *supervisor.Config) {
			before := sup.OnEnding
			sup.OnEnding = func(id string, end supervisor.Ending) {
				if before != nil {
					before(id, end)
				}
				close(dropped)
			}
		}
	})
	s.store = svc
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	makeRoom := fill()
	if why := s.refused(503, "no_store", "GET", "/readyz", nil); !strings.Contains(why, "the disk is full") {
		t.Errorf("a server that is not ready says why, got %q", why)
	}
	g.let <- struct{}{} // the step ends, and cannot be stored
	<-dropped
	for _, want := range []string{"a run was dropped", "run=" + id, "definition=gated", "the disk is full", "refrain resume " + id} {
		if !strings.Contains(s.logs.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, s.logs)
		}
	}
	makeRoom()
	for end := time.Now().Add(soon); s.do("GET", "/readyz", nil).status != http.StatusOK; {
		if time.Now().After(end) {
			t.Fatal("with room again the server is not ready")
		}
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start(private, func(c *server.Config) { c.Dead = func(string) bool { return true } })
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g.let <- struct{}{}
	}
	if got := s.wait(id); got != "completed" {
		t.Errorf("the run that was dropped goes on: got %s", got)
	}
}
