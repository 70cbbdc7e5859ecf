// SPDX-License-Identifier: Apache-2.0

package stephost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/stephost"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// farm does tasks here, each once, whatever becomes of those who want them.
type farm struct {
	host *stephost.Host

	mu    sync.Mutex
	tasks map[string]*task
	lost  bool // the next tasks are begun, and their worker dies
}

type task struct {
	elsewhere.Task
	done   chan struct{}
	cancel context.CancelFunc
	cut    bool // it was canceled
	lost   bool
	result json.RawMessage
	err    error
}

func newFarm(cfg stephost.Config) *farm {
	return &farm{host: stephost.New(cfg), tasks: make(map[string]*task)}
}

func (f *farm) Do(ctx context.Context, want *elsewhere.Task) (json.RawMessage, error) {
	f.mu.Lock()
	t := f.tasks[want.ID]
	if t == nil {
		work, cancel := context.WithCancel(context.Background())
		t = &task{Task: *want, done: make(chan struct{}), cancel: cancel, lost: f.lost}
		f.tasks[want.ID] = t
		go func() {
			defer close(t.done)
			if !t.lost {
				t.result, t.err = f.host.Do(work, &t.Task)
			}
		}()
	}
	f.mu.Unlock()
	select {
	case <-t.done:
		if t.lost {
			return nil, &elsewhere.LostError{Task: t.ID, Reason: "its worker has died"}
		}
		return t.result, t.err
	case <-ctx.Done():
		if cause := context.Cause(ctx); !elsewhere.Leaves(cause) {
			f.mu.Lock()
			t.cut = true
			f.mu.Unlock()
			t.cancel()
		}
		return nil, context.Cause(ctx)
	}
}

func (f *farm) Known(_ context.Context, want *elsewhere.Task) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tasks[want.ID]
	return t != nil && !t.lost, nil
}

// ids are the tasks that were begun, without the run's ID before them.
func (f *farm) ids() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.tasks {
		_, rest, _ := strings.Cut(id, "/")
		all = append(all, rest)
	}
	slices.Sort(all)
	return all
}

// mortal is a store that fails after a number of events, as one does whose process has died.
type mortal struct {
	session.Service
	lease.Leaser
	store.Watcher
	left *atomic.Int64
}

var errKilled = errors.New("killed")

func (m mortal) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if m.left.Add(-1) < 0 {
		return errKilled
	}
	return m.Service.AppendEvent(ctx, s, ev)
}

func (m mortal) Renew(ctx context.Context, l *lease.Lease, ttl time.Duration) (*lease.Lease, error) {
	return m.Leaser.Renew(ctx, l, ttl)
}

// office has runs driven by one process after another.
type office struct {
	testing.TB
	*farm
	dir   string
	store session.Service
	n     int
}

func newOffice(t testing.TB) *office {
	o := &office{TB: t, dir: t.TempDir(), store: session.InMemoryService()}
	o.farm = newFarm(stephost.Config{Root: o.dir, Model: func(_ context.Context, name string) (model.LLM, error) {
		return parrot(name), nil
	}})
	return o
}

// parrot is a model that says how much it has heard.
type parrot string

func (p parrot) Name() string { return string(p) }

func (p parrot) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		text := fmt.Sprintf("%s heard %d: %s", p, len(req.Contents), req.Config.SystemInstruction.Parts[0].Text)
		yield(&model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel), ModelVersion: string(p)}, nil)
	}
}

// driver is a supervisor in a process that dies after so many events.
func (o *office) driver(events int64) *supervisor.Supervisor {
	o.Helper()
	o.n++
	m := mortal{o.store, o.store.(lease.Leaser), o.store.(store.Watcher), new(atomic.Int64)}
	m.left.Store(events)
	sup, err := supervisor.New(supervisor.Config{Service: m, AppName: "a", UserID: "u",
		Leases: supervisor.Leases{Owner: fmt.Sprint("driver ", o.n), Dead: func(string) bool { return true }},
		Build:  program.Rebuild(program.Env{Elsewhere: o.farm, Getenv: func(string) string { return "" }})})
	if err != nil {
		o.Fatal(err)
	}
	return sup
}

func (o *office) request(text string) supervisor.Request {
	o.Helper()
	file := filepath.Join(o.dir, "loop.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		o.Fatal(err)
	}
	p := &program.Program{Dir: o.dir, Root: o.TempDir()} // the driver has files of its own
	def, err := p.Read(file)
	if err != nil {
		o.Fatal(err)
	}
	started, err := p.Started(def)
	if err != nil {
		o.Fatal(err)
	}
	state, err := def.InitialState(nil)
	if err != nil {
		o.Fatal(err)
	}
	return supervisor.Request{SessionID: "r", Message: genai.NewContentFromText("go", genai.RoleUser), State: state,
		Started: started}
}

// state is the run's at its end, without what depends on the time.
func (o *office) state() map[string]any {
	o.Helper()
	got, err := o.store.Get(o.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "r"})
	if err != nil {
		o.Fatal(err)
	}
	state := make(map[string]any)
	for key, v := range got.Session.State().All() {
		if !strings.HasPrefix(key, "refrain:") && key != mark.KeyRun {
			state[key] = v
		}
	}
	return state
}

func (o *office) lines(file string) []string {
	o.Helper()
	text, err := os.ReadFile(filepath.Join(o.dir, file))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.Fatal(err)
	}
	all := strings.Fields(string(text))
	slices.Sort(all)
	return all
}

// busy has steps of all kinds elsewhere: side by side, with a retry, and as a tool of nobody.
const busy = `name: busy
max_iterations: 3
state: {n: 0}
sub_agents:
  - name: count
    set: {n: state.n + 1}
  - name: both
    type: parallel
    sub_agents:
      - name: left
        task_queue: one
        command: [sh, -c, 'echo $REFRAIN_CALL_ID >>effects; echo "left $1"', sh, "{{n}}"]
        output_key: left
      - name: right
        task_queue: two
        command: [sh, -c, 'echo $REFRAIN_CALL_ID >>effects; echo "right $1"', sh, "{{n}}"]
        output_key: right
  - name: flaky
    task_queue: one
    retry: 3
    command: [sh, -c, 'echo $REFRAIN_CALL_ID >>tries; [ -e "flag-$1" ] && exec cat; touch "flag-$1"; exit 3', sh, "{{n}}"]
    stdin: "{{left}}"
    output_key: flaky
  - name: ask
    task_queue: two
    url: "SERVER/{{n}}"
    method: POST
    headers: {X-Note: "{{left}}"}
    body: "{{right}}"
    output_key: said
  - name: think
    task_queue: two
    model: openai/parrot
    context: none
    instructions: "Say {{n}}."
    output_key: thought
`

// server answers, and counts the keys of requests.
func server(t testing.TB, seen *sync.Map) string {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		n, _ := seen.LoadOrStore(req.Header.Get("Idempotency-Key"), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		fmt.Fprintf(w, "%s with %s", req.URL.Path, req.Header.Get("X-Note"))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// A run whose drivers die at random comes to the same end, and each of its tasks is done once: who
// drives on gets the result of the task that the dead one has begun.
func TestDriversDie(t *testing.T) {
	var seen sync.Map
	text := strings.ReplaceAll(busy, "SERVER", server(t, &seen))
	whole := newOffice(t)
	run, err := whole.driver(1<<40).Start(t.Context(), whole.request(text))
	if err != nil {
		t.Fatal(err)
	}
	if end, err := run.Wait(t.Context()); err != nil || end.Err != nil {
		t.Fatalf("it ends with %v, %v", end.Err, err)
	}
	want := whole.state()
	if fmt.Sprint(want["left"], want["said"], want["thought"]) == "" {
		t.Fatalf("it has the state %v", want)
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		o := newOffice(t)
		var end supervisor.Ending
		run, err := o.driver(1+random.Int64N(40)).Start(t.Context(), o.request(text))
		for kills := 0; ; kills++ {
			if err == nil {
				end, err = run.Wait(t.Context())
			}
			if err == nil && end.Run.Status.IsFinal() {
				break
			}
			if kills > 200 {
				t.Fatalf("seed %d: it does not end: %v, %v", seed, end.Err, err)
			}
			next := o.driver(1 + random.Int64N(40))
			if run, err = next.Resume(t.Context(), "r", supervisor.ResumeOptions{}); errors.Is(err, supervisor.ErrNotFound) {
				run, err = next.Start(t.Context(), o.request(text))
			}
		}
		if end.Run.Status != mark.RunCompleted {
			t.Fatalf("seed %d: it ends as %s: %s", seed, end.Run.Status, end.Run.Error)
		}
		if diff := cmp.Diff(want, o.state()); diff != "" {
			t.Errorf("seed %d: the state (-whole +killed):\n%s", seed, diff)
		}
		if diff := cmp.Diff(len(whole.ids()), len(o.ids())); diff != "" {
			t.Errorf("seed %d: the tasks:\n%s", seed, strings.Join(o.ids(), "\n"))
		}
		if n := len(slices.Compact(o.lines("effects"))); n != 6 || len(o.lines("effects")) != 6 {
			t.Errorf("seed %d: effects of %d calls: %v", seed, n, o.lines("effects"))
		}
	}
}

// waits is a step that waits for a file on its machine.
const waits = `name: waits
max_iterations: 1
sub_agents:
  - name: far
    task_queue: one
    command: [sh, -c, 'echo $REFRAIN_CALL_ID >>effects; until [ -e go ]; do sleep 0.01; done; echo gone']
    output_key: far
`

// begun waits until the commands have begun.
func (o *office) begun(n int) {
	o.Helper()
	for len(o.lines("effects")) < n {
		select {
		case <-time.After(time.Millisecond):
		case <-o.Context().Done():
			o.Fatal("it does not begin")
		}
	}
}

func (o *office) let() {
	o.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, "go"), nil, 0o600); err != nil {
		o.Fatal(err)
	}
}

func (o *office) wait(run *supervisor.Run, err error) supervisor.Ending {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
	end, err := run.Wait(o.Context())
	if err != nil {
		o.Fatal(err)
	}
	return end
}

// cuts is how many tasks were canceled.
func (o *office) cuts() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.tasks {
		if t.cut {
			n++
		}
	}
	return n
}

// A pause that cuts off the steps leaves them where they are done; the run gets their results when it
// goes on.
func TestPauseLeavesTheTask(t *testing.T) {
	o := newOffice(t)
	sup := o.driver(1 << 40)
	run, err := sup.Start(t.Context(), o.request(waits))
	if err != nil {
		t.Fatal(err)
	}
	o.begun(1)
	if err := sup.PauseNow(t.Context(), "r", "lunch"); err != nil {
		t.Fatal(err)
	}
	if end := o.wait(run, nil); end.Run.Status != mark.RunIsPaused || o.cuts() != 0 {
		t.Fatalf("it is %s, and %d tasks were canceled", end.Run.Status, o.cuts())
	}
	o.let()
	if end := o.wait(o.driver(1<<40).Resume(t.Context(), "r", supervisor.ResumeOptions{})); end.Err != nil {
		t.Fatal(end.Err)
	}
	if got := o.state()["far"]; got != "gone" || len(o.lines("effects")) != 1 {
		t.Errorf("it says %v, and was done %d times", got, len(o.lines("effects")))
	}
}

// A run that is canceled, and a step whose time is over, cancel their tasks.
func TestCutOff(t *testing.T) {
	o := newOffice(t)
	sup := o.driver(1 << 40)
	run, err := sup.Start(t.Context(), o.request(waits))
	if err != nil {
		t.Fatal(err)
	}
	o.begun(1)
	if err := sup.Cancel(t.Context(), "r", "enough"); err != nil {
		t.Fatal(err)
	}
	if end := o.wait(run, nil); end.Run.Status != mark.RunCanceled || o.cuts() != 1 {
		t.Errorf("it is %s, and %d tasks were canceled", end.Run.Status, o.cuts())
	}

	late := newOffice(t)
	end := late.wait(late.driver(1<<40).Start(t.Context(), late.request(strings.Replace(waits, "    output_key",
		"    timeout: 50ms\n    output_key", 1))))
	if !end.Run.Status.IsFinal() || late.cuts() != len(late.ids()) {
		t.Errorf("it is %s, and %d of %d tasks were canceled", end.Run.Status, late.cuts(), len(late.ids()))
	}
}

// A step that a person has made again is another task.
func TestFailedStepMadeAgain(t *testing.T) {
	o := newOffice(t)
	end := o.wait(o.driver(1<<40).Start(t.Context(), o.request(`name: again
max_iterations: 1
sub_agents:
  - name: far
    task_queue: one
    command: [sh, -c, 'echo $REFRAIN_CALL_ID >>effects; [ -e go ]']
`)))
	if end.Run.Status != mark.RunFailed {
		t.Fatalf("it is %s", end.Run.Status)
	}
	o.let()
	end = o.wait(o.driver(1<<40).Resume(t.Context(), "r", supervisor.ResumeOptions{Continue: true}))
	if end.Run.Status != mark.RunCompleted {
		t.Fatalf("it is %s: %v", end.Run.Status, end.Err)
	}
	if ids, calls := o.ids(), slices.Compact(o.lines("effects")); len(ids) != 2 || ids[1] != ids[0]+"~2" || len(calls) != 1 {
		t.Errorf("tasks %v of the calls %v", ids, calls)
	}
}

// once is a step that must not be done twice.
var once = strings.Replace(waits, "    output_key", "    effect: at_most_once\n    output_key", 1)

// A step that must not be done twice is not in doubt when its driver has died: its task tells.
func TestOnceIsKnown(t *testing.T) {
	o := newOffice(t)
	sup := o.driver(1 << 40)
	run, err := sup.Start(t.Context(), o.request(once))
	if err != nil {
		t.Fatal(err)
	}
	o.begun(1)
	if err := sup.PauseNow(t.Context(), "r", ""); err != nil {
		t.Fatal(err)
	}
	o.wait(run, nil)
	o.let()
	if end := o.wait(o.driver(1<<40).Resume(t.Context(), "r", supervisor.ResumeOptions{})); end.Run.Status != mark.RunCompleted {
		t.Fatalf("it is %s: %v", end.Run.Status, end.Err)
	}
	if got := o.state()["far"]; got != "gone" || len(o.lines("effects")) != 1 {
		t.Errorf("it says %v, and was done %d times", got, len(o.lines("effects")))
	}
}

// If the worker of such a step dies a person is asked, and the answer counts, whoever drives then.
func TestOnceInDoubt(t *testing.T) {
	for _, again := range []bool{true, false} {
		o := newOffice(t)
		o.lost = true
		o.let()
		end := o.wait(o.driver(1<<40).Start(t.Context(), o.request(once)))
		if end.Run.Status != mark.RunWaiting {
			t.Fatalf("it is %s: %v", end.Run.Status, end.Err)
		}
		o.lost = false
		sup := o.driver(1 << 40)
		open, err := sup.Questions(t.Context(), "r")
		if err != nil || len(open) != 1 {
			t.Fatalf("it asks %v, %v", open, err)
		}
		answer, want := `{"action": "retry"}`, []string{"gone", "2 tasks"}
		if !again {
			answer, want = `{"action": "result", "result": "seen"}`, []string{"seen", "1 tasks"}
		}
		if _, err := sup.Answer(t.Context(), "r", mark.Answer{ID: open[0].ID, Value: []byte(answer)}); err != nil {
			t.Fatal(err)
		}
		for events := int64(2); ; events += 2 { // drivers die meanwhile
			run, err := o.driver(events).Resume(t.Context(), "r", supervisor.ResumeOptions{})
			if err == nil {
				end, err = run.Wait(t.Context())
			}
			if err == nil && end.Run.Status.IsFinal() {
				break
			}
			if events > 100 {
				t.Fatalf("it does not end: %v, %v", end.Err, err)
			}
		}
		got := []string{fmt.Sprint(o.state()["far"]), fmt.Sprint(len(o.ids()), " tasks")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("retry %v (-want +got):\n%s%v", again, diff, o.ids())
		}
	}
}

// A definition that names a task queue does not run where nobody reaches it, and says where.
func TestNoDispatcher(t *testing.T) {
	o := newOffice(t)
	req := o.request(waits)
	_, err := program.Rebuild(program.Env{})(t.Context(), req.Started)
	if err == nil || !strings.Contains(err.Error(), "loop.yaml:5:17") || !strings.Contains(err.Error(), `"one"`) {
		t.Errorf("it is built: %v", err)
	}
}
