// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
)

// wires are the providers' formats, each with its server and its SDK.
var wires = map[string]func(testing.TB, scripted.Script, *http.Client) (model.LLM, *modeltest.Server){
	"openai": func(t testing.TB, s scripted.Script, c *http.Client) (model.LLM, *modeltest.Server) {
		srv := modeltest.OpenAIServer(t, s)
		llm, err := openai.NewModel("m", openai.Config{BaseURL: srv.BaseURL, APIKey: "key", HTTPClient: c})
		return mustModel(t, llm, err), srv
	},
	"anthropic": func(t testing.TB, s scripted.Script, c *http.Client) (model.LLM, *modeltest.Server) {
		srv := modeltest.AnthropicServer(t, s)
		llm, err := anthropic.NewModel("m", anthropic.Config{BaseURL: srv.BaseURL, APIKey: "key", HTTPClient: c})
		return mustModel(t, llm, err), srv
	},
	"gemini": func(t testing.TB, s scripted.Script, c *http.Client) (model.LLM, *modeltest.Server) {
		srv := modeltest.GeminiServer(t, s)
		llm, err := gemini.NewModel(t.Context(), "m", &genai.ClientConfig{
			APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPClient: c, HTTPOptions: genai.HTTPOptions{BaseURL: srv.BaseURL},
		})
		return mustModel(t, llm, err), srv
	},
}

func mustModel(t testing.TB, llm model.LLM, err error) model.LLM {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return llm
}

// G10, LOOP 23: a provider that answers 429, 500, a cut stream and
// garbage, over each wire: what may pass is asked again, what may not is reported
// as its kind; each request counts, what was said before is kept, and no
// goroutine is left.
func TestProviderThatFails(t *testing.T) {
	const pause = 30 * time.Millisecond
	var (
		text    = []string{"The cat ", "sat on ", "the mat."}
		slow    = scripted.Answer{Error: &scripted.Failure{Status: 429, Code: "rate_limit_error", Message: "slow down", RetryAfter: pause}}
		broken  = scripted.Answer{Error: &scripted.Failure{Status: 500, Code: "api_error", Message: "oops"}}
		cut     = scripted.Answer{Chunks: text, Cut: true}
		garbage = scripted.Answer{Chunks: text, Garbage: true}
		lost    = scripted.Answer{Error: &scripted.Failure{}}
		whole   = scripted.Answer{Chunks: text}
	)
	for name, tt := range map[string]struct {
		attempts int
		answers  []scripted.Answer
		want     *model.APIError // nil if it is whole in the end
	}{
		"in the end it answers":  {6, []scripted.Answer{slow, broken, cut, lost, whole}, nil},
		"in the end garbage":     {6, []scripted.Answer{slow, broken, cut, garbage}, &model.APIError{Status: 200, Code: "garbage"}},
		"by default three times": {0, []scripted.Answer{slow, broken, cut}, &model.APIError{Status: 200, Retryable: true}},
		"its key is wrong": {0, []scripted.Answer{slow, {Error: &scripted.Failure{Status: 401, Code: "authentication_error"}}},
			&model.APIError{Status: 401, Code: "authentication_error"}},
	} {
		for wire, open := range wires {
			for _, mode := range []agent.StreamingMode{agent.StreamingModeNone, agent.StreamingModeSSE} {
				// The run of the second message makes one call before.
				for _, limit := range []int{1 + len(tt.answers), len(tt.answers)} {
					t.Run(name+"/"+wire+"/"+string(mode), func(t *testing.T) {
						transport := new(http.Transport)
						script := scripted.Script{Answers: slices.Concat([]scripted.Answer{says("Hello."), calls("look")}, tt.answers)}
						llm, srv := open(t, script, &http.Client{Transport: transport})
						running := goleak.IgnoreCurrent()
						defer func() { // before the server and the context end
							if err := leaktest.Find(running); err != nil {
								t.Error(err)
							}
						}()
						defer transport.CloseIdleConnections()
						th := newThread(t, newAgent(t, llmagent.Config{
							Name: "a", Model: llm, OutputKey: "doc", Tools: []tool.Tool{answering(t, "look", "a cat")},
							RequestRetry: llmagent.RequestRetry{Attempts: tt.attempts, Backoff: time.Millisecond},
						}))
						th.cfg.StreamingMode = mode
						th.must("hello")
						th.cfg.MaxLLMCalls = limit
						start := time.Now()
						_, err := th.ask(t.Context(), "go")

						log := []string{"user: hello", "a: Hello.", "user: go", "a: call look", "a: answer look map[text:a cat]"}
						api, ok := errors.AsType[*model.APIError](err)
						switch {
						case limit == len(tt.answers):
							if !errors.Is(err, agent.ErrTooManyModelCalls) {
								t.Errorf("got %v; it has one call too few", err)
							}
						case tt.want == nil:
							log = append(log, "a: The cat sat on the mat.")
							if err != nil {
								t.Error(err)
							}
						case !ok || api.Provider != wire || api.Status != tt.want.Status || api.Code != tt.want.Code || api.Retryable != tt.want.Retryable:
							t.Errorf("got %v", err)
						}
						if diff := cmp.Diff(log, stored(th)); diff != "" {
							t.Errorf("the log (-want +got): %s", diff)
						}
						if n := len(srv.Requests()); n != 1+limit {
							t.Errorf("the server got %d requests, %d may be counted", n, 1+limit)
						}
						if waited := time.Since(start); waited < pause && limit > 2 {
							t.Errorf("it waited %v; the provider asks for %v", waited, pause)
						}
					})
				}
			}
		}
	}
}
