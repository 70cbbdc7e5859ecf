// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// counting is a model that counts the characters it is sent.
type counting struct{ turns, sent int }

func (*counting) Name() string { return "counting" }

func (c *counting) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		c.turns++
		for _, content := range req.Contents {
			for _, p := range content.Parts {
				c.sent += utf8.RuneCountInString(p.Text)
			}
		}
		text := fmt.Sprintf("%d. ", c.turns) + strings.Repeat("Uma manhã. ", 60)
		yield(&model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel)}, nil)
	}
}

// spend runs critic and editor for some iterations, and returns how much they
// were sent in how many turns, and what the run says that it saved.
func spend(t *testing.T, seen llmagent.ContextConfig) (*counting, progress.Saved) {
	t.Helper()
	m := new(counting)
	var steps []agent.Agent
	for _, name := range []string{"critic", "editor"} {
		a, err := llmagent.New(llmagent.Config{Name: name, Model: m, OutputKey: name, Context: seen})
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, a)
	}
	root, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "refine", SubAgents: steps}, MaxIterations: 30})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	var used progress.Resources
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		used.Add(ev)
	}
	return m, used.Saved
}

// LOOP 28: what a run says that it saved is what all would have taken less what
// was sent.
func TestSavedIsWhatWasNotSent(t *testing.T) {
	all, none := spend(t, llmagent.ContextConfig{})
	if none != (progress.Saved{}) {
		t.Errorf("full saved %+v", none)
	}
	for _, seen := range []llmagent.ContextConfig{
		{Policy: llmagent.ContextIteration}, {Policy: llmagent.ContextLast, Last: 2},
		{Policy: llmagent.ContextDigest}, {Policy: llmagent.ContextDigest, Last: 2, BestChars: 500}, {Policy: llmagent.ContextNone},
	} {
		got, saved := spend(t, seen)
		if want := all.sent - got.sent; saved.Chars != want || saved.Requests != got.turns || want < 1e5 {
			t.Errorf("%+v: %+v was saved; %d characters and %d requests are right", seen, saved, want, got.turns)
		}
	}
}

// An answer that is said again from a cache took no request.
func TestSavedWithoutACache(t *testing.T) {
	var used progress.Resources
	for _, cached := range []bool{false, true} {
		ev := &session.Event{}
		ev.CustomMetadata = map[string]any{llmagent.MetadataContext: map[string]any{"policy": "iteration", "savedChars": 40.0}, "cached": cached}
		used.Add(ev)
		if _, ok := llmagent.SavingOf(ev); ok == cached {
			t.Errorf("cached %t: a saving: %t", cached, ok)
		}
	}
	if got, want := used.Saved, (progress.Saved{Chars: 40, Requests: 1}); got != want || got.Tokens() != 10 {
		t.Errorf("got %+v", got)
	}
}
