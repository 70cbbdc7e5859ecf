// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	history "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/postgres"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// approved asks a person once, and counts to three before and after.
const approved = `name: approved
type: sequential
state: {n: 0}
sub_agents:
  - name: before
    max_iterations: 3
    sub_agents:
      - name: count
        set: {n: state.n + 1}
  - name: boss
    question: Shall I?
    ask: approve
    output_key: review
  - name: after
    max_iterations: 3
    sub_agents:
      - name: again
        set: {n: state.n + 1}
`

// A run on a cluster asks a person, is paused and resumed, and comes to its end.
func TestRun(t *testing.T) {
	c := newCluster(t)
	c.worker("one")
	id := c.start(approved)
	c.stands(id, mark.RunWaiting)
	_, err := temporal.Ask(t.Context(), c.Client, id, temporal.Request{Do: temporal.Answer,
		Answer: &mark.Answer{ID: "another", Value: []byte("true")}}, temporal.Options{})
	if !errors.Is(err, supervisor.ErrNoQuestion) {
		t.Errorf("an answer to another question: %v", err)
	}
	open, err := c.sup.Questions(t.Context(), id)
	if err != nil || len(open) != 1 {
		t.Fatalf("it asks %v, %v", open, err)
	}
	c.ask(id, temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: open[0].ID, Value: []byte("true"), By: "ana"}})
	st, err := c.result(id)
	if err != nil || st.Status != mark.RunCompleted {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	if n := c.state(id, "n"); fmt.Sprint(n) != "6" {
		t.Errorf("it has counted to %v", n)
	}
	c.keep(id, "", "answered")
	if _, err := temporal.Ask(t.Context(), c.Client, id, temporal.Request{Do: temporal.Pause}, temporal.Options{}); err == nil {
		t.Error("a run is paused that has ended")
	}
}

// What is written into the store without Temporal moves the run as well: somebody submits it, answers
// and resumes it there, as the page does.
func TestStoreAlone(t *testing.T) {
	c := newCluster(t)
	c.worker("one")
	req := c.request(approved)
	req.Driver = temporal.Driver(temporal.DefaultTaskQueue)
	id, err := c.sup.Submit(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	c.stands(id, mark.RunWaiting)
	open, err := c.sup.Questions(t.Context(), id)
	if err != nil || len(open) != 1 {
		t.Fatalf("it asks %v, %v", open, err)
	}
	if _, err := c.sup.Answer(t.Context(), id, mark.Answer{ID: open[0].ID, Value: []byte("true")}); err != nil {
		t.Fatal(err)
	}
	c.stands(id, mark.RunCompleted)
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	c.keep(id, "", "submitted")
}

// counting has an effect in each of its iterations.
const counting = `name: counting
max_iterations: 12
state: {n: 0}
sub_agents:
  - name: count
    set: {n: state.n + 1}
  - name: note
    command: [sh, -c, 'echo $REFRAIN_CALL_ID >>effects; sleep 0.2']
`

// noted waits until the commands of a run have had so many effects.
func (c *cluster) noted(n int) {
	c.Helper()
	for {
		text, _ := os.ReadFile(filepath.Join(c.dir, "effects"))
		if strings.Count(string(text), "\n") >= n {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-c.Context().Done():
			c.Fatal("the run has no effects")
		}
	}
}

// counted demands the result that a run has in one process.
func (c *cluster) counted(id string) {
	c.Helper()
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted || st.Stop != "max_iterations" {
		c.Errorf("it ends as %+v, %v", st, err)
	}
	if n := c.state(id, "n"); fmt.Sprint(n) != "12" {
		c.Errorf("it has counted to %v", n)
	}
	if all := c.effects(); len(all) != 12 {
		c.Errorf("%d effects, want 12, each under its own ID: %q", len(all), all)
	}
}

// E5, G8: a run is paused and resumed, and a worker that stops hands it to another one.
func TestPauseAndHandOver(t *testing.T) {
	c := newCluster(t)
	stop := c.worker("one")
	id := c.start(counting)
	c.noted(2)
	c.ask(id, temporal.Request{Do: temporal.Pause, Reason: "lunch"})
	c.stands(id, mark.RunIsPaused)
	c.ask(id, temporal.Request{Do: temporal.Resume})
	c.noted(4)
	c.worker("two")
	stop()
	c.counted(id)
	c.keep(id, "", "handed")
}

// E5: a workflow that is canceled cancels its run.
func TestCancel(t *testing.T) {
	c := newCluster(t)
	c.worker("one")
	id := c.start(counting)
	c.noted(2)
	if err := c.Client.CancelWorkflow(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.result(id); !sdk.IsCanceledError(err) {
		t.Errorf("the workflow ends with %v", err)
	}
	c.stands(id, mark.RunCanceled)
	c.keep(id, "", "canceled")
}

// A run that waits is canceled, and another is removed, where Temporal is not asked: a worker that starts ends both workflows.
func TestWorkflowsOfEndedRunsEnd(t *testing.T) {
	c := newCluster(t)
	stop := c.worker("one")
	canceled, removed := c.start(approved), c.start(approved)
	for _, id := range []string{canceled, removed} {
		c.stands(id, mark.RunWaiting)
	}
	stop()
	for _, id := range []string{canceled, removed} {
		if err := c.sup.Cancel(t.Context(), id, "not now"); err != nil {
			t.Fatal(err)
		}
	}
	if err := supervisor.Remove(t.Context(), c.store, lease.Key{AppName: "refrain", UserID: "refrain", SessionID: removed}); err != nil {
		t.Fatal(err)
	}
	c.worker("two")
	if st, err := c.result(canceled); err != nil || st.Status != mark.RunCanceled {
		t.Errorf("the workflow of the canceled run ends with %+v, %v", st, err)
	}
	if _, err := c.result(removed); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("the workflow of the removed run ends with %v", err)
	}
}

// G7, G8: a worker is killed, several times; the run goes on with another one, and its result is that of a run
// which nobody has touched.
func TestWorkersAreKilled(t *testing.T) {
	c := newCluster(t)
	first := c.process("one")
	id := c.start(counting)
	for i := range 3 {
		c.noted(3*i + 2)
		next := c.process(fmt.Sprint("number ", i+2))
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait()
		first = next
	}
	c.counted(id)
	c.keep(id, "", "killed")
}

// A limit that has ended a run is raised, and the run goes on from there, in a workflow of its own.
// Whoever looks for it in Temporal finds it by its search attributes.
func TestRaise(t *testing.T) {
	c := newCluster(t)
	for _, want := range []bool{false, true} {
		if want {
			c.attributes()
		}
		has, err := temporal.HasSearchAttributes(t.Context(), c.Client, c.namespace)
		if err != nil || has != want {
			t.Errorf("the namespace has search attributes: %t, %v, want %t", has, err, want)
		}
	}
	withAttributes := temporal.Options{Heartbeat: 2 * time.Second, SearchAttributes: true}
	c.worker("one", func(cfg *temporal.Config) { cfg.SearchAttributes = true })
	id, err := temporal.Start(t.Context(), c.Client, c.sup, c.request(strings.ReplaceAll(counting, "12", "2")), withAttributes)
	if err != nil {
		t.Fatal(err)
	}
	c.listed(id, `RefrainDefinition = "counting" AND RefrainStatus IN ("running", "completed")`)
	if st, err := c.result(id); err != nil || st.Stop != "max_iterations" || st.Iteration != 2 {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	c.listed(id, `RefrainDefinition = "counting" AND RefrainStatus = "completed" AND RefrainStop = "max_iterations"`)
	if _, err := temporal.Ask(t.Context(), c.Client, id, temporal.Request{Do: temporal.Raise, By: "ana",
		Limits: []byte(`{"max_iterations": 12}`)}, withAttributes); err != nil {
		t.Fatal(err)
	}
	c.counted(id)
	c.keep(id, "", "raised")
}

// attributes makes the search attributes of runs.
func (c *cluster) attributes() {
	c.Helper()
	keyword := enums.INDEXED_VALUE_TYPE_KEYWORD
	_, err := c.OperatorService().AddSearchAttributes(c.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: c.namespace, SearchAttributes: map[string]enums.IndexedValueType{
			temporal.AttributeDefinition: keyword, temporal.AttributeStatus: keyword, temporal.AttributeStop: keyword}})
	if err != nil {
		c.Fatal(err)
	}
}

// listed waits until Temporal lists a run among those of a query.
func (c *cluster) listed(id, query string) {
	c.Helper()
	for {
		got, err := c.ListWorkflow(c.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		for _, w := range got.GetExecutions() {
			if w.GetExecution().GetWorkflowId() == id {
				return
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-c.Context().Done():
			c.Fatalf("run %s is not listed by %s: %v", id, query, err)
		}
	}
}

// A workflow whose history has become long continues as a new one, while the run waits; and then it goes
// on as if nothing had been.
func TestLongHistory(t *testing.T) {
	c := newCluster(t)
	c.worker("one")
	id := c.start(approved)
	c.stands(id, mark.RunWaiting)
	first := c.execution(id)
	for range 1000 { // the server that .ci/temporal builds suggests it after 200 events, and others after 4096
		_, err := temporal.Ask(t.Context(), c.Client, id, temporal.Request{Do: temporal.Pause}, temporal.Options{})
		if !errors.Is(err, supervisor.ErrPaused) {
			t.Fatalf("a pause of a run that waits: %v", err)
		}
		if c.execution(id) != first {
			break
		}
	}
	if c.execution(id) == first {
		t.Fatal("its workflow goes on and on")
	}
	c.keep(id, first, "long")
	open, err := c.sup.Questions(t.Context(), id)
	if err != nil || len(open) != 1 {
		t.Fatalf("it asks %v, %v", open, err)
	}
	c.ask(id, temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: open[0].ID, Value: []byte("true")}})
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	if n := c.state(id, "n"); fmt.Sprint(n) != "6" {
		t.Errorf("it has counted to %v", n)
	}
	c.keep(id, "", "continued")
}

// execution is the ID of the workflow's last execution.
func (c *cluster) execution(id string) string {
	c.Helper()
	got, err := c.DescribeWorkflowExecution(c.Context(), id, "")
	if err != nil {
		c.Fatal(err)
	}
	return got.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// place is where a worker in a process of its own works. It does the steps of the task queue "far" too.
type place struct {
	Dir, DSN, HostPort, Namespace, Name, TaskQueue string
	MaxRuns                                        int
	Heartbeat                                      time.Duration // 0: 2 s
}

// process starts a worker in a process, and waits until it works.
func (c *cluster) process(name string) *exec.Cmd {
	c.Helper()
	return c.employ(place{Name: name})
}

// employ is process for a worker that p says more of.
func (c *cluster) employ(p place) *exec.Cmd {
	c.Helper()
	p.Dir, p.DSN, p.HostPort, p.Namespace = c.dir, c.dsn, c.address, c.namespace
	at, err := json.Marshal(p)
	if err != nil {
		c.Fatal(err)
	}
	return c.launch("REFRAIN_TEST_WORKER=" + string(at))
}

// launch starts this program for something else than tests, and waits until it works.
func (c *cluster) launch(env string) *exec.Cmd {
	c.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if !bufio.NewScanner(out).Scan() {
		c.Fatalf("a worker does not start: %s", env)
	}
	return cmd
}

// work is that process.
func work(at string) error {
	var p place
	if err := json.Unmarshal([]byte(at), &p); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := p.store(ctx)
	if err != nil {
		return err
	}
	dial, err := client.Dial(client.Options{HostPort: p.HostPort, Namespace: p.Namespace, Logger: quiet})
	if err != nil {
		return err
	}
	far := temporal.NewDispatcher(dial, 2*time.Second)
	defer far.Close()
	cfg := temporal.Config{Supervisor: config(store, p.Name), Heartbeat: cmp.Or(p.Heartbeat, 2*time.Second),
		MaxRuns: p.MaxRuns, TaskQueue: p.TaskQueue}
	cfg.Supervisor.Build = program.Rebuild(program.Env{Elsewhere: far})
	w, err := temporal.NewWorker(dial, cfg)
	if err != nil {
		return err
	}
	steps, err := temporal.NewSteps(dial, "far", temporal.StepsConfig{Host: stephost.Config{Root: p.Dir}})
	if err != nil {
		return err
	}
	var beside sync.WaitGroup
	defer func() { stop(); beside.Wait() }()
	beside.Go(func() { _ = steps.Run(ctx) })
	fmt.Println("works")
	return w.Run(ctx)
}

func (p *place) store(ctx context.Context) (session.Service, error) {
	if p.DSN != "" {
		return postgres.Open(ctx, p.DSN, postgres.Config{})
	}
	return sqlite.Open(ctx, filepath.Join(p.Dir, "refrain.db"), sqlite.Config{})
}

// identity names the process and the machine that a history comes from.
var identity = regexp.MustCompile(`"identity": ?"[^"]*"`)

// keep writes the history of a workflow to a file.
func keep(c *cluster, id, execution, file string) {
	var all history.History
	for it := c.Client.GetWorkflowHistory(c.Context(), id, execution, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		ev, err := it.Next()
		if err != nil {
			c.Fatal(err)
		}
		all.Events = append(all.Events, ev)
	}
	text, err := protojson.Marshal(&all)
	if err == nil {
		text = identity.ReplaceAll(text, []byte(`"identity":"worker"`))
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// E4, E5: a question is answered by another worker than the one that has asked it, which is gone, with
// PostgreSQL as the store.
func TestAnswerByAnotherWorker(t *testing.T) {
	c, _ := newPostgresCluster(t)
	stop := c.worker("one")
	id := c.start(approved)
	c.stands(id, mark.RunWaiting)
	stop()
	open, err := c.sup.Questions(t.Context(), id)
	if err != nil || len(open) != 1 {
		t.Fatalf("it asks %v, %v", open, err)
	}
	c.worker("two")
	c.ask(id, temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: open[0].ID, Value: []byte("true"), By: "ana"}})
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted || st.Worker != "two" {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	if n := c.state(id, "n"); fmt.Sprint(n) != "6" {
		t.Errorf("it has counted to %v", n)
	}
}

// G7: a run that waits for a free worker is canceled, and never begins.
func TestQueuedRunIsCanceled(t *testing.T) {
	c, _ := newPostgresCluster(t)
	c.worker("one", func(cfg *temporal.Config) { cfg.MaxRuns = 1 })
	busy := c.start(strings.ReplaceAll(counting, "sleep 0.2", "until [ -e go ]; do sleep 0.05; done"))
	c.noted(1)
	queued := c.start(strings.ReplaceAll(counting, "effects", "others"))
	if st := c.ask(queued, temporal.Request{Do: temporal.Cancel, Reason: "too late"}); st.Status != mark.RunCanceled {
		t.Errorf("the queued run stands as %+v", st)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.counted(busy)
	if st, err := c.result(queued); err != nil || st.Status != mark.RunCanceled {
		t.Errorf("the queued run ends as %+v, %v", st, err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "others")); err == nil {
		t.Error("the canceled run had an effect")
	}
}

// G8: two stores share a namespace, and each has a run of one name. The second run is told so, and what is asked of it does
// not reach the first.
func TestRunsOfOneNameInOneNamespace(t *testing.T) {
	c := newCluster(t)
	const id = "nightly"
	theirs := temporal.Options{TaskQueue: "theirs"}
	if err := temporal.Wake(t.Context(), c.Client, id, theirs); err != nil {
		t.Fatal(err)
	}
	taken := func(what string, err error) {
		t.Helper()
		if is, ok := errors.AsType[*temporal.TakenError](err); !ok || is.RunID != id || is.TaskQueue != "theirs" {
			t.Errorf("%s: %v", what, err)
		}
	}
	req := c.request(approved)
	req.SessionID = id
	stored, err := temporal.Start(t.Context(), c.Client, c.sup, req, temporal.Options{})
	if taken("start", err); stored != id {
		t.Errorf("the run that was stored is %q", stored)
	}
	_, err = temporal.Ask(t.Context(), c.Client, id, temporal.Request{Do: temporal.Cancel}, temporal.Options{})
	taken("cancel", err)
	taken("wake", temporal.Wake(t.Context(), c.Client, id, temporal.Options{}))
	got, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	if n := got.GetWorkflowExecutionInfo().GetHistoryLength(); err != nil || n != 3 { // started, signaled, scheduled
		t.Errorf("the other workflow has %d events, %v", n, err)
	}
	// The worker of the second run says it too, and starts the workflow when the other run has ended.
	if err := c.TerminateWorkflow(t.Context(), id, "", "a test"); err != nil {
		t.Fatal(err)
	}
	c.worker("one")
	c.stands(id, mark.RunWaiting)
}
