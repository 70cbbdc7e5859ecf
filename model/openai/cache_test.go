// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"net/http"
	"testing"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
)

// The fields of https://platform.openai.com/docs/guides/prompt-caching are sent if a cache is asked for, and only then.
func TestCacheIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		hint           *model.CacheHint
		key, retention any
	}{
		"off":           {nil, nil, nil},
		"on":            {&model.CacheHint{Key: "run-a", Later: true, Next: true, Static: 9000}, "run-a", nil},
		"nobody reads":  {&model.CacheHint{Key: "run-a"}, "run-a", nil}, // it costs nothing
		"for a day":     {&model.CacheHint{Key: "run-a", Retention: "24h"}, "run-a", "24h"},
		"retained only": {&model.CacheHint{Retention: "24h"}, nil, "24h"},
	} {
		url, asked := serve(t, 200, nil, `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`)
		if _, err := askIn(model.WithCacheHint(t.Context(), c.hint), t, url, nil, false); err != nil {
			t.Fatal(err)
		}
		if (*asked)["prompt_cache_key"] != c.key || (*asked)["prompt_cache_retention"] != c.retention {
			t.Errorf("%s: got %v, %v", name, (*asked)["prompt_cache_key"], (*asked)["prompt_cache_retention"])
		}
	}
}

// Usage as OpenAI, OpenRouter, vLLM and servers without a cache show it: what was cached is part of prompt_tokens.
func TestCachedInputIsCounted(t *testing.T) {
	want := budget.Usage{InputTokens: 2006, CachedTokens: 1920, OutputTokens: 300}
	written := budget.Usage{InputTokens: 2006, CachedTokens: 1024, CacheWriteTokens: 900, OutputTokens: 300}
	without := budget.Usage{InputTokens: 2006, OutputTokens: 300}
	for details, want := range map[string]budget.Usage{
		`,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}`: want,
		`,"prompt_tokens_details":{"cached_tokens":1920,"cache_write_tokens":0},"cost":0.0012`:                                want,
		`,"prompt_tokens_details":{"cached_tokens":1024,"cache_write_tokens":900}`:                                            written,
		`,"prompt_tokens_details":{"cached_tokens":1920.0}`:                                                                   want,
		`,"prompt_tokens_details":{"cached_tokens":null}`:                                                                     without,
		`,"prompt_tokens_details":null`:                                                                                       without,
		``:                                                                                                                    without,
	} {
		usage := `"usage":{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306` + details + `}`
		whole := `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],` + usage + `}`
		streamed := sse(`"delta":{"content":"Hi."}`, end) + `data: {"choices":[],` + usage + "}\n\ndata: [DONE]\n\n"
		for kind, body := range map[string]string{"application/json": whole, "text/event-stream": streamed} {
			url, _ := serve(t, 200, http.Header{"Content-Type": {kind}}, body)
			resp, err := ask(t, url, nil, kind != "application/json")
			if err != nil {
				t.Fatal(err)
			}
			if got := model.Used(resp.UsageMetadata); got != want {
				t.Errorf("%s, %s: got %+v", kind, details, got)
			}
		}
	}
}
