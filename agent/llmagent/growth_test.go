// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// echo is a model that is done at once and counts the characters it is sent.
func echo(sent *[]int) fake {
	text := strings.Repeat("word ", 20)
	return func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		n := len(req.Config.SystemInstruction.Parts[0].Text)
		for _, c := range req.Contents {
			n += len(words(c))
		}
		*sent = append(*sent, n)
		yield(response(text), nil)
	}
}

// LOOP 28: under context iteration a turn sends no more in iteration
// 100 than in iteration 2; under full each sends as much more as the one before.
func TestCharactersSent(t *testing.T) {
	for _, policy := range []llmagent.ContextPolicy{llmagent.ContextIteration, llmagent.ContextFull} {
		var sent []int
		step := func(name string) llmagent.Config {
			return llmagent.Config{
				Name: name, Model: echo(&sent), Instruction: "Improve:\n{{doc}}", OutputKey: "doc",
				Context: llmagent.ContextConfig{Policy: policy},
			}
		}
		root := newLoop(t, loopagent.Config{MaxIterations: 100}, newAgent(t, step("critic")), newAgent(t, step("editor")))
		newThread(t, root).must("go")
		if len(sent) != 200 {
			t.Fatalf("%d turns", len(sent))
		}
		growth := sent[4] - sent[2]
		for i := 4; i < len(sent); i++ {
			if got := sent[i] - sent[i-2]; got != growth {
				t.Fatalf("%s: turn %d sends %d characters more than the one before, an earlier one %d", policy, i+1, got, growth)
			}
		}
		if (growth == 0) != (policy == llmagent.ContextIteration) {
			t.Errorf("%s: each iteration sends %d characters more", policy, growth)
		}
	}
}

// spent is what a run of that number of turns allocates for each turn.
func spent(t *testing.T, turns int, run func()) (allocs, bytes float64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run()
	runtime.ReadMemStats(&after)
	n := float64(turns)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n
}

// flat fails the test if a turn of a long run allocates more than one of a short run
// does, by more than a twentieth and a few bytes more.
func flat(t *testing.T, what string, more float64, run func(turns int) (allocs, bytes float64)) {
	t.Helper()
	run(10) // what is made once
	allocs, bytes := run(10)
	manyAllocs, manyBytes := run(500)
	if manyAllocs > 1.05*allocs+1 || manyBytes > 1.05*bytes+more {
		t.Errorf("%s: a turn of 10 makes %.1f allocations of %.0f bytes, a turn of 500 makes %.1f of %.0f",
			what, allocs, bytes, manyAllocs, manyBytes)
	}
}

// Without a BeforeModelCallback, what a turn allocates does not depend on how many turns there were.
func TestContentsAreBuiltOnce(t *testing.T) {
	look := answering(t, "look", "x")
	flat(t, "tools", 0, func(turns int) (allocs, bytes float64) {
		asked := 0
		m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
			if asked++; asked == turns {
				yield(response("done"), nil)
				return
			}
			call := &genai.Part{FunctionCall: &genai.FunctionCall{ID: fmt.Sprint("c", asked), Name: "look"}}
			yield(&model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{call}}}, nil)
		})
		th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, Tools: []tool.Tool{look}}))
		th.cfg.MaxLLMCalls = -1
		return spent(t, turns, func() {
			if _, err := th.ask(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// The same holds in a loop, where each iteration runs the agents again, with and without a timeout, and if the
// garbage collector runs in between.
func TestContentsAreBuiltOnceInALoop(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		flat(t, fmt.Sprintf("timeout %s", timeout), 0, func(turns int) (allocs, bytes float64) {
			collect := 0
			step := func(name string) llmagent.Config {
				cfg := llmagent.Config{Name: name, Model: quick(), OutputKey: "doc"}
				cfg.AfterAgentCallbacks = []agent.AfterAgentCallback{func(agent.Context) (*genai.Content, error) {
					if collect++; collect%(turns/5) == 0 {
						runtime.GC()
					}
					return nil, nil
				}}
				return cfg
			}
			root := newLoop(t, loopagent.Config{MaxIterations: uint(turns) / 2, Rules: loop.Plan{Timeout: loop.Duration(timeout)}}, newAgent(t, step("critic")), newAgent(t, step("editor")))
			th := newThread(t, root)
			th.cfg.MaxLLMCalls = -1
			return spent(t, turns, func() { th.must("go") })
		})
	}
}

// An agent that has the last word is told to go on: that makes its request a list of
// its own, and nothing else.
func TestAgentAloneInALoop(t *testing.T) {
	flat(t, "alone", 8*500*1.5/2, func(turns int) (allocs, bytes float64) {
		a := newAgent(t, llmagent.Config{Name: "a", Model: quick()})
		th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: uint(turns)}, a))
		th.cfg.MaxLLMCalls = -1
		return spent(t, turns, func() { th.must("go") })
	})
}

// quick is a model that is done at once.
func quick() fake {
	return func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		yield(response("word word word"), nil)
	}
}

// A turn of critic or editor with an instant model, by iterations.
func BenchmarkTurn(b *testing.B) {
	for _, policy := range []llmagent.ContextPolicy{llmagent.ContextIteration, llmagent.ContextDigest, llmagent.ContextFull} {
		for _, n := range []uint{10, 100, 500} {
			b.Run(fmt.Sprintf("%s/%d", policy, n), func(b *testing.B) {
				step := func(name string) llmagent.Config {
					return llmagent.Config{Name: name, Model: quick(), Instruction: "Improve:\n{{doc}}", OutputKey: "doc", Context: llmagent.ContextConfig{Policy: policy}}
				}
				root := newLoop(b, loopagent.Config{MaxIterations: n}, newAgent(b, step("critic")), newAgent(b, step("editor")))
				for b.Loop() {
					th := newThread(b, root)
					th.cfg.MaxLLMCalls = -1
					if _, err := th.ask(b.Context(), "go"); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(2*n), "ns/turn")
			})
		}
	}
}
