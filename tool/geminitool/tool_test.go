// SPDX-License-Identifier: Apache-2.0

package geminitool_test

import (
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/geminitool"
)

func script() scripted.Script {
	return scripted.Script{Answers: []scripted.Answer{{Text: "Nobody knows."}}}
}

// run asks an agent that has Google Search, code execution and a function.
func run(t *testing.T, llm model.LLM) (answer string, err error) {
	t.Helper()
	add, err := functiontool.New(functiontool.Config{Name: "add", Description: "Adds."},
		func(_ tool.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil })
	if err != nil {
		t.Fatal(err)
	}
	code := geminitool.New("code", "Runs code.", &genai.Tool{CodeExecution: &genai.ToolCodeExecution{}})
	a, err := llmagent.New(llmagent.Config{Name: "searcher", Model: llm, RequestRetry: llmagent.RequestRetry{Attempts: 1},
		Tools: []tool.Tool{geminitool.GoogleSearch{}, add, code}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("app", a)
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("Who won?", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return answer, err
		}
		answer += ev.Text()
	}
	return answer, nil
}

// Gemini gets its own tools beside the declarations of functions, over the wire.
func TestGeminiGetsItsTools(t *testing.T) {
	srv := modeltest.GeminiServer(t, script())
	llm, err := gemini.NewModel(t.Context(), "gemini-2.5-flash", &genai.ClientConfig{APIKey: "k",
		Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: srv.BaseURL}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := run(t, llm); err != nil || answer != "Nobody knows." {
		t.Fatalf("%q, %v", answer, err)
	}
	got := srv.Requests()
	if len(got) != 1 {
		t.Fatalf("%d requests, want 1", len(got))
	}
	var search, code, functions int
	for _, t := range got[0].Config.Tools {
		if t.GoogleSearch != nil {
			search++
		}
		if t.CodeExecution != nil {
			code++
		}
		functions += len(t.FunctionDeclarations)
	}
	if search != 1 || code != 1 || functions != 1 {
		t.Errorf("%d searches, %d executions of code and %d functions in the request, want one each", search, code, functions)
	}
}

// A model of another provider is not asked, and the error names the tool.
func TestOtherModelsRefuseThem(t *testing.T) {
	chat := modeltest.OpenAIServer(t, script())
	gpt, err := openai.NewModel("gpt-5-mini", openai.Config{APIKey: "k", BaseURL: chat.BaseURL})
	if err != nil {
		t.Fatal(err)
	}
	messages := modeltest.AnthropicServer(t, script())
	claude, err := anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{APIKey: "k", BaseURL: messages.BaseURL})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		llm model.LLM
		srv *modeltest.Server
	}{{gpt, chat}, {claude, messages}} {
		_, err := run(t, tt.llm)
		if err == nil || !strings.Contains(err.Error(), "tool googleSearch: only Gemini has it") ||
			!strings.Contains(err.Error(), tt.llm.Name()) {
			t.Errorf("%s: error %v", tt.llm.Name(), err)
		}
		if n := len(tt.srv.Requests()); n != 0 {
			t.Errorf("%s was asked %d times", tt.llm.Name(), n)
		}
	}
}
