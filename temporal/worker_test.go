// SPDX-License-Identifier: Apache-2.0

package temporal_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// office is a store with runs, and a worker for them without a cluster.
type office struct {
	testing.TB
	store session.Service
	sup   *supervisor.Supervisor // somebody else's
	w     *temporal.Worker

	came chan int // a step has begun, with its number
	let  chan error

	mu    sync.Mutex
	steps int
}

// leases is a store that tells when a lease is refused.
type leases struct {
	session.Service
	lease.Leaser
	store.Watcher

	refused chan string // to whom
}

func newLeases() *leases {
	svc := session.InMemoryService()
	return &leases{svc, svc.(lease.Leaser), svc.(store.Watcher), make(chan string, 10000)}
}

func (l *leases) Acquire(ctx context.Context, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error) {
	got, err := l.Leaser.Acquire(ctx, key, owner, ttl)
	if err != nil {
		l.refused <- owner
	}
	return got, err
}

func newOffice(t testing.TB, change ...func(*temporal.Config)) *office {
	t.Helper()
	o := &office{TB: t, store: newLeases(), came: make(chan int, 100), let: make(chan error, 100)}
	cfg := temporal.Config{Supervisor: o.config("worker"), Grace: time.Hour}
	for _, f := range change {
		f(&cfg)
	}
	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if o.w, err = temporal.NewWorker(c, cfg); err != nil {
		t.Fatal(err)
	}
	if o.sup, err = supervisor.New(o.config("somebody")); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) config(owner string) supervisor.Config {
	return supervisor.Config{Service: o.store, AppName: "app", UserID: "ana", Leases: supervisor.Leases{Owner: owner}, Build: o.build}
}

// build makes a loop of three iterations, whose steps wait to be let through.
func (o *office) build(context.Context, mark.RunStarted) (*supervisor.Program, error) {
	step, err := agent.New(agent.Config{Name: "step", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			o.mu.Lock()
			o.steps++
			n := o.steps
			o.mu.Unlock()
			o.came <- n
			select {
			case err := <-o.let:
				if err != nil {
					yield(nil, err)
				}
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
			}
		}
	}})
	if err != nil {
		return nil, err
	}
	root, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "loop", SubAgents: []agent.Agent{step}}, MaxIterations: 3})
	return &supervisor.Program{Agent: root}, err
}

// submit writes a run into the store.
func (o *office) submit() string {
	o.Helper()
	id, err := o.sup.Submit(o.Context(), supervisor.Request{Message: genai.NewContentFromText("go", genai.RoleUser),
		Started: mark.RunStarted{Name: "test"}, Driver: temporal.Driver(temporal.DefaultTaskQueue)})
	if err != nil {
		o.Fatal(err)
	}
	return id
}

func (o *office) standing(id string) supervisor.Status {
	o.Helper()
	st, err := o.sup.Status(o.Context(), id)
	if err != nil {
		o.Fatal(err)
	}
	return st
}

// drive executes the activity that drives a run.
func (o *office) drive(in leg) (st temporal.Status, err error) {
	o.Helper()
	return o.execute("refrain.Drive", in)
}

func (o *office) execute(name string, in any) (st temporal.Status, err error) {
	o.Helper()
	var s testsuite.WorkflowTestSuite
	s.SetLogger(quiet)
	env := s.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	o.w.Register(env)
	v, err := env.ExecuteActivity(name, in)
	if err == nil {
		err = v.Get(&st)
	}
	return st, err
}

func (o *office) through(n int) {
	for range n {
		o.let <- nil
	}
}

func kindOf(err error) string {
	if app, ok := errors.AsType[*sdk.ApplicationError](err); ok {
		return app.Type()
	}
	return ""
}

// A worker drives a run to its end, and says where it is; somebody else sees who drives it.
func TestDrive(t *testing.T) {
	o := newOffice(t)
	id := o.submit()
	o.through(3)
	st, err := o.drive(leg{RunID: id})
	if err != nil || st.Status != mark.RunCompleted || st.Stop != "max_iterations" || st.Iteration != 3 || st.Worker != "worker" {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	if now := o.standing(id); now.Seq != st.Seq || now.Run.Status != st.Status {
		t.Errorf("it stands as %+v", now)
	}
	again, err := o.drive(leg{RunID: id})
	if err != nil || again.Seq != st.Seq || o.steps != 3 {
		t.Errorf("a second leg after the end: %+v, %v, %d steps", again, err, o.steps)
	}
	if _, err := o.drive(leg{RunID: "r_none"}); kindOf(err) != "not_found" {
		t.Errorf("a run that is not there: %v", err)
	}
	if err := o.sup.HandTo(t.Context(), id, ""); !errors.Is(err, supervisor.ErrOver) {
		t.Error(err)
	}
}

// E5: what a person wanted after the event that the workflow knows of stands: a second attempt does not
// continue what was paused after the first one. Whoever asks for it later has it continued.
func TestAttemptDoesNotOverrideAPause(t *testing.T) {
	o := newOffice(t)
	id := o.submit()
	first := make(chan temporal.Status)
	go func() {
		st, err := o.drive(leg{RunID: id})
		if err != nil {
			t.Error(err)
		}
		first <- st
	}()
	<-o.came
	if st, err := o.execute("refrain.Ask", asking{id, temporal.Request{Do: temporal.Pause, Reason: "lunch"}}); err != nil || st.Status != mark.RunRunning {
		t.Errorf("the pause: %+v, %v", st, err)
	}
	o.through(1)
	st := <-first
	if st.Status != mark.RunIsPaused || st.HandOver {
		t.Errorf("the first attempt ends as %+v", st)
	}
	again, err := o.drive(leg{RunID: id})
	if err != nil || again.Status != mark.RunIsPaused || again.Seq != st.Seq {
		t.Errorf("a second attempt: %+v, %v", again, err)
	}
	_, err = o.execute("refrain.Ask", asking{id, temporal.Request{Do: temporal.PauseNow}})
	if kindOf(err) != "paused" {
		t.Errorf("a second pause: %v", err)
	}
	if _, err := o.execute("refrain.Ask", asking{id, temporal.Request{Do: temporal.Resume}}); err != nil {
		t.Errorf("may it be resumed? %v", err)
	}
	o.through(2)
	if st, err = o.drive(leg{RunID: id, After: st.Seq}); err != nil || st.Status != mark.RunCompleted || o.steps != 3 {
		t.Errorf("it ends as %+v, %v after %d steps", st, err, o.steps)
	}
}

// G8: a worker that stops hands its runs over; when its grace ends it cuts off their steps, which another
// worker repeats.
func TestStop(t *testing.T) {
	o := newOffice(t, func(c *temporal.Config) { c.Grace = time.Millisecond })
	id := o.submit()
	first := make(chan temporal.Status)
	go func() {
		st, err := o.drive(leg{RunID: id})
		if err != nil {
			t.Error(err)
		}
		first <- st
	}()
	<-o.came
	o.w.Stop()
	st := <-first
	if st.Status != mark.RunIsPaused || !st.HandOver || st.Error != "" {
		t.Errorf("the run of a worker that stops stands as %+v", st)
	}
	o.w = newWorker(t, o)
	o.through(3)
	if st, err := o.drive(leg{RunID: id, After: 1}); err != nil || st.Status != mark.RunCompleted || o.steps != 4 {
		t.Errorf("it ends as %+v, %v after %d steps", st, err, o.steps)
	}
}

// An attempt that Temporal does not want any more gives its run back when the step has ended: Temporal
// may only have been away, and the step costs money.
func TestUnwantedAttemptEndsItsStep(t *testing.T) {
	o := newOffice(t)
	id := o.submit()
	var s testsuite.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	o.w.Register(env)
	ctx, unwanted := context.WithCancelCause(t.Context())
	defer unwanted(nil)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	first := make(chan temporal.Status)
	go func() {
		defer close(first)
		v, err := env.ExecuteActivity("refrain.Drive", leg{RunID: id})
		var st temporal.Status
		if err == nil {
			err = v.Get(&st)
		}
		if err != nil {
			t.Error(err)
		}
		first <- st
	}()
	<-o.came
	unwanted(sdk.NewCanceledError())
	o.through(3)
	if st := <-first; !st.HandOver && st.Status != mark.RunCompleted {
		t.Errorf("it stands as %+v", st)
	}
	o.w = newWorker(t, o)
	if st, err := o.drive(leg{RunID: id, After: 1}); err != nil || st.Status != mark.RunCompleted || o.steps != 3 {
		t.Errorf("it ends as %+v, %v after %d steps", st, err, o.steps)
	}
}

// newWorker is another worker of the same runs.
func newWorker(t testing.TB, o *office) *temporal.Worker {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w, err := temporal.NewWorker(c, temporal.Config{Supervisor: o.config("another worker")})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The lease of an attempt that Temporal has given up, and that nobody renews, is taken over long
// before it ends. That of another driver is not.
func TestLeaseOfADeadAttempt(t *testing.T) {
	o := newOffice(t, func(c *temporal.Config) { c.Supervisor.LeaseRenew = 20 * time.Millisecond })
	refused := o.store.(*leases).refused
	id := o.submit()
	leaser := o.store.(lease.Leaser)
	key := lease.Key{AppName: "app", UserID: "ana", SessionID: id}
	l, err := leaser.Acquire(t.Context(), key, "temporal default-test-workflow-id another-run 1 1 by a dead worker", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	o.through(3)
	st, err := o.drive(leg{RunID: id})
	if err != nil || st.Status != mark.RunCompleted {
		t.Errorf("it ends as %+v, %v", st, err)
	}
	if _, err := leaser.Renew(t.Context(), l, time.Hour); !errors.Is(err, lease.ErrLost) {
		t.Errorf("the dead attempt still holds the run: %v", err)
	}
	for len(refused) > 0 {
		<-refused
	}

	id = o.submit()
	key.SessionID = id
	if l, err = leaser.Acquire(t.Context(), key, "somebody", time.Hour); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := o.drive(leg{RunID: id})
		done <- err
	}()
	for range 5 { // it looks for longer than two renewals would take
		<-refused
	}
	if _, err := leaser.Renew(t.Context(), l, time.Hour); err != nil {
		t.Fatalf("the lease was taken: %v", err)
	}
	o.through(3)
	if err := leaser.Release(t.Context(), l); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A run that diverges or fails to build is paused, with the reason; a person can continue it.
func TestRunThatCannotGoOn(t *testing.T) {
	o := newOffice(t, func(c *temporal.Config) {
		c.Supervisor.Build = func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return nil, errors.New("no such program here")
		}
	})
	id := o.submit()
	st, err := o.drive(leg{RunID: id})
	if err != nil || st.Status != mark.RunIsPaused || st.HandOver || st.Error != "no such program here" {
		t.Errorf("it stands as %+v, %v", st, err)
	}
}

// A run of another driver is not this worker's.
func TestRunOfAnotherDriver(t *testing.T) {
	o := newOffice(t)
	id := o.submit()
	if err := o.sup.HandTo(t.Context(), id, "somebody"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.drive(leg{RunID: id, After: 100}); kindOf(err) != "driver" {
		t.Errorf("got %v", err)
	}
}

// Requests that cannot be fulfilled say why.
func TestRefusedAsk(t *testing.T) {
	o := newOffice(t)
	id := o.submit()
	for _, tt := range []struct {
		req  temporal.Request
		kind string
	}{
		{temporal.Request{Do: "dance"}, temporal.KindRequest},
		{temporal.Request{Do: temporal.Answer}, temporal.KindRequest},
		{temporal.Request{Do: temporal.Answer, Answer: &mark.Answer{ID: "q"}}, "no_question"},
		{temporal.Request{Do: temporal.Resume}, "running"},
		{temporal.Request{Do: temporal.Raise, Limits: []byte(`{}`)}, "running"},
		{temporal.Request{Do: temporal.Cancel}, ""},
		{temporal.Request{Do: temporal.Cancel}, "over"},
		{temporal.Request{Do: temporal.Raise}, temporal.KindRequest},
		{temporal.Request{Do: temporal.Raise, Limits: []byte(`[9]`)}, temporal.KindRequest},
	} {
		_, err := o.execute("refrain.Ask", asking{id, tt.req})
		if kindOf(err) != tt.kind {
			t.Errorf("%+v: got %v, want %q", tt.req, err, tt.kind)
		}
		app, refused := errors.AsType[*sdk.ApplicationError](err)
		if refused && app.Category() != sdk.ApplicationErrorCategoryBenign { // else the SDK logs it as an error
			t.Errorf("%+v: an alarm: %v", tt.req, err)
		}
	}
	if st := o.standing(id); st.Run.Status != mark.RunCanceled {
		t.Errorf("it stands as %+v", st)
	}
}

func TestConfig(t *testing.T) {
	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := temporal.NewWorker(c, temporal.Config{}); err == nil {
		t.Error("a worker without a store")
	}
	if _, err := temporal.NewWorker(c, temporal.Config{MaxRuns: -1}); err == nil {
		t.Error("a worker for fewer than no runs")
	}
}

// The log names who has asked for a pause, an answer or the end of a run, and not the worker that did it.
func TestWhoAsks(t *testing.T) {
	o := newOffice(t)
	id := o.submit()
	first := make(chan error)
	go func() {
		_, err := o.drive(leg{RunID: id})
		first <- err
	}()
	<-o.came
	if _, err := o.execute("refrain.Ask", asking{id, temporal.Request{Do: temporal.Pause, By: "ana", Reason: "lunch"}}); err != nil {
		t.Error(err)
	}
	o.through(1)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := o.execute("refrain.Ask", asking{id, temporal.Request{Do: temporal.Cancel, By: "bo"}}); err != nil {
		t.Error(err)
	}
	var by []string
	got, err := o.store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	for ev := range session.ViewOf(got.Session).Log().OutlineByKind(mark.KindRunPaused, mark.KindRunEnded) {
		var m struct{ By string }
		if err := ev.Mark.Decode(&m); err != nil {
			t.Error(err)
		}
		by = append(by, m.By)
	}
	if diff := cmp.Diff([]string{"ana", "bo"}, by); diff != "" {
		t.Errorf("who asked (-want +got):\n%s", diff)
	}
}
