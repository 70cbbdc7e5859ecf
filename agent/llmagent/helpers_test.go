// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

func newAgent(t testing.TB, cfg llmagent.Config) agent.Agent {
	t.Helper()
	a, err := llmagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newLoop(t testing.TB, cfg loopagent.Config, steps ...agent.Agent) agent.Agent {
	t.Helper()
	cfg.AgentConfig = agent.Config{Name: "refine", SubAgents: steps}
	a, err := loopagent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func script(t testing.TB, answers ...scripted.Answer) *scripted.Model {
	t.Helper()
	m, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func says(text string) scripted.Answer { return scripted.Answer{Text: text} }

// calls is an answer that calls functions without arguments.
func calls(names ...string) scripted.Answer {
	var a scripted.Answer
	for _, n := range names {
		a.Calls = append(a.Calls, scripted.Call{Name: n})
	}
	return a
}

// function is a tool without arguments.
func function(t testing.TB, name string, f func(tool.Context) (map[string]any, error)) tool.Tool {
	t.Helper()
	made, err := functiontool.New(functiontool.Config{Name: name, Description: "Does " + name + "."},
		func(ctx tool.Context, _ struct{}) (map[string]any, error) { return f(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func answering(t testing.TB, name, text string) tool.Tool {
	return function(t, name, func(tool.Context) (map[string]any, error) { return map[string]any{"text": text}, nil })
}

func exitTool(t testing.TB) tool.Tool {
	t.Helper()
	made, err := exitlooptool.New()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// recorder notes what a model is asked.
type recorder struct {
	model.LLM

	mu       sync.Mutex
	requests []*model.LLMRequest
	hints    []*model.CacheHint // of the requests
}

func record(m model.LLM) *recorder { return &recorder{LLM: m} }

func (r *recorder) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	r.mu.Lock()
	r.requests, r.hints = append(r.requests, req), append(r.hints, model.CacheHintOf(ctx))
	r.mu.Unlock()
	return r.LLM.GenerateContent(ctx, req, stream)
}

// Provider is that of the model.
func (r *recorder) Provider() string { return observe.ProviderOf(r.LLM) }

// system is the system instruction of the i-th request, from 0.
func (r *recorder) system(i int) string { return r.requests[i].Config.SystemInstruction.Parts[0].Text }

// heard is the conversation of the i-th request, from 0, a line for each content.
func (r *recorder) heard(i int) []string {
	var lines []string
	for _, c := range r.requests[i].Contents {
		lines = append(lines, c.Role+": "+words(c))
	}
	return lines
}

// words is a content as text.
func words(c *genai.Content) string {
	if c == nil {
		return ""
	}
	var parts []string
	for _, p := range c.Parts {
		switch {
		case p.FunctionCall != nil:
			parts = append(parts, "call "+p.FunctionCall.Name)
		case p.FunctionResponse != nil:
			parts = append(parts, fmt.Sprintf("answer %s %v", p.FunctionResponse.Name, p.FunctionResponse.Response))
		default:
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, " | ")
}

// fake is a model made of a function.
type fake func(ctx context.Context, req *model.LLMRequest, stream bool, yield func(*model.LLMResponse, error) bool)

func (fake) Name() string { return "fake" }

func (f fake) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { f(ctx, req, stream, yield) }
}

func response(text string) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel)}
}

// thread is a session with its runner.
type thread struct {
	testing.TB
	runner *runner.Runner
	svc    session.Service
	cfg    agent.RunConfig
}

func newThread(t testing.TB, root agent.Agent) *thread {
	t.Helper()
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: svc, AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	return &thread{TB: t, runner: r, svc: svc}
}

// ask returns what is said to a message, up to an error.
func (th *thread) ask(ctx context.Context, msg string, opts ...runner.RunOption) (evs []*session.Event, err error) {
	th.Helper()
	for ev, e := range th.runner.Run(ctx, "ana", "s1", genai.NewContentFromText(msg, genai.RoleUser), th.cfg, opts...) {
		if err != nil {
			th.Error("something follows an error")
		}
		if e != nil {
			err = e
			continue
		}
		evs = append(evs, ev)
	}
	return evs, err
}

// must is ask without an error, a line for each event.
func (th *thread) must(msg string, opts ...runner.RunOption) []string {
	th.Helper()
	evs, err := th.ask(th.Context(), msg, opts...)
	if err != nil {
		th.Fatal(err)
	}
	return lines(evs)
}

func lines(evs []*session.Event) []string {
	all := []string{}
	for _, ev := range evs {
		all = append(all, ev.Author+": "+words(ev.Content))
	}
	return all
}

func (th *thread) session() session.Session {
	th.Helper()
	got, err := th.svc.Get(th.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		th.Fatal(err)
	}
	return got.Session
}

// state is a key's value in the store; nil if there is none.
func (th *thread) state(key string) any {
	th.Helper()
	v, err := th.session().State().Get(key)
	if err != nil {
		return nil
	}
	return v
}
