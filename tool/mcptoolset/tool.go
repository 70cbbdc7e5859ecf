// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/propagate"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// remote is a tool of the server.
type remote struct {
	set *Toolset
	def *mcp.Tool
}

func (t *remote) Name() string      { return t.set.cfg.Prefix + t.def.Name }
func (*remote) IsLongRunning() bool { return false }
func (t *remote) Description() string {
	if t.def.Description != "" {
		return t.def.Description
	}
	return t.def.Title
}

// Declaration passes on the server's schemas as they are.
func (t *remote) Declaration() *genai.FunctionDeclaration {
	d := &genai.FunctionDeclaration{Name: t.Name(), Description: t.Description(),
		ParametersJsonSchema: t.def.InputSchema}
	if in, ok := t.def.InputSchema.(map[string]any); ok && in["type"] == "object" && in["properties"] == nil {
		in = maps.Clone(in)
		in["properties"] = map[string]any{} // OpenAI insists
		d.ParametersJsonSchema = in
	}
	if out, ok := t.def.OutputSchema.(map[string]any); ok && out["type"] == "object" {
		d.ResponseJsonSchema = out
	}
	return d
}

func (t *remote) ProcessRequest(_ tool.Context, req *model.LLMRequest) error {
	return tool.Pack(req, t)
}

// Run calls the tool. It returns an error that the server reports as its error.
func (t *remote) Run(ctx tool.Context, args any) (map[string]any, error) {
	if args == nil {
		args = map[string]any{}
	}
	params := &mcp.CallToolParams{Name: t.def.Name, Arguments: args}
	for name, value := range propagate.Fields(ctx) {
		if params.Meta == nil {
			params.Meta = make(mcp.Meta)
		}
		params.Meta[name] = value
	}
	var got *mcp.CallToolResult
	err := t.set.do(ctx, t.harmless(), func(ctx context.Context, c *connection) (err error) {
		got, err = c.session.CallTool(ctx, params)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("tool %q: %w", t.Name(), err)
	case got.NeedsInput():
		return nil, fmt.Errorf("tool %q: the server asks for more than a tool call can give it", t.Name())
	case got.IsError:
		text := texts(got.Content)
		if text == "" {
			text = "failed, and the server does not say why"
		}
		return nil, fmt.Errorf("tool %q: %w", t.Name(), errors.New(text))
	}
	return result(got), nil
}

// Effect returns the toolset's effect. Without one it relies on the server's hint that a tool only
// reads.
func (t *remote) Effect() tool.Effect {
	if e := t.set.cfg.Effect; e != "" {
		return e
	}
	if a := t.def.Annotations; a != nil && a.ReadOnlyHint {
		return agent.Pure
	}
	return agent.Idempotent
}

// harmless reports whether the server says that calling twice does no harm.
func (t *remote) harmless() bool {
	a := t.def.Annotations
	return a != nil && (a.ReadOnlyHint || a.IdempotentHint)
}

// result returns the result for the model: the structured content if there is any, or else the
// texts.
func result(r *mcp.CallToolResult) map[string]any {
	switch s := r.StructuredContent.(type) {
	case nil:
		return map[string]any{"result": texts(r.Content)}
	case map[string]any:
		return s
	default:
		return map[string]any{"result": s}
	}
}

// texts joins the texts in a result. It describes other contents.
func texts(contents []mcp.Content) string {
	var all []string
	for _, c := range contents {
		switch c := c.(type) {
		case *mcp.TextContent:
			all = append(all, c.Text)
		case *mcp.ImageContent:
			all = append(all, blob("image", c.MIMEType, c.Data))
		case *mcp.AudioContent:
			all = append(all, blob("audio", c.MIMEType, c.Data))
		case *mcp.ResourceLink:
			all = append(all, fmt.Sprintf("[resource %s: %s]", c.Name, c.URI))
		case *mcp.EmbeddedResource:
			switch r := c.Resource; {
			case r == nil:
			case r.Blob != nil:
				all = append(all, blob("resource "+r.URI, r.MIMEType, r.Blob))
			default:
				all = append(all, r.Text)
			}
		default:
			if text, err := json.Marshal(c); err == nil {
				all = append(all, string(text))
			}
		}
	}
	return strings.Join(all, "\n")
}

func blob(what, kind string, data []byte) string {
	return fmt.Sprintf("[%s, %s, %d bytes]", what, kind, len(data))
}
