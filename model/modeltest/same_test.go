// SPDX-License-Identifier: Apache-2.0

package modeltest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/model/scripted"
)

// open starts a model of each kind that answers from the same script.
func open(t *testing.T, script scripted.Script) map[string]model.LLM {
	t.Helper()
	all := make(map[string]model.LLM)
	keep := func(name string, llm model.LLM, err error) {
		if err != nil {
			t.Fatal(err)
		}
		all[name] = llm
	}
	direct, err := scripted.New(script)
	keep("scripted", direct, err)
	llm, err := openai.NewModel("m", openai.Config{APIKey: "k", BaseURL: modeltest.OpenAIServer(t, script).BaseURL})
	keep("openai", llm, err)
	llm, err = anthropic.NewModel("m", anthropic.Config{APIKey: "k", BaseURL: modeltest.AnthropicServer(t, script).BaseURL})
	keep("anthropic", llm, err)
	llm, err = gemini.NewModel(t.Context(), "m", &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: modeltest.GeminiServer(t, script).BaseURL},
	})
	keep("gemini", llm, err)
	return all
}

// The same script gives the same responses by every provider's wire format,
// piece by piece, with the failures at the same place.
func TestSameScriptSameResponses(t *testing.T) {
	script, err := scripted.Parse([]byte(`
answers:
  - agent: writer
    thought: A beginning is needed.
    text: Once upon a time there was a loop that knew when to stop, and it did.
    usage: {prompt: 120, cached: 64, output: 18, thoughts: 6}
  - {agent: critic, error: {status: 429, code: rate_limit_error, message: slow down, retry_after: 3s}}
  - {agent: critic, error: {status: 500, code: api_error, message: we broke}}
  - {agent: critic, text: It is rather short and has no, cut: true}
  - {agent: critic, text: It is rather short and has no middle., garbage: true}
  - {agent: critic, text: It is rather short and has no middle.}
  - {agent: refiner, text: Better., calls: [{name: save, args: {path: a.txt, n: 3}}, {name: exitLoop, args: {reason: done}}]}
  - {agent: refiner, text: Once, finish: MAX_TOKENS}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			all := open(t, script)
			want := transcript(t, all["scripted"], stream)
			delete(all, "scripted") // it has said what it had to
			for name, llm := range all {
				if diff := cmp.Diff(want, transcript(t, llm, stream)); diff != "" {
					t.Errorf("%s (-scripted +got):\n%s", name, diff)
				}
			}
		})
	}
}

// transcript is what a model answers to the agents, a line for each response.
func transcript(t *testing.T, llm model.LLM, stream bool) []string {
	t.Helper()
	var out []string
	for _, agent := range []string{"writer", "critic", "critic", "critic", "critic", "critic", "refiner", "refiner"} {
		req := &model.LLMRequest{
			Contents: []*genai.Content{genai.NewContentFromText("Go on.", genai.RoleUser)},
			Config:   &genai.GenerateContentConfig{SystemInstruction: genai.NewContentFromText(fmt.Sprintf("Your internal name is %q.", agent), genai.RoleUser)},
		}
		for resp, err := range llm.GenerateContent(t.Context(), req, stream) {
			if err != nil {
				after, retry := model.Retryable(err)
				out = append(out, fmt.Sprintf("%s: failed, retry %v after %v", agent, retry, after))
				continue
			}
			var line strings.Builder
			line.WriteString(fmt.Sprintf("%s: partial %v, %s, %s:", agent, resp.Partial, resp.FinishReason, resp.Content.Role))
			for _, p := range resp.Content.Parts {
				line.WriteString(fmt.Sprintf(" %q thought %v", p.Text, p.Thought))
				if p.FunctionCall != nil {
					line.WriteString(fmt.Sprintf(" call %s %s(%v)", p.FunctionCall.ID, p.FunctionCall.Name, p.FunctionCall.Args))
				}
			}
			if u := resp.UsageMetadata; u != nil {
				line.WriteString(fmt.Sprintf(" tokens %d, %d cached, %d, %d thought, %d", u.PromptTokenCount, u.CachedContentTokenCount,
					u.CandidatesTokenCount, u.ThoughtsTokenCount, u.TotalTokenCount))
			}
			out = append(out, line.String())
		}
	}
	return out
}
