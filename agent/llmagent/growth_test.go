// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
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

// LOOP 28, issue 3: under context iteration a turn sends no more in iteration
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

// Issue 3: in a run of many turns each event is looked at once. What a turn
// allocates does not depend on how many there were.
func TestContentsAreBuiltOnce(t *testing.T) {
	look := answering(t, "look", "x")
	perTurn := func(turns int) float64 {
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
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := th.ask(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(turns)
	}
	perTurn(10)
	few, many := perTurn(100), perTurn(800)
	if many > few*1.25 {
		t.Errorf("a turn of 100 makes %.0f allocations, a turn of 800 %.0f", few, many)
	}
}

// Issue 3: so it is in a loop, where each iteration runs the agent anew.
func TestContentsAreBuiltOnceInALoop(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection may drop what is kept
	perIteration := func(n uint, timeout time.Duration) float64 {
		step := func(name string) llmagent.Config {
			return llmagent.Config{Name: name, Model: quick(), OutputKey: "doc"}
		}
		root := newLoop(t, loopagent.Config{MaxIterations: n, Timeout: timeout}, newAgent(t, step("critic")), newAgent(t, step("editor")))
		th := newThread(t, root)
		th.cfg.MaxLLMCalls = -1
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		th.must("go")
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(n)
	}
	for _, timeout := range []time.Duration{0, time.Hour} { // with one, steps can be left behind
		perIteration(10, timeout)
		few, many := perIteration(50, timeout), perIteration(400, timeout)
		if many > few*1.25 {
			t.Errorf("timeout %s: an iteration of 50 makes %.0f allocations, one of 400 %.0f", timeout, few, many)
		}
	}
}

// quick is a model that is done at once.
func quick() fake {
	return func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		yield(response("word word word"), nil)
	}
}

// Issue 3: a turn of critic or editor with an instant model, by iterations.
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
