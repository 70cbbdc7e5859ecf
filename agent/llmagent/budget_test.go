// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
)

// spender is a thread under a budget, with the budget for a look at it.
type spender struct {
	*thread
	budget *budget.Meter
}

func newSpender(t testing.TB, l budget.Limits, root agent.Agent) *spender {
	t.Helper()
	s := new(spender)
	top, err := agent.New(agent.Config{
		Name: "top", SubAgents: []agent.Agent{root}, Run: root.Run,
		BeforeAgentCallbacks: []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			s.budget = drive.At(ctx).Budget()
			return nil, nil
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.thread = newThread(t, top)
	s.cfg.Budget, s.cfg.Prices = &l, budget.Prices{"scripted": {Input: 10, Output: 100}}
	return s
}

// spend runs until the budget ends it, and returns the error.
func (s *spender) spend() error {
	s.Helper()
	_, err := s.ask(s.Context(), "Hello")
	if !errors.Is(err, budget.ErrExceeded) {
		s.Fatalf("got %v, want a budget's error", err)
	}
	return err
}

// insistent asks a model again and again, for each answer calls a tool.
func insistent(t testing.TB, m model.LLM, cfg llmagent.Config) agent.Agent {
	t.Helper()
	cfg.Name, cfg.Model, cfg.Tools = "insistent", m, []tool.Tool{answering(t, "look", "nothing new")}
	return newAgent(t, cfg)
}

// looking is a model that calls a tool for ever, and reports what it uses.
func looking(t testing.TB, u *scripted.Usage) *recorder {
	t.Helper()
	a := calls("look")
	a.Repeat, a.Usage = true, u
	return record(script(t, a))
}

// F10, LOOP 23: an agent stops before the call that would exceed a limit.
func TestAgentStopsBeforeItsBudgetIsExceeded(t *testing.T) {
	bound := &genai.GenerateContentConfig{MaxOutputTokens: 500}
	for _, tt := range []struct {
		name  string
		limit budget.Limits
		calls int64
		spent string
	}{
		{"calls", budget.Limits{Calls: 3}, 3, "budget of 3 calls is spent"},
		{"tokens", budget.Limits{Tokens: 2050}, 4, "budget of 2050 tokens is spent (1680 used"},
		{"cost", budget.Limits{Cost: new(0.05)}, 3, "budget of 0.05 (cost) is spent (0.042 used"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := looking(t, &scripted.Usage{Prompt: 300, Output: 100, Thoughts: 20})
			if tt.name == "cost" {
				m = looking(t, &scripted.Usage{Prompt: 200, Output: 100, Thoughts: 20})
			}
			s := newSpender(t, tt.limit, insistent(t, m, llmagent.Config{GenerateContentConfig: bound}))
			if err := s.spend(); !strings.Contains(err.Error(), tt.spent) {
				t.Errorf("got %v", err)
			}
			u := s.budget.Used()
			if u.Calls != tt.calls || int64(len(m.requests)) != tt.calls {
				t.Errorf("%d calls were counted and %d made, want %d", u.Calls, len(m.requests), tt.calls)
			}
			if tt.limit.Tokens > 0 && u.Tokens() > tt.limit.Tokens || tt.limit.Cost != nil && *u.Cost > *tt.limit.Cost {
				t.Errorf("used %+v, cost %v", u, *u.Cost)
			}
		})
	}
}

// F10, LOOP 23: what is used is what the provider reports.
func TestUsageIsWhatTheProviderReports(t *testing.T) {
	for _, mode := range []agent.StreamingMode{agent.StreamingModeNone, agent.StreamingModeSSE} {
		m := script(t, scripted.Answer{Text: strings.Repeat("word ", 50), Usage: &scripted.Usage{Prompt: 100, Cached: 40, Output: 60, Thoughts: 7}})
		s := newSpender(t, budget.Limits{}, newAgent(t, llmagent.Config{Name: "a", Model: m}))
		s.cfg.StreamingMode = mode
		s.must("Hello")
		want := budget.Usage{Calls: 1, InputTokens: 100, CachedTokens: 40, OutputTokens: 67, Cost: new(0.0077)}
		if diff := cmp.Diff(want, s.budget.Used()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

// LOOP 23: where the provider does not report, usage is estimated, and says so:
// with a limit, or for a price.
func TestUsageIsEstimatedWhereNobodyReportsIt(t *testing.T) {
	words := strings.Repeat("word ", 60)
	for name, l := range map[string]budget.Limits{"limited": {Tokens: 100_000}, "priced": {}} {
		s := newSpender(t, l, newAgent(t, llmagent.Config{Name: "a", Model: script(t, says(words)), Instruction: words}))
		s.must("Hello")
		u := s.budget.Used()
		if !u.Estimated || u.InputTokens < 110 || u.InputTokens > 200 || u.OutputTokens != 100 {
			t.Errorf("%s: %+v", name, u)
		}
		if u.Cost == nil || *u.Cost < 0.011 {
			t.Errorf("%s: cost %v", name, u.Cost)
		}
	}
	s := newSpender(t, budget.Limits{}, newAgent(t, llmagent.Config{Name: "a", Model: quick()})) // without a price
	s.must("Hello")
	if diff := cmp.Diff(budget.Usage{Calls: 1, Estimated: true}, s.budget.Used()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// LOOP 23: each attempt is a call. One that the provider refused costs no
// tokens; one that broke off costs what was heard of it.
func TestEachAttemptIsACall(t *testing.T) {
	answer := says("Done.")
	answer.Usage = &scripted.Usage{Prompt: 50, Output: 5}
	broken := says(strings.Repeat("word ", 60))
	broken.Cut = true
	for _, tt := range []struct {
		name   string
		fails  scripted.Answer
		tokens func(budget.Usage) bool
	}{
		{"refused", scripted.Answer{Error: &scripted.Failure{Status: 429}}, func(u budget.Usage) bool { return u.Tokens() == 55 && !u.Estimated }},
		{"broken off", broken, func(u budget.Usage) bool {
			return u.InputTokens > 70 && u.OutputTokens > 30 && u.OutputTokens < 150 && u.Estimated
		}},
	} {
		s := newSpender(t, budget.Limits{Tokens: 100_000}, newAgent(t, llmagent.Config{
			Name: "a", Model: script(t, tt.fails, answer), RequestRetry: llmagent.RequestRetry{Backoff: 1},
		}))
		s.cfg.StreamingMode = agent.StreamingModeSSE
		s.must("Hello")
		if u := s.budget.Used(); u.Calls != 2 || !tt.tokens(u) || u.Cost == nil {
			t.Errorf("%s: %+v", tt.name, u)
		}
	}
}

// LOOP 23: a call that was canceled is booked by what is known of it: its input, and
// of an answer that nobody heard what earlier answers had.
func TestCanceledCallIsBookedByWhatIsKnown(t *testing.T) {
	var cancel context.CancelFunc
	m := fake(func(ctx context.Context, req *model.LLMRequest, _ bool, yield func(*model.LLMResponse, error) bool) {
		if req.Contents[len(req.Contents)-1].Parts[0].Text != "Again" {
			r := response("word")
			r.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 30, CandidatesTokenCount: 200}
			yield(r, nil)
			return
		}
		cancel()
		yield(nil, context.Cause(ctx))
	})
	s := newSpender(t, budget.Limits{Tokens: 100_000}, newAgent(t, llmagent.Config{Name: "a", Model: m}))
	var ctx context.Context
	for _, words := range []string{"Again", "Hello", "Again"} {
		ctx, cancel = context.WithCancel(t.Context())
		_, err := s.ask(ctx, words)
		u := s.budget.Used()
		switch cancel(); {
		case words == "Hello":
			if err != nil || u.Tokens() != 230 || u.Estimated {
				t.Errorf("%v: used %+v", err, u)
			}
			continue
		case !errors.Is(err, context.Canceled):
			t.Fatal(err)
		}
		if u.InputTokens < 20 || u.InputTokens > 60 || !u.Estimated || u.OutputTokens != map[bool]int64{true: 200}[u.OutputTokens > 0] {
			t.Errorf("used %+v", u)
		}
	}
	if u := s.budget.Used(); u.OutputTokens != 200 {
		t.Errorf("used %+v, want as much output as the answer before", u)
	}
}

// LOOP 23: nothing makes up for a call that the budget does not allow: it is not
// tried again, and no callback is asked for another answer.
func TestRefusedCallIsFinal(t *testing.T) {
	asked := 0
	cfg := llmagent.Config{OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{
		func(agent.CallbackContext, *model.LLMRequest, error) (*model.LLMResponse, error) {
			asked++
			return response("never mind"), nil
		},
	}}
	m := looking(t, nil)
	newSpender(t, budget.Limits{Calls: 2}, insistent(t, m, cfg)).spend()
	unpriced := newSpender(t, budget.Limits{Cost: new(10.0)}, insistent(t, m, cfg))
	unpriced.cfg.Prices = budget.Prices{"another": {}}
	_, err := unpriced.ask(t.Context(), "Hello")
	if e, ok := errors.AsType[*budget.UnknownPriceError](err); !ok || e.Model != "scripted" {
		t.Errorf("got %v", err)
	}
	if asked > 0 || len(m.requests) != 2 {
		t.Errorf("%d requests, %d callbacks", len(m.requests), asked)
	}
}

// LOOP 23: an answer is bounded by what remains, down to a least; the config is
// LOOP 23: parallel branches share one budget.
func TestParallelBranchesShareABudget(t *testing.T) {
	m := looking(t, &scripted.Usage{Prompt: 10, Output: 10})
	var subs []agent.Agent
	for i := range 4 {
		subs = append(subs, newAgent(t, llmagent.Config{Name: fmt.Sprint("a", i), Model: m, Tools: []tool.Tool{answering(t, "look", "x")}}))
	}
	root, err := parallelagent.New(parallelagent.Config{AgentConfig: agent.Config{Name: "panel", SubAgents: subs}})
	if err != nil {
		t.Fatal(err)
	}
	s := newSpender(t, budget.Limits{Calls: 10}, root)
	s.spend()
	// The first who finds nothing left cancels the others.
	if n := len(m.requests); n > 10 || int64(n) != s.budget.Used().Calls {
		t.Errorf("%d requests, used %+v", n, s.budget.Used())
	}
	if got := s.budget.Remaining(); *got.Calls != 10-s.budget.Used().Calls {
		t.Errorf("something is still reserved: %d calls of 10 remain", *got.Calls)
	}
}

// LOOP 23: an agent that is a tool shares the budget of who calls it.
func TestAgentToolSharesItsCallersBudget(t *testing.T) {
	helps := calls("helper")
	helps.Calls[0].Args = map[string]any{"request": "help"}
	helps.Agent, helps.Repeat = "caller", true
	m := record(script(t, helps, scripted.Answer{Agent: "helper", Text: "There.", Repeat: true}))
	helper := newAgent(t, llmagent.Config{Name: "helper", Model: m})
	s := newSpender(t, budget.Limits{Calls: 5}, newAgent(t, llmagent.Config{
		Name: "caller", Model: m, Tools: []tool.Tool{agenttool.New(helper, nil)},
	}))
	s.spend()
	asked := make(map[bool]int)
	for i := range m.requests {
		asked[strings.Contains(m.system(i), `"helper"`)]++
	}
	if asked[true] != 2 || asked[false] != 3 || s.budget.Used().Calls != 5 {
		t.Errorf("the helper asked %d times and the caller %d: %+v", asked[true], asked[false], s.budget.Used())
	}
}

// LOOP 23: what a turn under a budget costs does not depend on how many

// A budget that refuses to ask again does not hide why that was needed, and is
// not asked a third time.
func TestBudgetSpentByARetryShowsTheFailure(t *testing.T) {
	m := script(t,
		scripted.Answer{Error: &scripted.Failure{Status: 429, Message: "slow down"}},
		scripted.Answer{Error: &scripted.Failure{Status: 500, Message: "we broke"}}, says("done"))
	s := newSpender(t, budget.Limits{Calls: 2}, newAgent(t, llmagent.Config{
		Name: "a", Model: m, RequestRetry: llmagent.RequestRetry{Attempts: 5, Backoff: 1},
	}))
	err := s.spend()
	if e, ok := errors.AsType[*model.APIError](err); !ok || e.Status != 500 {
		t.Errorf("got %v, want the provider's failure in it", err)
	}
	if _, ok := errors.AsType[*budget.ExceededError](err); !ok || strings.Count(err.Error(), "the last call") != 1 {
		t.Errorf("got %v", err)
	}
}

// named is a model that says whose it is.
type named struct {
	model.LLM
	name, provider string
}

func (n named) Name() string     { return n.name }
func (n named) Provider() string { return n.provider }

// A budget leaves room for what a provider writes into its cache by itself, where it charges for that, also if
// nobody has asked for a cache.
func TestABudgetLeavesRoomForAutomaticCacheWrites(t *testing.T) {
	asked := make(map[string]float64)
	for _, name := range []string{"gpt-5-mini", "gpt-6-luna"} {
		llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{{Text: "never said"}}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := llmagent.New(llmagent.Config{Name: "a", Model: named{llm, name, "openai"}, PromptCache: llmagent.PromptCacheOff,
			Instruction: strings.Repeat("a rule of the house ", 1000)})
		if err != nil {
			t.Fatal(err)
		}
		s := newSpender(t, budget.Limits{Cost: new(0.001)}, a)
		s.cfg.Prices = budget.Prices{name: {Input: 10}}
		e, ok := errors.AsType[*budget.ExceededError](s.spend())
		if !ok {
			t.Fatal("no budget's error")
		}
		asked[name] = e.Asked
	}
	if got := asked["gpt-6-luna"] / asked["gpt-5-mini"]; got < 1.24 || got > 1.26 {
		t.Errorf("asked %v: a ratio of %v", asked, got)
	}
}
