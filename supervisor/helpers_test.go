// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type yield = func(*session.Event, error) bool

// world is what the agents of a test do to the outside: how often each step ran,
// and where they are held up.
type world struct {
	mu   sync.Mutex
	ran  map[session.Address]int
	gate map[string]chan struct{} // by agent: a step waits for a value
	seen chan session.Address     // steps say here that they wait
	fail map[session.Address]error
}

func newWorld(gated ...string) *world {
	w := &world{ran: make(map[session.Address]int), gate: make(map[string]chan struct{}), seen: make(chan session.Address, 100),
		fail: make(map[session.Address]error)}
	for _, name := range gated {
		w.gate[name] = make(chan struct{})
	}
	return w
}

// ungate lets an agent through from now on. Those that wait at its gate go on waiting.
func (w *world) ungate(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.gate, name)
}

func (w *world) count(at session.Address) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ran[at]
}

func (w *world) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.ran {
		n += times
	}
	return n
}

// step is an agent that counts, waits at its gate, and adds to a key of the state.
func (w *world) step(t testing.TB, name string) agent.Agent {
	t.Helper()
	return custom(t, name, func(ctx agent.InvocationContext, yield yield) {
		at := drive.At(ctx).Address()
		w.mu.Lock()
		w.ran[at]++
		gate, err := w.gate[name], w.fail[at]
		w.mu.Unlock()
		if gate != nil {
			w.seen <- at
			select {
			case <-gate:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
		if err != nil {
			yield(nil, err)
			return
		}
		said, _ := drive.At(ctx).State().Get(name)
		text, _ := said.(string)
		ev := &session.Event{}
		ev.Content = genai.NewContentFromText("from "+string(at), genai.RoleModel)
		ev.Actions.StateDelta = map[string]any{name: text + "x"}
		yield(ev, nil)
	})
}

// when lets an agent begin when a channel is closed: while a question is open no
// step begins.
func when(t testing.TB, ready <-chan struct{}, a agent.Agent) agent.Agent {
	t.Helper()
	hold := custom(t, "hold", func(ctx agent.InvocationContext, yield yield) {
		select {
		case <-ready:
		case <-ctx.Done():
			yield(nil, context.Cause(ctx))
		}
	})
	s, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "branch", SubAgents: []agent.Agent{hold, a}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func custom(t testing.TB, name string, run func(agent.InvocationContext, yield)) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) { run(ctx, yield) }
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func loop(t testing.TB, name string, n uint, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxIterations: n})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func parallel(t testing.TB, name string, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// nested is three loops in one another, with branches in the innermost.
func (w *world) nested(t testing.TB) agent.Agent {
	t.Helper()
	return loop(t, "outer", 2, w.step(t, "plan"),
		loop(t, "middle", 2, loop(t, "inner", 2, parallel(t, "both", w.step(t, "left"), w.step(t, "right")), w.step(t, "join"))), w.step(t, "check"))
}

// process is a supervisor as a process has it.
func process(t testing.TB, store session.Service, root agent.Agent, change ...func(*supervisor.Config)) *supervisor.Supervisor {
	t.Helper()
	cfg := supervisor.Config{
		Service: store, AppName: "app", UserID: "ana", Leases: supervisor.Leases{Owner: "the test"},
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: root}, nil
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	sup, err := supervisor.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := sup.Close(ctx); err != nil {
			t.Error(err)
		}
		sound(t, store)
	})
	return sup
}

// sound demands of all runs in a store that nothing in them looks as if somebody had
// changed it, whatever was done with them. G9, 12g
func sound(t testing.TB, store session.Service) {
	t.Helper()
	all, err := store.List(context.Background(), &session.ListRequest{AppName: "app"})
	if err != nil {
		return // it fails on purpose
	}
	for _, s := range all.Sessions {
		got, err := store.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: s.UserID(), SessionID: s.ID()})
		if err != nil {
			return
		}
		v := session.ViewOf(got.Session)
		log := slices.Collect(v.Log().All())
		for _, seal := range verify.Of(slices.Values(log)).Loops() {
			if seal.Problem != "" {
				t.Errorf("run %s: loop %s at %d: %s", s.ID(), seal.Loop, seal.Seq, seal.Problem)
			}
		}
		for _, seal := range verify.Of(slices.Values(log)).Runs() {
			if seal.Problem != "" || seal.Unsealed != "" && !seal.Open {
				t.Errorf("run %s: its end at %d: %s%s", s.ID(), seal.Seq, seal.Problem, seal.Unsealed)
			}
		}
		for _, problem := range verify.Of(slices.Values(log)).State(v) {
			t.Errorf("run %s: its state: %s", s.ID(), problem)
		}
	}
}

func named(owner string) func(*supervisor.Config) {
	return func(c *supervisor.Config) { c.Owner = owner }
}

func database(t testing.TB) session.Service {
	t.Helper()
	svc, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "refrain.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Close() })
	return svc
}

// stores are what a run can be in.
func stores(t testing.TB) map[string]session.Service {
	return map[string]session.Service{"memory": session.InMemoryService(), "sqlite": database(t)}
}

func request() supervisor.Request {
	return supervisor.Request{Message: genai.NewContentFromText("go", genai.RoleUser), Started: mark.RunStarted{Name: "test"}}
}

func start(t testing.TB, sup *supervisor.Supervisor) *supervisor.Run {
	t.Helper()
	run, err := sup.Start(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func resume(t testing.TB, sup *supervisor.Supervisor, id string) *supervisor.Run {
	t.Helper()
	run, err := sup.Resume(t.Context(), id, supervisor.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func wait(t testing.TB, run *supervisor.Run) supervisor.Ending {
	t.Helper()
	out, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// completed demands that a run comes to its end.
func completed(t testing.TB, run *supervisor.Run) {
	t.Helper()
	if out := wait(t, run); out.Err != nil || out.Run.Status != mark.RunCompleted {
		t.Errorf("run %s is %s: %v", run.ID(), out.Run.Status, out.Err)
	}
}

func view(t testing.TB, store session.Service, id string) *session.View {
	t.Helper()
	got, err := store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	return session.ViewOf(got.Session)
}

// marks are the kinds of the marks of the run as a whole, in order.
func marks(t testing.TB, store session.Service, id string) (kinds []mark.Kind) {
	t.Helper()
	for ev := range view(t, store, id).Log().All() {
		if ev.Mark != nil && ev.Address == "" {
			kinds = append(kinds, ev.Mark.Kind)
		}
	}
	return kinds
}

// underWay are the steps that have begun and not ended, by the log.
func underWay(t testing.TB, store session.Service, id string) map[session.Address]bool {
	t.Helper()
	open := make(map[session.Address]bool)
	for ev := range view(t, store, id).Events().All() {
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindStepStarted:
			open[ev.Address] = true
		case ev.Mark.Kind == mark.KindStepFinished:
			delete(open, ev.Address)
		}
	}
	return open
}
