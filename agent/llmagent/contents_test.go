// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
)

// custom is an agent that yields events.
func custom(t testing.TB, name string, evs ...*session.Event) agent.Agent {
	t.Helper()
	a, err := agent.New(agent.Config{Name: name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			for _, ev := range evs {
				again := *ev
				if !yield(&again, nil) {
					return
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func event(role genai.Role, parts ...*genai.Part) *session.Event {
	ev := &session.Event{}
	ev.Content = &genai.Content{Role: string(role), Parts: parts}
	return ev
}

func sequence(t testing.TB, steps ...agent.Agent) agent.Agent {
	t.Helper()
	a, err := sequentialagent.New(sequentialagent.Config{AgentConfig: agent.Config{Name: "sequence", SubAgents: steps}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The request with which a supervised run starts is in the mark of its start. The model sees it as in any other run.
func TestRequestOfASupervisedRun(t *testing.T) {
	m := record(script(t, says("done")))
	r, err := runner.New(runner.Config{AppName: "app", Agent: newAgent(t, llmagent.Config{Name: "writer", Model: m}),
		SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("a poem", genai.RoleUser), agent.RunConfig{},
		runner.WithStart(mark.Run{Name: "poems"}, mark.RunStarted{Name: "poems"})) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"user: a poem"}, m.heard(0)); diff != "" {
		t.Errorf("the model heard (-want +got):\n%s", diff)
	}
}

// What other agents said is context, in ADK's words; their thoughts, and parts
// with nothing in them, are not.
func TestWhatOthersSaid(t *testing.T) {
	call := &genai.Part{FunctionCall: &genai.FunctionCall{ID: "1", Name: "look", Args: map[string]any{"at": "cat"}}}
	b := custom(t, "b",
		event(genai.RoleModel, &genai.Part{Text: "hm", Thought: true}, &genai.Part{Text: "hello"}, call),
		event(genai.RoleModel, &genai.Part{Text: "only a thought", Thought: true}),
		event(genai.RoleModel, &genai.Part{}),
		event(genai.RoleModel, &genai.Part{ThoughtSignature: []byte("b's own")}),
		event(genai.RoleModel),
	)
	rec := record(script(t, says("x")))
	newThread(t, sequence(t, b, newAgent(t, llmagent.Config{Name: "a", Model: rec}))).must("go")
	want := []string{
		"user: go",
		"user: For context: | [b] said: hello | [b] called tool `look` with parameters: " + `{"at":"cat"}`,
	}
	if diff := cmp.Diff(want, rec.heard(0)); diff != "" {
		t.Error(diff)
	}
}

// ADK's words about another agent's tools.
func TestWhatOthersTools(t *testing.T) {
	b := newAgent(t, llmagent.Config{Name: "b", Model: script(t, calls("look"), says("a cat")), Tools: []tool.Tool{answering(t, "look",
		"fur")}})
	rec := record(script(t, says("x"), says("y")))
	th := newThread(t, sequence(t, b, newAgent(t, llmagent.Config{Name: "a", Model: rec})))
	th.must("go")
	want := []string{
		"user: go",
		"user: For context: | [b] called tool `look` with parameters: {}",
		"user: For context: | [b] `look` tool returned result: " + `{"text":"fur"}`,
		"user: For context: | [b] said: a cat",
	}
	if diff := cmp.Diff(want, rec.heard(0)); diff != "" {
		t.Error(diff)
	}
}

// The agent's own words keep their role. If nobody else has the last word, the
// model is told to go on, or to begin if there is no word at all.
func TestGoingOn(t *testing.T) {
	rec := record(script(t, says("one"), says("two")))
	newThread(t, newLoop(t, loopagent.Config{MaxIterations: 2}, newAgent(t, llmagent.Config{Name: "a", Model: rec}))).must("go")
	want := []string{
		"user: go", "model: one",
		"user: Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are needed.",
	}
	if diff := cmp.Diff(want, rec.heard(1)); diff != "" {
		t.Error(diff)
	}
	rec = record(script(t, says("one"))) // without a message of the user
	inv := drive.Invocation{ID: "e-1", Session: session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"})}
	for _, err := range newAgent(t, llmagent.Config{Name: "a", Model: rec}).Run(drive.NewInvocation(t.Context(), inv)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"user: Handle the requests as specified in the System Instruction."}, rec.heard(0)); diff != "" {
		t.Error(diff)
	}
}

// An agent in a branch does not hear its siblings'.
func TestBranches(t *testing.T) {
	var recs []*recorder
	var subs []agent.Agent
	for i := range 2 {
		rec := record(script(t, scripted.Answer{Text: fmt.Sprint("i am ", i), Repeat: true}))
		recs = append(recs, rec)
		subs = append(subs, newAgent(t, llmagent.Config{Name: fmt.Sprint("p", i), Model: rec}))
	}
	par, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "par", SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	last := record(script(t, scripted.Answer{Text: "z", Repeat: true}))
	th := newThread(t, sequence(t, par, newAgent(t, llmagent.Config{Name: "last", Model: last})))
	th.must("go")
	th.must("again")
	for i, rec := range recs {
		want := []string{"user: go", fmt.Sprint("model: i am ", i), "user: For context: | [last] said: z", "user: again"}
		if diff := cmp.Diff(want, rec.heard(1)); diff != "" {
			t.Error(diff)
		}
	}
	if n := len(last.heard(0)); n != 3 {
		t.Errorf("outside the branches all is heard, got %q", last.heard(0))
	}
}

// LOOP 28: what critic and refiner see in iteration 3 under each policy.
func TestContextPolicies(t *testing.T) {
	full := []string{"user: go"}
	for i := range 2 {
		full = append(full, fmt.Sprintf("user: For context: | [critic] said: critique %d", i+1), fmt.Sprintf("model: text %d", i+1))
	}
	third := "user: For context: | [critic] said: critique 3"
	full = append(full, third)
	for _, tt := range []struct {
		name    string
		context llmagent.ContextConfig
		include llmagent.IncludeContents
		want    []string
	}{
		{"default", llmagent.ContextConfig{}, "", full},
		{"full", llmagent.ContextConfig{Policy: llmagent.ContextFull}, llmagent.IncludeContentsDefault, full},
		{"iteration", llmagent.ContextConfig{Policy: llmagent.ContextIteration}, "", []string{"user: go", third}},
		{"last 1", llmagent.ContextConfig{Policy: llmagent.ContextLast, Last: 1}, "", []string{"user: go", third}},
		{"last 2", llmagent.ContextConfig{Policy: llmagent.ContextLast, Last: 2}, "", []string{"user: go", full[3], full[4], third}},
		{"last 9", llmagent.ContextConfig{Policy: llmagent.ContextLast, Last: 9}, "", full},
		{"none", llmagent.ContextConfig{Policy: llmagent.ContextNone}, "", []string{third}},
		{"ADK's none", llmagent.ContextConfig{}, llmagent.IncludeContentsNone, []string{third}},
	} {
		for _, durable := range []bool{false, true} { // marks in the log change nothing
			t.Run(fmt.Sprintf("%s durable=%t", tt.name, durable), func(t *testing.T) {
				rec := record(script(t, says("text 1"), says("text 2"), says("text 3")))
				critic := newAgent(t, llmagent.Config{Name: "critic", Model: script(t, says("critique 1"), says("critique 2"), says("critique 3"))})
				refiner := newAgent(t, llmagent.Config{Name: "refiner", Model: rec, Context: tt.context, IncludeContents: tt.include})
				r, err := runner.New(runner.Config{
					AppName: "app", Agent: newLoop(t, loopagent.Config{MaxIterations: 3}, critic, refiner),
					SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: durable,
				})
				if err != nil {
					t.Fatal(err)
				}
				(&thread{TB: t, runner: r}).must("go")
				if diff := cmp.Diff(tt.want, rec.heard(2)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// LOOP 28, 29: an iteration of an earlier run is not one of this.
func TestContextOfTheNextRun(t *testing.T) {
	rec := record(script(t, scripted.Answer{Text: "x", Repeat: true}))
	a := newAgent(t, llmagent.Config{Name: "a", Model: rec, Context: llmagent.ContextConfig{Policy: llmagent.ContextIteration}})
	th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 2}, a))
	th.must("go")
	th.must("again")
	if diff := cmp.Diff([]string{"user: again"}, rec.heard(2)); diff != "" {
		t.Error(diff)
	}
	for _, err := range th.runner.Run(t.Context(), "ana", "s1", nil, th.cfg) { // without a message
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := rec.heard(4); len(got) != 1 || got[0] == "user: again" {
		t.Errorf("got %q", got)
	}
}

// LOOP 28: loops in branches do not cut each other's iterations short.
func TestContextOfLoopsInBranches(t *testing.T) {
	var recs []*recorder
	var loops []agent.Agent
	for i := range 2 {
		rec := record(script(t, scripted.Answer{Text: "x", Repeat: true}))
		recs = append(recs, rec)
		critic := newAgent(t, llmagent.Config{Name: fmt.Sprint("critic", i), Model: script(t, scripted.Answer{Text: "y", Repeat: true})})
		refiner := newAgent(t, llmagent.Config{Name: fmt.Sprint("refiner", i), Model: rec,
			Context: llmagent.ContextConfig{Policy: llmagent.ContextIteration}})
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: fmt.Sprint("loop", i), SubAgents: []agent.Agent{critic,
			refiner}}, MaxIterations: 5})
		if err != nil {
			t.Fatal(err)
		}
		loops = append(loops, l)
	}
	par, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "par", SubAgents: loops}})
	if err != nil {
		t.Fatal(err)
	}
	newThread(t, par).must("go")
	for i, rec := range recs {
		for n := range 5 {
			want := []string{"user: go", fmt.Sprintf("user: For context: | [critic%d] said: y", i)}
			if diff := cmp.Diff(want, rec.heard(n)); diff != "" {
				t.Errorf("loop %d, iteration %d: %s", i, n+1, diff)
			}
		}
	}
}

// Answers follow their calls at once, whatever was said in between, and an
// answer to no call is left out.
func TestCallsAndAnswersArePaired(t *testing.T) {
	call := func(id string) *genai.Part {
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: "f" + id}}
	}
	answer := func(id string, n int) *genai.Part {
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: "f" + id, Response: map[string]any{"n": n}}}
	}
	rec := record(script(t, says("x")))
	own := func(ev *session.Event) *session.Event { ev.Author = "a"; return ev }
	b := custom(t, "b",
		own(event(genai.RoleModel, call("1"), call("2"))),
		own(event(genai.RoleModel, &genai.Part{Text: "in between"})),
		own(event(genai.RoleUser, answer("2", 1))),
		own(event(genai.RoleModel, call("3"))),
		own(event(genai.RoleUser, answer("3", 2))),
		own(event(genai.RoleUser, answer("1", 3))), // later
		own(event(genai.RoleUser, answer("2", 4))), // again
		own(event(genai.RoleUser, answer("9", 5))), // to no call
		own(event(genai.RoleModel, &genai.Part{Text: "at last"})),
	)
	newThread(t, sequence(t, b, newAgent(t, llmagent.Config{Name: "a", Model: rec}))).must("go")
	want := []string{
		"user: go", "model: call f1 | call f2", "user: answer f2 map[n:4] | answer f1 map[n:3]", "model: in between",
		"model: call f3", "user: answer f3 map[n:2]", "model: at last",
		"user: Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are needed.",
	}
	if diff := cmp.Diff(want, rec.heard(0)); diff != "" {
		t.Error(diff)
	}
}

// rewound is a session whose log somebody else can replace.
type rewound struct {
	session.Session
	events []*session.Event
}

func (r *rewound) Events() session.Events {
	return session.NewView(session.ViewConfig{Events: slices.Clone(r.events)}).Events()
}

// If the log is no continuation of what the model was told, the model is told the log.
func TestLogThatWasRewound(t *testing.T) {
	s := &rewound{Session: session.NewView(session.ViewConfig{})}
	log := func(texts ...string) {
		for _, text := range texts {
			ev := event(genai.RoleUser, genai.NewPartFromText(text))
			ev.Author, ev.Seq = "user", int64(len(s.events)+1)
			s.events = append(s.events, ev)
		}
	}
	log("one", "two")
	rewind := function(t, "rewind", func(tool.Context) (map[string]any, error) {
		s.events = s.events[:1]
		for range 2 { // it becomes longer than it was
			s.events = append(s.events, &session.Event{Seq: int64(len(s.events) + 10)})
		}
		log("three")
		return nil, nil
	})
	shorten := function(t, "shorten", func(tool.Context) (map[string]any, error) {
		s.events = s.events[:1]
		return nil, nil
	})
	rec := record(script(t, calls("rewind"), calls("shorten"), says("done")))
	a := newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{rewind, shorten}})
	for _, err := range a.Run(drive.NewInvocation(t.Context(), drive.Invocation{ID: "run-1", Session: s})) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range [][]string{{"user: one", "user: two"}, {"user: one", "user: three"}, {"user: one"}} {
		if diff := cmp.Diff(want, rec.heard(i)); diff != "" {
			t.Errorf("request %d: %s", i, diff)
		}
	}
}
