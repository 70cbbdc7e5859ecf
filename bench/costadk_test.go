// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"iter"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/agent/workflowagents/loopagent"
	"google.golang.org/adk/v2/agent/workflowagents/sequentialagent"
	adkmodel "google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/exitlooptool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/bench/ours"
	"github.com/refrain-dev/refrain/model"
)

// adkRunner is the loop of three agents with ADK's runner, in a new session in memory each time.
func adkRunner(iterations int) (op, error) {
	var subs []agent.Agent
	for _, name := range ours.Names {
		a, err := agent.New(agent.Config{Name: name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Content = genai.NewContentFromText(strings.Clone(text), genai.RoleModel)
				ev.Actions.StateDelta[key] = ev.Content.Parts[0].Text
				yield(ev, nil)
			}
		}})
		if err != nil {
			return nil, err
		}
		subs = append(subs, a)
	}
	loop, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: subs}, MaxIterations: uint(iterations)})
	if err != nil {
		return nil, err
	}
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: app, Agent: loop, SessionService: svc, AutoCreateSession: true})
	if err != nil {
		return nil, err
	}
	return func() (n int, _ error) {
		ctx := context.Background()
		for _, err := range r.Run(ctx, user, "s", genai.NewContentFromText("Go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, svc.Delete(ctx, &session.DeleteRequest{AppName: app, UserID: user, SessionID: "s"})
	}, nil
}

// runADK runs a loop with ADK for Go.
func runADK(t *testing.T, l costLoop, open opener) error {
	root, err := adkAgent(l.root, open)
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true})
	if err != nil {
		return err
	}
	for _, err := range r.Run(t.Context(), user, "s", genai.NewContentFromText(l.message, genai.RoleUser), agent.RunConfig{},
		runner.WithStateDelta(l.state)) {
		if err != nil {
			return err
		}
	}
	return nil
}

func adkAgent(s *costStep, open opener) (agent.Agent, error) {
	switch {
	case s.steps != nil:
		return adkWorkflow(s, open)
	case s.instruction == nil:
		return agent.New(agent.Config{Name: s.name, Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ev := session.NewEvent(ctx, ctx.InvocationID())
				ev.Actions.Escalate = s.do(func(key string) any {
					v, _ := ctx.Session().State().Get(key)
					return v
				}, func(key string, v any) { ev.Actions.StateDelta[key] = v })
				yield(ev, nil)
			}
		}})
	}
	cfg := llmagent.Config{Name: s.name, Description: s.description, Model: adkModel{open(s.name)}, OutputKey: s.key,
		InstructionProvider: func(ctx agent.ReadonlyContext) (string, error) {
			return s.instruction.Execute(func(key string) (any, bool) {
				v, err := ctx.ReadonlyState().Get(key)
				return v, err == nil
			})
		}}
	switch s.tool {
	case exitTool:
		exit, err := exitlooptool.New()
		if err != nil {
			return nil, err
		}
		cfg.Tools = []tool.Tool{exit}
	case lookTool:
		look, err := functiontool.New(functiontool.Config{Name: lookTool, Description: lookAbout},
			func(agent.Context, lookArgs) (map[string]any, error) { return map[string]any{"result": seen}, nil })
		if err != nil {
			return nil, err
		}
		cfg.Tools = []tool.Tool{look}
	}
	return llmagent.New(cfg)
}

func adkWorkflow(s *costStep, open opener) (agent.Agent, error) {
	var subs []agent.Agent
	for _, sub := range s.steps {
		a, err := adkAgent(sub, open)
		if err != nil {
			return nil, err
		}
		if sub.iterations > 0 {
			if a, err = contained(a); err != nil {
				return nil, err
			}
		}
		subs = append(subs, a)
	}
	cfg := agent.Config{Name: s.name, Description: s.description, SubAgents: subs}
	if s.iterations > 0 {
		return loopagent.New(loopagent.Config{AgentConfig: cfg, MaxIterations: uint(s.iterations)})
	}
	return sequentialagent.New(sequentialagent.Config{AgentConfig: cfg})
}

// contained keeps the end of a loop from ending the loop around it too.
func contained(loop agent.Agent) (agent.Agent, error) {
	return agent.New(agent.Config{Name: loop.Name() + "_only", SubAgents: []agent.Agent{loop},
		Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				for ev, err := range loop.Run(ctx) {
					if ev != nil && ev.Actions.Escalate {
						ev = new(*ev) // the loop looks at its own
						ev.Actions.Escalate = false
					}
					if !yield(ev, err) {
						return
					}
				}
			}
		}})
}

// adkModel sends ADK's requests with our client.
type adkModel struct{ model.LLM }

func (m adkModel) GenerateContent(ctx context.Context, req *adkmodel.LLMRequest, stream bool) iter.Seq2[*adkmodel.LLMResponse, error] {
	return func(yield func(*adkmodel.LLMResponse, error) bool) {
		for resp, err := range m.LLM.GenerateContent(ctx, &model.LLMRequest{Contents: req.Contents, Config: req.Config}, stream) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&adkmodel.LLMResponse{Content: resp.Content, UsageMetadata: resp.UsageMetadata, FinishReason: resp.FinishReason}, nil) {
				return
			}
		}
	}
}
