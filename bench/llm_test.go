// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/model"
)

// What the agents of a model loop say.
var (
	draft    = strings.Repeat("The fox went on. ", 25)[:400]
	critique = strings.Repeat("Shorten it. ", 10)
)

// instant is a model that answers at once, with a text of its own each time.
type instant struct{ says string }

func (m instant) Name() string { return "instant" }

func (m instant) GenerateContent(context.Context, *model.LLMRequest, bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { yield(m.answer(), nil) }
}

func (m instant) answer() *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(strings.Clone(m.says), genai.RoleModel)}
}

// modelLoop runs a writer, then a critic and a refiner in each iteration, through the
// runner. Its events are the turns: one event each.
func modelLoop(iterations int, seen llmagent.ContextPolicy, callbacks ...llmagent.BeforeModelCallback) (op, error) {
	root, err := modelTree(iterations, seen, callbacks...)
	if err != nil {
		return nil, err
	}
	return inSession(root, false)
}

// modelTree is the agents of modelLoop.
func modelTree(iterations int, seen llmagent.ContextPolicy, callbacks ...llmagent.BeforeModelCallback) (agent.Agent, error) {
	made := make(map[string]agent.Agent)
	for _, cfg := range []llmagent.Config{
		{Name: "writer", OutputKey: "draft", Instruction: "Write."},
		{Name: "critic", OutputKey: "critique", Instruction: "Review:\n{{draft}}"},
		{Name: "refiner", OutputKey: "draft", Instruction: "Improve:\n{{draft}}\nas is said here:\n{{critique}}"},
	} {
		cfg.Model = instant{draft}
		if cfg.OutputKey == "critique" {
			cfg.Model = instant{critique}
		}
		cfg.Context.Policy = seen
		cfg.BeforeModelCallbacks = callbacks
		var err error
		if made[cfg.Name], err = llmagent.New(cfg); err != nil {
			return nil, err
		}
	}
	loop, err := loopagent.New(loopagent.Config{
		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{made["critic"], made["refiner"]}},
		MaxIterations: uint(iterations),
	})
	if err != nil {
		return nil, err
	}
	return sequentialagent.New(sequentialagent.Config{
		AgentConfig: agent.Config{Name: "story", SubAgents: []agent.Agent{made["writer"], loop}},
	})
}

// nothing is a callback that does nothing.
func nothing(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) { return nil, nil }

func BenchmarkModelLoop(b *testing.B) {
	for _, seen := range []llmagent.ContextPolicy{llmagent.ContextIteration, llmagent.ContextFull} {
		for _, k := range []int{10, 100, 500} {
			for name, callbacks := range map[string][]llmagent.BeforeModelCallback{"no": nil, "one": {nothing}} {
				b.Run(fmt.Sprintf("impl=ours/context=%s/callback=%s/k=%d", seen, name, k), func(b *testing.B) {
					do, err := modelLoop(k, seen, callbacks...)
					if err != nil {
						b.Fatal(err)
					}
					do.run(b)
				})
			}
		}
	}
}

// One event a turn.
func TestModelLoop(t *testing.T) {
	for _, seen := range []llmagent.ContextPolicy{llmagent.ContextIteration, llmagent.ContextFull} {
		do, err := modelLoop(5, seen, nothing)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := do(); n != 11 || err != nil {
			t.Errorf("%s: %d events, %v", seen, n, err)
		}
	}
}

// answered keeps the compiler from leaving out the answer.
var answered *model.LLMResponse
