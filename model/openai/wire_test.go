// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openai"
)

// serve answers every request with a status and a body, and keeps the last
// request's body.
func serve(t *testing.T, status int, header http.Header, body string) (baseURL string, asked *map[string]any) {
	t.Helper()
	asked = new(map[string]any)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, asked); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

// sse is a stream of chunks, each the inside of a choice.
func sse(choices ...string) string {
	var b strings.Builder
	for _, c := range choices {
		fmt.Fprintf(&b, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,%s}]}\n\n", c)
	}
	return b.String()
}

func ask(t *testing.T, baseURL string, req *model.LLMRequest, stream bool) (*model.LLMResponse, error) {
	t.Helper()
	return askIn(t.Context(), t, baseURL, req, stream)
}

func askIn(ctx context.Context, t *testing.T, baseURL string, req *model.LLMRequest, stream bool) (*model.LLMResponse, error) {
	t.Helper()
	llm, err := openai.NewModel("m", openai.Config{BaseURL: baseURL})
	if err != nil {
		t.Fatal(err)
	}
	if req == nil {
		req = &model.LLMRequest{}
	}
	for resp, err := range llm.GenerateContent(ctx, req, stream) {
		if err != nil || !resp.Partial {
			return resp, err
		}
	}
	return nil, errors.New("nothing was yielded")
}

const end = `"delta":{},"finish_reason":"stop"`

func TestStreamsOfOtherServers(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       string // parts, as JSON; IDs that were made up are "made"
	}{
		{"all calls at index 0", sse(
			`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}}]}`,
			`"delta":{"tool_calls":[{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}]}`, end),
			`[{"functionCall":{"id":"a","args":{"n":1},"name":"f"}},{"functionCall":{"id":"b","name":"g"}}]`},
		{"calls without IDs", sse(
			`"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}},{"index":1,"function":{"name":"g","arguments":"nul"}}]}`,
			`"delta":{"tool_calls":[{"index":1,"function":{"arguments":"l"}}]}`, end),
			`[{"functionCall":{"id":"made","name":"f"}},{"functionCall":{"id":"made","name":"g"}}]`},
		{"Ollama's reasoning", sse(`"delta":{"reasoning":"Hm."}`, `"delta":{"content":"Yes."}`, end), `[{"text":"Hm.","thought":true},{"text":"Yes."}]`},
		{"nulls", sse(`"delta":{"role":"assistant","content":null,"tool_calls":null},"finish_reason":null`, `"delta":{"content":"Yes."}`, end), `[{"text":"Yes."}]`},
		{"comments and CRLF", ": keep-alive\r\n\r\n" + strings.ReplaceAll(sse(`"delta":{"content":"Yes."}`, end), "\n", "\r\n"), `[{"text":"Yes."}]`},
		{"keep-alives without data", "data:\n\n: ping\n\n" + sse(`"delta":{"content":"Yes."}`, end) + "data: [DONE]\n\n", `[{"text":"Yes."}]`},
		{"what follows [DONE]", sse(`"delta":{"content":"Yes."}`, end) + "data: [DONE]\n\ndata: garbage\n\n", `[{"text":"Yes."}]`},
		{"named events", strings.ReplaceAll(sse(`"delta":{"content":"Yes."}`, end), "data:", "id: 1\nevent: chunk\ndata:"), `[{"text":"Yes."}]`},
		{"JSON on several lines", "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"Yes.\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n", `[{"text":"Yes."}]`},
		{"a line of 200 kB", sse(`"delta":{"content":"Yes."},"logprobs":"`+strings.Repeat("long", 50_000)+`"`, end), `[{"text":"Yes."}]`},
		{"arguments that are no text", sse(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"n":1}}}]}`, end),
			`[{"functionCall":{"id":"a","args":{"n":1},"name":"f"}}]`},
		{"contents of many kinds", sse(`"delta":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"Yes"},{"type":"novel"},{"type":"text","text":"."}]}`, end), `[{"text":"Yes."}]`},
		{"fields of odd types", sse(`"index":"0","delta":{"role":1,"content":"Yes.","refusal":{},"novel":[{}],"tool_calls":"none"}`, `"delta":"none","finish_reason":"stop"`), `[{"text":"Yes."}]`},
		{"other choices", sse(`"delta":{"content":"Yes."}`) + "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"No.\"}}]}\n\n" + sse(end), `[{"text":"Yes."}]`},
		{"[DONE] is missing", sse(`"delta":{"content":"Yes."}`, end), `[{"text":"Yes."}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := serve(t, 200, http.Header{"Content-Type": {"text/event-stream"}}, tt.body)
			resp, err := ask(t, url, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range resp.Content.Parts {
				if p.FunctionCall != nil && strings.HasPrefix(p.FunctionCall.ID, "call_") {
					p.FunctionCall.ID = "made"
				}
			}
			got, err := json.Marshal(resp.Content.Parts)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if resp.UsageMetadata != nil {
				t.Errorf("usage that nobody told: %v", resp.UsageMetadata)
			}
		})
	}
}

// Answers of other servers are read as far as they are understood.
func TestAnswersOfOtherServers(t *testing.T) {
	url, _ := serve(t, 200, nil, `{"id":7,"object":"novel","created":"now","model":"m","novel":{"a":[1]},"service_tier":null,
		"choices":[{"index":0,"logprobs":{},"finish_reason":"tool_calls","message":{"role":"assistant","novel":1,"content":[{"type":"text","text":"Yes."}],
			"reasoning":"Hm.","annotations":[],"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n":1}}},{"id":"b","function":{"name":"g","arguments":null}}]}}],
		"usage":{"prompt_tokens":3.0,"completion_tokens":"4","total_tokens":7,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":9}}}`)
	resp, err := ask(t, url, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := json.Marshal(resp.Content.Parts)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"text":"Hm.","thought":true},{"text":"Yes."},{"functionCall":{"id":"a","args":{"n":1},"name":"f"}},{"functionCall":{"id":"b","name":"g"}}]`; string(parts) != want {
		t.Errorf("got %s", parts)
	}
	want := &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 3, ThoughtsTokenCount: 4, TotalTokenCount: 7}
	if diff := cmp.Diff(want, resp.UsageMetadata); diff != "" {
		t.Error(diff)
	}
}

// A character may arrive in two pieces, and a stream may be cut in its middle.
func TestStreamThatIsCutInACharacter(t *testing.T) {
	for _, cut := range []bool{false, true} {
		whole := sse(`"delta":{"content":"日本"}`, end)
		at := strings.Index(whole, "本") + 1
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, whole[:at])
			w.(http.Flusher).Flush()
			if cut {
				panic(http.ErrAbortHandler)
			}
			io.WriteString(w, whole[at:])
		}))
		defer srv.Close()
		resp, err := ask(t, srv.URL, nil, true)
		if cut {
			if _, retry := model.Retryable(err); !retry || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v, %v; want a retryable io.ErrUnexpectedEOF", resp, err)
			}
		} else if err != nil || resp.Content.Parts[0].Text != "日本" {
			t.Errorf("got %v, %v", resp, err)
		}
	}
}

func TestArgumentsThatAreNotJSONAreTheModelsMistake(t *testing.T) {
	url, _ := serve(t, 200, nil, `{"choices":[{"message":{"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{n: 1"}}]},"finish_reason":"tool_calls"}]}`)
	resp, err := ask(t, url, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if resp.ErrorCode != string(genai.FinishReasonMalformedFunctionCall) || !strings.Contains(resp.ErrorMessage, `"f"`) {
		t.Errorf("got %q: %q", resp.ErrorCode, resp.ErrorMessage)
	}
}

func TestErrorsOfManyForms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		retry  bool
		says   string
	}{
		{"no credit", 429, nil, `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`, false, "insufficient_quota"},
		{"the provider says no", 503, http.Header{"X-Should-Retry": {"false"}}, `{"error":{"message":"never"}}`, false, "never"},
		{"Ollama's", 404, nil, `{"error":"model 'x' not found"}`, false, "model 'x' not found"},
		{"vLLM's", 400, nil, `{"object":"error","message":"context too long","type":"BadRequestError","code":400}`, false, "context too long"},
		{"a gateway's page", 502, http.Header{"Content-Type": {"text/html"}}, "<html><body>Bad\n gateway</body></html>", true, "Bad gateway"},
		{"nothing", 503, nil, "", true, "Service Unavailable"},
		{"an answer without choices", 200, nil, `{"hello":"world"}`, false, "hello"},
		{"an empty answer", 200, nil, "", false, "an empty answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _ := serve(t, tt.status, tt.header, tt.body)
			_, err := ask(t, url, nil, false)
			e, ok := errors.AsType[*model.APIError](err)
			if !ok || e.Status != tt.status || e.Retryable != tt.retry || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// OpenRouter reports what went wrong behind it with a status of success.
func TestErrorAfterASuccess(t *testing.T) {
	url, _ := serve(t, 200, nil, `{"error":{"message":"no provider is there","code":502},"user_id":"u"}`)
	_, err := ask(t, url, nil, false)
	e, ok := errors.AsType[*model.APIError](err)
	if !ok || e.Status != 502 || !e.Retryable || e.Message != "no provider is there" {
		t.Errorf("got %v", err)
	}
}

func TestErrorInsideAStream(t *testing.T) {
	for body, retry := range map[string]bool{
		`{"error":{"message":"overloaded","type":"server_error"}}`:                   true,
		`{"error":{"message":"we broke"}}`:                                           true,
		`{"error":{"message":"too long","type":"invalid_request_error"}}`:            false,
		`{"error":{"message":"stop","code":429,"type":"some_kind_that_is_unknown"}}`: true,
	} {
		url, _ := serve(t, 200, http.Header{"Content-Type": {"text/event-stream"}}, sse(`"delta":{"content":"Once"}`)+"data: "+body+"\n\n")
		_, err := ask(t, url, nil, true)
		if _, got := model.Retryable(err); got != retry || err == nil {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func TestSettings(t *testing.T) {
	f := []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "f"}, {Name: "g"}}}}
	choose := func(mode genai.FunctionCallingConfigMode, names ...string) *genai.GenerateContentConfig {
		calling := &genai.FunctionCallingConfig{Mode: mode, AllowedFunctionNames: names}
		return &genai.GenerateContentConfig{Tools: f, ToolConfig: &genai.ToolConfig{FunctionCallingConfig: calling}}
	}
	think := func(budget int32) *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingBudget: &budget}}
	}
	function := func(name string) map[string]any {
		return map[string]any{"type": "function", "function": map[string]any{"name": name}}
	}
	for _, tt := range []struct {
		name  string
		cfg   *genai.GenerateContentConfig
		field string
		want  any
	}{
		{"any", choose(genai.FunctionCallingConfigModeAny), "tool_choice", "required"},
		{"none", choose(genai.FunctionCallingConfigModeNone), "tool_choice", "none"},
		{"one", choose(genai.FunctionCallingConfigModeAny, "f"), "tool_choice", function("f")},
		{"some", choose(genai.FunctionCallingConfigModeAuto, "f", "g"), "tool_choice", map[string]any{
			"type": "allowed_tools", "allowed_tools": map[string]any{"mode": "auto", "tools": []any{function("f"), function("g")}},
		}},
		{"level", &genai.GenerateContentConfig{ThinkingConfig: &genai.ThinkingConfig{ThinkingLevel: genai.ThinkingLevelHigh}}, "reasoning_effort", "high"},
		{"no thoughts", think(0), "reasoning_effort", "none"},
		{"few thoughts", think(1024), "reasoning_effort", "low"},
		{"more thoughts", think(4096), "reasoning_effort", "medium"},
		{"many thoughts", think(32000), "reasoning_effort", "high"},
		{"as it likes", think(-1), "reasoning_effort", nil},
		{"JSON of any form", &genai.GenerateContentConfig{ResponseMIMEType: "application/json"}, "response_format", map[string]any{"type": "json_object"}},
		{"bound of tokens", &genai.GenerateContentConfig{MaxOutputTokens: 9}, "max_tokens", 9.0},
		{"seed", &genai.GenerateContentConfig{Seed: new(int32(4))}, "seed", 4.0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, asked := serve(t, 200, nil, `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`)
			if _, err := ask(t, url, &model.LLMRequest{Config: tt.cfg}, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, (*asked)[tt.field]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatCannotBeSentIsAnError(t *testing.T) {
	url, _ := serve(t, 500, nil, "")
	for want, part := range map[string]*genai.Part{
		"video/mp4":              genai.NewPartFromBytes(nil, "video/mp4"),
		"gs://bucket/image.png":  genai.NewPartFromURI("gs://bucket/image.png", "image/png"),
		"belongs to no call":     genai.NewPartFromFunctionResponse("f", nil),
		"code that the provider": {ExecutableCode: &genai.ExecutableCode{Code: "1"}},
	} {
		_, err := ask(t, url, &model.LLMRequest{Contents: []*genai.Content{{Role: "user", Parts: []*genai.Part{part}}}}, false)
		if _, ok := errors.AsType[*model.APIError](err); ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestNewModelFails(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("OPENAI_BASE_URL", "")
	for want, cfg := range map[string]openai.Config{
		"set OPENAI_API_KEY":  {},
		"not an http URL":     {BaseURL: "localhost:11434/v1"},
		"want max_tokens":     {APIKey: "k", TokensField: "tokens"},
		"a model needs a nam": {APIKey: "k", BaseURL: "http://localhost"},
	} {
		name := "m"
		if strings.HasPrefix(want, "a model") {
			name = ""
		}
		if _, err := openai.NewModel(name, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", cfg, err, want)
		}
	}
}

// The key goes nowhere else.
func TestSecrets(t *testing.T) {
	modeltest.TestSecrets(t, func(t testing.TB, baseURL, key string) model.LLM {
		llm, err := openai.NewModel("m", openai.Config{BaseURL: baseURL, APIKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return llm
	})
}
