// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	einomodel "github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/model"
)

// runEino runs a loop with Eino.
func runEino(t *testing.T, l costLoop, open opener) error {
	root, err := einoStep(t.Context(), l.root, open)
	if err != nil {
		return err
	}
	state := make(map[string]any)
	maps.Copy(state, l.state)
	r := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: root})
	_, err = countEino(r.Query(t.Context(), l.message, adk.WithSessionValues(state)))
	return err
}

func einoStep(ctx context.Context, s *costStep, open opener) (adk.Agent, error) {
	switch {
	case s.steps != nil:
		return einoWorkflow(ctx, s, open)
	case s.instruction == nil:
		return einoFunction{s}, nil
	}
	cfg := &adk.ChatModelAgentConfig{Name: s.name, Description: about(s), Model: einoModel{LLM: open(s.name)}, OutputKey: s.key,
		MaxIterations: 50, // the default is 20
		GenModelInput: func(ctx context.Context, _ string, in *adk.AgentInput) ([]adk.Message, error) {
			text, err := s.instruction.Execute(func(key string) (any, bool) { return adk.GetSessionValue(ctx, key) })
			return append([]adk.Message{schema.SystemMessage(text)}, in.Messages...), err
		}}
	switch s.tool {
	case exitTool:
		exit, err := utils.InferTool("exit_loop", "Exits the loop. Call this function only when you are instructed to do so.",
			func(ctx context.Context, _ struct{}) (string, error) {
				return "", adk.SendToolGenAction(ctx, "exit_loop", adk.NewBreakLoopAction(s.name))
			})
		if err != nil {
			return nil, err
		}
		cfg.ToolsConfig = adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{exit}},
			ReturnDirectly: map[string]bool{"exit_loop": true}}
	case lookTool:
		look, err := utils.InferTool(lookTool, lookAbout, func(context.Context, lookArgs) (string, error) { return seen, nil })
		if err != nil {
			return nil, err
		}
		cfg.ToolsConfig.Tools = []tool.BaseTool{look}
	}
	return adk.NewChatModelAgent(ctx, cfg)
}

// about is a step's description; Eino needs one.
func about(s *costStep) string {
	if s.description == "" {
		return s.name
	}
	return s.description
}

func einoWorkflow(ctx context.Context, s *costStep, open opener) (adk.Agent, error) {
	var subs []adk.Agent
	for _, sub := range s.steps {
		a, err := einoStep(ctx, sub, open)
		if err != nil {
			return nil, err
		}
		subs = append(subs, a)
	}
	if s.iterations > 0 {
		return adk.NewLoopAgent(ctx, &adk.LoopAgentConfig{Name: s.name, Description: about(s), SubAgents: subs, MaxIterations: s.iterations})
	}
	return adk.NewSequentialAgent(ctx, &adk.SequentialAgentConfig{Name: s.name, Description: about(s), SubAgents: subs})
}

// einoFunction is a step without a model.
type einoFunction struct{ *costStep }

func (f einoFunction) Name(context.Context) string        { return f.name }
func (f einoFunction) Description(context.Context) string { return about(f.costStep) }

func (f einoFunction) Run(ctx context.Context, _ *adk.AgentInput, _ ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	events, out := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	defer out.Close()
	exit := f.do(func(key string) any {
		v, _ := adk.GetSessionValue(ctx, key)
		return v
	}, func(key string, v any) { adk.AddSessionValue(ctx, key, v) })
	if exit {
		out.Send(&adk.AgentEvent{Action: adk.NewBreakLoopAction(f.name)})
	}
	return events
}

// einoModel sends Eino's messages with our client.
type einoModel struct {
	model.LLM
	tools []*genai.Tool
}

func (m einoModel) WithTools(list []*schema.ToolInfo) (einomodel.ToolCallingChatModel, error) {
	var decls []*genai.FunctionDeclaration
	for _, info := range list {
		decl := &genai.FunctionDeclaration{Name: info.Name, Description: info.Desc}
		if info.ParamsOneOf != nil {
			params, err := info.ToJSONSchema()
			if err != nil {
				return nil, err
			}
			decl.ParametersJsonSchema = params
		}
		decls = append(decls, decl)
	}
	m.tools = []*genai.Tool{{FunctionDeclarations: decls}}
	return m, nil
}

func (m einoModel) Generate(ctx context.Context, in []*schema.Message, _ ...einomodel.Option) (*schema.Message, error) {
	req := &model.LLMRequest{Config: &genai.GenerateContentConfig{Tools: m.tools}}
	for _, msg := range in {
		if msg.Role == schema.System {
			req.Config.SystemInstruction = genai.NewContentFromText(msg.Content, genai.RoleUser)
			continue
		}
		c, err := contentOf(msg)
		if err != nil {
			return nil, err
		}
		req.Contents = append(req.Contents, c)
	}
	for resp, err := range m.LLM.GenerateContent(ctx, req, false) {
		if err != nil {
			return nil, err
		}
		return messageOf(resp.Content)
	}
	return nil, errors.New("no answer")
}

func (m einoModel) Stream(ctx context.Context, in []*schema.Message, opts ...einomodel.Option) (*schema.StreamReader[*schema.Message], error) {
	msg, err := m.Generate(ctx, in, opts...)
	return schema.StreamReaderFromArray([]*schema.Message{msg}), err
}

func contentOf(msg *schema.Message) (*genai.Content, error) {
	switch msg.Role {
	case schema.Tool:
		c := genai.NewContentFromFunctionResponse(msg.ToolName, map[string]any{"result": msg.Content}, genai.RoleUser)
		c.Parts[0].FunctionResponse.ID = msg.ToolCallID
		return c, nil
	case schema.User:
		return genai.NewContentFromText(msg.Content, genai.RoleUser), nil
	}
	c := &genai.Content{Role: genai.RoleModel}
	if msg.Content != "" {
		c.Parts = append(c.Parts, genai.NewPartFromText(msg.Content))
	}
	for _, call := range msg.ToolCalls {
		var args map[string]any
		if err := json.Unmarshal([]byte(call.Function.Arguments), &args); err != nil {
			return nil, err
		}
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: call.ID, Name: call.Function.Name, Args: args}})
	}
	return c, nil
}

func messageOf(c *genai.Content) (*schema.Message, error) {
	var text strings.Builder
	var calls []schema.ToolCall
	for _, p := range c.Parts {
		text.WriteString(p.Text)
		if f := p.FunctionCall; f != nil {
			args, err := json.Marshal(f.Args)
			if err != nil {
				return nil, err
			}
			calls = append(calls, schema.ToolCall{ID: f.ID, Type: "function", Function: schema.FunctionCall{Name: f.Name, Arguments: string(args)}})
		}
	}
	return schema.AssistantMessage(text.String(), calls), nil
}
