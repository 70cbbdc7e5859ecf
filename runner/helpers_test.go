// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"iter"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

type yield = func(*session.Event, error) bool

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

// speaker is an agent that says some words.
func speaker(t testing.TB, name string, words ...string) agent.Agent {
	t.Helper()
	return custom(t, name, func(_ agent.InvocationContext, yield yield) {
		for _, word := range words {
			if !yield(says(word), nil) {
				return
			}
		}
	})
}

func sequence(t testing.TB, name string, subs ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func says(text string) *session.Event {
	ev := &session.Event{}
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return ev
}

func sets(key string, value any) *session.Event {
	ev := &session.Event{}
	ev.Actions.StateDelta = map[string]any{key: value}
	return ev
}

func newRunner(t testing.TB, cfg runner.Config) *runner.Runner {
	t.Helper()
	if cfg.AppName == "" {
		cfg.AppName = "app"
	}
	r, err := runner.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ask runs the agent for the message in ana's session s1.
func ask(ctx context.Context, r *runner.Runner, msg string, opts ...runner.RunOption) iter.Seq2[*session.Event, error] {
	var content *genai.Content
	if msg != "" {
		content = genai.NewContentFromText(msg, genai.RoleUser)
	}
	return r.Run(ctx, "ana", "s1", content, agent.RunConfig{}, opts...)
}

// collect takes all that a run yields and demands that an error is last.
func collect(t testing.TB, seq iter.Seq2[*session.Event, error]) (said []string, err error) {
	t.Helper()
	said = []string{}
	for ev, e := range seq {
		if err != nil || (ev == nil) == (e == nil) {
			t.Errorf("got the pair %v, %v after error %v", ev, e, err)
		}
		if e != nil {
			err = e
			continue
		}
		said = append(said, line(ev))
	}
	return said, err
}

func line(ev *session.Event) string { return ev.Author + ": " + ev.Text() }

// stored is what the session's log says.
func stored(t testing.TB, svc session.Service) []string {
	t.Helper()
	all := []string{}
	for ev := range get(t, svc).Events().All() {
		all = append(all, line(ev))
	}
	return all
}

func get(t testing.TB, svc session.Service) session.Session {
	t.Helper()
	resp, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return resp.Session
}

// failing is a session service that fails where a function says so.
type failing struct {
	session.Service
	onGet    func() error
	onAppend func(*session.Event) error
}

func (f *failing) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	if f.onGet != nil {
		if err := f.onGet(); err != nil {
			return nil, err
		}
	}
	return f.Service.Get(ctx, req)
}

func (f *failing) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if f.onAppend != nil {
		if err := f.onAppend(ev); err != nil {
			return err
		}
	}
	return f.Service.AppendEvent(ctx, s, ev)
}

// foreign is a session service whose sessions are of its own type, and which
// does not know the runner's.
type callPlugin struct{ inner session.Service }

type foreignSession struct{ session.Session }

func (f callPlugin) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	resp, err := f.inner.Create(ctx, req)
	if err != nil {
		return nil, err
	}
	return &session.CreateResponse{Session: foreignSession{resp.Session}}, nil
}

func (f callPlugin) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	resp, err := f.inner.Get(ctx, req)
	if err != nil {
		return nil, err
	}
	return &session.GetResponse{Session: foreignSession{resp.Session}}, nil
}

func (f callPlugin) List(ctx context.Context, req *session.ListRequest) (*session.ListResponse, error) {
	return f.inner.List(ctx, req)
}

func (f callPlugin) Delete(ctx context.Context, req *session.DeleteRequest) error {
	return f.inner.Delete(ctx, req)
}

func (f callPlugin) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	return f.inner.AppendEvent(ctx, foreignSession{s}, ev)
}

// durable is the config of a runner that can resume its runs.
func durable(root agent.Agent, svc session.Service) runner.Config {
	return runner.Config{Agent: root, SessionService: svc, AutoCreateSession: true, Durable: true}
}
