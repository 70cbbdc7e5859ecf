// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// say hands an event on; false says that nobody listens any more.
type say = func(*session.Event) bool

// does is an agent that does what f does; an error that f returns is yielded.
func does(t testing.TB, name string, f func(ctx agent.InvocationContext, say say) error) agent.Agent {
	return must(t)(agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			over := false
			err := f(ctx, func(ev *session.Event) bool {
				over = over || !yield(ev, nil)
				return !over
			})
			if err != nil && !over {
				yield(nil, err)
			}
		}
	}}))
}

// says is an agent that says the texts one after another, each time it runs.
func says(t testing.TB, name string, texts ...string) agent.Agent {
	return does(t, name, func(_ agent.InvocationContext, say say) error {
		for _, text := range texts {
			if !say(words(text)) {
				break
			}
		}
		return nil
	})
}

// turns is an agent that says one of the events each time it runs; nil is
// silence, and after the last it says no more.
func turns(t testing.TB, name string, evs ...*session.Event) agent.Agent {
	return does(t, name, func(_ agent.InvocationContext, say say) error {
		if len(evs) > 0 {
			if evs[0] != nil {
				say(evs[0])
			}
			evs = evs[1:]
		}
		return nil
	})
}

// fails is an agent that fails with the errors one after another; nil is a
// success, in which it says "fine".
func fails(t testing.TB, name string, errs ...error) agent.Agent {
	return does(t, name, func(_ agent.InvocationContext, say say) error {
		var err error
		if len(errs) > 0 {
			err, errs = errs[0], errs[1:]
		}
		if err == nil {
			say(words("fine"))
		}
		return err
	})
}

func words(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

// escalate is what ADK's own exit tools set.
func escalate(ev *session.Event) *session.Event {
	ev.Actions.Escalate = true
	return ev
}

// exits is a call of exit_loop with a reason.
func exits(reason string) *session.Event { return exitsBy(session.Exit{Reason: reason}) }

func exitsBy(x session.Exit) *session.Event {
	ev := words("exit " + x.Reason)
	ev.Actions.Escalate, ev.Actions.SkipSummarization = true, true
	ev.Actions.Exit = &x
	return ev
}

// sets is an event that says a text and changes one key of the state.
func sets(text, key string, value any) *session.Event {
	ev := &session.Event{}
	if text != "" {
		ev = words(text)
	}
	ev.Actions.StateDelta = map[string]any{key: value}
	return ev
}

func must(t testing.TB) func(agent.Agent, error) agent.Agent {
	t.Helper()
	return func(a agent.Agent, err error) agent.Agent {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
}

// repeat is a loop with ADK's two fields.
func repeat(t testing.TB, name string, most uint, subs ...agent.Agent) agent.Agent {
	return loopOf(t, name, most, nil, subs...)
}

// loopOf is a loop with more than that.
func loopOf(t testing.TB, name string, most uint, more func(*loopagent.Config), subs ...agent.Agent) agent.Agent {
	t.Helper()
	cfg := loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}, MaxIterations: most}
	if more != nil {
		more(&cfg)
	}
	return must(t)(loopagent.New(cfg))
}

func sequence(t testing.TB, name string, subs ...agent.Agent) agent.Agent {
	return must(t)(sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}}))
}

func parallel(t testing.TB, name string, subs ...agent.Agent) agent.Agent {
	return must(t)(parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}}))
}

// into keeps the loop's stop record in rec.
func into(rec **loop.StopRecord) func(*loopagent.Config) {
	return func(c *loopagent.Config) {
		c.OnStop = func(_ agent.InvocationContext, r *loop.StopRecord) { *rec = r }
	}
}

// stage runs an agent in sessions that are kept in memory.
type stage struct {
	*runner.Runner
	sessions session.Service
	cfg      agent.RunConfig
}

func newStage(t testing.TB, root agent.Agent, durable bool) *stage {
	t.Helper()
	s := &stage{sessions: session.InMemoryService()}
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: s.sessions, AutoCreateSession: true, Durable: durable,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Runner = r
	return s
}

// newStageWith is a stage that has artifacts too.
func newStageWith(t testing.TB, root agent.Agent) *stage {
	t.Helper()
	s := &stage{sessions: session.InMemoryService()}
	r, err := runner.New(runner.Config{
		AppName: "app", Agent: root, SessionService: s.sessions, AutoCreateSession: true, ArtifactService: artifact.InMemoryService(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Runner = r
	return s
}

// send runs the agent on one message, and checks the form of what comes back.
func (s *stage) send(t testing.TB, ctx context.Context, text string) (evs []*session.Event, err error) {
	t.Helper()
	msg := genai.NewContentFromText(text, genai.RoleUser)
	for ev, e := range s.Run(ctx, "ana", "s1", msg, s.cfg) {
		if err != nil {
			t.Errorf("after the error %v came event %v, error %v", err, ev, e)
		}
		if (ev == nil) == (e == nil) {
			t.Errorf("a pair holds event %v and error %v", ev, e)
		}
		if e != nil {
			err = e
			continue
		}
		evs = append(evs, ev)
	}
	return evs, err
}

// log is what the session keeps, without the user's message.
func (s *stage) log(t testing.TB) []*session.Event {
	t.Helper()
	got, err := s.sessions.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	evs := slices.Collect(got.Session.Events().All())
	return slices.DeleteFunc(evs, func(ev *session.Event) bool { return ev.Author == "user" })
}

func (s *stage) state(t testing.TB, key string) any {
	t.Helper()
	got, err := s.sessions.Get(context.Background(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := got.Session.State().Get(key)
	return v
}

// play runs an agent once, on one message.
func play(t testing.TB, root agent.Agent) ([]*session.Event, error) {
	t.Helper()
	return newStage(t, root, false).send(t, t.Context(), "go")
}

// mustPlay is play for a run that does not fail, as lines.
func mustPlay(t testing.TB, root agent.Agent) []string {
	t.Helper()
	evs, err := play(t, root)
	if err != nil {
		t.Fatalf("run failed: %v", err)
	}
	return lines(evs)
}

// lines has a line for each event: who said what.
func lines(evs []*session.Event) []string {
	var out []string
	for _, ev := range evs {
		line := ev.Author + ": " + ev.Text()
		if ev.Mark != nil {
			line = ev.Author + " " + string(ev.Mark.Kind)
		}
		out = append(out, line)
	}
	return out
}

// addressed has where instead of who.
func addressed(evs []*session.Event) []string {
	var out []string
	for _, ev := range evs {
		line := string(ev.Address) + ": " + ev.Text()
		if ev.Mark != nil {
			line = string(ev.Address) + " " + string(ev.Mark.Kind)
		}
		out = append(out, line)
	}
	return out
}

func check[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// finalizeWith makes a step the loop's finalizer.
func finalizeWith(c *loopagent.Config, name string) {
	c.Rules.Steps = append(c.Rules.Steps, loop.Step{Name: name, Finalizer: true})
}
