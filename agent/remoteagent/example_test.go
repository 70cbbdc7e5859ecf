// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// counter is an agent elsewhere that counts the letters of a draft.
type counter struct{}

func (counter) Execute(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		draft := x.Message.Parts[0].Data().(map[string]any)["draft"].(string)
		_ = yield(a2a.NewSubmittedTask(x, x.Message), nil) &&
			yield(a2a.NewArtifactEvent(x, a2a.NewDataPart(map[string]any{"letters": len(draft)})), nil) &&
			yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil), nil)
	}
}

func (counter) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

func Example() {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(counter{})))
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(&a2a.AgentCard{
		Name: "counter", Capabilities: a2a.AgentCapabilities{Streaming: true},
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(server.URL+"/invoke", a2a.TransportProtocolJSONRPC)},
	}))

	far, err := remoteagent.NewA2A(remoteagent.A2AConfig{
		Name:            "analyst",
		AgentCardSource: server.URL,
		Payload:         map[string]any{"draft": "{{draft}}"},
		OutputKey:       "analysis",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: far, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	state := runner.WithStateDelta(map[string]any{"draft": "Once upon a time"})
	for ev, err := range r.Run(context.Background(), "ana", "s1", genai.NewContentFromText("Go on.", genai.RoleUser), agent.RunConfig{}, state) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if ev.Content != nil {
			fmt.Println(ev.Author, ev.Text(), ev.Actions.StateDelta["analysis"])
		}
	}
	// Output: analyst {"letters":16} map[letters:16]
}
