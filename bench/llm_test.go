// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// What the agents of an LLM loop say.
var (
	draft    = strings.Repeat("The fox went on. ", 25)[:400]
	critique = strings.Repeat("Shorten it. ", 10)
)

// probe sits in the model of an LLM loop. What it is not asked to do costs
// nothing that is measured.
type probe struct {
	counts bool // characters
	times  bool // from the instruction to the first callback: the contents are built in between

	turns, chars int
	began        time.Time
	contents     time.Duration
}

// instant is a model that is done at once.
type instant struct {
	says  *model.LLMResponse
	probe *probe
}

func (m instant) Name() string { return "instant" }

func (m instant) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	p := m.probe
	p.turns++
	if p.counts {
		p.chars += chars(req.Config.SystemInstruction)
		for _, c := range req.Contents {
			p.chars += chars(c)
		}
	}
	return func(yield func(*model.LLMResponse, error) bool) { yield(m.says, nil) }
}

func chars(c *genai.Content) (n int) {
	for _, p := range c.Parts {
		n += len(p.Text)
	}
	return n
}

// llmLoop runs a writer, then critic and refiner for so many iterations, through
// the runner. Its events are the turns: one event each.
func llmLoop(iterations int, seen llmagent.ContextPolicy, p *probe) (op, error) {
	made := make(map[string]agent.Agent)
	for _, cfg := range []llmagent.Config{
		{Name: "writer", OutputKey: "draft", Instruction: "Write."},
		{Name: "critic", OutputKey: "critique", Instruction: "Review:\n{{draft}}"},
		{Name: "refiner", OutputKey: "draft", Instruction: "Improve:\n{{draft}}\nas is said here:\n{{critique}}"},
	} {
		text := draft
		if cfg.OutputKey == "critique" {
			text = critique
		}
		cfg.Model = instant{&model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel)}, p}
		cfg.Context.Policy = seen
		if p.times {
			cfg.InstructionProvider = func(agent.ReadonlyContext) (string, error) {
				p.began = time.Now()
				return cfg.Instruction, nil
			}
			cfg.BeforeModelCallbacks = []llmagent.BeforeModelCallback{
				func(agent.CallbackContext, *model.LLMRequest) (*model.LLMResponse, error) {
					p.contents += time.Since(p.began)
					return nil, nil
				},
			}
		}
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
	root, err := sequentialagent.New(sequentialagent.Config{
		AgentConfig: agent.Config{Name: "story", SubAgents: []agent.Agent{made["writer"], loop}},
	})
	if err != nil {
		return nil, err
	}
	ctx, service := context.Background(), session.InMemoryService()
	r, err := newRunner(root, service)
	if err != nil {
		return nil, err
	}
	msg := genai.NewContentFromText("A story about a fox.", genai.RoleUser)
	return func() (int, error) {
		n, err := count(r.Run(ctx, "ana", "s", msg, agent.RunConfig{MaxLLMCalls: -1}))
		if err != nil {
			return n, err
		}
		return n, service.Delete(ctx, &session.DeleteRequest{AppName: "bench", UserID: "ana", SessionID: "s"})
	}, nil
}

// charsOf is how many characters a turn sends, on average.
func charsOf(iterations int, seen llmagent.ContextPolicy) (float64, error) {
	p := &probe{counts: true}
	do, err := llmLoop(iterations, seen, p)
	if err != nil {
		return 0, err
	}
	if _, err := do(); err != nil {
		return 0, err
	}
	return float64(p.chars) / float64(p.turns), nil
}

// contentsOf is how many nanoseconds it takes a turn to build its contents, on
// average, and a little more: the agent's name goes into the prompt as well.
func contentsOf(iterations int, seen llmagent.ContextPolicy, atLeast time.Duration) (float64, error) {
	p := &probe{times: true}
	do, err := llmLoop(iterations, seen, p)
	if err != nil {
		return 0, err
	}
	if _, err := do.sample(atLeast); err != nil {
		return 0, err
	}
	return float64(p.contents) / float64(p.turns), nil
}

func BenchmarkLLMLoop(b *testing.B) {
	for _, seen := range []llmagent.ContextPolicy{llmagent.ContextIteration, llmagent.ContextFull} {
		for _, k := range []int{10, 100, 500} {
			b.Run(fmt.Sprintf("impl=ours/context=%s/k=%d", seen, k), func(b *testing.B) {
				do, err := llmLoop(k, seen, new(probe))
				if err != nil {
					b.Fatal(err)
				}
				sent, err := charsOf(k, seen)
				if err != nil {
					b.Fatal(err)
				}
				do.runPer(b, "turn")
				b.ReportMetric(sent, "req-chars/turn")
			})
		}
	}
}

// One event a turn, and what is measured is measured.
func TestLLMLoop(t *testing.T) {
	for _, seen := range []llmagent.ContextPolicy{llmagent.ContextIteration, llmagent.ContextFull} {
		p := &probe{counts: true, times: true}
		do, err := llmLoop(5, seen, p)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := do(); n != 11 || err != nil || p.turns != 11 || p.chars < 11*100 || p.contents <= 0 {
			t.Errorf("%s: %d events, %v, %+v", seen, n, err, p)
		}
	}
}
