// SPDX-License-Identifier: Apache-2.0

//go:build unix

package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
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

var (
	manySchedules = flag.Int("schedules", longtest.N(4, 50), "schedules of one second in TestKilledServersStartEachTimeOnce")
	forSeconds    = flag.Int("seconds", longtest.N(2, 16), "seconds between the starts of its first and its last clock")
)

// The variables of a process that serves. If childStore is set, the test program is one.
const (
	childStore = "REFRAIN_TEST_SCHEDULER"
	childDir   = "REFRAIN_TEST_DIR"
	clockFile  = "clock" // in childDir's parent: what is added to the clock, in nanoseconds
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childStore); spec != "" {
		if err := serveChild(spec, os.Getenv(childDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func openStore(ctx context.Context, spec string) (interface {
	session.Service
	io.Closer
}, error) {
	if dsn, ok := strings.CutPrefix(spec, "postgres:"); ok {
		return postgres.Open(ctx, dsn, postgres.Config{})
	}
	return sqlite.Open(ctx, spec, sqlite.Config{})
}

// newRuns returns what a server of refrain serve has.
func newRuns(store session.Service, dir string) (*operations.Runs, error) {
	return operations.New(operations.Config{Service: store, AppName: "app", UserID: "ana", Dir: dir,
		Trust: operations.Trust{AllowPrivate: true}, Leases: supervisor.Leases{LeaseTTL: time.Second},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
}

// serveChild serves until the process is killed.
func serveChild(spec, dir string) error {
	ctx := context.Background()
	store, err := openStore(ctx, spec)
	if err != nil {
		return err
	}
	runs, err := newRuns(store, dir)
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

// fleet is two servers of a store and a folder, as processes, with a clock of their own.
type fleet struct {
	*testing.T
	dir, spec string
	add       time.Duration // to the clock

	servers [2]*exec.Cmd
	log     bytes.Buffer
	kills   int

	mu   sync.Mutex
	keys map[string]map[string]int // the requests of the runs of a schedule, by Idempotency-Key
	last map[string]time.Time      // the time of a schedule's last request, by the clock
}

func (f *fleet) now() time.Time { return time.Now().Add(f.add).UTC() }

// set sets the clock of both servers.
func (f *fleet) set(now time.Time) {
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

func (f *fleet) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[name] == nil {
		f.keys[name] = make(map[string]int)
	}
	f.keys[name][r.Header.Get("Idempotency-Key")]++
	f.last[name] = f.now()
}

func (f *fleet) start(i int) {
	f.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childStore+"="+f.spec, childDir+"="+f.dir)
	if _, err := cmd.StdinPipe(); err != nil { // is closed when this process ends
		f.Fatal(err)
	}
	cmd.Stderr = &f.log
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.servers[i] = cmd
}

func (f *fleet) kill(i int) {
	_ = f.servers[i].Process.Kill()
	_ = f.servers[i].Wait()
	f.kills++
}

// run lets the servers work for a time, in which it kills one of them again and again.
func (f *fleet) run(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(d/2, time.Duration(300+rand.IntN(1500))*time.Millisecond)) // of the work that is cut off
		i := rand.IntN(2)
		f.kill(i)
		f.start(i)
	}
}

// until waits for a condition.
func (f *fleet) until(what string, holds func() bool) {
	f.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			f.Fatalf("%s: not after 2 minutes\n%s", what, &f.log)
		}
	}
}

// Two servers that are killed again and again, whose clock is turned back and forward, also over both changes of summer time, start
// each time once; of the times that no server was alive for, the newest.
func TestKilledServersStartEachTimeOnce(t *testing.T) {
	longtest.WithoutRace(t)
	t.Run("sqlite", func(t *testing.T) { killSchedulers(t, filepath.Join(t.TempDir(), "runs.db")) })
	t.Run("postgres", func(t *testing.T) {
		if !longtest.On() {
			t.Skip("a PostgreSQL is started in the long form")
		}
		killSchedulers(t, startPostgres(t))
	})
}

func killSchedulers(t *testing.T, spec string) {
	f := &fleet{T: t, dir: filepath.Join(t.TempDir(), "loops"), spec: spec, keys: make(map[string]map[string]int), last: make(map[string]time.Time)}
	witness := httptest.NewServer(f)
	defer witness.Close()
	var file strings.Builder
	file.WriteString("schedules:\n  - {name: berlin, definition: tick, cron: '30 2 * * *', timezone: Europe/Berlin, set: {schedule: berlin}}\n")
	for i := range *manySchedules {
		fmt.Fprintf(&file, "  - {name: s%d, definition: tick, every: 1s, set: {schedule: s%[1]d}}\n", i)
	}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tick.yaml", "name: tick\ntype: http\ninputs: {schedule: {type: string}}\nmethod: POST\nurl: '"+witness.URL+"/{{schedule}}'\n")
	write("schedules.yaml", file.String())
	store, err := openStore(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records := &scheduler.Records{Service: store, AppName: "app", UserID: "ana"}
	phase := time.Duration(*forSeconds) * time.Second / 4

	f.set(time.Date(2027, 3, 28, 0, 59, 30, 0, time.UTC)) // half a minute before the clocks of Berlin go from 2:00 to 3:00
	for i := range f.servers {
		f.start(i)
	}
	defer func() {
		for i := range f.servers {
			f.kill(i)
		}
	}()
	f.until("the schedules are found", func() bool {
		rec, _, err := records.Read(t.Context(), "berlin")
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

	for i := range f.servers { // nobody serves until autumn, when Berlin's clocks show 2:30 twice
		f.kill(i)
	}
	gaps = append(gaps, [2]time.Time{f.now(), time.Date(2027, 10, 31, 0, 59, 30, 0, time.UTC)})
	f.set(gaps[1][1])
	for i := range f.servers {
		f.start(i)
	}
	f.run(phase)
	f.until("the time that Berlin's clock shows twice", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.keys["berlin"]) == 2 })
	gaps = append(gaps, [2]time.Time{f.now(), time.Date(2027, 10, 31, 1, 30, 0, 0, time.UTC)}) // the second 2:30 of Berlin
	f.set(gaps[2][1])
	f.until("each schedule goes on", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range *manySchedules {
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
func (f *fleet) settle(store session.Service) {
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
		runs, err := newRuns(store, f.dir)
		if err != nil {
			f.Fatal(err)
		}
		defer runs.Folder.Close()
		open, err := runs.Supervisor.ListOpen(f.Context())
		return err == nil && len(open) == 0
	})
}

// check compares the runs of the store with the rules and with the requests of the runs.
func (f *fleet) check(store session.Service, gaps [][2]time.Time) {
	f.Helper()
	all, err := store.List(f.Context(), &session.ListRequest{AppName: "app", UserID: "ana", Brief: true})
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
	f.Logf("%d schedules, %d kills: %d runs, each once; %d requests under way at a kill were repeated", *manySchedules, f.kills, len(all.Sessions), repeated)
}

func startPostgres(t *testing.T) string {
	dir, err := os.MkdirTemp("", "rpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // the server is another user
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../../.ci/postgres")
	if err != nil {
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
	return "postgres:" + strings.TrimSpace(string(out))
}
