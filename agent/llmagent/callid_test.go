// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// numberer is a server in one wire format that calls note three times in each of its first turns, under IDs that
// it repeats, leaves out, or means ill with.
type numberer struct {
	wire  string
	id    func(turn, n int) string
	turns int // of each conversation

	mu     sync.Mutex
	bodies []string
}

func (s *numberer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	body := string(data)
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	turn := strings.Count(body, `\"did\"`) + strings.Count(body, `"did":`)
	if s.wire == "anthropic" {
		turn = strings.Count(body, `tool_result`)
	}
	turn /= 3
	var calls []any
	for n := range 3 {
		if turn >= s.turns {
			break
		}
		id, args := s.id(turn, n), map[string]any{"k": fmt.Sprintf("k%d.%d", turn, n)}
		text, _ := json.Marshal(args)
		calls = append(calls, map[string]any{
			"openai":    map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "note", "arguments": string(text)}},
			"anthropic": map[string]any{"type": "tool_use", "id": id, "name": "note", "input": args},
			"gemini":    map[string]any{"functionCall": map[string]any{"id": id, "name": "note", "args": args}},
		}[s.wire])
	}
	var answer any
	switch message := map[string]any{"role": "assistant"}; s.wire {
	case "openai":
		if message["content"] = "done"; calls != nil {
			message = map[string]any{"role": "assistant", "tool_calls": calls}
		}
		answer = map[string]any{"choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}}
	case "anthropic":
		if calls == nil {
			calls = []any{map[string]any{"type": "text", "text": "done"}}
		}
		answer = map[string]any{"content": calls, "stop_reason": "end_turn"}
	default:
		if calls == nil {
			calls = []any{map[string]any{"text": "done"}}
		}
		answer = map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"role": "model", "parts": calls}, "finishReason": "STOP"}}}
	}
	json.NewEncoder(w).Encode(answer)
}

var hostileIDs = map[string]func(turn, n int) string{
	"one for all":          func(int, int) string { return "call_0" },
	"numbered per answer":  func(_, n int) string { return fmt.Sprintf("call_%d", n) },
	"unique":               func(turn, n int) string { return fmt.Sprintf("id_%d_%d", turn, n) },
	"none":                 func(int, int) string { return "" },
	"some":                 func(_, n int) string { return []string{"", "x", "x"}[n] },
	"very long":            func(int, int) string { return strings.Repeat("x", 100_000) },
	"control characters":   func(_, n int) string { return "a\x00b\n\x1b[2J" + strings.Repeat("\x00", n) },
	"of the agent's shape": func(int, int) string { return "call-00000000-0000-0000-0000-000000000000~call_0" },
}

// LOOP 32a: whatever IDs a model's server gives, each call has an ID and a call ID of its own, in parallel branches
// and further runs too. The model is answered under the ID that it gave, which stays if it is unique.
func TestCallsHaveIDsOfTheirOwn(t *testing.T) {
	for wire, open := range formats {
		for name, id := range hostileIDs {
			t.Run(wire+"/"+name, func(t *testing.T) {
				srv := &numberer{wire: wire, id: id, turns: 2}
				h := httptest.NewServer(srv)
				defer h.Close()
				var mu sync.Mutex
				ids, effects := map[string]string{}, map[string]string{}
				note, err := functiontool.New(functiontool.Config{Name: "note"}, func(ctx tool.Context, in struct {
					K string `json:"k"`
				}) (map[string]any, error) {
					mu.Lock()
					defer mu.Unlock()
					at := drive.At(ctx)
					made := string(at.Address()) + in.K + ctx.InvocationID()
					for of, id := range map[*map[string]string]string{&ids: ctx.FunctionCallID(), &effects: at.ToolCallID(ctx.FunctionCallID())} {
						if had, ok := (*of)[id]; ok || id == "" {
							t.Errorf("ID %q of %s was that of %s", id, made, had)
						}
						(*of)[id] = made
					}
					return map[string]any{"did": in.K}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				var branches []agent.Agent
				for _, name := range []string{"a", "b"} {
					branches = append(branches, newAgent(t, llmagent.Config{Name: name, Model: open(t, h.URL), Tools: []tool.Tool{note},
						Context: llmagent.ContextConfig{Policy: llmagent.ContextNone}}))
				}
				both, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: branches}})
				if err != nil {
					t.Fatal(err)
				}
				th := newThread(t, both)
				for range 2 {
					if _, err := th.ask(t.Context(), "go"); err != nil {
						t.Fatal(err)
					}
				}
				if len(ids) != 2*2*2*3 {
					t.Errorf("%d calls", len(ids))
				}
				if name == "unique" && ids["id_0_0"] == "" {
					t.Errorf("a unique ID was replaced: %v", ids)
				}
				last := srv.bodies[len(srv.bodies)-1]
				if want := id(0, 1); strings.HasPrefix(want, "call_") && strings.Count(last, `"`+want+`"`) < 2 || name == "one for all" && strings.Contains(last, "~") {
					t.Errorf("the model was not answered under %q: %s", want, last)
				}
			})
		}
	}
}

// LOOP 32a: the answer of a person is about one call, also if the model gives several calls one ID.
func TestConsentIsForOneCall(t *testing.T) {
	for wire, open := range formats {
		for name, id := range hostileIDs {
			for yes := range 3 {
				srv := &numberer{wire: wire, id: id, turns: 1}
				h := httptest.NewServer(srv)
				var did []string
				var mu sync.Mutex
				note, err := functiontool.New(functiontool.Config{Name: "note", RequireConfirmation: true}, func(_ tool.Context, in struct {
					K string `json:"k"`
				}) (map[string]any, error) {
					mu.Lock()
					defer mu.Unlock()
					did = append(did, in.K)
					return map[string]any{"did": in.K}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: open(t, h.URL), Tools: []tool.Tool{note}}))
				var parts []*genai.Part
				for i, q := range th.asked(3) {
					parts = append(parts, responds(q, map[string]any{"confirmed": i == yes}))
				}
				if _, err := th.send(parts...); err != nil {
					t.Errorf("%s, %s: %v", wire, name, err)
				}
				if want := fmt.Sprintf("k0.%d", yes); !slices.Equal(did, []string{want}) {
					t.Errorf("%s, %s: the person allows %s, and it made %v", wire, name, want, did)
				}
				h.Close()
			}
		}
	}
}
