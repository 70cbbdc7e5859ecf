// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// refrains starts refrain in a folder, over one store.
type refrains struct {
	testing.TB
	dir, binary, store string
	env                []string
	known              map[int]bool // processes that are none of its own
}

// process is one refrain at work.
type process struct {
	*exec.Cmd
	args           []string
	stdout, stderr bytes.Buffer
	ended          chan struct{}
	err            error
}

func (r *refrains) start(args ...string) *process {
	r.Helper()
	p := &process{args: args, ended: make(chan struct{})}
	p.Cmd = exec.Command(r.binary, append(args, "--store", r.store)...)
	p.Dir, p.Stdout, p.Stderr = r.dir, &p.stdout, &p.stderr
	p.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "REFRAIN_PROGRESS=quiet", "REFRAIN_STORE=", "REFRAIN_MODEL=")
	p.Env = append(append(p.Env, "OPENAI_API_KEY="), r.env...)
	if err := p.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		p.err = p.Wait()
		close(p.ended)
	}()
	return p
}

// mostTime is the longest that refrain may take to end when it was told to.
const mostTime = 3 * time.Minute

// end waits until the process has ended. One that hangs is an error, with its
// goroutines.
func (r *refrains) end(p *process) {
	r.Helper()
	select {
	case <-p.ended:
		return
	case <-time.After(mostTime):
	}
	_ = p.Process.Signal(syscall.SIGQUIT)
	_ = p.Process.Signal(syscall.SIGABRT)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		_ = p.Process.Kill()
		<-p.ended
	}
	r.Errorf("%q does not end\n%s", p.args, &p.stderr)
}

// code is the exit code; -1 if a signal ended the process.
func (p *process) code() int {
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		return exit.ExitCode()
	}
	return 0
}

// do runs refrain to its end.
func (r *refrains) do(args ...string) *process {
	r.Helper()
	p := r.start(args...)
	r.end(p)
	return p
}

// open opens the store for a look in.
func (r *refrains) open() (session.Service, func()) {
	r.Helper()
	spec := r.store
	if path, ok := strings.CutPrefix(spec, "sqlite:"); ok {
		spec = "sqlite:" + filepath.Join(r.dir, path)
	}
	e := &term.Env{Getenv: func(string) string { return "" }, Stderr: os.Stderr}
	store, closeStore, err := runstore.MakeService(context.Background(), e, spec)
	if err != nil {
		r.Fatal(err)
	}
	return store, func() { _ = closeStore() }
}

// stand is how a run stands; nil if there is none of that ID.
func (r *refrains) stand(id string) *runlog.Row {
	r.Helper()
	store, closeStore := r.open()
	defer closeStore()
	got, err := store.Get(context.Background(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	row, err := runlog.RowOf(context.Background(), store, got.Session, lease.Dead)
	if err != nil {
		r.Fatal(err)
	}
	return row
}

// adopt makes this process the parent of whatever its children leave behind. It returns
// the processes that are below it already.
func adopt(t testing.TB) map[int]bool {
	t.Helper()
	const setChildSubreaper = 36
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); err != 0 {
		t.Fatal(err)
	}
	known := make(map[int]bool)
	for pid := range below(nil) {
		known[pid] = true
	}
	return known
}

// below are the children of this process other than the given ones, with those below
// them. What has ended is collected.
func below(known map[int]bool) map[int]string {
	parents, names := make(map[int]int), make(map[int]string)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var pid, parent int
		var state string
		head, rest, ok := strings.Cut(string(text), ") ")
		if !ok {
			continue
		}
		_, _ = fmt.Sscanf(head, "%d", &pid)
		_, _ = fmt.Sscanf(rest, "%s %d", &state, &parent)
		if parent == os.Getpid() && state == "Z" && !known[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			continue
		}
		parents[pid], names[pid] = parent, head+") "+state
	}
	left := make(map[int]string)
	for pid := range parents {
		for p := pid; p > 1 && !known[p]; p = parents[p] {
			if parents[p] == os.Getpid() {
				left[pid] = names[pid]
				break
			}
		}
	}
	return left
}
