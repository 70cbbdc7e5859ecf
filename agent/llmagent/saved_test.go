// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// talker is a model whose answers depend on nothing but how often it was asked:
// every third is a call. It notes how much it was sent.
type talker struct {
	fake
	mu   sync.Mutex
	sent []llmagent.Saving
}

func newTalker(name string) *talker {
	tk := new(talker)
	tk.fake = func(_ context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		tk.mu.Lock()
		tk.sent = append(tk.sent, measure(req.Contents))
		n := len(tk.sent)
		tk.mu.Unlock()
		resp := &model.LLMResponse{Content: &genai.Content{Role: genai.RoleModel}, CustomMetadata: map[string]any{"own": true}}
		say := func(p *genai.Part) { resp.Content.Parts = append(resp.Content.Parts, p) }
		say(&genai.Part{Text: "Hm.", Thought: true})
		say(&genai.Part{Text: strings.Repeat("señor "+name, n%4+1)})
		if n%3 == 0 {
			say(&genai.Part{FunctionCall: &genai.FunctionCall{Name: "look", Args: map[string]any{}}})
		}
		yield(resp, nil)
	}
	return tk
}

// measure counts without help of the package under test.
func measure(contents []*genai.Content) (s llmagent.Saving) {
	for _, c := range contents {
		if len(c.Parts) == 1 && strings.HasPrefix(c.Parts[0].Text, "Continue processing") {
			continue // to go on is no part of the conversation
		}
		s.SentContents++
		if strings.HasPrefix(c.Parts[0].Text, "This is a digest") {
			s.DigestChars = utf8.RuneCountInString(c.Parts[0].Text)
		}
		for _, p := range c.Parts {
			s.SentChars += utf8.RuneCountInString(p.Text)
			switch {
			case p.FunctionCall != nil:
				args, _ := json.Marshal(p.FunctionCall.Args)
				s.SentChars += len(p.FunctionCall.Name) + len(args)
			case p.FunctionResponse != nil:
				answer, _ := json.Marshal(p.FunctionResponse.Response)
				s.SentChars += len(p.FunctionResponse.Name) + utf8.RuneCount(answer)
			}
		}
	}
	return s
}

// conversation runs critic, refiner and poet, in loops and branches, two messages
// long, and returns how much each was sent and the events.
func conversation(t *testing.T, seen llmagent.ContextConfig) (map[string]*talker, []*session.Event) {
	t.Helper()
	talkers := make(map[string]*talker)
	step := func(name string) agent.Agent {
		talkers[name] = newTalker(name)
		return newAgent(t, llmagent.Config{Name: name, Model: talkers[name], Context: seen, Tools: []tool.Tool{answering(t, "look", "a ñandú")}})
	}
	around := func(name string, n uint, steps ...agent.Agent) agent.Agent {
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: name, SubAgents: steps}, MaxIterations: n})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	branches, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "branches", SubAgents: []agent.Agent{
		around("one", 2, step("poet")), around("two", 2, step("singer"), step("dancer")),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	root := sequence(t, step("writer"), around("refine", 4, step("critic"), around("inner", 2, step("refiner")), step("judge")), branches)
	th := newThread(t, root)
	var all []*session.Event
	for _, msg := range []string{"Write about señores.", "Again."} {
		evs, err := th.ask(t.Context(), msg)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, evs...)
	}
	return talkers, all
}

// LOOP 28: an answer says what its context policy sent and saved, and both come
// to what full sends.
func TestWhatAPolicySaves(t *testing.T) {
	full, evs := conversation(t, llmagent.ContextConfig{})
	for _, ev := range evs {
		if _, ok := llmagent.SavingOf(ev); ok {
			t.Fatalf("full says that it saves something: %v", ev.CustomMetadata)
		}
	}
	for _, seen := range []llmagent.ContextConfig{
		{Policy: llmagent.ContextIteration}, {Policy: llmagent.ContextLast, Last: 2}, {Policy: llmagent.ContextNone},
		{Policy: llmagent.ContextDigest, BestChars: 100}, {Policy: llmagent.ContextDigest, Last: 2},
	} {
		t.Run(fmt.Sprint(seen.Policy, seen.Last), func(t *testing.T) {
			talkers, evs := conversation(t, seen)
			turns, saved, digests := make(map[string]int), 0, false
			for _, ev := range evs {
				if ev.Content.Role != genai.RoleModel {
					continue
				}
				i := turns[ev.Author]
				turns[ev.Author]++
				sent, all := talkers[ev.Author].sent[i], full[ev.Author].sent[i]
				want := llmagent.Saving{
					Policy: seen.Policy, SentChars: sent.SentChars, SentContents: sent.SentContents,
					SavedChars: all.SentChars - sent.SentChars, SavedContents: all.SentContents - sent.SentContents,
					DigestChars: sent.DigestChars,
				}
				digests = digests || sent.DigestChars > 0
				got, ok := llmagent.SavingOf(ev)
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Errorf("turn %d of %s (-want +got):\n%s", i+1, ev.Author, diff)
				}
				if ev.CustomMetadata["own"] != true {
					t.Error("the model's own metadata is lost")
				}
				saved += got.SavedChars / 4
			}
			if len(turns) != len(talkers) || saved < 500 && !digests {
				t.Errorf("%d of %d agents spoke, about %d tokens at four characters each were saved", len(turns), len(talkers), saved)
			}
			if digests != (seen.Policy == llmagent.ContextDigest) {
				t.Errorf("a digest was sent: %v", digests)
			}
		})
	}
}

// An answer that takes an earlier one's place, in the middle of what was counted
// already, counts once.
func TestSavingWithALateAnswer(t *testing.T) {
	answer := func(text string) *session.Event {
		ev := event(genai.RoleUser, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "1", Name: "f", Response: map[string]any{"is": text}}})
		ev.Author = "a"
		return ev
	}
	call := event(genai.RoleModel, &genai.Part{FunctionCall: &genai.FunctionCall{ID: "1", Name: "f", Args: map[string]any{}}})
	call.Author = "a"
	var th *thread
	late := function(t, "late", func(ctx tool.Context) (map[string]any, error) {
		ev := answer("a very long story")
		ev.InvocationID = ctx.InvocationID()
		return nil, th.svc.AppendEvent(ctx, ctx.Session(), ev)
	})
	tk := &talker{}
	inner := script(t, calls("late"), says("done"))
	tk.fake = func(ctx context.Context, req *model.LLMRequest, stream bool, yield func(*model.LLMResponse, error) bool) {
		tk.sent = append(tk.sent, measure(req.Contents))
		inner.GenerateContent(ctx, req, stream)(yield)
	}
	a := newAgent(t, llmagent.Config{Name: "a", Model: tk, Tools: []tool.Tool{late}, Context: llmagent.ContextConfig{Policy: llmagent.ContextIteration}})
	th = newThread(t, sequence(t, custom(t, "b", call, answer("short"), event(genai.RoleModel, &genai.Part{Text: "in between"})), a))
	evs, err := th.ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := llmagent.SavingOf(evs[len(evs)-1])
	if want := tk.sent[1]; got.SentChars != want.SentChars || got.SentContents != want.SentContents || got.SavedChars != 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// What is read from a store is what was said.
func TestSavingFromAStore(t *testing.T) {
	_, evs := conversation(t, llmagent.ContextConfig{Policy: llmagent.ContextIteration})
	ev := evs[len(evs)-1]
	data, err := json.Marshal(ev)
	if err != nil {
		t.Fatal(err)
	}
	var read session.Event
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	want, _ := llmagent.SavingOf(ev)
	if got, ok := llmagent.SavingOf(&read); !ok || got != want || got.SavedChars == 0 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if diff := cmp.Diff(ev.CustomMetadata, read.CustomMetadata); diff != "" {
		t.Errorf("the journey changes it: %s", diff)
	}
	if _, ok := llmagent.SavingOf(&session.Event{}); ok {
		t.Error("an event without says something")
	}
}

// The author of a response may keep it: its metadata is not written to.
func TestMetadataOfAResponseIsNotChanged(t *testing.T) {
	kept := response("hi")
	kept.CustomMetadata = map[string]any{"own": true}
	m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		yield(kept, nil)
	})
	evs, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m, IncludeContents: llmagent.IncludeContentsNone})).ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := llmagent.SavingOf(evs[0]); !ok || s.Policy != llmagent.ContextNone || len(kept.CustomMetadata) != 1 {
		t.Errorf("got %+v; the response has %v", s, kept.CustomMetadata)
	}
}

// A request is accounted for once, however many answers it brings.
func TestSavingIsSaidOnce(t *testing.T) {
	m := fake(func(_ context.Context, _ *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		_ = yield(response("one"), nil) && yield(response("two"), nil)
	})
	evs, err := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: m,
		Context: llmagent.ContextConfig{Policy: llmagent.ContextNone}})).ask(t.Context(), "go")
	if err != nil || len(evs) != 2 {
		t.Fatalf("got %q, %v", lines(evs), err)
	}
	_, first := llmagent.SavingOf(evs[0])
	if _, second := llmagent.SavingOf(evs[1]); !first || second {
		t.Errorf("said with the first answer: %v, with the second: %v", first, second)
	}
}

// What is left out is counted once: what an iteration allocates does not
// depend on how many there were.
func TestSavingsAreCountedOnce(t *testing.T) {
	for _, seen := range []llmagent.ContextConfig{{Policy: llmagent.ContextIteration}, {Policy: llmagent.ContextLast, Last: 3},
		{Policy: llmagent.ContextNone}, {Policy: llmagent.ContextDigest}} {
		perIteration := func(n uint) float64 {
			var steps []agent.Agent
			for _, name := range []string{"critic", "editor"} {
				steps = append(steps, newAgent(t, llmagent.Config{Name: name, Model: quick(), OutputKey: "doc", Context: seen}))
			}
			th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: n}, steps...))
			th.cfg.MaxLLMCalls = -1
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := th.ask(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			return float64(after.Mallocs-before.Mallocs) / float64(n)
		}
		perIteration(10)
		few, many := perIteration(50), perIteration(400)
		if many > few*1.1 {
			t.Errorf("%s: an iteration of 50 makes %.0f allocations, one of 400 %.0f", fmt.Sprint(seen.Policy), few, many)
		}
	}
}
