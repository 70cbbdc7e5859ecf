// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

func TestRunEndsWithItsMark(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld()
	sup := process(t, store, w.nested(t))
	run := start(t, sup)
	completed(t, run)
	want := []mark.Kind{mark.KindRunStarted, mark.KindRunEnded}
	if diff := cmp.Diff(want, marks(t, store, run.ID())); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	all, err := sup.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	got := all[0]
	if got.ID != run.ID() || got.Run.Status != mark.RunCompleted || got.Run.Stop != "max_iterations" || got.Run.Name != "test" || got.Here ||
		got.Run.Started.IsZero() {
		t.Errorf("the list says %+v", got)
	}
	if n := len(underWay(t, store, run.ID())); n > 0 {
		t.Errorf("%d steps are under way", n)
	}
}

func TestFailedRunSaysWhy(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld()
	w.fail["outer[2]/check"] = errors.New("the disk is full")
	run := start(t, process(t, store, w.nested(t)))
	out := wait(t, run)
	if _, ok := errors.AsType[*agent.StepError](out.Err); !ok || out.Run.Status != mark.RunFailed || !strings.Contains(out.Run.Error, "the disk is full") {
		t.Errorf("got %+v", out)
	}
	if _, err := process(t, store, w.nested(t)).Resume(t.Context(), run.ID(), supervisor.ResumeOptions{}); !errors.Is(err, supervisor.ErrOver) {
		t.Errorf("resume: got %v", err)
	}
}

// clumsy is an observer that panics when it is told of something.
type clumsy struct {
	observe.Observer
	at string
}

func (c clumsy) panics(at string) {
	if c.at == at {
		panic("oops")
	}
}

func (c clumsy) Run(ctx context.Context, _ *observe.Run) (context.Context, func(error)) {
	c.panics("begin")
	return ctx, func(error) { c.panics("end") }
}

func (c clumsy) Step(ctx context.Context, s *observe.Step) (context.Context, func(error)) {
	c.panics(s.Agent)
	return ctx, func(error) {}
}

func (c clumsy) Iteration(ctx context.Context, _ *observe.Iteration) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (c clumsy) Stopped(context.Context, observe.Stop) {}

// A panic of a function of the supervisor's user ends the run with its place, and not the process. The run
// goes on where it was when the function is mended.
func TestPanicOfTheSupervisorsUser(t *testing.T) {
	for _, tt := range []struct {
		name, place string
		change      func(*supervisor.Config)
		status      mark.RunStatus
	}{
		{"OnEvent", "OnEvent of run", func(c *supervisor.Config) { c.OnEvent = func(string, *session.Event) { panic("oops") } }, mark.RunIsPaused},
		{"OnBeginning", "OnBeginning of run", func(c *supervisor.Config) {
			c.OnBeginning = func(string, mark.Run, bool) { panic("oops") }
		}, mark.RunIsPaused},
		{"OnEnding", "OnEnding of run", func(c *supervisor.Config) {
			c.OnEnding = func(string, supervisor.Ending) { panic("oops") }
		}, mark.RunCompleted},
		{"the observer of the run", "observer of the beginning of run", func(c *supervisor.Config) { c.Observer = clumsy{at: "begin"} }, mark.RunIsPaused},
		{"the observer of its end", "observer of the end of run", func(c *supervisor.Config) { c.Observer = clumsy{at: "end"} }, mark.RunCompleted},
		{"the observer of a step", `agent "check" (outer[1]/check)`, func(c *supervisor.Config) { c.Observer = clumsy{at: "check"} }, mark.RunFailed},
		{"the observer of the root", `agent "outer" (outer)`, func(c *supervisor.Config) { c.Observer = clumsy{at: "outer"} }, mark.RunIsPaused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := session.InMemoryService()
			w := newWorld()
			sup := process(t, store, w.nested(t), tt.change)
			run, err := sup.Start(t.Context(), request())
			if err == nil {
				out := wait(t, run)
				if err = out.Err; out.Run.Status != tt.status {
					t.Errorf("the run is %s, want %s", out.Run.Status, tt.status)
				}
			}
			if _, ok := errors.AsType[*agent.PanicError](err); !ok || !strings.Contains(err.Error(), tt.place) || !strings.Contains(err.Error(), "oops") {
				t.Errorf("got %v, want the panic and %q", err, tt.place)
			}
			if tt.status == mark.RunIsPaused {
				again, err := process(t, store, w.nested(t)).Resume(t.Context(), run.ID(), supervisor.ResumeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				completed(t, again)
			}
		})
	}
}

// LOOP 30: a pause lets the steps that are under way end, and nothing runs twice.
func TestPauseAtTheNextBoundary(t *testing.T) {
	for _, gated := range []string{"plan", "left", "join", "check"} {
		t.Run(gated, func(t *testing.T) {
			store := session.InMemoryService()
			whole := newWorld()
			first := start(t, process(t, store, whole.nested(t)))
			completed(t, first)

			w := newWorld(gated)
			sup := process(t, store, w.nested(t))
			run := start(t, sup)
			at := <-w.seen
			if err := sup.Pause(t.Context(), run.ID(), "lunch"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-run.Done():
				t.Fatal("the run has ended with a step under way")
			case <-time.After(20 * time.Millisecond):
			}
			close(w.gate[gated])
			out := wait(t, run)
			if !errors.Is(out.Err, agent.ErrPaused) || out.Run.Status != mark.RunIsPaused || !strings.Contains(out.Err.Error(), "lunch") {
				t.Fatalf("got %+v", out)
			}
			if w.count(at) != 1 || len(underWay(t, store, run.ID())) > 0 {
				t.Errorf("%s ran %d times; under way are %v", at, w.count(at), underWay(t, store, run.ID()))
			}
			w.gate[gated] = nil
			completed(t, resume(t, sup, run.ID()))
			if diff := cmp.Diff(whole.ran, w.ran); diff != "" {
				t.Errorf("how often steps ran (-whole +paused):\n%s", diff)
			}
			if diff := cmp.Diff(maps.Collect(view(t, store, first.ID()).State().All()), maps.Collect(view(t, store, run.ID()).State().All())); diff != "" {
				t.Errorf("the state (-whole +paused):\n%s", diff)
			}
			want := []mark.Kind{mark.KindRunStarted, mark.KindRunPaused, mark.KindRunTaken, mark.KindRunResumed, mark.KindRunEnded}
			if diff := cmp.Diff(want, marks(t, store, run.ID())); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

// A cut keeps what has ended; what was under way is made again.
func TestPauseNowCutsOff(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("join")
	sup := process(t, store, w.nested(t))
	run := start(t, sup)
	at := <-w.seen
	if err := sup.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	if out := wait(t, run); !errors.Is(out.Err, agent.ErrPaused) || out.Run.Status != mark.RunIsPaused {
		t.Fatalf("got %+v", out)
	}
	w.gate["join"] = nil
	completed(t, resume(t, sup, run.ID()))
	if w.count(at) != 2 || w.total() != 29 { // 28 steps in all, and that one again
		t.Errorf("the step that was cut off ran %d times, and %d steps ran in all", w.count(at), w.total())
	}
}

// LOOP 29: cancel is at once, and leaves nothing that is running by its log.
func TestCancel(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("left")
	sup := process(t, store, w.nested(t))
	run := start(t, sup)
	<-w.seen
	if err := sup.Cancel(t.Context(), run.ID(), "not needed"); err != nil {
		t.Fatal(err)
	}
	out := wait(t, run)
	if c, ok := errors.AsType[*supervisor.CanceledError](out.Err); !ok || c.Reason != "not needed" || out.Run.Status != mark.RunCanceled {
		t.Errorf("got %+v", out)
	}
	if open := underWay(t, store, run.ID()); len(open) > 0 {
		t.Errorf("under way are %v", open)
	}
	for _, ask := range []func(context.Context, string, string) error{sup.Cancel, sup.Pause} {
		if err := ask(t.Context(), run.ID(), ""); !errors.Is(err, supervisor.ErrOver) {
			t.Errorf("once more: got %v", err)
		}
	}
	w.gate["left"] = nil
	completed(t, resume(t, sup, run.ID())) // whoever changes their mind
}

// LOOP 31: a run goes on with other agents only where they fit its log.
func TestResumeWithAnotherProgram(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("check")
	trees := map[string]agent.Agent{
		`"old"`:   w.nested(t),
		`"fits"`:  loop(t, "outer", 2, w.step(t, "plan"), loop(t, "middle", 2, loop(t, "inner", 2, parallel(t, "both", w.step(t, "left"), w.step(t, "right")), w.step(t, "join"))), w.step(t, "check"), w.step(t, "more")),
		`"other"`: loop(t, "outer", 2, w.step(t, "idea"), w.step(t, "check")),
	}
	sup := process(t, store, nil, func(c *supervisor.Config) {
		c.Build = func(_ context.Context, s mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: trees[string(s.Program)]}, nil
		}
	})
	req := request()
	req.Started.Program = []byte(`"old"`)
	run, err := sup.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	<-w.seen
	if err := sup.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	w.gate["check"] = nil
	before := w.total()
	again, err := sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{Program: []byte(`"other"`)})
	if err != nil {
		t.Fatal(err)
	}
	if out := wait(t, again); !errors.Is(out.Err, runner.ErrDiverged) || out.Run.Status != mark.RunIsPaused {
		t.Errorf("got %+v", out)
	}
	if w.total() != before {
		t.Errorf("%d steps ran of agents that do not fit", w.total()-before)
	}
	completed(t, resume(t, sup, run.ID())) // as it was started
}

// LOOP 30: a run that a program does not fit is as it was: paused or canceled, for the
// reason that it had.
func TestRefusedProgramChangesNothing(t *testing.T) {
	type end struct {
		mark mark.Kind
		stop func(*supervisor.Supervisor, string) error
	}
	for _, end := range []end{
		{mark.KindRunPaused, func(sup *supervisor.Supervisor, id string) error { return sup.PauseNow(t.Context(), id, "lunch") }},
		{mark.KindRunEnded, func(sup *supervisor.Supervisor, id string) error { return sup.Cancel(t.Context(), id, "lunch") }},
	} {
		t.Run(string(end.mark), func(t *testing.T) {
			store := session.InMemoryService()
			w := newWorld("check")
			trees := map[string]agent.Agent{`"old"`: w.nested(t), `"other"`: loop(t, "outer", 2, w.step(t, "idea"))}
			sup := process(t, store, nil, func(c *supervisor.Config) {
				c.Build = func(_ context.Context, s mark.RunStarted) (*supervisor.Program, error) {
					return &supervisor.Program{Agent: trees[string(s.Program)]}, nil
				}
			})
			req := request()
			req.Started.Program = []byte(`"old"`)
			run, err := sup.Start(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			<-w.seen
			if err := end.stop(sup, run.ID()); err != nil {
				t.Fatal(err)
			}
			before := wait(t, run).Run
			again, err := sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{Program: []byte(`"other"`)})
			if err != nil {
				t.Fatal(err)
			}
			if out := wait(t, again); !errors.Is(out.Err, runner.ErrDiverged) || out.Run.Status != before.Status || out.Run.Error != before.Error {
				t.Errorf("the run stands as %+v (%v), before it was %+v", out.Run, out.Err, before)
			}
			log := view(t, store, run.ID()).Events()
			last := log.At(log.Len() - 1).Mark
			var why struct{ Reason, Error string }
			if last == nil || last.Kind != end.mark || last.Decode(&why) != nil || why.Reason+why.Error != "lunch" {
				t.Errorf("the log ends with %+v", last)
			}
			w.gate["check"] = nil
			completed(t, resume(t, sup, run.ID()))
		})
	}
}

// LOOP 31: a run goes on with a higher limit, and one that failed with the step that
// failed; one that was ended by an agent does not.
func TestContinue(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld()
	limit := uint(2)
	sup := process(t, store, nil, func(c *supervisor.Config) {
		c.Build = func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: loop(t, "l", limit, w.step(t, "say"))}, nil
		}
	})
	run := start(t, sup)
	completed(t, run)
	if _, err := sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{}); !errors.Is(err, supervisor.ErrOver) {
		t.Errorf("got %v", err)
	}
	limit = 4
	w.fail["l[4]/say"] = errors.New("no power")
	more, err := sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{Continue: true})
	if err != nil {
		t.Fatal(err)
	}
	if out := wait(t, more); out.Run.Status != mark.RunFailed {
		t.Fatalf("got %+v", out)
	}
	w.fail = nil
	if more, err = sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{Continue: true}); err != nil {
		t.Fatal(err)
	}
	completed(t, more)
	if n := w.total(); n != 5 || w.count("l[4]/say") != 2 {
		t.Errorf("%d steps ran: %v", n, w.ran)
	}
	more, err = sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{Continue: true})
	if err != nil {
		t.Fatal(err)
	}
	if out := wait(t, more); out.Err == nil || out.Run.Status != mark.RunCompleted {
		t.Errorf("without a higher limit: got %+v", out)
	}
}

func TestStartRefuses(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("plan")
	bad := errors.New("no key for the model")
	sup := process(t, store, w.nested(t))
	broken := process(t, store, nil, func(c *supervisor.Config) {
		c.Build = func(context.Context, mark.RunStarted) (*supervisor.Program, error) { return nil, bad }
	})
	if _, err := broken.Start(t.Context(), request()); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if all, _ := store.List(t.Context(), &session.ListRequest{AppName: "app"}); len(all.Sessions) > 0 {
		t.Error("a run that could not be built has left a session")
	}
	run := start(t, sup)
	<-w.seen
	again := request()
	again.SessionID = run.ID()
	if _, err := sup.Start(t.Context(), again); !errors.Is(err, supervisor.ErrUnderWay) {
		t.Errorf("a second run in the session: got %v", err)
	}
	if _, err := sup.Resume(t.Context(), run.ID(), supervisor.ResumeOptions{}); !errors.Is(err, supervisor.ErrUnderWay) {
		t.Errorf("resume what is under way: got %v", err)
	}
	if err := sup.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	if _, err := sup.Start(t.Context(), again); !errors.Is(err, supervisor.ErrUnderWay) || !strings.Contains(err.Error(), "is paused: resume or cancel it first") {
		t.Errorf("a second run beside one that is paused: got %v", err)
	}
	if err := sup.Pause(t.Context(), run.ID(), ""); !errors.Is(err, supervisor.ErrPaused) {
		t.Errorf("pause what is paused: got %v", err)
	}
	for _, id := range []string{"r_none", ""} {
		if err := sup.Pause(t.Context(), id, ""); err == nil {
			t.Errorf("pause of run %q", id)
		}
	}
	if err := sup.Cancel(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	w.gate["plan"] = nil
	next, err := sup.Start(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, next) // the session goes on
}

// Close pauses what it can and cuts off the rest.
func TestClose(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("plan")
	sup := process(t, store, w.nested(t))
	run := start(t, sup)
	<-w.seen
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := sup.Close(ctx); err != nil {
		t.Error(err)
	}
	if out := wait(t, run); !errors.Is(out.Err, agent.ErrPaused) || out.Run.Status != mark.RunIsPaused {
		t.Errorf("got %+v", out)
	}
	if _, err := sup.Start(t.Context(), request()); !errors.Is(err, supervisor.ErrClosed) {
		t.Errorf("start: got %v", err)
	}
	w.gate["plan"] = nil
	completed(t, resume(t, process(t, store, w.nested(t)), run.ID()))
}
