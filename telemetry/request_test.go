// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/telemetry"
)

// A request says what its provider has said in its own words, and where it went; its agent says which model it asks.
func TestRequestHasTheProvidersWords(t *testing.T) {
	for _, tt := range []struct {
		provider, id, finish string
		whole, stream        string
		open                 func(address string) (model.LLM, error)
	}{
		{"openai", "chatcmpl-7", "length",
			`{"id":"chatcmpl-7","model":"m-1","choices":[{"message":{"content":"Hi."},"finish_reason":"length"}],` +
				`"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":7}}}`,
			`data: {"id":"chatcmpl-7","model":"m-1","choices":[{"delta":{"content":"Hi."},"finish_reason":"length"}]}` + "\n\n" +
				`data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9,"total_tokens":14,` +
				`"completion_tokens_details":{"reasoning_tokens":7}}}` + "\n\ndata: [DONE]\n\n",
			func(at string) (model.LLM, error) {
				return openai.NewModel("m", openai.Config{BaseURL: at, APIKey: "k"})
			}},
		{"anthropic", "msg_7", "stop_sequence",
			`{"id":"msg_7","model":"m-1","content":[{"type":"text","text":"Hi."}],"stop_reason":"stop_sequence",` +
				`"usage":{"input_tokens":5,"output_tokens":9,"output_tokens_details":{"thinking_tokens":7}}}`,
			`data: {"type":"message_start","message":{"id":"msg_7","model":"m-1"}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"stop_sequence"},` +
				`"usage":{"input_tokens":5,"output_tokens":9,"output_tokens_details":{"thinking_tokens":7}}}` + "\n\n" +
				`data: {"type":"message_stop"}` + "\n\n",
			func(at string) (model.LLM, error) {
				return anthropic.NewModel("m", anthropic.Config{BaseURL: at, APIKey: "k"})
			}},
		{"gcp.gemini", "resp-7", "MAX_TOKENS",
			`{"responseId":"resp-7","modelVersion":"m-1","candidates":[{"content":{"parts":[{"text":"Hi."}]},"finishReason":"MAX_TOKENS"}],` +
				`"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":7,"totalTokenCount":14}}`, "",
			func(at string) (model.LLM, error) {
				return gemini.NewModel(t.Context(), "m", &genai.ClientConfig{APIKey: "k", HTTPOptions: genai.HTTPOptions{BaseURL: at}})
			}},
	} {
		for _, body := range []string{tt.whole, tt.stream} {
			if body == "" {
				continue
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
			llm, err := tt.open(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			json := &genai.GenerateContentConfig{ResponseMIMEType: "application/json"}
			a, err := llmagent.New(llmagent.Config{Name: "painter", Model: llm, GenerateContentConfig: json})
			if err != nil {
				t.Fatal(err)
			}
			r, err := runner.NewInMemory("app", a)
			if err != nil {
				t.Fatal(err)
			}
			l := newLab(t, telemetry.Config{})
			cfg := agent.RunConfig{Observer: l}
			if body == tt.stream {
				cfg.StreamingMode = agent.StreamingModeSSE
			}
			for _, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("Which?", genai.RoleUser), cfg) {
				if err != nil {
					t.Logf("%s: %v", tt.provider, err) // an answer that was cut off
				}
			}
			srv.Close()
			at, _ := url.Parse(srv.URL)
			chat, asks := l.named(t, "chat m"), l.named(t, "invoke_agent painter")
			for key, want := range map[string]string{
				"gen_ai.response.id": tt.id, "gen_ai.response.finish_reasons": `["` + tt.finish + `"]`, "server.address": at.Hostname(),
				"server.port": at.Port(), "gen_ai.output.type": "json", "gen_ai.usage.reasoning.output_tokens": "7", "gen_ai.provider.name": tt.provider,
			} {
				if got, _ := attr(chat, key); got != want {
					t.Errorf("%s, %d bytes: the request has %s %q, want %q", tt.provider, len(body), key, got, want)
				}
			}
			for key, want := range map[string]string{"gen_ai.provider.name": tt.provider, "gen_ai.request.model": "m"} {
				if got, _ := attr(asks, key); got != want {
					t.Errorf("%s: the agent has %s %q, want %q", tt.provider, key, got, want)
				}
			}
			for what := range l.measured(t) {
				if strings.HasPrefix(what, "gen_ai.client.operation.duration") && !strings.Contains(what, at.Hostname()) {
					t.Errorf("%s: the metric %s has no server", tt.provider, what)
				}
			}
		}
	}
}
