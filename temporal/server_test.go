// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

var (
	update = flag.Bool("update", false, "write the histories that testdata has not")
	seed   = flag.Uint64("seed", 1, "pause the examples after other steps")
)

// The test binary is the worker too, in a process that can be killed.
func TestMain(m *testing.M) {
	if at := os.Getenv("REFRAIN_TEST_WORKER"); at != "" {
		if err := work(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if at := os.Getenv("REFRAIN_TEST_STEPS"); at != "" {
		if err := doSteps(at); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// quiet leaves out what the SDK logs.
var quiet = log.NewStructuredLogger(slog.New(slog.DiscardHandler))

// cluster is a Temporal server, and a store with runs.
type cluster struct {
	testing.TB
	client.Client
	address, namespace string
	dir                string
	dsn                string // of the store, if that is not in a file
	store              session.Service
	sup                *supervisor.Supervisor
	stop               func() // kills the server, which ends with this process too
	server             int    // its process
}

// newCluster starts the server that REFRAIN_TEMPORAL_SERVER names; the test is left out without one.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{TB: t, dir: t.TempDir()}
	c.serve()
	c.store = c.open(c.dir)
	c.sup = c.supervisor("somebody")
	return c
}

// serve starts the server. Where it keeps what it knows in a folder, it is one that was there before.
func (c *cluster) serve(folder ...string) {
	c.Helper()
	program := os.Getenv("REFRAIN_TEMPORAL_SERVER")
	if program == "" {
		c.Skip("REFRAIN_TEMPORAL_SERVER does not name a server; .ci/temporal builds one")
	}
	cmd := exec.Command(program, folder...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	c.server = cmd.Process.Pid
	var once sync.Once
	c.stop = func() { once.Do(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = in.Close() }) }
	c.Cleanup(c.stop)
	if _, err := fmt.Fscan(out, &c.address, &c.namespace); err != nil {
		c.Fatalf("the server does not start: %v", err)
	}
	if c.Client != nil {
		return
	}
	c.Client, err = client.Dial(client.Options{HostPort: c.address, Namespace: c.namespace, Logger: quiet})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(c.Client.Close)
}

func (c *cluster) open(dir string) session.Service {
	c.Helper()
	svc, err := sqlite.Open(c.Context(), filepath.Join(dir, "refrain.db"), sqlite.Config{})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = svc.Close() })
	return svc
}

func config(store session.Service, owner string) supervisor.Config {
	return supervisor.Config{Service: store, AppName: "refrain", UserID: "refrain", Leases: supervisor.Leases{Owner: owner},
		Build: program.Rebuild(program.Env{})}
}

func (c *cluster) supervisor(owner string) *supervisor.Supervisor {
	c.Helper()
	sup, err := supervisor.New(config(c.store, owner))
	if err != nil {
		c.Fatal(err)
	}
	return sup
}

// worker runs a worker in this process, until the test is over or the function is called.
func (c *cluster) worker(name string, change ...func(*temporal.Config)) (stop func()) {
	c.Helper()
	cfg := temporal.Config{Supervisor: config(c.store, name), Heartbeat: 2 * time.Second, Look: 100 * time.Millisecond,
		Grace: time.Second}
	for _, f := range change {
		f(&cfg)
	}
	w, err := temporal.NewWorker(c.Client, cfg)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			c.Errorf("worker %s: %v", name, err)
		}
	}
	c.Cleanup(stop)
	return stop
}

// request is one for a run of a definition.
func (c *cluster) request(text string) supervisor.Request {
	c.Helper()
	file := filepath.Join(c.dir, "loop.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		c.Fatal(err)
	}
	p := &program.Program{Dir: c.dir, Root: c.dir}
	def, err := p.Read(file)
	if err != nil {
		c.Fatal(err)
	}
	started, err := p.Started(def)
	if err != nil {
		c.Fatal(err)
	}
	state, err := def.InitialState(nil)
	if err != nil {
		c.Fatal(err)
	}
	return supervisor.Request{Message: genai.NewContentFromText("go", genai.RoleUser), State: state, Started: started}
}

func (c *cluster) start(text string) string {
	c.Helper()
	id, err := temporal.Start(c.Context(), c.Client, c.sup, c.request(text), temporal.Options{Heartbeat: 2 * time.Second})
	if err != nil {
		c.Fatal(err)
	}
	return id
}

// ask asks for something by way of Temporal.
func (c *cluster) ask(id string, req temporal.Request) temporal.Status {
	c.Helper()
	st, err := temporal.Ask(c.Context(), c.Client, id, req, temporal.Options{Heartbeat: 2 * time.Second})
	if err != nil {
		c.Fatal(err)
	}
	return st
}

// stands waits until a run stands so.
func (c *cluster) stands(id string, status mark.RunStatus) {
	c.Helper()
	for ev, err := range c.sup.Watch(c.Context(), id, 0) {
		if err != nil {
			c.Fatalf("run %s is not %s: %v", id, status, err)
		}
		_, says := ev.Actions.StateDelta[mark.KeyRun]
		if !says {
			continue
		}
		st, err := c.sup.Status(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		if st.Run.Status == status && !st.Run.HandOver {
			return
		}
		if st.Run.Status.IsFinal() {
			c.Fatalf("run %s is %s: %s", id, st.Run.Status, st.Run.Error)
		}
	}
}

// result waits for the end of a run's workflow.
func (c *cluster) result(id string) (st temporal.Status, err error) {
	c.Helper()
	err = c.Client.GetWorkflow(c.Context(), id, "").Get(c.Context(), &st)
	return st, err
}

func (c *cluster) state(id, key string) any {
	c.Helper()
	got, err := c.store.Get(c.Context(), &session.GetRequest{AppName: "refrain", UserID: "refrain", SessionID: id})
	if err != nil {
		c.Fatal(err)
	}
	v, _ := got.Session.State().Get(key)
	return v
}

// effects are what commands have written, sorted; none is there twice.
func (c *cluster) effects() []string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "effects"))
	if err != nil {
		c.Fatal(err)
	}
	all := strings.Fields(string(text))
	slices.Sort(all)
	return slices.Compact(all)
}

// keep writes the history of a run's workflow where package temporal replays it, unless there is one of that
// name: those that are there stay as they are. An empty execution is the last one.
func (c *cluster) keep(id, execution, name string) {
	c.Helper()
	file := filepath.Join("testdata", name+".json")
	if _, err := os.Stat(file); *update && errors.Is(err, fs.ErrNotExist) {
		keep(c, id, execution, file)
	}
}
