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
	"github.com/refrain-dev/refrain/internal/values/propagate"
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
	asked, err := newInquiry(ctx, t)
	if err != nil {
		return nil, err
	}
	if asked.next() != nil { // the person has answered one question of several
		return nil, asked.request(ctx)
	}
	params.InputResponses, params.RequestState = asked.responses(), asked.state.RequestState
	got, err := t.set.call(ctx, t, params, asked)
	switch {
	case asked.next() != nil:
		return nil, asked.request(ctx)
	case err != nil:
		return nil, fmt.Errorf("tool %q: %w", t.Name(), err)
	case got.IsError:
		text := t.set.secrets.StrikeWhole(texts(got.Content))
		if text == "" {
			text = "failed, and the server does not say why"
		}
		if asked.lost != "" {
			text += "; " + asked.lost
		}
		return nil, fmt.Errorf("tool %q: %w", t.Name(), errors.New(text))
	}
	return t.set.struck(result(got)), nil
}

// call makes a call once. If the server asks a question that asked has no answer to, asked has it then.
func (s *Toolset) call(ctx context.Context, t *remote, params *mcp.CallToolParams, asked *inquiry) (*mcp.CallToolResult, error) {
	for {
		leave, err := s.enter(ctx, s.asks.Load())
		if err != nil {
			return nil, err
		}
		var got *mcp.CallToolResult
		err = s.do(ctx, t.harmless(), func(ctx context.Context, c *connection) (err error) {
			if asked.crowded { // questions of the canceled calls that are under way come before the answer
				_ = c.session.Ping(ctx, nil)
			}
			ctx, done := s.listen(ctx, c.session, asked)
			got, err = c.session.CallTool(ctx, params)
			if done(); asked.next() != nil || asked.crowded {
				return nil // the server has been asked to forget the call
			}
			return err
		})
		leave()
		switch {
		case asked.next() != nil:
			return nil, nil
		case ctx.Err() == nil && err == nil && got == nil: // alone, the call can be told from others
			continue
		case err != nil:
			return nil, err
		case got.NeedsInput():
			return nil, asked.take(got)
		}
		return got, nil
	}
}

// struck returns a result without the secrets that the server may have repeated.
func (s *Toolset) struck(result map[string]any) map[string]any {
	text, err := json.Marshal(result)
	if err != nil {
		return result
	}
	if without := s.secrets.StrikeWhole(string(text)); without != string(text) {
		result = nil
		_ = json.Unmarshal([]byte(without), &result) // the mark is the same in JSON
	}
	return result
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
