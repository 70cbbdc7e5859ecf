// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/modeltest"
)

// serve answers every request with a body, and keeps the last request's.
func serve(t *testing.T, contentType, body string) (baseURL string, asked *map[string]any) {
	t.Helper()
	asked = new(map[string]any)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func ask(t *testing.T, baseURL string, req *model.LLMRequest, stream bool) (*model.LLMResponse, error) {
	t.Helper()
	llm, err := anthropic.NewModel("m", anthropic.Config{BaseURL: baseURL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if req == nil {
		req = &model.LLMRequest{}
	}
	for resp, err := range llm.GenerateContent(t.Context(), req, stream) {
		if err != nil || !resp.Partial {
			return resp, err
		}
	}
	return nil, errors.New("nothing was yielded")
}

const hello = `{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn"}`

func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		var in struct{ Type string }
		if json.Unmarshal([]byte(e), &in) != nil {
			panic(e)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", in.Type, e)
	}
	return b.String()
}

const begin = `{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}`

func TestErrorInsideAStream(t *testing.T) {
	for kind, want := range map[string]struct {
		status int
		retry  bool
	}{
		"overloaded_error": {529, true}, "api_error": {500, true}, "rate_limit_error": {429, true},
		"invalid_request_error": {400, false}, "a_new_kind": {0, true},
	} {
		url, _ := serve(t, "text/event-stream", events(begin, `{"type":"error","error":{"type":"`+kind+`","message":"Overloaded"}}`))
		_, err := ask(t, url, nil, true)
		e, ok := errors.AsType[*model.APIError](err)
		if !ok || e.Status != want.status || e.Retryable != want.retry || e.Message != "Overloaded" || e.Code != kind {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}

// The API's rules: events of new kinds are passed over.
func TestUnknownEventsAndBlocks(t *testing.T) {
	url, _ := serve(t, "text/event-stream", events(begin,
		`{"type":"content_block_start","index":0,"content_block":{"type":"a_new_block","hm":1}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"a_new_delta","x":2}}`,
		`{"type":"a_new_event"}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hi."}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`))
	resp, err := ask(t, url, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(resp.Content.Parts) != 1 || resp.Content.Parts[0].Text != "Hi." || resp.UsageMetadata.TotalTokenCount != 14 {
		t.Errorf("got %+v", resp)
	}
}

// Fields that are new, or of another type than documented, cost no answer.
func TestFieldsThatAreNotUnderstood(t *testing.T) {
	const block = `{"type":"text","text":"Hi.","citations":[{"type":"novel"}]}`
	const call = `{"type":"tool_use","id":"a","name":"f","input":{"n":1},"caller":{"type":"direct"}}`
	whole := `{"id":1,"type":"message","model":"m","content":[` + block + `,{"type":"novel","text":"No."},` + call + `],"stop_reason":"tool_use","stop_details":"none","container":{},
		"usage":{"input_tokens":5.0,"output_tokens":"9","cache_read_input_tokens":null,"service_tier":"standard","output_tokens_details":[]}}`
	stream := ": keep-alive\r\n\r\n" + strings.ReplaceAll(events(begin, `{"type":"ping"}`,
		`{"type":"content_block_start","index":0,"content_block":`+block+`,"novel":`+`"`+strings.Repeat("long", 50_000)+`"}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":`+call+`}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use","novel":1},"usage":{"input_tokens":5,"output_tokens":9.0}}`,
		`{"type":"message_stop"}`), "\n", "\r\n") + "data: garbage\r\n\r\n"
	for _, streamed := range []bool{false, true} {
		url, _ := serve(t, "application/json", whole)
		if streamed {
			url, _ = serve(t, "text/event-stream", stream)
		}
		resp, err := ask(t, url, nil, streamed)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(resp.Content.Parts)
		if err != nil {
			t.Fatal(err)
		}
		if want := `[{"text":"Hi."},{"functionCall":{"id":"a","args":{"n":1},"name":"f"}}]`; string(got) != want {
			t.Errorf("stream=%v: got %s", streamed, got)
		}
		want := &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 5, CandidatesTokenCount: 9, TotalTokenCount: 14}
		if diff := cmp.Diff(want, resp.UsageMetadata); diff != "" {
			t.Errorf("stream=%v: %s", streamed, diff)
		}
	}
}

func TestErrorsOfManyForms(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		retry  bool
		says   string
	}{
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`, true, "anthropic: status 529 (overloaded_error): Overloaded (request req_1)"},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"too large"}}`, false, "anthropic: status 413 (request_too_large): too large (request req_1)"},
		{502, "<html>Bad\n gateway</html>", true, "anthropic: status 502: Bad Gateway: <html>Bad gateway</html> (request req_1)"},
		{503, "", true, "anthropic: status 503: Service Unavailable (request req_1)"},
		{200, "", false, "anthropic: status 200 (garbage): an empty answer (request req_1): unexpected end of JSON input"},
		{200, `{"type":"message"}`, false, `anthropic: status 200 (garbage): an answer that is not understood: "{\"type\":\"message\"}" (request req_1)`},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Request-Id", "req_1")
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		_, err := ask(t, srv.URL, nil, false)
		if _, retry := model.Retryable(err); err == nil || err.Error() != tt.says || retry != tt.retry {
			t.Errorf("got %v", err)
		}
		srv.Close()
	}
}

func TestCallThatIsCutAtTheBoundOfTokens(t *testing.T) {
	url, _ := serve(t, "text/event-stream", events(begin,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"write","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"text\":\"Once"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`))
	resp, err := ask(t, url, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if resp.FinishReason != genai.FinishReasonMaxTokens || resp.ErrorCode != string(genai.FinishReasonMalformedFunctionCall) || len(resp.Content.Parts) != 0 {
		t.Errorf("got %+v", resp)
	}
}

// Thoughts go back as they came, hidden ones too; those of others do not.
func TestThoughtsGoBack(t *testing.T) {
	url, asked := serve(t, "application/json", `{"type":"message","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"redacted_thinking","data":"hidden"},{"type":"text","text":"Hi."}],"stop_reason":"end_turn"}`)
	resp, err := ask(t, url, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	resp.Content.Parts = append(resp.Content.Parts, &genai.Part{Text: "Mine.", Thought: true},
		&genai.Part{Text: "Gemini's.", Thought: true, ThoughtSignature: []byte{1, 2}})
	if _, err := ask(t, url, &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("Hello?", genai.RoleUser), resp.Content}}, false); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"type": "thinking", "thinking": "Hm.", "signature": "sig"},
		map[string]any{"type": "redacted_thinking", "data": "hidden"},
		map[string]any{"type": "text", "text": "Hi."},
	}
	if diff := cmp.Diff(want, (*asked)["messages"].([]any)[1].(map[string]any)["content"]); diff != "" {
		t.Error(diff)
	}
}

func TestSettings(t *testing.T) {
	f := []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "f"}, {Name: "g"}}}}
	choose := func(mode genai.FunctionCallingConfigMode, names ...string) *genai.GenerateContentConfig {
		calling := &genai.FunctionCallingConfig{Mode: mode, AllowedFunctionNames: names}
		return &genai.GenerateContentConfig{Tools: f, ToolConfig: &genai.ToolConfig{FunctionCallingConfig: calling}}
	}
	think := func(budget, most int32) *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{MaxOutputTokens: most, ThinkingConfig: &genai.ThinkingConfig{ThinkingBudget: &budget}}
	}
	for _, tt := range []struct {
		name  string
		cfg   *genai.GenerateContentConfig
		field string
		want  any
	}{
		{"bound of tokens by default", nil, "max_tokens", float64(anthropic.DefaultMaxTokens)},
		{"any", choose(genai.FunctionCallingConfigModeAny), "tool_choice", map[string]any{"type": "any"}},
		{"none", choose(genai.FunctionCallingConfigModeNone), "tool_choice", map[string]any{"type": "none"}},
		{"one", choose(genai.FunctionCallingConfigModeAny, "f"), "tool_choice", map[string]any{"type": "tool", "name": "f"}},
		{"budget", think(2000, 4000), "thinking", map[string]any{"type": "enabled", "budget_tokens": 2000.0}},
		{"small budget", think(10, 4000), "thinking", map[string]any{"type": "enabled", "budget_tokens": 1024.0}},
		{"budget above the bound", think(5000, 4000), "max_tokens", 9000.0},
		{"no thoughts", think(0, 0), "thinking", map[string]any{"type": "disabled"}},
		{"as it likes", think(-1, 0), "thinking", map[string]any{"type": "adaptive"}},
		{"level", &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelLow, IncludeThoughts: true}}, "thinking", map[string]any{"type": "adaptive", "display": "summarized"}},
		{"limits in words", &genai.GenerateContentConfig{ResponseSchema: &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{
			"n": {Type: genai.TypeInteger, Maximum: new(10.0), Description: "A score."},
		}}}, "output_config", map[string]any{"format": map[string]any{"type": "json_schema", "schema": map[string]any{
			"type": "object", "additionalProperties": false, "properties": map[string]any{"n": map[string]any{"type": "integer", "description": "A score. (maximum: 10)"}},
		}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, asked := serve(t, "application/json", hello)
			if _, err := ask(t, url, &model.LLMRequest{Config: tt.cfg}, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, (*asked)[tt.field]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnswerThatFailedIsMarked(t *testing.T) {
	url, asked := serve(t, "application/json", hello)
	_, err := ask(t, url, &model.LLMRequest{Contents: []*genai.Content{
		genai.NewContentFromText("Go.", genai.RoleUser),
		{Role: "model", Parts: []*genai.Part{genai.NewPartFromFunctionCall("f", nil)}},
		{Role: "user", Parts: []*genai.Part{genai.NewPartFromFunctionResponse("f", map[string]any{"error": "it broke"})}},
	}}, false)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(*asked)
	if !strings.Contains(string(data), `"is_error":true`) {
		t.Errorf("asked %s", data)
	}
}

func TestNewModelFails(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("ANTHROPIC_BASE_URL", "")
	if _, err := anthropic.NewModel("m", anthropic.Config{}); err == nil || !strings.Contains(err.Error(), "set ANTHROPIC_API_KEY") {
		t.Errorf("got %v", err)
	}
	if _, err := anthropic.NewModel("", anthropic.Config{APIKey: "k"}); err == nil {
		t.Error("a model without a name")
	}
}

// The key goes nowhere else.
func TestSecrets(t *testing.T) {
	modeltest.TestSecrets(t, func(t testing.TB, baseURL, key string) model.LLM {
		llm, err := anthropic.NewModel("m", anthropic.Config{BaseURL: baseURL, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return llm
	})
}

// Usage as https://platform.claude.com/docs/en/build-with-claude/prompt-caching shows it: what was
// written for an hour is part of cache_creation_input_tokens. Older servers do not say for how long.
func TestCacheWritesAreCounted(t *testing.T) {
	const counts = `"input_tokens":21,"cache_read_input_tokens":1800,"cache_creation_input_tokens":248,"output_tokens":9`
	for split, want := range map[string]budget.Usage{
		`,"cache_creation":{"ephemeral_5m_input_tokens":148,"ephemeral_1h_input_tokens":100}`: {
			InputTokens: 2069, CachedTokens: 1800, CacheWriteTokens: 148, CacheWrite1hTokens: 100, OutputTokens: 9},
		``:                       {InputTokens: 2069, CachedTokens: 1800, CacheWriteTokens: 248, OutputTokens: 9},
		`,"cache_creation":null`: {InputTokens: 2069, CachedTokens: 1800, CacheWriteTokens: 248, OutputTokens: 9},
	} {
		usage := `"usage":{` + counts + split + `}`
		whole := strings.TrimSuffix(hello, "}") + "," + usage + "}"
		begun := strings.Replace(`{"type":"message_start","message":MESSAGE}`, "MESSAGE",
			`{"model":"m","content":[],`+usage+`}`, 1)
		streamed := events(begun, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`)
		for kind, body := range map[string]string{"application/json": whole, "text/event-stream": streamed} {
			url, _ := serve(t, kind, body)
			resp, err := ask(t, url, nil, kind != "application/json")
			if err != nil {
				t.Fatal(err)
			}
			if got := model.Used(resp.UsageMetadata); got != want {
				t.Errorf("%s, %s: got %+v", kind, split, got)
			}
		}
	}
}
