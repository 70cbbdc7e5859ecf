// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// protocol notes which callbacks were called.
type protocol struct {
	mu    sync.Mutex
	lines []string
}

func (p *protocol) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

func newPlugin(t testing.TB, cfg plugin.Config) *plugin.Plugin {
	t.Helper()
	p, err := plugin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// notes returns a plugin that notes all its callbacks and changes nothing.
func (p *protocol) notes(t testing.TB, name string) *plugin.Plugin {
	t.Helper()
	return newPlugin(t, plugin.Config{
		Name: name,
		OnUserMessageCallback: func(ctx agent.InvocationContext, c *genai.Content) (*genai.Content, error) {
			p.note("%s: user message %q for %s", name, c.Parts[0].Text, ctx.Agent().Name())
			return nil, nil
		},
		OnEventCallback: func(ctx agent.InvocationContext, ev *session.Event) (*session.Event, error) {
			p.note("%s: event of %s", name, ev.Author)
			return nil, nil
		},
		BeforeRunCallback: func(ctx agent.InvocationContext) (*genai.Content, error) {
			p.note("%s: before run of %s", name, ctx.Agent().Name())
			return nil, nil
		},
		AfterRunCallback: func(ctx agent.InvocationContext) { p.note("%s: after run of %s", name, ctx.Agent().Name()) },
		BeforeAgentCallback: func(ctx agent.Context) (*genai.Content, error) {
			p.note("%s: before %s", name, ctx.AgentName())
			return nil, nil
		},
		AfterAgentCallback: func(ctx agent.Context) (*genai.Content, error) {
			p.note("%s: after %s", name, ctx.AgentName())
			return nil, nil
		},
		BeforeModelCallback: func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
			p.note("%s: before model", name)
			return nil, nil
		},
		AfterModelCallback: func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			p.note("%s: after model", name)
			return nil, nil
		},
		OnModelErrorCallback: func(agent.Context, *model.LLMRequest, error) (*model.LLMResponse, error) {
			p.note("%s: model error", name)
			return nil, nil
		},
		BeforeToolCallback: func(_ agent.Context, f tool.Tool, _ map[string]any) (map[string]any, error) {
			p.note("%s: before tool %s", name, f.Name())
			return nil, nil
		},
		AfterToolCallback: func(_ agent.Context, f tool.Tool, _, _ map[string]any, _ error) (map[string]any, error) {
			p.note("%s: after tool %s", name, f.Name())
			return nil, nil
		},
		OnToolErrorCallback: func(_ agent.Context, f tool.Tool, _ map[string]any, _ error) (map[string]any, error) {
			p.note("%s: tool error", name)
			return nil, nil
		},
		CloseFunc: func() error { p.note("%s: close", name); return nil },
	})
}

// asker returns an agent that asks a model, which calls a tool twice and then answers. The tool fails the first
// time. The agent's own callbacks are noted.
func (p *protocol) asker(t testing.TB, name string) agent.Agent {
	t.Helper()
	m, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Calls: []scripted.Call{{Name: "look"}}}, {Calls: []scripted.Call{{Name: "look"}}}, {Text: "done"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	look, err := functiontool.New(functiontool.Config{Name: "look"}, func(agent.Context, struct{}) (string, error) {
		p.note("tool")
		if calls++; calls == 1 {
			return "", errors.New("dark")
		}
		return "bright", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{
		Name: name, Model: m, Tools: []tool.Tool{look},
		BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(agent.Context) (*genai.Content, error) {
			p.note("own: before %s", name)
			return nil, nil
		}},
		AfterAgentCallbacks: []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
			p.note("own: after %s", name)
			return nil, nil
		}},
		BeforeModelCallbacks: []llmagent.BeforeModelCallback{func(agent.Context, *model.LLMRequest) (*model.LLMResponse, error) {
			p.note("own: before model")
			return nil, nil
		}},
		AfterModelCallbacks: []llmagent.AfterModelCallback{func(agent.Context, *model.LLMResponse, error) (*model.LLMResponse, error) {
			p.note("own: after model")
			return nil, nil
		}},
		BeforeToolCallbacks: []llmagent.BeforeToolCallback{func(agent.Context, tool.Tool, map[string]any) (map[string]any, error) {
			p.note("own: before tool look")
			return nil, nil
		}},
		OnToolErrorCallbacks: []llmagent.OnToolErrorCallback{func(agent.Context, tool.Tool, map[string]any, error) (map[string]any, error) {
			p.note("own: tool error")
			return nil, nil
		}},
		AfterToolCallbacks: []llmagent.AfterToolCallback{func(agent.Context, tool.Tool, map[string]any, map[string]any,
			error) (map[string]any, error) {
			p.note("own: after tool look")
			return nil, nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// withPlugins is durable with plugins.
func withPlugins(root agent.Agent, svc session.Service, plugins ...*plugin.Plugin) runner.Config {
	cfg := durable(root, svc)
	cfg.PluginConfig.Plugins = plugins
	return cfg
}

const turnWithTool = `a: before model
b: before model
own: before model
a: after model
b: after model
own: after model
a: event of asker
b: event of asker
a: before tool look
b: before tool look
own: before tool look
tool
`

const turnWithError = turnWithTool + `a: tool error
b: tool error
own: tool error
` + endOfTool

const endOfTool = `a: after tool look
b: after tool look
own: after tool look
a: event of asker
b: event of asker
`

const lastTurn = `a: before model
b: before model
own: before model
a: after model
b: after model
own: after model
a: event of asker
b: event of asker
a: after asker
b: after asker
own: after asker
a: after root
b: after root
a: after run of root
b: after run of root
`

// Plugins are called in their order, before the callbacks of an agent; and in a run without marks as in a
// durable one.
func TestOrderOfPluginCallbacks(t *testing.T) {
	want := `a: user message "go" for root
b: user message "go" for root
a: before run of root
b: before run of root
a: before root
b: before root
a: before asker
b: before asker
own: before asker
` + turnWithError + turnWithTool + endOfTool + lastTurn
	for _, marks := range []bool{false, true} {
		p := new(protocol)
		cfg := withPlugins(sequence(t, "root", p.asker(t, "asker")), session.InMemoryService(), p.notes(t, "a"), p.notes(t, "b"))
		cfg.Durable = marks
		r := newRunner(t, cfg)
		if _, err := collect(t, ask(t.Context(), r, "go")); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, strings.Join(p.lines, "\n")+"\n"); diff != "" {
			t.Errorf("with marks %v (-want +got):\n%s", marks, diff)
		}
		p.lines = nil
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"b: close", "a: close"}, p.lines); diff != "" {
			t.Errorf("close (-want +got):\n%s", diff)
		}
	}
}

// A resumed run does not call what belongs to steps and turns that are in the log. The process ends while the
// tool's second answer is being stored.
func TestPluginsInAResumedRun(t *testing.T) {
	svc, p := session.InMemoryService(), new(protocol)
	root := sequence(t, "root", speaker(t, "first", "hello"), p.asker(t, "asker"))
	answers := 0
	broken := &failing{Service: svc, onAppend: func(ev *session.Event) error {
		if ev.Content != nil && ev.Content.Parts[0].FunctionResponse != nil {
			answers++
		}
		if answers == 2 {
			return errGone
		}
		return nil
	}}
	if _, err := collect(t, ask(t.Context(), newRunner(t, withPlugins(root, broken, p.notes(t, "a"), p.notes(t, "b"))),
		"go")); !errors.Is(err, errGone) {
		t.Fatalf("got error %v", err)
	}
	p.lines = nil
	var err error
	for _, e := range newRunner(t, withPlugins(root, svc, p.notes(t, "a"), p.notes(t, "b"))).Resume(t.Context(), "ana", "s1", "",
		agent.RunConfig{}) {
		err = e
	}
	if err != nil {
		t.Fatal(err)
	}
	want := `a: before run of root
b: before run of root
a: before root
b: before root
a: before asker
b: before asker
own: before asker
a: before tool look
b: before tool look
own: before tool look
tool
` + endOfTool + lastTurn
	if diff := cmp.Diff(want, strings.Join(p.lines, "\n")+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The first answer takes the place of what would have followed, and ends the list.
func TestPluginAnswers(t *testing.T) {
	content := func(text string) *genai.Content { return genai.NewContentFromText(text, genai.RoleModel) }
	for _, tt := range []struct {
		name   string
		cfg    plugin.Config
		said   []string
		failed string
		calls  []string // of plugin z, but for those of events and models
	}{
		{
			name: "user message",
			cfg: plugin.Config{OnUserMessageCallback: func(agent.InvocationContext, *genai.Content) (*genai.Content, error) {
				return genai.NewContentFromText("stop", genai.RoleUser), nil
			}},
			said:  []string{"user: stop", "leaf: stop"},
			calls: []string{"z: before run of root", "z: before root", "z: before leaf", "z: after leaf", "z: after root", "z: after run of root"},
		},
		{
			name: "user message that is refused",
			cfg: plugin.Config{OnUserMessageCallback: func(agent.InvocationContext, *genai.Content) (*genai.Content, error) {
				return nil, errors.New("not this")
			}},
			said: []string{}, failed: `run "root": on user message callback of plugin "p": not this`,
		},
		{
			name: "before run",
			cfg: plugin.Config{BeforeRunCallback: func(agent.InvocationContext) (*genai.Content, error) {
				return content("closed"), nil
			}},
			said:  []string{"user: go", "root: closed"},
			calls: []string{`z: user message "go" for root`, "z: after run of root"},
		},
		{
			name: "before run fails",
			cfg: plugin.Config{BeforeRunCallback: func(agent.InvocationContext) (*genai.Content, error) {
				return nil, errors.New("not now")
			}},
			said: []string{"user: go"}, failed: `agent "root" (root): before agent callback: before run callback: not now`,
			calls: []string{`z: user message "go" for root`, "z: after run of root"},
		},
		{
			name: "before agent",
			cfg: plugin.Config{BeforeAgentCallback: func(ctx agent.Context) (*genai.Content, error) {
				if ctx.AgentName() != "leaf" {
					return nil, nil
				}
				return content("instead"), ctx.State().Set("seen", true)
			}},
			said: []string{"user: go", "leaf: instead"},
			calls: []string{`z: user message "go" for root`, "z: before run of root", "z: before root", "z: after root",
				"z: after run of root"},
		},
		{
			name: "event",
			cfg: plugin.Config{OnEventCallback: func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
				other := *ev
				other.Content = content(strings.ToUpper(ev.Text()))
				return &other, nil
			}},
			said: []string{"user: go", "leaf: GO"},
			calls: []string{`z: user message "go" for root`, "z: before run of root", "z: before root", "z: before leaf", "z: after leaf",
				"z: after root", "z: after run of root"},
		},
		{
			name: "event fails",
			cfg: plugin.Config{OnEventCallback: func(agent.InvocationContext, *session.Event) (*session.Event, error) {
				return nil, errors.New("unfit")
			}},
			said: []string{"user: go"}, failed: `agent "leaf" (root/leaf): on event callback: unfit`,
			calls: []string{`z: user message "go" for root`, "z: before run of root", "z: before root", "z: before leaf", "z: after run of root"},
		},
		{
			name: "panic",
			cfg:  plugin.Config{AfterRunCallback: func(agent.InvocationContext) { panic("oh no") }},
			said: []string{"user: go", "leaf: go"}, failed: `after run callback of plugin "p": panic: oh no`,
			calls: []string{`z: user message "go" for root`, "z: before run of root", "z: before root", "z: before leaf", "z: after leaf",
				"z: after root", "z: after run of root"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			svc, z := session.InMemoryService(), new(protocol)
			echo := custom(t, "leaf", func(ctx agent.InvocationContext, yield yield) { yield(says(ctx.UserContent().Parts[0].Text), nil) })
			tt.cfg.Name = "p"
			cfg := withPlugins(sequence(t, "root", echo), svc, newPlugin(t, tt.cfg), z.notes(t, "z"))
			cfg.Durable = false
			said, err := collect(t, ask(t.Context(), newRunner(t, cfg), "go", runner.WithYieldUserMessage()))
			if err != nil && err.Error() != tt.failed || err == nil && tt.failed != "" {
				t.Errorf("got error %v, want %q", err, tt.failed)
			}
			if diff := cmp.Diff(tt.said, said); diff != "" {
				t.Errorf("yielded (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.said, stored(t, svc)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			calls := slices.DeleteFunc(z.lines, func(line string) bool { return strings.Contains(line, "event of") })
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Errorf("calls of the plugin behind it (-want +got):\n%s", diff)
			}
		})
	}
}

// An event that a plugin gets has deltas to write to, whoever made it.
func TestPluginSetsKeysInAnEvent(t *testing.T) {
	svc := session.InMemoryService()
	p := newPlugin(t, plugin.Config{Name: "p", OnEventCallback: func(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
		ev.Actions.StateDelta["seen"] = ev.Text()
		ev.Actions.ArtifactDelta["file"] = 1
		return nil, nil
	}})
	evs, err := collect(t, ask(t.Context(), newRunner(t, withPlugins(speaker(t, "leaf", "hello"), svc, p)), "go"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := get(t, svc).State().Get("seen"); got != "hello" {
		t.Errorf("the state has %v, after the events %v", got, evs)
	}
}

// What a plugin has made of an event counts for the agents around and in a resumed run, which compares what the
// agent says again with what it said.
func TestChangedEventInAResumedRun(t *testing.T) {
	shout := newPlugin(t, plugin.Config{Name: "shout", OnEventCallback: func(_ agent.InvocationContext, ev *session.Event) (*session.Event,
		error) {
		ev.Content.Parts[0].Text = strings.ToUpper(ev.Text()) // in place, as ADK allows
		return nil, nil
	}})
	svc := session.InMemoryService()
	word, heard := "hello", []string{}
	var inner agent.Agent = speaker(t, "inner", "one", "two")
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		if !yield(says(word), nil) {
			return
		}
		for ev, err := range inner.Run(ctx) {
			if ev != nil && ev.Mark == nil {
				heard = append(heard, ev.Text())
			}
			if !yield(ev, err) {
				return
			}
		}
		yield(says("bye"), nil)
	})
	broken := &failing{Service: svc, onAppend: func(ev *session.Event) error {
		if ev.Text() == "BYE" {
			return errGone
		}
		return nil
	}}
	if _, err := collect(t, ask(t.Context(), newRunner(t, withPlugins(root, broken, shout)), "go")); !errors.Is(err, errGone) {
		t.Fatal(err)
	}
	again := func() (said []string, err error) {
		for ev, e := range newRunner(t, withPlugins(root, svc, shout)).Resume(t.Context(), "ana", "s1", "", agent.RunConfig{}) {
			if err = e; ev != nil && ev.Mark == nil {
				said = append(said, line(ev))
			}
		}
		return said, err
	}
	word = "something else"
	if _, err := again(); !errors.Is(err, runner.ErrDiverged) {
		t.Errorf("another word: got error %v, want %v", err, runner.ErrDiverged)
	}
	word = "hello"
	said, err := again()
	if diff := cmp.Diff([]string{"root: BYE"}, said); err != nil || diff != "" {
		t.Errorf("got error %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"ONE", "TWO", "ONE", "TWO"}, heard); diff != "" {
		t.Errorf("heard by the agent around (-want +got):\n%s", diff)
	}
}

// An agent that somebody else has written has callbacks of plugins too. Events of agents that run at the same
// time are given to a plugin one after the other.
func TestPluginsOfStrangersAndParallelAgents(t *testing.T) {
	p := new(protocol)
	events := 0
	counts := newPlugin(t, plugin.Config{Name: "counts", OnEventCallback: func(agent.InvocationContext, *session.Event) (*session.Event,
		error) {
		events++ // without a lock: the race detector looks on
		return nil, nil
	}})
	words := strings.Fields(strings.Repeat("word ", 50))
	root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: []agent.Agent{
		stranger{speaker(t, "one", words...)}, speaker(t, "two", words...)}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t, ask(t.Context(), newRunner(t, withPlugins(root, session.InMemoryService(), counts, p.notes(t, "z"))),
		"go")); err != nil {
		t.Fatal(err)
	}
	if events != 100 {
		t.Errorf("the plugin got %d events, want 100", events)
	}
	if !slices.Contains(p.lines, "z: before one") || !slices.Contains(p.lines, "z: after one") {
		t.Errorf("no callbacks around an agent of another kind: %q", p.lines)
	}
}

// stranger is an agent that has no base of ours.
type stranger struct{ inner agent.Agent }

func (s stranger) Name() string                         { return s.inner.Name() }
func (s stranger) Description() string                  { return "" }
func (s stranger) SubAgents() []agent.Agent             { return nil }
func (s stranger) FindAgent(name string) agent.Agent    { return agent.Find(s, name) }
func (s stranger) FindSubAgent(name string) agent.Agent { return agent.FindSub(s, name) }
func (s stranger) Run(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		for range 50 {
			if !yield(says("word"), nil) {
				return
			}
		}
	}
}

func TestRunnerRefusesPlugins(t *testing.T) {
	a := newPlugin(t, plugin.Config{Name: "a"})
	for want, plugins := range map[string][]*plugin.Plugin{
		`runner of "root": plugin 2 is nil; remove it`:                                     {a, nil},
		`runner of "root": two plugins have the name "a"; give each one a name of its own`: {a, a},
	} {
		cfg := withPlugins(speaker(t, "root"), session.InMemoryService(), plugins...)
		cfg.AppName = "app"
		_, err := runner.New(cfg)
		if err == nil || err.Error() != want {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// A plugin that does not close holds up Close for the timeout only.
func TestCloseOfPlugins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		cfg := withPlugins(speaker(t, "root"), session.InMemoryService(),
			newPlugin(t, plugin.Config{Name: "deaf", CloseFunc: func() error { <-block; return nil }}),
			newPlugin(t, plugin.Config{Name: "bad", CloseFunc: func() error { panic("oh no") }}))
		cfg.PluginConfig.CloseTimeout = time.Minute
		began := time.Now()
		err := newRunner(t, cfg).Close()
		if took := time.Since(began); err == nil || err.Error() != "the plugins have not closed after 1m0s" || took != time.Minute {
			t.Errorf("got error %v after %s", err, took)
		}
		close(block)
		if err := newRunner(t, cfg).Close(); err == nil || err.Error() != `close plugin "bad": panic: oh no` {
			t.Errorf("got error %v", err)
		}
	})
}

// Nothing is paid where no plugin is set: neither in a run nor for its events.
func TestRunWithoutPluginsPaysNothing(t *testing.T) {
	if drive.At(drive.NewInvocation(t.Context(), drive.Invocation{})).Callbacks() != nil {
		t.Error("an invocation without plugins has callbacks")
	}
	own := new(drive.ModelCallbacks)
	if n := testing.AllocsPerRun(100, func() { _ = (*drive.Callbacks)(nil).Before(own) }); n != 0 {
		t.Errorf("an agent without plugins allocates %v times for callbacks", n)
	}
}

// BenchmarkRunWithPlugins compares a run without plugins and one with a plugin that does nothing.
func BenchmarkRunWithPlugins(b *testing.B) {
	for _, bb := range []struct {
		name    string
		plugins []*plugin.Plugin
	}{{"none", nil}, {"one", []*plugin.Plugin{newPlugin(b, plugin.Config{Name: "idle"})}}} {
		b.Run(bb.name, func(b *testing.B) {
			cfg := withPlugins(sequence(b, "root", speaker(b, "leaf", "one", "two", "three")), session.InMemoryService(), bb.plugins...)
			cfg.Durable = false
			r := newRunner(b, cfg)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range r.Run(b.Context(), "ana", "", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// An agent that is a tool has the plugins of the run.
func TestPluginsReachAgentsThatAreTools(t *testing.T) {
	p := new(protocol)
	m, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Calls: []scripted.Call{{Name: "inner", Args: map[string]any{"request": "hello"}}}}, {Text: "done"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	root, err := llmagent.New(llmagent.Config{Name: "root", Model: m, Tools: []tool.Tool{agenttool.New(speaker(t, "inner", "hi"), nil)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t, ask(t.Context(), newRunner(t, withPlugins(root, session.InMemoryService(), p.notes(t, "z"))), "go")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{"z: before inner": 1, "z: after inner": 1, "z: event of inner": 1, "z: before run of root": 1} {
		got := 0
		for _, l := range p.lines {
			if l == line {
				got++
			}
		}
		if got != want {
			t.Errorf("%q %d times, want %d: %q", line, got, want, p.lines)
		}
	}
}
