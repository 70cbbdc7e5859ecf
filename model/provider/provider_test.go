// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/model/scripted"
)

func ExampleOpen() {
	_, err := provider.Open(context.Background(), "openia/gpt-5-mini", os.Getenv)
	fmt.Println(err)
	noKeys := func(string) string { return "" }
	_, err = provider.Open(context.Background(), "anthropic/claude-sonnet-4-5", noKeys)
	fmt.Println(err)
	// Output:
	// model "openia/gpt-5-mini": no provider is called "openia"; there are anthropic, gemini, ollama, openai, scripted (did you mean "openai/gpt-5-mini"?)
	// model "anthropic/claude-sonnet-4-5": anthropic needs a key: set ANTHROPIC_API_KEY
}

func env(vars map[string]string) provider.Getenv {
	return func(name string) string { return vars[name] }
}

// A28: an agent has the model that its name says.
func TestOpenResolvesNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(path, []byte("name: rehearsal\nanswers: [{text: Hello.}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"openai/gpt-5-mini", map[string]string{"OPENAI_API_KEY": "k"}, "gpt-5-mini"},
		{"openai/org/model:7b", map[string]string{"OPENAI_BASE_URL": "http://localhost:8000/v1"}, "org/model:7b"},
		{"anthropic/claude-sonnet-4-5", map[string]string{"ANTHROPIC_API_KEY": "k"}, "claude-sonnet-4-5"},
		{"gemini/gemini-2.5-flash", map[string]string{"GOOGLE_API_KEY": "k"}, "gemini-2.5-flash"},
		{"gemini-2.0-flash", map[string]string{"GEMINI_API_KEY": "k"}, "gemini-2.0-flash"},
		{"ollama/qwen3:8b", nil, "qwen3:8b"},
		{"scripted/" + path, nil, "rehearsal"},
	} {
		llm, err := provider.Open(t.Context(), tt.name, env(tt.env))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if llm.Name() != tt.want {
			t.Errorf("%s: got the model %q", tt.name, llm.Name())
		}
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"", nil, `model "": it is empty`},
		{"gpt-5-mini", nil, `did you mean "openai/gpt-5-mini"?`},
		{"openai", nil, "no name after the provider"},
		{"openai/", nil, "no name after the provider"},
		{"nonsense/x", nil, `no provider is called "nonsense"`},
		{"openai/gpt-5-mini", nil, "set OPENAI_API_KEY"},
		{"gemini-2.0-flash", nil, "set GOOGLE_API_KEY or GEMINI_API_KEY"},
		{"gemini-2.0-flash", map[string]string{"GOOGLE_GENAI_USE_VERTEXAI": "true"}, "GOOGLE_CLOUD_PROJECT"},
		{"openai/x", map[string]string{"OPENAI_BASE_URL": "localhost:8000"}, "not an http URL"},
		{"scripted/none.yaml", nil, "none.yaml"},
		{"ollama/x", map[string]string{"OLLAMA_HOST": "http://[::1"}, "OLLAMA_HOST"},
		{"ollama/x", map[string]string{"OLLAMA_HOST": "http://u:hidden@[::1"}, "OLLAMA_HOST"},
		{"openai/x", map[string]string{"OPENAI_BASE_URL": "htp://u:hidden@h/v1?hidden"}, `the base URL "htp://h/v1" is not an http URL`},
		{"openai/x", map[string]string{"OPENAI_BASE_URL": "http://u:hidden@[h/v1"}, "the base URL is not an http URL"},
		{"anthropic/x", map[string]string{"ANTHROPIC_BASE_URL": "htp://u:hidden@h", "ANTHROPIC_API_KEY": "hidden"}, `the base URL "htp://h" is not an http URL`},
	} {
		llm, err := provider.Open(t.Context(), tt.name, env(tt.env))
		if err == nil || llm != nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: got %v, want %q", tt.name, err, tt.want)
		}
	}
	_, err := provider.Open(t.Context(), "openai/gpt-5-mini", env(nil))
	if e, ok := errors.AsType[*provider.KeyError](err); !ok || !cmp.Equal(e.Variables, []string{"OPENAI_API_KEY"}) {
		t.Errorf("got %v", err)
	}
}

// Every provider that the table names is reached at the address that the
// environment gives.
func TestOpenGoesWhereTheEnvironmentSays(t *testing.T) {
	script := scripted.Script{Answers: []scripted.Answer{{Text: "Hello."}}}
	for name, set := range map[string]func(t *testing.T) map[string]string{
		"openai/m": func(t *testing.T) map[string]string {
			return map[string]string{"OPENAI_BASE_URL": modeltest.OpenAIServer(t, script).BaseURL, "OPENAI_API_KEY": "k"}
		},
		"anthropic/m": func(t *testing.T) map[string]string {
			return map[string]string{"ANTHROPIC_BASE_URL": modeltest.AnthropicServer(t, script).BaseURL, "ANTHROPIC_API_KEY": "k"}
		},
		"gemini/m": func(t *testing.T) map[string]string {
			return map[string]string{"GOOGLE_GEMINI_BASE_URL": modeltest.GeminiServer(t, script).BaseURL, "GEMINI_API_KEY": "k"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			llm, err := provider.Open(t.Context(), name, env(set(t)))
			if err != nil {
				t.Fatal(err)
			}
			for resp, err := range llm.GenerateContent(t.Context(), hello(), false) {
				if err != nil || resp.Content.Parts[0].Text != "Hello." {
					t.Errorf("got %v, %v", resp, err)
				}
			}
		})
	}
}

func hello() *model.LLMRequest {
	return &model.LLMRequest{Contents: []*genai.Content{genai.NewContentFromText("Hello?", genai.RoleUser)}}
}

// A key of OpenAI's in the process is not sent to an Ollama.
func TestOllamaGetsNoKeyOfOpenAI(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "secret")
	t.Setenv("OPENAI_ORG_ID", "org")
	var got http.Header
	var path string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, path = r.Header, r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}`)
	}))
	defer srv.Close()
	llm, err := provider.Open(t.Context(), "ollama/qwen3", env(map[string]string{"OLLAMA_HOST": strings.TrimPrefix(srv.URL, "http://")}))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range llm.GenerateContent(t.Context(), hello(), false) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if path != "/v1/chat/completions" || got.Get("Authorization") != "" || got.Get("OpenAI-Organization") != "" {
		t.Errorf("%s got %v", path, got)
	}
}

// No program that an agent starts gets the key of a model.
func TestKeysAreWithheld(t *testing.T) {
	for _, p := range provider.All() {
		for _, name := range append(p.Keys, p.Variables...) {
			if !strings.HasSuffix(name, "_KEY") {
				continue
			}
			t.Setenv(name, "k")
			if slices.Contains(child.Inheritance{}.Environ(), name+"=k") {
				t.Errorf("programs get %s", name)
			}
		}
	}
}

func TestMissing(t *testing.T) {
	for _, p := range provider.All() {
		for _, key := range p.Keys {
			if missing := p.Missing(env(map[string]string{key: "k"})); missing != nil {
				t.Errorf("%s: with %s, %q are missing", p.Name, key, missing)
			}
		}
		if missing := p.Missing(env(nil)); !cmp.Equal(missing, p.Keys) {
			t.Errorf("%s: without keys, %q are missing", p.Name, missing)
		}
		if p.About == "" {
			t.Errorf("%s says nothing of itself", p.Name)
		}
	}
}
