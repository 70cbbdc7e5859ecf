// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	history "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
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
	if app, ok := errors.AsType[*sdk.ApplicationError](err); !ok || app.Type() != temporal.KindNoQuestion {
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
	c.keep(id, "answered")
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
	c.keep(id, "submitted")
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
	c.keep(id, "handed")
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
	c.keep(id, "canceled")
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
	c.keep(id, "killed")
}

// place is where a worker in a process of its own works.
type place struct{ Dir, HostPort, Namespace, Name string }

// process starts a worker in a process, and waits until it works.
func (c *cluster) process(name string) *exec.Cmd {
	c.Helper()
	at, err := json.Marshal(place{c.dir, c.address, c.namespace, name})
	if err != nil {
		c.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REFRAIN_TEST_WORKER="+string(at))
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
		c.Fatalf("worker %s does not start", name)
	}
	return cmd
}

// work is that process.
func work(at string) error {
	var p place
	if err := json.Unmarshal([]byte(at), &p); err != nil {
		return err
	}
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(p.Dir, "refrain.db"), sqlite.Config{})
	if err != nil {
		return err
	}
	dial, err := client.Dial(client.Options{HostPort: p.HostPort, Namespace: p.Namespace, Logger: quiet})
	if err != nil {
		return err
	}
	w, err := temporal.NewWorker(dial, temporal.Config{Supervisor: config(store, p.Name), Heartbeat: 2 * time.Second})
	if err != nil {
		return err
	}
	fmt.Println("works")
	return w.Run(ctx)
}

// identity names the process and the machine that a history comes from.
var identity = regexp.MustCompile(`"identity": ?"[^"]*"`)

// keep writes the history of a workflow to a file.
func keep(c *cluster, id, file string) {
	var all history.History
	for it := c.Client.GetWorkflowHistory(c.Context(), id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
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
