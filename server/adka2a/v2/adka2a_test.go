// SPDX-License-Identifier: Apache-2.0

package adka2a_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/remoteagent/v2"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/server/adka2a/v2"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// helper asks a script, and has a tool that needs consent.
func helper(t *testing.T) agent.Agent {
	t.Helper()
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{MatchRequest: "answer remove", Text: "It is gone.", Repeat: true},
		{Match: "remove", Calls: []scripted.Call{{Name: "remove"}}, Repeat: true},
		{Text: "Hello to you.", Repeat: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	remove, err := functiontool.New(functiontool.Config{Name: "remove", Description: "Removes all.", RequireConfirmation: true},
		func(tool.Context, struct{}) (string, error) { return "removed", nil })
	if err != nil {
		t.Fatal(err)
	}
	a, err := llmagent.New(llmagent.Config{Name: "helper", Model: llm, Instruction: "A secret.", Tools: []tool.Tool{remove}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// serve serves an agent, and returns the address of its card.
func serve(t *testing.T, a agent.Agent) string {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	card := &a2a.AgentCard{Name: a.Name(), Skills: adka2a.BuildAgentSkills(a), Capabilities: a2a.AgentCapabilities{Streaming: true},
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(srv.URL+"/invoke", a2a.TransportProtocolJSONRPC)}}
	executor := adka2a.NewExecutor(adka2a.ExecutorConfig{RunnerConfig: runner.Config{
		AppName: a.Name(), Agent: a, SessionService: session.InMemoryService(),
	}})
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card))
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(executor)))
	return srv.URL
}

// An agent behind the executor is a remote agent of another program, also when its tool asks a person.
func TestRemoteAgent(t *testing.T) {
	remote, err := remoteagent.NewA2A(remoteagent.A2AConfig{Name: "far", AgentCardProvider: remoteagent.NewAgentCardProvider(serve(t, helper(t)))})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("app", remote)
	if err != nil {
		t.Fatal(err)
	}
	say := func(c *genai.Content) (text string, open *genai.FunctionCall) {
		for ev, err := range r.Run(t.Context(), "ana", "s1", c, agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
			text += ev.Text()
			if len(ev.LongRunningToolIDs) > 0 {
				for _, p := range ev.Content.Parts {
					if p.FunctionCall != nil {
						open = p.FunctionCall
					}
				}
			}
		}
		return text, open
	}
	if got, _ := say(genai.NewContentFromText("hi", genai.RoleUser)); got != "Hello to you." {
		t.Errorf("the remote agent said %q", got)
	}
	_, open := say(genai.NewContentFromText("remove it", genai.RoleUser))
	if open == nil {
		t.Fatal("the question of the remote agent's tool did not arrive")
	}
	got, _ := say(genai.NewContentFromText("yes", genai.RoleUser))
	if got == "" {
		got, _ = say(&genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
			ID: open.ID, Name: open.Name, Response: map[string]any{"confirmed": true, "payload": "yes"}}}}})
	}
	if got != "It is gone." {
		t.Errorf("after the answer: %q", got)
	}
}

func TestSkills(t *testing.T) {
	var all []string
	for _, s := range adka2a.BuildAgentSkills(helper(t)) {
		all = append(all, s.ID+": "+s.Description)
	}
	got := strings.Join(all, "; ")
	if want := "helper: Runs helper.; helper-remove: Removes all."; got != want {
		t.Errorf("skills %q, want %q", got, want)
	}
}

func ExampleBuildAgentSkills() {
	a, err := agent.New(agent.Config{Name: "critic", Description: "Judges a text."})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range adka2a.BuildAgentSkills(a) {
		fmt.Println(s.ID, s.Description)
	}
	// Output: critic Judges a text.
}
