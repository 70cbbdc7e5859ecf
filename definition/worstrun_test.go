// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// LOOP 34, F9, F10: whatever a model says, and however it fails, no run of a
// definition comes to more than its worst case: no agent runs more often or asks
// more, and no run uses more tokens, costs more or takes longer.
func TestRunsNeverExceedTheWorstCase(t *testing.T) {
	t.Parallel()
	seeds, tight := longtest.N(30, 300), map[string]int{}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			g := &generator{rnd: rand.New(rand.NewPCG(seed, 34))}
			text := g.definition()
			d, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
			given := g.given(d)
			got := g.run(t, d, given)
			if got.check(t, d.Worst(given), tight); t.Failed() {
				t.Fatalf("seed %d, with %s:\n%s", seed, limits(given), text)
			}
			if given.MaxIterations != nil || given.Timeout != nil || given.Budget != nil || given.MaxModelCalls != 0 {
				tight["limits from outside"]++
			}
		})
	}
	// A bound that nothing comes near would say little.
	t.Logf("of %d runs as much as the worst case: %v", seeds, tight)
	for _, what := range []string{"calls", "tokens", "time", "limits from outside"} {
		if longtest.On() && tight[what] < 3 {
			t.Errorf("only %d runs came to the bound of %s", tight[what], what)
		}
	}
}

// What a request and an answer of the scripts have.
const promptTokens, answerTokens = 4, 6

// spent is what a run came to.
type spent struct {
	model.LLM
	mu     sync.Mutex
	calls  int
	by     map[string]int // by agent
	runs   map[string]int
	tokens int64
	took   time.Duration
}

var internalName = regexp.MustCompile(`Your internal name is "([^"]*)"`)

func (s *spent) GenerateContent(ctx context.Context, req *model.LLMRequest, stream bool) iter.Seq2[*model.LLMResponse, error] {
	s.mu.Lock()
	s.calls++
	if req.Config != nil && req.Config.SystemInstruction != nil {
		for _, p := range req.Config.SystemInstruction.Parts {
			if m := internalName.FindStringSubmatch(p.Text); m != nil {
				s.by[m[1]]++
			}
		}
	}
	s.mu.Unlock()
	return func(yield func(*model.LLMResponse, error) bool) {
		for resp, err := range s.LLM.GenerateContent(ctx, req, stream) {
			if err == nil && resp.UsageMetadata != nil {
				s.mu.Lock()
				s.tokens += int64(resp.UsageMetadata.TotalTokenCount)
				s.mu.Unlock()
			}
			if !yield(resp, err) {
				return
			}
		}
	}
}

// given is what a run is given from outside, if anything: what no run can have is
// left out.
func (g *generator) given(d *definition.Definition) definition.Assumed {
	given := definition.Assumed{InputTokens: promptTokens, OutputTokens: answerTokens}
	if g.chance(2) {
		return given
	}
	if g.chance(2) {
		given.MaxIterations = new(uint(1 + g.rnd.IntN(6)))
	}
	if g.chance(2) {
		given.Timeout = new(time.Duration(1+g.rnd.IntN(60)) * time.Second)
	}
	if d.Allows(given.Limits) != nil {
		given.MaxIterations, given.Timeout = nil, nil
	}
	switch g.rnd.IntN(4) {
	case 0:
		given.Budget = &budget.Limits{Calls: 1 + g.rnd.Int64N(20)}
	case 1:
		given.Budget = &budget.Limits{Tokens: 20 + g.rnd.Int64N(20000)}
	case 2:
		given.MaxModelCalls = 1 + g.rnd.IntN(20)
	}
	return given
}

// limits are those of an assumption, for people.
func limits(given definition.Assumed) string {
	text, err := json.Marshal(given)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// run runs a definition once. How it ends is no matter here.
func (g *generator) run(t *testing.T, d *definition.Definition, given definition.Assumed) *spent {
	t.Helper()
	llm, err := scripted.New(g.script(d, given))
	if err != nil {
		t.Fatal(err)
	}
	s := &spent{LLM: llm, by: make(map[string]int), runs: make(map[string]int)}
	root, err := d.Build(t.Context(), definition.BuildConfig{DefaultModel: "m",
		Model:  func(context.Context, string) (model.LLM, error) { return s, nil },
		Limits: definition.Limits{MaxIterations: given.MaxIterations, Timeout: given.Timeout}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "worst", Agent: root, SessionService: session.InMemoryService(), AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	msg := genai.NewContentFromText("go", genai.RoleUser)
	for ev, err := range r.Run(t.Context(), "u", "s", msg, d.RunConfig(given.Limits)) {
		if err != nil {
			break
		}
		if ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted {
			name := string(ev.Address[strings.LastIndex(string(ev.Address), "/")+1:])
			name, _, _ = strings.Cut(name, "#")
			s.runs[name]++
		}
	}
	s.took = time.Since(began)
	return s
}

// check compares a run with the worst case and counts where it came to that.
func (s *spent) check(t *testing.T, worst *definition.WorstCase, tight map[string]int) {
	t.Helper()
	within := func(what string, got float64, most definition.Bound) {
		if got > float64(most) {
			t.Errorf("%s: %v, and at most %v were expected", what, got, most)
		}
		if got > 0 && got == float64(most) {
			tight[what]++
		}
	}
	total := worst.Total
	within("calls", float64(s.calls), total.Calls)
	within("tokens", float64(s.tokens), total.Tokens)
	within("time", s.took.Seconds(), total.Seconds)
	if cost := float64(s.tokens) * 2 / 1e6; cost > float64(total.Cost)+1e-9 {
		t.Errorf("it cost up to %v, and at most %v was expected", cost, total.Cost)
	}
	for _, a := range worst.Agents {
		name := a.Agent.Name
		if n := s.runs[name]; float64(n) > float64(a.Runs) {
			t.Errorf("%s ran %d times, and at most %v were expected", name, n, a.Runs)
		}
		if n := s.by[name]; float64(n) > float64(a.Calls) {
			t.Errorf("%s asked %d times, and at most %v were expected", name, n, a.Calls)
		}
	}
}

// script makes answers for every agent that asks a model: words, JSON that fits
// and that does not, exits, failures that may pass and that do not, delays.
func (g *generator) script(d *definition.Definition, given definition.Assumed) scripted.Script {
	s := scripted.Script{RepeatLast: true}
	bounded := !d.Worst(given).Total.Seconds.Unbounded()
	for a := range d.Root.All {
		if a.LLM == nil {
			continue
		}
		mood := g.rnd.IntN(4) // some fail a lot
		for range 30 {
			ans := scripted.Answer{Agent: a.Name, Text: fmt.Sprint(g.rnd.IntN(10)), Usage: &scripted.Usage{Prompt: promptTokens, Output: answerTokens}}
			if a.LLM.OutputSchema != nil && g.chance(2) {
				ans.Text, ans.JSON = "", map[string]any{"mark": g.rnd.IntN(10)}
			}
			if g.chance(3) {
				ans.Delay = time.Duration(g.rnd.IntN(9000)) * time.Millisecond
			}
			switch n := g.rnd.IntN(20); {
			case mood == 0 || n == 0:
				ans = scripted.Answer{Agent: a.Name, Delay: ans.Delay, Error: &scripted.Failure{Status: 503}}
			case n == 1:
				ans = scripted.Answer{Agent: a.Name, Error: &scripted.Failure{Status: 400}}
			case n == 2:
				ans = scripted.Answer{Agent: a.Name, Hang: bounded, Text: "…"} // nothing else would end it
			case n == 3 && a.CanExitLoop:
				ans.Text, ans.JSON, ans.Calls = "", nil, []scripted.Call{{Name: "exit_loop", Args: map[string]any{"reason": "enough"}}}
			}
			s.Answers = append(s.Answers, ans)
		}
	}
	return s
}
