// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/session"
)

// formats are the wire formats, each with a model at a server.
var formats = map[string]func(t *testing.T, url string) model.LLM{
	"openai": func(t *testing.T, url string) model.LLM {
		return opened(t)(openai.NewModel("m", openai.Config{BaseURL: url, APIKey: "k"}))
	},
	"anthropic": func(t *testing.T, url string) model.LLM {
		return opened(t)(anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: url, APIKey: "k"}))
	},
	"gemini": func(t *testing.T, url string) model.LLM {
		return opened(t)(gemini.NewModel(t.Context(), "gemini-2.5-flash", &genai.ClientConfig{
			APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
		}))
	},
}

func opened(t *testing.T) func(model.LLM, error) model.LLM {
	return func(m model.LLM, err error) model.LLM {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// repeated runs an agent a number of times in one run, until the budget ends it.
func repeated(t *testing.T, times int, cfg llmagent.Config) agent.Agent {
	a := newAgent(t, cfg)
	all, err := agent.New(agent.Config{Name: "all", SubAgents: []agent.Agent{a},
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				for range times {
					for ev, err := range a.Run(ctx) {
						if errors.Is(err, budget.ErrExceeded) {
							yield(nil, err)
							return
						} else if err == nil && !yield(ev, nil) {
							return
						}
					}
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An answer that breaks off after its status 200 was paid for: a budget of tokens ends a run that gets nothing else.
func TestAnswerThatBreaksOffCountsInTheBudget(t *testing.T) {
	beginnings := map[string]string{
		"openai":    `{"id":"x","choices":[{"index":0,"delta":{"role":"assistant"}}]}`,
		"anthropic": `{"type":"message_start","message":{"model":"m","usage":{"input_tokens":9,"output_tokens":1}}}`,
		"gemini":    `{"usageMetadata":{}}`,
	}
	for wire, open := range formats {
		for name, answer := range map[string]func(w http.ResponseWriter){
			"cut body": func(w http.ResponseWriter) {
				w.Header().Set("Content-Length", "4000")
				io.WriteString(w, `{"choices":[`)
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
			"truncated JSON": func(w http.ResponseWriter) { io.WriteString(w, `{"choices":[{"message":{"con`) },
			"empty body":     func(http.ResponseWriter) {},
			"stream": func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", beginnings[wire])
			},
		} {
			t.Run(wire+"/"+name, func(t *testing.T) {
				var asked atomic.Int64
				srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					asked.Add(1)
					answer(w)
				}))
				defer srv.Close()
				s := newSpender(t, budget.Limits{Tokens: 2000}, repeated(t, 40, llmagent.Config{
					Name: "a", Model: open(t, srv.URL), RequestRetry: llmagent.RequestRetry{Attempts: 1},
				}))
				if name == "stream" {
					s.cfg.StreamingMode = agent.StreamingModeSSE
				}
				_, err := s.ask(t.Context(), "Hello")
				u := s.budget.Used()
				if n := asked.Load(); !errors.Is(err, budget.ErrExceeded) || n > 25 || n != u.Calls || u.Tokens() < 1500 || !u.Estimated {
					t.Errorf("%d requests; used %+v; %v", n, u, err)
				}
			})
		}
	}
}

// A request that never left, because nobody listens at the address, counts as a call and costs no tokens.
func TestRequestWithoutAConnectionCostsNothing(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close() // so that its port refuses connections
	for wire, open := range formats {
		s := newSpender(t, budget.Limits{Calls: 40, Tokens: 2000}, repeated(t, 5, llmagent.Config{
			Name: "a", Model: open(t, srv.URL), RequestRetry: llmagent.RequestRetry{Attempts: 1},
		}))
		if _, err := s.ask(t.Context(), "Hello"); err != nil {
			t.Errorf("%s: %v", wire, err)
		}
		if u := s.budget.Used(); u.Calls != 5 || u.Tokens() != 0 || u.Estimated {
			t.Errorf("%s: used %+v", wire, u)
		}
	}
}

// A request that a server refuses because of the fields for a cache is sent again without them, once for the
// model. Both count, whatever the number of attempts is; a request that is wrong for another reason is sent once.
func TestRequestsWithoutACacheAreCounted(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n := asked.Add(1)
		refusal := "the temperature is too high"
		if strings.Contains(string(body), "prompt_cache_key") {
			refusal = "Unrecognized request argument supplied: prompt_cache_key"
		} else if n <= 4 {
			io.WriteString(w, `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":%q}}`, refusal)
	}))
	defer srv.Close()
	s := newSpender(t, budget.Limits{Calls: 8}, repeated(t, 5, llmagent.Config{
		Name: "a", Model: formats["openai"](t, srv.URL), RequestRetry: llmagent.RequestRetry{Attempts: 1},
	}))
	if _, err := s.ask(t.Context(), "Hello"); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 6 || s.budget.Used().Calls != 6 {
		t.Errorf("%d requests, used %+v", n, s.budget.Used())
	}
}
