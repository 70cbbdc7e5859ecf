// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// chatty answers by what it is asked, and calls its tools so many times before.
type chatty struct {
	*forest
	calls int
	tools []tool.Tool
}

func (*chatty) Name() string { return "chatty" }

// Provider says that it asks nobody: of a request that was cut off nothing is lost.
func (*chatty) Provider() string { return "scripted" }

func (c *chatty) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		c.mu.Lock()
		c.asked++
		c.mu.Unlock()
		h := fnv.New64a()
		answers := 0
		for _, content := range append(req.Contents, req.Config.SystemInstruction) {
			for _, part := range content.Parts {
				if part.FunctionResponse != nil {
					answers++
				}
				if !c.wild || content == req.Config.SystemInstruction {
					fmt.Fprint(h, part.Text)
				}
			}
		}
		m := fmt.Sprintf("%05d", h.Sum64()%100000)
		resp := &model.LLMResponse{Content: genai.NewContentFromText("answer "+m, genai.RoleModel)}
		resp.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: int32(10 + answers), CandidatesTokenCount: 5}
		if answers < c.calls {
			call := &genai.FunctionCall{ID: "call-" + m + strings.Repeat("x", answers), Name: "note", Args: map[string]any{"text": "note " + m}}
			if t := c.tools[digit(m, 1)%len(c.tools)]; t.Name() != "note" {
				call.Name, call.Args = t.Name(), map[string]any{"request": "help " + m}
			}
			resp.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: call}}}
		}
		yield(resp, nil)
	}
}
