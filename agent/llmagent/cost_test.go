// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/process/keeper"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// something returns a text that differs from request to request, and is the same for the same one.
func something(r keeper.Request) string {
	sum := sha256.Sum256([]byte(r.Body))
	return fmt.Sprintf("%x: %s", sum[:8], strings.Repeat("something new. ", 40))
}

// keeping is a provider whose model calls the tool look until so many results are in the conversation, and then
// says something new.
func keeping(calls int, step time.Duration) *keeper.Keeper {
	return &keeper.Keeper{Step: step, Say: func(r keeper.Request) keeper.Answer {
		if r.Results < calls && strings.Contains(r.Body, `"look"`) {
			return keeper.Answer{Call: "look", Arguments: fmt.Sprintf(`{"n":%d}`, r.Results)}
		}
		return keeper.Answer{Text: something(r)}
	}}
}

// open returns a model of a provider whose prompts k keeps.
func open(t *testing.T, k *keeper.Keeper, provider string) model.LLM {
	t.Helper()
	srv := httptest.NewServer(k)
	t.Cleanup(srv.Close)
	t.Cleanup(func() {
		for _, wrong := range k.Wrong() {
			t.Error(wrong)
		}
	})
	return dial(t, srv.URL, provider, nil)
}

func dial(t *testing.T, url, provider string, client *http.Client) (m model.LLM) {
	t.Helper()
	var err error
	switch provider {
	case "openai":
		m, err = openai.NewModel("gpt-5-mini", openai.Config{BaseURL: url + "/v1", APIKey: "k", HTTPClient: client})
	case "gemini":
		m, err = gemini.NewModel(t.Context(), "gemini-2.5-flash", &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: "k",
			HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	default:
		m, err = anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: url, APIKey: "k", HTTPClient: client})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func toolLoop(t *testing.T, m model.LLM, cache llmagent.PromptCache) agent.Agent {
	looks := answering(t, "look", strings.Repeat("what is to be seen there. ", 8))
	return newAgent(t, llmagent.Config{Name: "looker", Model: m, Instruction: strings.Repeat("Look twice. ", 800),
		Tools: []tool.Tool{looks}, PromptCache: cache})
}

func writerAndCritic(t *testing.T, m model.LLM, words int) agent.Agent {
	seen := llmagent.ContextConfig{Policy: llmagent.ContextIteration}
	rules := strings.Repeat("Write well. ", words/2)
	return newLoop(t, loopagent.Config{MaxIterations: 6},
		newAgent(t, llmagent.Config{Name: "writer", Model: m, Instruction: rules + "Better than {{draft?}}, as {{critique?}} says.",
			OutputKey: "draft", Context: seen}),
		newAgent(t, llmagent.Config{Name: "critic", Model: m, Instruction: rules + "Review {{draft}}.", OutputKey: "critique", Context: seen}))
}

// What loops cost, against the same input without a cache; make bench-cost prints it. The provider forgets a prompt
// five minutes after its last use.
func TestCostOfLoops(t *testing.T) {
	looks := func(t *testing.T, m model.LLM) agent.Agent { return toolLoop(t, m, "") }
	short := func(t *testing.T, m model.LLM) agent.Agent { return writerAndCritic(t, m, 20) }
	for _, c := range []struct {
		name, provider string
		keeper         *keeper.Keeper
		root           func(*testing.T, model.LLM) agent.Agent
		most           float64
		requests       int
	}{
		{"tool loop", "anthropic", keeping(38, time.Second), looks, 0.22, 39},
		{"tool loop", "openai", keeping(38, time.Second), looks, 0.18, 39},
		{"tool loop", "gemini", keeping(38, time.Second), looks, 0.18, 39},
		{"tool loop, prompt_cache: off", "anthropic", keeping(38, time.Second),
			func(t *testing.T, m model.LLM) agent.Agent { return toolLoop(t, m, llmagent.PromptCacheOff) }, 1, 39},
		{"writer and critic, short", "anthropic", keeping(0, 20*time.Second), short, 1, 12},
		{"writer and critic, short", "openai", keeping(0, 20*time.Second), short, 1, 12},
		{"writer and critic, 1500 words of rules", "anthropic", keeping(0, 20*time.Second),
			func(t *testing.T, m model.LLM) agent.Agent { return writerAndCritic(t, m, 1500) }, 0.45, 12},
	} {
		k := c.keeper
		th := newThread(t, c.root(t, open(t, k, c.provider)))
		th.must("go")
		sum, requests := k.Tokens(), len(k.Requests())
		t.Logf("%-40s %-10s %d requests, cost %.2f, floor %.2f, %.0f%% of input from the cache, %d writes unread", c.name,
			c.provider, requests, k.Cost(), sum.Floor()/float64(sum.Input), 100*sum.Share(), k.Unread())
		if requests != c.requests || k.Cost() > c.most {
			t.Errorf("%s, %s: %d requests, cost %.3f, want at most %v", c.name, c.provider, requests, k.Cost(), c.most)
		}
		if n := k.Unread(); n > 1 { // the last one of the run
			t.Errorf("%s, %s: %d writes that nobody has read", c.name, c.provider, n)
		}
	}
}

// inProcess answers requests after a while, without a network.
type inProcess struct {
	http.Handler
	takes time.Duration
}

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(p.takes)
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Result(), nil
}

// Iterations that take ten minutes find what the run has had kept for an hour; in the last one nothing is written.
func TestSlowIterationsAreKeptForAnHour(t *testing.T) {
	for name, most := range map[string]float64{"anthropic": 0.7, "off": 1} {
		synctest.Test(t, func(t *testing.T) {
			k := keeping(0, 0)
			k.Now = time.Now
			m := dial(t, "http://127.0.0.1", "anthropic", &http.Client{Transport: inProcess{k, 10 * time.Minute}})
			cfg := llmagent.Config{Name: "a", Model: m, Instruction: strings.Repeat("Look twice. ", 800),
				Context: llmagent.ContextConfig{Policy: llmagent.ContextIteration}}
			if name == "off" {
				cfg.PromptCache = llmagent.PromptCacheOff
			}
			play(t, session.InMemoryService(), newLoop(t, loopagent.Config{MaxIterations: 12}, newAgent(t, cfg)), 0)
			t.Logf("%s: cost %.2f, %d writes unread, %+v", name, k.Cost(), k.Unread(), k.Tokens())
			if k.Cost() > most || len(k.Wrong()) > 0 || k.Unread() > 1 { // nobody knows yet how slow the first one is
				t.Errorf("%s: cost %.2f, %d writes unread, %q", name, k.Cost(), k.Unread(), k.Wrong())
			}
			if hour := k.Tokens().Hour; (hour > 0) != (name != "off") {
				t.Errorf("%s: %d tokens are written for an hour", name, hour)
			}
		})
	}
}

// resume takes up a run that was cut off.
func resume(t *testing.T, svc session.Service, root agent.Agent, id string) {
	t.Helper()
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: svc, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// distinct returns the requests in their order, those that were sent twice once.
func distinct(k *keeper.Keeper) (list []string) {
	seen := make(map[string]bool)
	for _, r := range k.Requests() {
		if !seen[r.Body] {
			seen[r.Body], list = true, append(list, r.Body)
		}
	}
	return list
}

// A run that is killed and resumed sends, byte for byte, what it would have sent, and costs as much.
func TestResumedRunSendsTheSame(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai", "gemini"} {
		whole := keeping(38, time.Second)
		play(t, session.InMemoryService(), toolLoop(t, open(t, whole, provider), ""), 0)
		for cut := 7; cut < 80; cut += 24 {
			killed, svc := keeping(38, time.Second), session.InMemoryService()
			m := open(t, killed, provider)
			id, _ := play(t, svc, toolLoop(t, m, ""), cut)
			resume(t, svc, toolLoop(t, m, ""), id)
			want, got := distinct(whole), distinct(killed)
			if !slices.Equal(want, got) {
				t.Errorf("%s, cut at %d: %d requests, and %d when resumed, of which not all are the same", provider, cut, len(want), len(got))
			}
			if paid, want := killed.Tokens().Paid(), whole.Tokens().Paid(); paid > 1.02*want {
				t.Errorf("%s, cut at %d: costs %.0f, not %.0f", provider, cut, paid, want)
			}
		}
	}
}

// shuffled is a toolset whose tools come in another order each time.
type shuffled []tool.Tool

func (shuffled) Name() string { return "shuffled" }

func (s shuffled) Tools(agent.ReadonlyContext) ([]tool.Tool, error) {
	list := slices.Clone(s)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list, nil
}

// randomAgent is an agent, and the least that its requests have in common.
type randomAgent struct {
	llmagent.Config
	*recorder
	rules string // that stay
	draft bool   // it is in the system instruction
}

// randomAgents draws agents in loops. Each call draws the same from the same seed.
func randomAgents(t *testing.T, seed uint64, m model.LLM) (root agent.Agent, all []*randomAgent) {
	rnd := rand.New(rand.NewPCG(seed, 27))
	var steps []agent.Agent
	for i := range 1 + rnd.IntN(3) {
		a := &randomAgent{recorder: record(m), rules: strings.Repeat(fmt.Sprintf("Look %d times. ", i), 300+rnd.IntN(400))}
		a.Config = llmagent.Config{Name: fmt.Sprintf("a%d", i), Model: a.recorder, OutputKey: "draft", FixedKeys: []string{"topic"},
			Context: llmagent.ContextConfig{Policy: []llmagent.ContextPolicy{llmagent.ContextFull, llmagent.ContextIteration,
				llmagent.ContextNone}[rnd.IntN(3)]}}
		if rnd.IntN(3) > 0 {
			a.Toolsets = []tool.Toolset{shuffled{answering(t, "look", "it is there"), answering(t, "hear", "nothing"),
				answering(t, "ask", "nobody"), answering(t, "wait", "for long")}}
		}
		switch rnd.IntN(3) {
		case 0:
			a.Instruction = a.rules
		case 1:
			a.Instruction = "About {{topic}}. " + a.rules
		default:
			a.StaticInstruction = a.rules
		}
		if rnd.IntN(2) == 0 {
			a.Instruction += "Better than {{draft?}}."
			a.draft = a.StaticInstruction == ""
		}
		steps, all = append(steps, newAgent(t, a.Config)), append(all, a)
	}
	if rnd.IntN(3) == 0 {
		inner, err := loopagent.New(loopagent.Config{MaxIterations: 2, AgentConfig: agent.Config{Name: "inner", SubAgents: steps}})
		if err != nil {
			t.Fatal(err)
		}
		steps = []agent.Agent{inner}
	}
	return newLoop(t, loopagent.Config{MaxIterations: uint(1 + rnd.IntN(4))}, steps...), all
}

// moody is a provider whose model calls a tool or says something, as the request has it.
func moody() *keeper.Keeper {
	return &keeper.Keeper{Step: time.Second, Say: func(r keeper.Request) keeper.Answer {
		sum := sha256.Sum256([]byte(r.Body))
		if name := []string{"look", "hear", "ask", "wait"}[sum[0]%4]; sum[1]%2 == 0 && strings.Contains(r.Body, `"`+name+`"`) {
			return keeper.Answer{Call: name, Arguments: "{}"}
		}
		return keeper.Answer{Text: something(r)}
	}}
}

// Random agents: two requests of one that follow each other differ only behind the longest beginning that they could
// share: the tools and what stays in the run; the whole system if nothing in it changes; and the conversation, if it
// goes on.
func TestRequestsShareWhatTheyCan(t *testing.T) {
	provider := []string{"anthropic", "openai", "gemini"}
	turns := 0
	for seed := range longtest.N[uint64](60, 1000) {
		k, steady := moody(), seed%2 == 0
		if steady {
			k = keeping(int(seed/2%4), time.Second)
		}
		root, all := randomAgents(t, seed, open(t, k, provider[seed%3]))
		newThread(t, root).must("go", runner.WithStateDelta(map[string]any{"topic": "cats"}))
		for _, a := range all {
			for i := range len(a.requests) - 1 {
				one, next := a.requests[i], a.requests[i+1]
				if asJSON(t, one.Config.Tools) != asJSON(t, next.Config.Tools) {
					t.Errorf("seed %d, %s: the tools of request %d and the next differ", seed, a.Config.Name, i+1)
				}
				texts := [2]string{one.Config.SystemInstruction.Parts[0].Text, next.Config.SystemInstruction.Parts[0].Text}
				if shared := keeper.Common(texts[0], texts[1]); shared < len(a.rules) || !a.draft && texts[0] != texts[1] {
					t.Errorf("seed %d, %s: request %d and the next share %d bytes of the system, and the rules have %d", seed,
						a.Config.Name, i+1, shared, len(a.rules))
				}
				stays := one.Contents[:len(one.Contents)-a.hints[i].Fresh]
				turn := next.Contents[len(next.Contents)-1-a.hints[i+1].Fresh].Parts[0].FunctionResponse != nil
				if !turn && a.Context.Policy != llmagent.ContextFull {
					continue
				}
				if turns++; len(next.Contents) < len(stays) || asJSON(t, stays) != asJSON(t, next.Contents[:len(stays)]) {
					t.Errorf("seed %d, %s: request %d has %d contents, %d of them fresh, and the next does not begin with them", seed,
						a.Config.Name, i+1, len(one.Contents), a.hints[i].Fresh)
				}
			}
		}
		// In its first step, an agent with tools expects another turn, and may be wrong. What the last one writes is lost.
		n, requests := k.Unread(), len(k.Requests())
		if n > 2*len(all) && steady || k.Cost() > 1.25 || k.Cost() > 1 && steady && requests > 3*len(all) {
			t.Errorf("seed %d: %d requests cost %.2f, %d writes that nobody has read", seed, requests, k.Cost(), n)
		}
	}
	if turns < 50 {
		t.Errorf("%d requests go on with a conversation: the cases are too tame", turns)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// firstDifference shows where two requests begin to differ.
func firstDifference(want, got []string, i int) string {
	if i >= min(len(want), len(got)) {
		return "there is none"
	}
	from := max(0, keeper.Common(want[i], got[i])-60)
	return fmt.Sprintf("\n%.150s\n%.150s", want[i][from:], got[i][from:])
}

// Random agents, cut off at a random event and resumed: the run sends, byte for byte, what it would have sent.
func TestResumedRandomRunSendsTheSame(t *testing.T) {
	provider := []string{"anthropic", "openai", "gemini"}
	for seed := range longtest.N[uint64](30, 500) {
		whole, killed, svc := moody(), moody(), session.InMemoryService()
		root, _ := randomAgents(t, seed, open(t, whole, provider[seed%3]))
		_, events := play(t, session.InMemoryService(), root, 0)
		m := open(t, killed, provider[seed%3])
		root, _ = randomAgents(t, seed, m)
		cut := 3 + rand.New(rand.NewPCG(seed, 28)).IntN(max(1, events-8))
		id, _ := play(t, svc, root, cut)
		root, _ = randomAgents(t, seed, m)
		resume(t, svc, root, id)
		want, got := distinct(whole), distinct(killed)
		for i := range max(len(want), len(got)) {
			if i >= min(len(want), len(got)) || want[i] != got[i] {
				t.Errorf("seed %d, cut at %d of %d: the resumed run sends %d requests, not %d, and number %d is another: %s", seed, cut,
					events, len(got), len(want), i+1, firstDifference(want, got, i))
				break
			}
		}
	}
}

// StaticInstruction is sent first, and Instruction behind the conversation.
func TestStaticInstruction(t *testing.T) {
	rec := record(script(t, calls("look"), says("done")))
	th := newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, StaticInstruction: "Rules {{x}}.", Instruction: "Now {{x}}.",
		Tools: []tool.Tool{answering(t, "look", "it")}}))
	th.must("go", runner.WithStateDelta(map[string]any{"x": 1}))
	for i, want := range [][]string{{"user: go", "user: Now 1."}, nil} {
		if !strings.HasPrefix(rec.system(i), "Rules {{x}}.\n\n") || strings.Contains(rec.system(i), "Now") {
			t.Errorf("system %q", rec.system(i))
		}
		heard := rec.heard(i)
		if want != nil && !slices.Equal(heard, want) || !strings.Contains(heard[len(heard)-1], "Now 1.") {
			t.Errorf("request %d has %q", i+1, heard)
		}
	}
	if c := rec.hints[1]; c == nil || c.Fresh != 1 || !c.Next {
		t.Errorf("got the hint %+v", c)
	}
}

// LOOP 23: random agents spend no more than their budget of cost, even if it costs much more to write into a cache than
// to send input.
func TestBudgetHoldsWithCacheWrites(t *testing.T) {
	spent, wrote := 0, 0 // runs
	for seed := range longtest.N[uint64](40, 500) {
		rnd := rand.New(rand.NewPCG(seed, 23))
		k := moody()
		if seed%2 == 0 {
			k = keeping(int(seed/2%8), time.Second)
		}
		root, _ := randomAgents(t, seed, open(t, k, "anthropic"))
		limit := 0.15 * rnd.Float64()
		s := newSpender(t, budget.Limits{Cost: &limit}, root)
		s.cfg.Prices = budget.Prices{"claude-sonnet-4-5": {Input: 3, Output: 15, CachedInput: 0.3, CacheWrite: 3 + 9*rnd.Float64()}}
		_, err := s.ask(t.Context(), "go")
		if err != nil && !errors.Is(err, budget.ErrExceeded) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		u := s.budget.Used()
		if u.Calls == 0 {
			continue
		}
		wrote += int(min(1, u.CacheWriteTokens))
		if *u.Cost > limit/2 {
			spent++
		}
		if *u.Cost > limit {
			t.Errorf("seed %d: used %+v, cost %v, more than %v", seed, u, *u.Cost, limit)
		}
		if sum := k.Tokens(); int64(sum.Write) != u.CacheWriteTokens || int64(sum.Read) != u.CachedTokens {
			t.Errorf("seed %d: booked %+v, and the provider counts %+v", seed, u, sum)
		}
	}
	if spent < 5 || wrote < 5 {
		t.Errorf("%d budgets were more than half spent, %d runs wrote: the cases are too tame", spent, wrote)
	}
}
