// SPDX-License-Identifier: Apache-2.0

package loadmemorytool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/loadmemorytool"
)

// remembering returns a memory of a session in which ana said what her favourite colour is.
func remembering(ctx context.Context) (memory.Service, error) {
	sessions, mem := session.InMemoryService(), memory.InMemoryService()
	made, err := sessions.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana"})
	if err != nil {
		return nil, err
	}
	ev := session.NewEvent(ctx, "i1")
	ev.Author = "user"
	ev.Content = genai.NewContentFromText("My favourite colour is teal.", genai.RoleUser)
	if err := sessions.AppendEvent(ctx, made.Session, ev); err != nil {
		return nil, err
	}
	return mem, mem.AddSessionToMemory(ctx, made.Session)
}

// ask runs an agent with load_memory, whose model answers from a script.
func ask(ctx context.Context, mem memory.Service, answers ...scripted.Answer) (said string, err error) {
	llm, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		return "", err
	}
	a, err := llmagent.New(llmagent.Config{Name: "helper", Model: llm, Tools: []tool.Tool{loadmemorytool.New()}})
	if err != nil {
		return "", err
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), MemoryService: mem,
		AutoCreateSession: true})
	if err != nil {
		return "", err
	}
	msg := genai.NewContentFromText("Paint my room.", genai.RoleUser)
	for ev, err := range r.Run(ctx, "ana", "now", msg, agent.RunConfig{}) {
		if err != nil {
			return said, err
		}
		said += ev.Text()
	}
	return said, nil
}

func search(args map[string]any) scripted.Answer {
	return scripted.Answer{MatchRequest: "call `load_memory` with a query", Calls: []scripted.Call{{Name: "load_memory", Args: args}}}
}

// The model asks the memory, and gets what was said in another session.
func Example() {
	ctx := context.Background()
	mem, err := remembering(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ask(ctx, mem, search(map[string]any{"query": "favourite colour"}),
		scripted.Answer{MatchRequest: "favourite colour is teal", Text: "I take teal."}))
	// Output: I take teal. <nil>
}

// What the tool cannot do, it tells the model, which goes on.
func TestModelIsToldWhatIsWrong(t *testing.T) {
	mem, err := remembering(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		mem  memory.Service
		args map[string]any
		want string
	}{
		{"no query", mem, nil, "query: a text is needed"},
		{"no text", mem, map[string]any{"query": 5}, "query: a text is needed"},
		{"nothing found", mem, map[string]any{"query": "zebra"}, `"memories":\[\]`},
		{"no memory service", nil, map[string]any{"query": "colour"}, "MemoryService"},
	} {
		said, err := ask(t.Context(), tt.mem, search(tt.args), scripted.Answer{MatchRequest: tt.want, Text: "White, then."})
		if err != nil || !strings.Contains(said, "White, then.") {
			t.Errorf("%s: %q, %v", tt.name, said, err)
		}
	}
}
