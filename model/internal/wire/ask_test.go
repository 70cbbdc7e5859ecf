// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/openai"
)

// A server that refuses the fields for a cache is noticed once; a request that is wrong for another reason is sent once.
func TestServerThatRefusesTheCacheIsNoticedOnce(t *testing.T) {
	for provider, field := range map[string]string{"openai": "prompt_cache_key", "anthropic": "cache_control"} {
		for _, stream := range []bool{false, true} {
			var with, without int
			refusal, wrong := "it is too long", true // whatever the request is
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				asks := strings.Contains(string(body), field)
				if asks {
					with++
				} else {
					without++
				}
				switch {
				case asks || wrong:
					w.WriteHeader(http.StatusBadRequest)
					io.WriteString(w, `{"error":{"message":"`+refusal+`"}}`)
				case provider == "openai" && stream:
					io.WriteString(w, `data: {"choices":[{"delta":{"content":"Hi."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
				case provider == "openai":
					io.WriteString(w, `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`)
				case stream:
					io.WriteString(w, `data: {"type":"message_start","message":{"model":"m"}}`+"\n\n"+
						`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`+"\n\n"+
						`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}`+"\n\n"+`data: {"type":"message_stop"}`+"\n\n")
				default:
					io.WriteString(w, `{"content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn"}`)
				}
			}))
			var llm model.LLM
			var err error
			if provider == "openai" {
				llm, err = openai.NewModel("m", openai.Config{BaseURL: srv.URL, APIKey: "k"})
			} else {
				llm, err = anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: srv.URL, APIKey: "k"})
			}
			if err != nil {
				t.Fatal(err)
			}
			rules := strings.Repeat("Write well. ", 500)
			ask := func() (err error) {
				ctx := model.WithCacheHint(t.Context(), &model.CacheHint{Key: "run", Later: true, Static: len(rules)})
				req := &model.LLMRequest{
					Contents: []*genai.Content{genai.NewContentFromText("go", genai.RoleUser)},
					Config:   &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(rules, genai.RoleUser)}}
				for _, err = range llm.GenerateContent(ctx, req, stream) {
				}
				return err
			}
			for range 2 {
				if err := ask(); err == nil || strings.Contains(err.Error(), "cache") {
					t.Errorf("%s: a request that is wrong: %v", provider, err)
				}
			}
			if with != 2 || without != 0 {
				t.Errorf("%s: a request that is wrong: sent %d times with the field, %d without", provider, with, without)
			}
			refusal, wrong, with, without = "Unrecognized request argument supplied: "+field, false, 0, 0
			err = ask()
			if api, ok := errors.AsType[*model.APIError](err); !ok || !api.CacheRefused || !api.Retryable || with != 1 || without != 0 {
				t.Errorf("%s: %v; %d requests with the field, %d without", provider, err, with, without)
			}
			for range 3 {
				if err := ask(); err != nil {
					t.Errorf("%s: %v", provider, err)
				}
			}
			if with != 1 || without != 3 {
				t.Errorf("%s: %d requests with the field, %d without", provider, with, without)
			}
			srv.Close()
		}
	}
}
