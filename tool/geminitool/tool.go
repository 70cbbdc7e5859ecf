// SPDX-License-Identifier: Apache-2.0

// Package geminitool gives agents the tools that Gemini runs itself, such as Google Search. Refrain does not
// call them: the model uses them while it answers, and its grounding is in the event's GroundingMetadata.
//
//	a, err := llmagent.New(llmagent.Config{Name: "searcher", Model: llm, Tools: []tool.Tool{geminitool.GoogleSearch{}}})
//
// Models of other providers refuse a request with such a tool, and the error names it. Some Gemini models refuse it
// together with functions. Then give it to an agent of its own, and use that agent with [agenttool.New].
//
// [agenttool.New]: https://pkg.go.dev/github.com/refrain-dev/refrain/tool/agenttool#New
package geminitool

import (
	"errors"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// New returns a tool that adds t to each request. The name and the description are for people and logs; the
// model sees only t, which must not be changed afterwards.
func New(name, description string, t *genai.Tool) tool.Tool {
	return &geminiTool{name: name, description: description, tool: t}
}

type geminiTool struct {
	name, description string
	tool              *genai.Tool
}

func (t *geminiTool) Name() string        { return t.name }
func (t *geminiTool) Description() string { return t.description }
func (*geminiTool) IsLongRunning() bool   { return false }

func (t *geminiTool) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	return add(req, t.tool)
}

// GoogleSearch lets Gemini search the web with Google.
type GoogleSearch struct{}

// Name returns "google_search".
func (GoogleSearch) Name() string { return "google_search" }

// Description returns the purpose of the tool.
func (GoogleSearch) Description() string { return "Searches the web with Google." }

// IsLongRunning returns false.
func (GoogleSearch) IsLongRunning() bool { return false }

// ProcessRequest adds Google Search to the request.
func (GoogleSearch) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	return add(req, &genai.Tool{GoogleSearch: &genai.GoogleSearch{}})
}

// add does not change the list that is there, which other requests may share.
func add(req *model.LLMRequest, t *genai.Tool) error {
	if req == nil {
		return errors.New("the request is nil")
	}
	if req.Config == nil {
		req.Config = &genai.GenerateContentConfig{}
	}
	req.Config.Tools = append(slices.Clip(req.Config.Tools), t)
	return nil
}
