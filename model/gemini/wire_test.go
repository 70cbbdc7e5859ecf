// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/modeltest"
)

// ask asks a server that gives one answer.
func ask(t *testing.T, status int, body string, stream bool) (*model.LLMResponse, error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	defer srv.Close()
	for resp, err := range open(t, srv.URL).GenerateContent(t.Context(), &model.LLMRequest{}, stream) {
		if err != nil || !resp.Partial {
			return resp, err
		}
	}
	return nil, errors.New("nothing was yielded")
}

// An agent gives an ID to a call without one, and does not send it back: Gemini has not made it.
func TestCallsKeepTheIDsOfGemini(t *testing.T) {
	const answer = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"id":"x7","name":"f","args":{"n":1}}}]},"finishReason":"STOP"}]}`
	for _, stream := range []bool{false, true} {
		body := answer
		if stream {
			body = "data: " + answer + "\n\n"
		}
		resp, err := ask(t, 200, body, stream)
		if err != nil {
			t.Fatal(err)
		}
		a, b := resp.Content.Parts[0].FunctionCall, resp.Content.Parts[1].FunctionCall
		if a.ID != "" || b.ID != "x7" || a.Args == nil {
			t.Errorf("got %+v and %+v", a, b)
		}
	}
}

// Gemini 3 signs a text in a last chunk without text.
func TestSignatureInTheLastChunk(t *testing.T) {
	resp, err := ask(t, 200, `data: {"candidates":[{"content":{"parts":[{"text":"One. "}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"Two."}]}}]}

data: {"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}

`, true)
	if err != nil {
		t.Fatal(err)
	}
	if p := resp.Content.Parts; len(p) != 1 || p[0].Text != "One. Two." || string(p[0].ThoughtSignature) != "sig" {
		t.Errorf("got %+v", resp.Content)
	}
}

func TestGoogleSaysWhenToRetry(t *testing.T) {
	_, err := ask(t, 429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"13.5s"}]}}`, false)
	e, ok := errors.AsType[*model.APIError](err)
	if !ok || e.RetryAfter != 13500*time.Millisecond || e.Code != "RESOURCE_EXHAUSTED" || !e.Retryable {
		t.Errorf("got %+v", err)
	}
}

func TestErrorInsideAStream(t *testing.T) {
	_, err := ask(t, 200, `data: {"candidates":[{"content":{"parts":[{"text":"One. "}]}}]}

data: {"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}

`, true)
	e, ok := errors.AsType[*model.APIError](err)
	if !ok || e.Status != 503 || !e.Retryable || e.Code != "UNAVAILABLE" {
		t.Errorf("got %+v", err)
	}
}

func TestModelThatStopsForAReason(t *testing.T) {
	for _, reason := range []genai.FinishReason{genai.FinishReasonMalformedFunctionCall, genai.FinishReasonSafety, genai.FinishReasonRecitation} {
		resp, err := ask(t, 200, `{"candidates":[{"finishReason":"`+string(reason)+`"}]}`, false)
		if err != nil {
			t.Fatal(err)
		}
		// For the Gemini API, genai drops the finish message.
		if resp.ErrorCode != string(reason) || resp.FinishReason != reason || !strings.Contains(resp.ErrorMessage, string(reason)) || resp.Content == nil {
			t.Errorf("got %+v", resp)
		}
	}
}

func TestEmptyAnswerIsGarbage(t *testing.T) {
	_, err := ask(t, 200, `{"hello":"world"}`, false)
	if e, ok := errors.AsType[*model.APIError](err); !ok || e.Retryable || !strings.Contains(err.Error(), "hello") {
		t.Errorf("got %v", err)
	}
}

// The key goes nowhere else.
func TestSecrets(t *testing.T) {
	modeltest.TestSecrets(t, func(t testing.TB, baseURL, key string) model.LLM {
		llm, err := gemini.NewModel(t.Context(), "m", &genai.ClientConfig{
			APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: baseURL},
		})
		if err != nil {
			t.Fatal(err)
		}
		return llm
	})
}

// Usage of implicit caches as https://ai.google.dev/gemini-api/docs/caching shows it: what was cached is part of
// promptTokenCount, and nothing is paid for writing.
func TestCachedInputIsCounted(t *testing.T) {
	for counts, cached := range map[string]int64{
		`,"cachedContentTokenCount":2027,"promptTokensDetails":[{"modality":"TEXT","tokenCount":2152}],` +
			`"cacheTokensDetails":[{"modality":"TEXT","tokenCount":2027}]`: 2027,
		`,"promptTokensDetails":[{"modality":"TEXT","tokenCount":2152}]`: 0,
	} {
		answer := `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi."}]},"finishReason":"STOP"}],"usageMetadata":` +
			`{"promptTokenCount":2152,"candidatesTokenCount":4,"totalTokenCount":2156` + counts + `}}`
		for _, stream := range []bool{false, true} {
			body := answer
			if stream {
				body = "data: " + answer + "\n\n"
			}
			resp, err := ask(t, 200, body, stream)
			if err != nil {
				t.Fatal(err)
			}
			want := budget.Usage{InputTokens: 2152, CachedTokens: cached, OutputTokens: 4}
			if got := model.Used(resp.UsageMetadata); got != want {
				t.Errorf("stream %v, %s: got %+v", stream, counts, got)
			}
		}
	}
}

// A call is not shown in pieces: it comes once, in the whole answer.
func TestCallsComeOnceInAStream(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"candidates":[{"content":{"parts":[{"text":"Let me see."}]}}]}`+"\n\n"+
			`data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"n":1}}}]},"finishReason":"STOP"}]}`+"\n\n")
	}))
	defer srv.Close()
	var got []string
	for resp, err := range open(t, srv.URL).GenerateContent(t.Context(), &model.LLMRequest{}, true) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range resp.Content.Parts {
			got = append(got, fmt.Sprintf("%t %q %t", resp.Partial, p.Text, p.FunctionCall != nil))
		}
	}
	want := []string{`true "Let me see." false`, `false "Let me see." false`, `false "" true`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// ADK's programs learn from the last piece of a streamed answer that the turn is complete, why it ended and what it used.
func TestLastPieceOfAStreamIsComplete(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"candidates":[{"content":{"parts":[{"text":"Once "}]}}]}`+"\n\n"+
			`data: {"candidates":[{"content":{"parts":[{"text":"upon"}]},"finishReason":"STOP"}],"modelVersion":"v",`+
			`"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}`+"\n\n")
	}))
	defer srv.Close()
	var got []string
	for resp, err := range open(t, srv.URL).GenerateContent(t.Context(), &model.LLMRequest{}, true) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%t %q %t %s %s %t", resp.Partial, resp.Content.Parts[0].Text, resp.TurnComplete, resp.FinishReason,
			resp.ModelVersion, resp.UsageMetadata != nil))
	}
	want := []string{`true "Once " false   false`, `true "upon" true STOP v true`, `false "Once upon" false STOP v true`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
