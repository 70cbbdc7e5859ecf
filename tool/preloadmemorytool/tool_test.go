// SPDX-License-Identifier: Apache-2.0

package preloadmemorytool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/preloadmemorytool"
)

// remembering returns a memory of a session in which ana said what her favourite colour is.
func remembering(ctx context.Context) (memory.Service, error) {
	sessions, mem := session.InMemoryService(), memory.InMemoryService()
	made, err := sessions.Create(ctx, &session.CreateRequest{AppName: "app", UserID: "ana"})
	if err != nil {
		return nil, err
	}
	ev := session.NewEvent(ctx, "i1")
	ev.Author, ev.Timestamp = "user", time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	ev.Content = genai.NewContentFromText("My favourite colour is teal.", genai.RoleUser)
	if err := sessions.AppendEvent(ctx, made.Session, ev); err != nil {
		return nil, err
	}
	return mem, mem.AddSessionToMemory(ctx, made.Session)
}

// ask runs an agent with preload_memory, whose model answers from a script.
func ask(ctx context.Context, mem memory.Service, user, question string, answers ...scripted.Answer) (said string, err error) {
	llm, err := scripted.New(scripted.Script{Answers: answers})
	if err != nil {
		return "", err
	}
	a, err := llmagent.New(llmagent.Config{Name: "helper", Model: llm, Instruction: "Be brief.",
		Tools: []tool.Tool{preloadmemorytool.New()}})
	if err != nil {
		return "", err
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: session.InMemoryService(), MemoryService: mem,
		AutoCreateSession: true})
	if err != nil {
		return "", err
	}
	msg := genai.NewContentFromText(question, genai.RoleUser)
	for ev, err := range r.Run(ctx, user, "now", msg, agent.RunConfig{}) {
		if err != nil {
			return said, err
		}
		said += ev.Text()
	}
	return said, nil
}

// What was said in another session is in the instruction, after that of the agent.
func Example() {
	ctx := context.Background()
	mem, err := remembering(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ask(ctx, mem, "ana", "Which colour do I like?", scripted.Answer{
		MatchRequest: `(?s)Be brief\..*<PAST_CONVERSATIONS>\nTime: 2026-03-01T09:00:00Z\nuser: My favourite colour is teal\.\n</PAST_CONVERSATIONS>`,
		Text:         "Teal.",
	}))
	// Output: Teal. <nil>
}

// Without anything to remember the instruction is only the agent's.
func TestNothingFound(t *testing.T) {
	mem, err := remembering(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ user, question string }{
		{"ana", "zebra"},
		{"bob", "Which colour do I like?"}, // it is not bob's session
	} {
		said, err := ask(t.Context(), mem, tt.user, tt.question,
			scripted.Answer{MatchRequest: "PAST_CONVERSATIONS|teal", Text: "Found."}, scripted.Answer{Text: "Nothing."})
		if err != nil || said != "Nothing." {
			t.Errorf("%s asks %q: %q, %v", tt.user, tt.question, said, err)
		}
	}
}

func TestNoMemoryService(t *testing.T) {
	_, err := ask(t.Context(), nil, "ana", "Which colour?", scripted.Answer{Text: "Teal."})
	if err == nil || !strings.Contains(err.Error(), "preload_memory") || !strings.Contains(err.Error(), "MemoryService") {
		t.Errorf("error %v", err)
	}
}
