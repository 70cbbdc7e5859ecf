// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// picture is a PNG image that differs by n.
func picture(n int) *genai.Part {
	head := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4")
	return genai.NewPartFromBytes(append(head, byte(n)), "image/png")
}

// painter is a model that answers with an image and no word.
func painter() fake {
	n := 1
	return func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		n++
		yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{picture(n)}}}, nil)
	}
}

// images is what an event or a request has of images, by their last byte.
func images(contents ...*genai.Content) []int {
	var found []int
	for _, c := range contents {
		if c == nil {
			continue
		}
		for _, p := range c.Parts {
			if p.InlineData != nil && p.InlineData.MIMEType == "image/png" && bytes.HasPrefix(p.InlineData.Data, []byte("\x89PNG")) {
				found = append(found, int(p.InlineData.Data[len(p.InlineData.Data)-1]))
			}
		}
	}
	return found
}

// K5: an image that the user sends, and those that another agent makes, reach
// the model of the next agent, whoever provides it.
func TestImagesReachTheNextModel(t *testing.T) {
	answers := scripted.Script{Answers: []scripted.Answer{says("3 bananas"), says("5 bananas")}}
	for name, open := range map[string]func(*testing.T) (model.LLM, *modeltest.Server, error){
		"gemini": func(t *testing.T) (model.LLM, *modeltest.Server, error) {
			srv := modeltest.GeminiServer(t, answers)
			llm, err := gemini.NewModel(t.Context(), "gemini-2.5-flash", &genai.ClientConfig{
				APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: srv.BaseURL},
			})
			return llm, srv, err
		},
		"openai": func(t *testing.T) (model.LLM, *modeltest.Server, error) {
			srv := modeltest.OpenAIServer(t, answers)
			llm, err := openai.NewModel("gpt-5-mini", openai.Config{BaseURL: srv.BaseURL, APIKey: "key"})
			return llm, srv, err
		},
		"anthropic": func(t *testing.T) (model.LLM, *modeltest.Server, error) {
			srv := modeltest.AnthropicServer(t, answers)
			llm, err := anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: srv.BaseURL, APIKey: "key"})
			return llm, srv, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			llm, srv, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			paint := newAgent(t, llmagent.Config{Name: "painter", Model: painter(), OutputKey: "words"})
			count := newAgent(t, llmagent.Config{Name: "counter", Model: llm, OutputKey: "count"})
			th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 2}, paint, count))
			evs, err := th.send(genai.NewPartFromText("Five, like these"), picture(1))
			if err != nil || len(evs) != 4 {
				t.Fatal(lines(evs), err)
			}
			if diff := cmp.Diff([]int{2}, images(evs[0].Content)); diff != "" || th.state("words") != nil || th.state("count") != "5 bananas" {
				t.Errorf("%s, state %v, %v", diff, th.state("words"), th.state("count"))
			}
			for i, want := range [][]int{{1, 2}, {1, 2, 3}} {
				if diff := cmp.Diff(want, images(srv.Requests()[i].Contents...)); diff != "" {
					t.Errorf("request %d: %s", i+1, diff)
				}
			}
		})
	}
}

// K5: what a tool saves is stored with the run's files, noted in its event, and
// read by name in an instruction.
func TestToolSavesAnArtifact(t *testing.T) {
	save := function(t, "draw", func(ctx tool.Context) (map[string]any, error) {
		if _, err := ctx.Artifacts().Save(ctx, "legend.txt", genai.NewPartFromText("five bananas")); err != nil {
			return nil, err
		}
		got, err := ctx.Artifacts().Save(ctx, "bowl.png", picture(7))
		if err != nil {
			return nil, err
		}
		return map[string]any{"version": got.Version}, nil
	})
	rec := record(script(t, calls("draw"), says("drawn")))
	files := artifact.InMemoryService()
	r, err := runner.New(runner.Config{
		AppName: "app", SessionService: session.InMemoryService(), ArtifactService: files, AutoCreateSession: true,
		Agent: newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{save}, Instruction: "It shows: {artifact.legend.txt}."}),
	})
	if err != nil {
		t.Fatal(err)
	}
	var delta map[string]int64
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(ev.Actions.ArtifactDelta) > 0 {
			delta = ev.Actions.ArtifactDelta
		}
	}
	if diff := cmp.Diff(map[string]int64{"legend.txt": 1, "bowl.png": 1}, delta); diff != "" {
		t.Error(diff)
	}
	got, err := files.Load(t.Context(), &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "bowl.png"})
	if err != nil || len(images(&genai.Content{Parts: []*genai.Part{got.Part}})) != 1 {
		t.Errorf("stored %v, %v", got, err)
	}
	if system := rec.system(1); system[:len("It shows: five bananas.")] != "It shows: five bananas." {
		t.Errorf("told %q", system)
	}
}
