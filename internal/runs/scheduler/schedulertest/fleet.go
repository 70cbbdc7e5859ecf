// SPDX-License-Identifier: Apache-2.0

// Package schedulertest kills servers that start the runs of schedules, sets their clock, and checks that each time starts once:
//
//	f := &schedulertest.Fleet{T: t, Spec: "runs.db", Schedules: 4, Seconds: 2, Server: func() *exec.Cmd { return exec.Command(os.Args[0]) }}
//	f.Run()
//
// A process of Server calls [Serve].
package schedulertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/scheduler"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// The variables of a server. Spec is the variable that has the store; without it a process is no server.
const (
	Spec      = "REFRAIN_TEST_SCHEDULER"
	childDir  = "REFRAIN_TEST_DIR"
	clockFile = "clock" // in childDir's parent: what is added to the clock, in nanoseconds
)

// The owner of the runs, as in the command.
const app, user = "refrain", "user"

func openStore(ctx context.Context, spec string) (interface {
	session.Service
	io.Closer
}, error) {
	if dsn, ok := strings.CutPrefix(spec, "postgres:"); ok {
		return postgres.Open(ctx, dsn, postgres.Config{})
	}
	return sqlite.Open(ctx, spec, sqlite.Config{})
}

// config is that of a server of refrain serve.
func config(store session.Service, dir string) operations.Config {
	return operations.Config{Service: store, AppName: app, UserID: user, Dir: dir,
		Trust: operations.Trust{AllowPrivate: true}, Leases: supervisor.Leases{LeaseTTL: time.Second},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
}

// Serve serves until the process is killed, or the test has ended. change, if it is not nil, changes the config.
func Serve(change func(*operations.Config) error) error {
	ctx := context.Background()
	store, err := openStore(ctx, os.Getenv(Spec))
	if err != nil {
		return err
	}
	dir := os.Getenv(childDir)
	cfg := config(store, dir)
	if change != nil {
		if err := change(&cfg); err != nil {
			return err
		}
	}
	runs, err := operations.New(cfg)
	if err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(dir), clockFile)
	s := scheduler.New(scheduler.Config{Runs: runs, Now: func() time.Time {
		text, err := os.ReadFile(file)
		add, wrong := strconv.ParseInt(string(text), 10, 64)
		if err := errors.Join(err, wrong); err != nil {
			panic(err)
		}
		return time.Now().Add(time.Duration(add)).UTC()
	}})
	if _, err := runs.Supervisor.Recover(ctx); err != nil {
		return err
	}
	s.Start()
	_, err = io.Copy(io.Discard, os.Stdin) // the test has ended
	return err
}

// Fleet is two servers of a store and a folder, as processes, with a clock of their own.
type Fleet struct {
	*testing.T
	// Spec names the store: a file of SQLite, or postgres: and a DSN.
	Spec string
	// Schedules is how many schedules of one second there are. Seconds are between the starts of the first and the last clock.
	Schedules, Seconds int
	// Server returns a command that calls [Serve]. Worker, if it is not nil, returns the command of a process that drives
	// the runs and is killed, too.
	Server, Worker func() *exec.Cmd

	dir       string
	add       time.Duration // to the clock
	processes [3]*exec.Cmd  // two servers, and the worker
	log       diary
	kills     int

	mu   sync.Mutex
	keys map[string]map[string]int // the requests of the runs of a schedule, by Idempotency-Key
	last map[string]time.Time      // the time of a schedule's last request, by the clock
}

// diary has the last output of all processes.
type diary struct {
	mu   sync.Mutex
	text []byte
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = append(d.text, p...)
	d.text = d.text[max(0, len(d.text)-16<<10):]
	return len(p), nil
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return string(d.text)
}

func (f *Fleet) now() time.Time { return time.Now().Add(f.add).UTC() }

// set sets the clock of both servers.
func (f *Fleet) set(now time.Time) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add = time.Until(now)
	file := filepath.Join(filepath.Dir(f.dir), clockFile)
	err := os.WriteFile(file+".new", []byte(strconv.FormatInt(int64(f.add), 10)), 0o600)
	if err = errors.Join(err, os.Rename(file+".new", file)); err != nil {
		f.Fatal(err)
	}
}

func (f *Fleet) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[name] == nil {
		f.keys[name] = make(map[string]int)
	}
	f.keys[name][r.Header.Get("Idempotency-Key")]++
	f.last[name] = f.now()
}

// servers are the processes that serve; the worker is the process after them.
const servers = 2

func (f *Fleet) start(i int) {
	f.Helper()
	if i == servers && f.Worker == nil {
		return
	}
	cmd := f.Worker
	if i < servers {
		cmd = f.Server
	}
	p := cmd()
	p.Env = append(p.Environ(), Spec+"="+f.Spec, childDir+"="+f.dir)
	if _, err := p.StdinPipe(); err != nil { // is closed when this process ends
		f.Fatal(err)
	}
	p.Stderr = &f.log
	if err := p.Start(); err != nil {
		f.Fatal(err)
	}
	f.processes[i] = p
}

func (f *Fleet) kill(i int) {
	if p := f.processes[i]; p != nil {
		_ = p.Process.Kill()
		_ = p.Wait()
		f.processes[i] = nil
		f.kills++
	}
}

// run lets the processes work for a time, in which it kills one of them again and again.
func (f *Fleet) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(d/2, time.Duration(300+rand.IntN(1500))*time.Millisecond)) // of the work that is cut off
		i := rand.IntN(servers)
		if f.Worker != nil && rand.IntN(5) == 0 {
			i = servers
		}
		f.kill(i)
		f.start(i)
	}
}

// until waits for a condition.
func (f *Fleet) until(what string, holds func() bool) {
	f.Helper()
	patience := longtest.N(2*time.Minute, 10*time.Minute) // a cluster whose workers were killed has a backlog
	for end := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("%s: not after %s\n%s", what, patience, &f.log)
		}
	}
}

// Run kills the servers again and again, while their clock is turned back and forward, also over both changes of summer time. Each
// time starts once; of the times that no server was alive for, the newest.
func (f *Fleet) Run() {
	f.dir, f.keys, f.last = filepath.Join(f.TempDir(), "loops"), make(map[string]map[string]int), make(map[string]time.Time)
	witness := httptest.NewServer(f)
	defer witness.Close()
	var file strings.Builder
	file.WriteString("schedules:\n  - {name: berlin, definition: tick, cron: '30 2 * * *', timezone: Europe/Berlin, set: {schedule: berlin}}\n")
	for i := range f.Schedules {
		fmt.Fprintf(&file, "  - {name: s%d, definition: tick, every: 1s, set: {schedule: s%[1]d}}\n", i)
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		f.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	write("tick.yaml", "name: tick\ntype: http\ninputs: {schedule: {type: string}}\nmethod: POST\nurl: '"+witness.URL+"/{{schedule}}'\n")
	write("schedules.yaml", file.String())
	store, err := openStore(f.Context(), f.Spec)
	if err != nil {
		f.Fatal(err)
	}
	defer store.Close()
	records := &scheduler.Records{Service: store, AppName: app, UserID: user}
	phase := time.Duration(f.Seconds) * time.Second / 4

	f.set(time.Date(2027, 3, 28, 0, 59, 30, 0, time.UTC)) // half a minute before the clocks of Berlin go from 2:00 to 3:00
	for i := range f.processes {
		f.start(i)
	}
	defer func() {
		for i := range f.processes {
			f.kill(i)
		}
	}()
	f.until("the schedules are found", func() bool {
		rec, _, err := records.Read(f.Context(), "berlin")
		return err == nil && rec.Rule != ""
	})
	f.set(time.Date(2027, 3, 28, 0, 59, 59, 0, time.UTC))
	f.run(phase)
	f.set(f.now().Add(-phase / 2)) // the times come again
	f.run(phase)
	f.until("the time of Berlin that its clock skips", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.keys["berlin"]) == 1 })
	gaps := [][2]time.Time{{f.now(), f.now().Add(20 * time.Second)}}
	f.set(gaps[0][1])
	f.run(phase)

	for i := range f.processes { // nobody serves until autumn, when Berlin's clocks show 2:30 twice
		f.kill(i)
	}
	gaps = append(gaps, [2]time.Time{f.now(), time.Date(2027, 10, 31, 0, 59, 30, 0, time.UTC)})
	f.set(gaps[1][1])
	for i := range f.processes {
		f.start(i)
	}
	f.run(phase)
	f.until("the time that Berlin's clock shows twice", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.keys["berlin"]) == 2 })
	gaps = append(gaps, [2]time.Time{f.now(), time.Date(2027, 10, 31, 1, 30, 0, 0, time.UTC)}) // the second 2:30 of Berlin
	f.set(gaps[2][1])
	f.until("each schedule goes on", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range f.Schedules {
			if f.last[fmt.Sprintf("s%d", i)].Before(gaps[2][1].Add(time.Second)) {
				return false
			}
		}
		return true
	})
	write("schedules.yaml", "schedules: []\n")
	f.settle(store)
	f.check(store, gaps)
}

// settle waits until no server starts a run, and all runs have ended.
func (f *Fleet) settle(store session.Service) {
	f.Helper()
	count, since := -1, time.Now()
	f.until("all runs have ended", func() bool {
		f.mu.Lock()
		n := 0
		for _, keys := range f.keys {
			n += len(keys)
		}
		f.mu.Unlock()
		if n != count {
			count, since = n, time.Now()
		}
		if time.Since(since) < 1500*time.Millisecond {
			return false
		}
		runs, err := operations.New(config(store, f.dir))
		if err != nil {
			f.Fatal(err)
		}
		defer runs.Folder.Close()
		open, err := runs.Supervisor.ListOpen(f.Context())
		return err == nil && len(open) == 0
	})
}

// check compares the runs of the store with the rules and with the requests of the runs.
func (f *Fleet) check(store session.Service, gaps [][2]time.Time) {
	f.Helper()
	all, err := store.List(f.Context(), &session.ListRequest{AppName: app, UserID: user, Brief: true})
	if err != nil {
		f.Fatal(err)
	}
	runs, berlin, repeated := make(map[string]int), []string{}, 0
	for _, s := range all.Sessions {
		name, at, _ := strings.Cut(s.ID(), "@")
		runs[name]++
		if run := session.RunOf(s); run == nil || run.Status != mark.RunCompleted {
			f.Errorf("%s: %+v", s.ID(), run)
		}
		if name == "berlin" {
			berlin = append(berlin, at)
			continue
		}
		t, err := time.Parse("20060102T150405Z", at)
		if err != nil || t.After(f.now()) {
			f.Errorf("%s is no time that has been: %v", s.ID(), err)
		}
		for _, gap := range gaps {
			if t.After(gap[0]) && t.Before(gap[1].Add(-time.Second)) {
				f.Errorf("%s is between %s and %s, when no server's clock showed it, and not the newest time", s.ID(), gap[0], gap[1])
			}
		}
	}
	slices.Sort(berlin)
	if diff := cmp.Diff([]string{"20270328T010000Z", "20271031T003000Z"}, berlin); diff != "" {
		f.Errorf("the times of Berlin (-want +got): %s", diff)
	}
	for name, keys := range f.keys {
		if runs[name] != len(keys) {
			f.Errorf("%s: %d runs and %d requests", name, runs[name], len(keys))
		}
		for _, n := range keys {
			repeated += n - 1
		}
	}
	f.Logf("%d schedules, %d kills: %d runs, each once; %d requests under way at a kill were repeated", f.Schedules, f.kills, len(all.Sessions), repeated)
}

// Postgres starts a PostgreSQL with the script .ci/postgres, and returns its DSN. Where it cannot be had, the test is left out, except
// in CI.
func Postgres(t *testing.T, script string) (dsn string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "rpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server is another user
		t.Fatal(err)
	}
	cluster := filepath.Join(dir, "c")
	out, err := exec.Command(script, "start", cluster, strconv.Itoa(os.Getpid())).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 && os.Getenv("REFRAIN_CI") == "" {
		t.Skip(string(exit.Stderr))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command(script, "stop", cluster).Run() })
	return strings.TrimSpace(string(out))
}
