// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// scribble edits all of a request that it finds.
func scribble(_ agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
	for _, c := range req.Contents {
		for i, p := range c.Parts {
			p.Text += " EDITED"
			if p.FunctionCall != nil {
				p.FunctionCall.Name = "EDITED"
				p.FunctionCall.Args["edited"] = true
			}
			if p.FunctionResponse != nil {
				p.FunctionResponse.Response["edited"] = true
				p.FunctionResponse.Response["deep"].(map[string]any)["edited"] = true
			}
			c.Parts[i] = &genai.Part{Text: p.Text}
		}
		c.Parts = append(c.Parts, genai.NewPartFromText("REMINDER"))
	}
	cfg := req.Config
	cfg.Labels["edited"] = "yes"
	cfg.HTTPOptions.Headers.Add("Edited", "yes")
	cfg.SafetySettings[0].Threshold = "EDITED"
	cfg.StopSequences[0] = "EDITED"
	cfg.ThinkingConfig.IncludeThoughts = true
	cfg.ToolConfig.FunctionCallingConfig.Mode = "EDITED"
	return nil, nil
}

// A callback edits its request, and neither the log nor the agent's config.
// Agents that run at the same time do not see each other's edits.
func TestRequestIsTheCallbacksOwn(t *testing.T) {
	config := func() *genai.GenerateContentConfig {
		return &genai.GenerateContentConfig{
			Labels: map[string]string{"a": "b"}, StopSequences: []string{"stop"},
			HTTPOptions:    &genai.HTTPOptions{Headers: http.Header{"X": {"1"}}},
			SafetySettings: []*genai.SafetySetting{{Threshold: "LOW"}}, ThinkingConfig: &genai.ThinkingConfig{},
			ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: "AUTO"}},
		}
	}
	cfg, look := config(), function(t, "look", func(tool.Context) (map[string]any, error) {
		return map[string]any{"deep": map[string]any{}}, nil
	})
	var agents []agent.Agent
	var models []*recorder
	for _, name := range []string{"a", "b"} {
		rec := record(script(t, calls("look"), says("first"), says("second")))
		models = append(models, rec)
		agents = append(agents, newAgent(t, llmagent.Config{
			Name: name, Model: rec, GenerateContentConfig: cfg, Tools: []tool.Tool{look},
			BeforeModelCallbacks: []llmagent.BeforeModelCallback{scribble},
		}))
	}
	both, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "both", SubAgents: agents}})
	if err != nil {
		t.Fatal(err)
	}
	th := newThread(t, both)
	th.must("one")
	th.must("two")
	for ev := range th.session().Events().All() {
		if ev.Content == nil {
			continue
		}
		for _, p := range ev.Content.Parts {
			if p.FunctionResponse != nil {
				if diff := cmp.Diff(map[string]any{"deep": map[string]any{}}, p.FunctionResponse.Response); diff != "" {
					t.Errorf("the log: %s", diff)
				}
			}
			if p.FunctionCall != nil && (p.FunctionCall.Name != "look" || len(p.FunctionCall.Args) > 0) {
				t.Errorf("the log: %+v", p.FunctionCall)
			}
			switch p.Text {
			case "", "one", "two", "first", "second":
			default:
				t.Errorf("the log: %q", p.Text)
			}
		}
	}
	if diff := cmp.Diff(config(), cfg); diff != "" {
		t.Errorf("the config: %s", diff)
	}
	if heard := models[0].heard(0); heard[0] != "user: one EDITED | REMINDER" {
		t.Errorf("the model did not hear the edits: %q", heard)
	}
}
