// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/temporal"
)

// host is where a worker for steps works, in a process of its own.
type host struct{ Dir, HostPort, Namespace, Queue string }

// doSteps is that process.
func doSteps(at string) error {
	var h host
	if err := json.Unmarshal([]byte(at), &h); err != nil {
		return err
	}
	dial, err := client.Dial(client.Options{HostPort: h.HostPort, Namespace: h.Namespace, Logger: quiet})
	if err != nil {
		return err
	}
	s, err := temporal.NewSteps(dial, h.Queue, temporal.StepsConfig{Host: stephost.Config{Root: h.Dir},
		Grace: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fmt.Println("works")
	return s.Run(ctx)
}

// steps starts a worker for the steps of a queue, on a machine whose folder is below the cluster's.
func (c *cluster) steps(queue, dir string) *exec.Cmd {
	c.Helper()
	dir = filepath.Join(c.dir, dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.Fatal(err)
	}
	at, err := json.Marshal(host{dir, c.address, c.namespace, queue})
	if err != nil {
		c.Fatal(err)
	}
	return c.launch("REFRAIN_TEST_STEPS=" + string(at))
}

// sends starts a worker in this process that drives runs, and sends steps elsewhere.
func (c *cluster) sends(name string, change ...func(*temporal.Dispatcher)) (stop func()) {
	c.Helper()
	d := temporal.NewDispatcher(c.Client, 2*time.Second)
	for _, f := range change {
		f(d)
	}
	c.Cleanup(d.Close)
	return c.worker(name, func(cfg *temporal.Config) {
		cfg.Supervisor.Build = program.Rebuild(program.Env{Elsewhere: d})
	})
}

// over waits for the end of a run.
func (c *cluster) over(id string) mark.Run {
	c.Helper()
	var run mark.Run
	c.until("run "+id+" is over", func() bool {
		st, err := c.sup.Status(c.Context(), id)
		if err != nil {
			c.Fatal(err)
		}
		run = st.Run
		return run.Status.IsFinal()
	})
	return run
}

// lines are what commands have written into a file of a machine, sorted.
func (c *cluster) lines(name string) []string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.Fatal(err)
	}
	all := strings.Fields(string(text))
	slices.Sort(all)
	return all
}

// until waits until something holds.
func (c *cluster) until(what string, holds func() bool) {
	c.Helper()
	for !holds() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-c.Context().Done():
			c.Fatalf("it does not come to that: %s", what)
		}
	}
}

func (c *cluster) write(name string) {
	c.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), nil, 0o600); err != nil {
		c.Fatal(err)
	}
}

// far waits on another machine for a file.
const far = `name: far
max_iterations: 1
sub_agents:
  - name: wait
    task_queue: gpu
    command: [sh, -c, 'trap "echo cut >>cuts; exit 9" TERM; echo $REFRAIN_CALL_ID >>effects; until [ -e go ]; do sleep 0.02; done; echo done by $PWD']
    output_key: said
`

// once is far with a command that must not be done twice.
var once = strings.Replace(far, "    output_key", "    effect: at_most_once\n    output_key", 1)

// A driver that is killed while commands run elsewhere: the next one gets their results, and each was
// begun once, also one that must not be done twice. So does the one after a pause that cuts off the
// steps, and after a hand-over.
func TestStepOutlivesItsDriver(t *testing.T) {
	c := newCluster(t)
	c.steps("gpu", "far")
	first := c.process("one")
	both := []string{c.start(far), c.start(once)}
	c.until("the commands have begun", func() bool { return len(c.lines("far/effects")) == 2 })
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	stop := c.sends("two")
	for _, id := range both {
		c.until("the second driver has the run", func() bool { return strings.HasSuffix(c.owner(id), "by two") })
		c.ask(id, temporal.Request{Do: temporal.PauseNow, Reason: "lunch"})
		c.stands(id, mark.RunIsPaused)
		c.ask(id, temporal.Request{Do: temporal.Resume})
		c.until("the run goes on", func() bool { return c.owner(id) != "" })
	}
	stop() // it hands the runs over, and cuts off their steps
	c.sends("three")
	for _, id := range both {
		c.until("the third driver has the run", func() bool { return strings.HasSuffix(c.owner(id), "by three") })
	}
	c.write("far/go")
	for _, id := range both {
		if run := c.over(id); run.Status != mark.RunCompleted {
			t.Fatalf("it is %s: %s", run.Status, run.Error)
		}
		if said := fmt.Sprint(c.state(id, "said")); !strings.HasSuffix(said, "/far") {
			t.Errorf("it says %q", said)
		}
	}
	if n := len(c.lines("far/effects")); n != 2 {
		t.Errorf("the commands were begun %d times", n)
	}
}

// owner is who drives a run; empty if nobody does.
func (c *cluster) owner(id string) string {
	c.Helper()
	held, err := c.sup.Driver(c.Context(), id)
	if err != nil {
		c.Fatal(err)
	}
	if held == nil {
		return ""
	}
	return held.Owner
}

// A run that is canceled, and a step whose time is over, end the command where it runs.
func TestStepIsCutOff(t *testing.T) {
	c := newCluster(t)
	c.steps("gpu", "far")
	c.sends("one")
	id := c.start(strings.ReplaceAll(far, "until [ -e go ]", "until ! echo $$ >pid; [ -e go ]"))
	c.until("the command has begun", func() bool { return len(c.lines("far/effects")) == 1 })
	c.until("the command says who it is", func() bool { return len(c.lines("far/pid")) == 1 })
	pid := c.lines("far/pid")[0]
	c.ask(id, temporal.Request{Do: temporal.Cancel})
	c.stands(id, mark.RunCanceled)
	c.until("the command has ended", func() bool { return exec.Command("kill", "-0", pid).Run() != nil })

	late := strings.ReplaceAll(far, "until [ -e go ]", "until ! echo $$ >late; [ -e go ]")
	id = c.start(strings.Replace(late, "    output_key", "    timeout: 3s\n    output_key", 1))
	c.until("the command says who it is", func() bool { return len(c.lines("far/late")) == 1 })
	pid = c.lines("far/late")[0]
	c.over(id)
	c.until("the command has ended", func() bool { return exec.Command("kill", "-0", pid).Run() != nil })
}

// Parallel branches are done on two machines at once: each waits for the other.
func TestBranchesOnTwoMachines(t *testing.T) {
	c := newCluster(t)
	c.steps("left", "near")
	c.steps("right", "far")
	c.sends("one")
	id := c.start(`name: both
type: parallel
sub_agents:
  - name: l
    task_queue: left
    command: [sh, -c, 'touch here; until [ -e ../far/here ]; do sleep 0.02; done; echo left']
    output_key: l
  - name: r
    task_queue: right
    command: [sh, -c, 'touch here; until [ -e ../near/here ]; do sleep 0.02; done; echo right']
    output_key: r
`)
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted {
		t.Fatalf("it ends as %+v, %v", st, err)
	}
	if got := fmt.Sprintf("%v %v", c.state(id, "l"), c.state(id, "r")); got != "left right" {
		t.Errorf("they say %q", got)
	}
}

// The worker of a step dies: another one does the step, under the same call ID.
func TestStepWorkerDies(t *testing.T) {
	c := newCluster(t)
	c.sends("one")
	first := c.steps("gpu", "far")
	id := c.start(far)
	c.until("the command has begun", func() bool { return len(c.lines("far/effects")) == 1 })
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	c.steps("gpu", "far")
	c.until("the command has begun again", func() bool { return len(c.lines("far/effects")) == 2 })
	c.write("far/go")
	if st, err := c.result(id); err != nil || st.Status != mark.RunCompleted {
		t.Fatalf("it ends as %+v, %v", st, err)
	}
	if calls := slices.Compact(c.lines("far/effects")); len(calls) != 1 {
		t.Errorf("the call IDs: %v", calls)
	}

}

// A step that must not be done twice is in doubt when its worker dies, or stops in the middle of it.
func TestStepOnce(t *testing.T) {
	for _, sig := range []os.Signal{os.Kill, os.Interrupt} {
		c := newCluster(t)
		c.sends("one", func(d *temporal.Dispatcher) { d.Once(2 * time.Second) })
		worker := c.steps("gpu", "far")
		id := c.start(once)
		c.until("the command has begun", func() bool { return len(c.lines("far/effects")) == 1 })
		if err := worker.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_ = worker.Wait()
		c.steps("gpu", "far")
		c.stands(id, mark.RunWaiting)
		open, err := c.sup.Questions(t.Context(), id)
		if err != nil || len(open) != 1 {
			t.Fatalf("it asks %v, %v", open, err)
		}
		if n := len(c.lines("far/effects")); n != 1 {
			t.Errorf("the command was begun %d times", n)
		}
		c.write("far/go")
		c.ask(id, temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: open[0].ID,
			Value: []byte(`{"action": "retry"}`)}})
		if run := c.over(id); run.Status != mark.RunCompleted || len(c.lines("far/effects")) != 2 {
			t.Errorf("it is %s: %s, and the command was begun %d times", run.Status, run.Error, len(c.lines("far/effects")))
		}
	}
}

// A result that Temporal would refuse fails the step, and does not have it done again.
func TestLargeStep(t *testing.T) {
	c := newCluster(t)
	c.steps("gpu", "far")
	c.sends("one")
	id := c.start(`name: large
max_iterations: 1
sub_agents:
  - name: result
    task_queue: gpu
    command: [sh, -c, 'echo $REFRAIN_CALL_ID >>effects; head -c 3000000 /dev/zero | tr "\0" x']
    output_limit: 4MB
`)
	run := c.over(id)
	if run.Status != mark.RunFailed || !strings.Contains(run.Error, "the result of the step is too large") {
		t.Errorf("it is %s: %s", run.Status, run.Error)
	}
	if n := len(c.lines("far/effects")); n != 1 {
		t.Errorf("the command was begun %d times", n)
	}
}

// On a server without activities of their own steps are workflows, and all else is the same.
func TestStepsAreWorkflows(t *testing.T) {
	c := newCluster(t)
	c.steps("gpu", "far")
	flows := func(d *temporal.Dispatcher) { d.Flows() }
	stop := c.sends("one", flows)
	id := c.start(strings.ReplaceAll(once, "until [ -e go ]", "echo $$ >pid; until [ -e go ]"))
	c.until("the command has begun", func() bool { return len(c.lines("far/pid")) == 1 })
	stop()
	c.sends("two", flows)
	c.write("far/go")
	if run := c.over(id); run.Status != mark.RunCompleted || len(c.lines("far/effects")) != 1 {
		t.Errorf("it is %s: %s, and the command was begun %d times", run.Status, run.Error, len(c.lines("far/effects")))
	}
}
