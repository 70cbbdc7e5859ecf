// SPDX-License-Identifier: Apache-2.0

// Package exampletool shows a model examples of good answers. It is a tool that the model cannot call: it adds the
// examples to the system instruction of each request.
//
//	examples, err := exampletool.New(exampletool.ExampleToolConfig{Examples: []*exampletool.Example{{
//		Input:  genai.NewContentFromText("Is 7 prime?", genai.RoleUser),
//		Output: []*genai.Content{genai.NewContentFromText("Yes.", genai.RoleModel)},
//	}}})
package exampletool

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// Example is a message of the user and the answer that the model should give, with texts, calls and
// their results.
type Example struct {
	Input  *genai.Content   `json:"input"`
	Output []*genai.Content `json:"output"`
}

// ExampleToolConfig holds the examples, in the order in which the model sees them.
type ExampleToolConfig struct {
	Examples []*Example
}

type examples struct{ text string }

// New returns a tool that adds the examples to requests, if the message that started the run begins with a text. It
// fails on an example that is nil, has no input, or has arguments that JSON cannot hold.
func New(cfg ExampleToolConfig) (tool.Tool, error) {
	var b strings.Builder
	for i, x := range cfg.Examples {
		if x == nil || x.Input == nil {
			return nil, fmt.Errorf("example %d has no input", i+1)
		}
		fmt.Fprintf(&b, "\n<example number=\"%d\">\n", i+1)
		for _, c := range append([]*genai.Content{x.Input}, x.Output...) {
			if err := write(&b, c); err != nil {
				return nil, fmt.Errorf("example %d: %w", i+1, err)
			}
		}
		b.WriteString("</example>\n")
	}
	if b.Len() == 0 {
		return examples{}, nil
	}
	return examples{"These examples show how to answer. They are not part of the conversation.\n" + b.String()}, nil
}

// write writes one content of an example. Angle brackets in it cannot end the example.
func write(b *strings.Builder, c *genai.Content) error {
	if c == nil {
		return nil
	}
	who := "user"
	if c.Role == genai.RoleModel {
		who = "model"
	}
	for _, p := range c.Parts {
		switch {
		case p == nil:
		case p.FunctionCall != nil:
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "%s calls %s: %s\n", who, p.FunctionCall.Name, args)
		case p.FunctionResponse != nil:
			result, err := json.Marshal(p.FunctionResponse.Response)
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "%s answers: %s\n", p.FunctionResponse.Name, result)
		case p.Text != "":
			fmt.Fprintf(b, "%s: %s\n", who, strings.ReplaceAll(p.Text, "</example", "&lt;/example"))
		}
	}
	return nil
}

// Name returns "example_tool".
func (examples) Name() string { return "example_tool" }

// Description says what the tool does; a model does not see it.
func (examples) Description() string { return "shows the model examples" }

// IsLongRunning returns false.
func (examples) IsLongRunning() bool { return false }

// ProcessRequest adds the examples to the system instruction.
func (e examples) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	said := ctx.UserContent()
	if e.text == "" || said == nil || len(said.Parts) == 0 || said.Parts[0] == nil || said.Parts[0].Text == "" {
		return nil
	}
	tool.Instruct(req, e.text)
	return nil
}
