// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bufio"
	"context"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// holder is a process that has a database open.
type holder struct {
	*osexec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newHolder(t *testing.T, path string) *holder {
	t.Helper()
	h := &holder{Cmd: child(t.Context(), "hold", path)}
	h.Stderr = os.Stderr
	in, err := h.StdinPipe()
	must(t, err)
	out, err := h.StdoutPipe()
	must(t, err)
	h.in, h.out = in, bufio.NewReader(out)
	must(t, h.Start())
	if line := h.line(t); line != "open" {
		t.Fatalf("the process says %q", line)
	}
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	line, err := h.out.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// append returns what came of an event.
func (h *holder) append(t *testing.T) string {
	t.Helper()
	_, err := io.WriteString(h.in, "append\n")
	must(t, err)
	return h.line(t)
}

func (h *holder) close(t *testing.T) {
	t.Helper()
	must(t, h.in.Close())
	must(t, h.Wait())
}

// mv calls the program of that name.
func mv(t *testing.T, from, to string) {
	t.Helper()
	if out, err := osexec.Command("mv", from, to).CombinedOutput(); err != nil {
		t.Fatalf("mv: %v %s", err, out)
	}
}

// wantStore demands that a store has that many events, and that SQLite finds nothing wrong with it.
func wantStore(t *testing.T, path string, n int) {
	t.Helper()
	svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	must(t, err)
	defer svc.Close()
	wantCount(t, get(t, svc, "s1"), n)
	var ok string
	if err := raw(t, path).QueryRow("PRAGMA integrity_check").Scan(&ok); err != nil || ok != "ok" {
		t.Errorf("integrity_check says %q, %v", ok, err)
	}
}

// openHeldStore returns a store that a process has open, with 20 events in its log, and another store with 5.
func openHeldStore(t *testing.T) (path, other string, h *holder) {
	t.Helper()
	path, other = written(t, 0), written(t, 5)
	h = newHolder(t, path)
	for range 20 {
		if said := h.append(t); said != "<nil>" {
			t.Fatal(said)
		}
	}
	return path, other, h
}

// wantRefused demands that a store cannot be opened beside the log of another one, which stays as it is.
func wantRefused(t *testing.T, path string) {
	t.Helper()
	log, err := os.ReadFile(path + "-wal")
	must(t, err)
	for _, cfg := range []sqlite.Config{{}, {ReadOnly: true}} {
		svc, err := sqlite.Open(t.Context(), path, cfg)
		if err == nil {
			svc.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is the log of the file that was here before") {
			t.Errorf("read-only %v: opened beside the log of another store: %v", cfg.ReadOnly, err)
		}
	}
	if now, err := os.ReadFile(path + "-wal"); err != nil || string(now) != string(log) {
		t.Errorf("the log has changed: %v", err)
	}
}

// G7: a store that is moved to the place of an open one is not destroyed by the log of that one, and the other way round.
func TestStoreIsMovedOverAnOpenOne(t *testing.T) {
	t.Run("the process appends", func(t *testing.T) {
		path, other, h := openHeldStore(t)
		mv(t, other, path)
		wantRefused(t, path)
		said := h.append(t)
		kept := path + ".kept-1"
		if !strings.Contains(said, "was replaced by another file") || !strings.Contains(said, kept) {
			t.Errorf("the process says %s", said)
		}
		wantStore(t, path, 5)
		h.close(t)
		wantStore(t, path, 5)
		wantStore(t, kept, 21)
	})
	t.Run("the process has noticed", func(t *testing.T) {
		path, other := written(t, 3), written(t, 5)
		svc, err := sqlite.Open(t.Context(), path, sqlite.Config{})
		must(t, err)
		s := get(t, svc, "s1")
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan int64, 1)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for ev := range svc.Watch(ctx, lease.KeyOf(s), 0) {
				if ev != nil && ev.Seq == 3 {
					seen <- ev.Seq
				}
			}
		}()
		<-seen // so the store looks at its file
		mv(t, other, path)
		for {
			if taken, _ := filepath.Glob(path + ".replaced*-wal"); taken != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		refused := make(chan error, 1)
		go func() { refused <- svc.AppendEvent(t.Context(), s, numbered(4)) }()
		select {
		case err := <-refused:
			if err == nil || !strings.Contains(err.Error(), "was replaced by another file") {
				t.Errorf("the append says %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the append does not end")
		}
		cancel()
		<-watched
		must(t, svc.Close())
		wantStore(t, path, 5)
		wantStore(t, path+".kept-1", 4)
	})
	t.Run("the process ends", func(t *testing.T) {
		path, other, h := openHeldStore(t)
		mv(t, path, path+".mine")
		mv(t, other, path)
		wantRefused(t, path)
		h.close(t)
		wantStore(t, path, 5)
		wantStore(t, path+".mine", 20)
		if left, _ := filepath.Glob(path + ".replaced*"); left != nil {
			t.Errorf("left behind: %q", left)
		}
	})
	t.Run("the earlier one comes back", func(t *testing.T) {
		path, other, h := openHeldStore(t)
		mv(t, path, path+".mine")
		mv(t, other, path)
		if said := h.append(t); !strings.Contains(said, "was replaced by another file") {
			t.Errorf("the process says %s", said)
		}
		mv(t, path+".mine", path) // its log is elsewhere now, so nothing may be written to it
		if said := h.append(t); !strings.Contains(said, "was replaced by another file") {
			t.Errorf("the process says %s", said)
		}
		h.close(t)
		wantStore(t, path, 21)
	})
	t.Run("two processes", func(t *testing.T) {
		path, other, h := openHeldStore(t)
		second := newHolder(t, path)
		mv(t, other, path)
		h.close(t)
		next := newHolder(t, path) // of the new store
		if said := next.append(t); said != "<nil>" {
			t.Fatal(said)
		}
		if said := second.append(t); !strings.Contains(said, "was replaced by another file") {
			t.Errorf("the second process says %s", said)
		}
		second.close(t)
		if said := next.append(t); said != "<nil>" {
			t.Fatal(said)
		}
		must(t, next.Process.Kill())
		_ = next.Wait()
		wantStore(t, path, 7)
		wantStore(t, path+".kept-1", 21)
	})
	t.Run("the process was killed", func(t *testing.T) {
		path, other, h := openHeldStore(t)
		must(t, h.Process.Kill())
		_ = h.Wait()
		mv(t, other, path)
		wantRefused(t, path)
		mv(t, path+"-wal", path+".away")
		mv(t, path+"-shm", path+".away")
		wantStore(t, path, 5)
	})
}

// A folder that is copied or moved with the log of a killed process is that store, also if the copy has the label of the log.
func TestCopiedStoreHasItsLog(t *testing.T) {
	for _, how := range []string{"cp -a", "mv"} {
		t.Run(how, func(t *testing.T) {
			path, _, h := openHeldStore(t)
			must(t, h.Process.Kill())
			_ = h.Wait()
			to := filepath.Join(t.TempDir(), "copy")
			args := append(strings.Fields(how), filepath.Dir(path), to)
			if out, err := osexec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s", out)
			}
			wantStore(t, filepath.Join(to, filepath.Base(path)), 20)
		})
	}
}
