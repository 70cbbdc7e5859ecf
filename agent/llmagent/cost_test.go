// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/openai"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// keeper is a provider that keeps prompts by the documented rules, and counts what input costs. Its model is
// scripted: it calls the tool until there are enough results in the conversation, and then says something new.
// A token is four bytes. The rules:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching (breakpoints, at most four; minimum 1024
// for Claude Sonnet 4.5; 20 blocks back; five minutes from the last use, or an hour; prices 1.25, 2 and 0.1) and
// https://platform.openai.com/docs/guides/prompt-caching (1024 tokens, then steps of 128; here for five minutes,
// at a price of 0.1).
type keeper struct {
	step  time.Duration // between two requests
	tools int           // calls of a tool in a conversation

	mu     sync.Mutex
	now    time.Duration
	kept   map[[32]byte]*entry
	bodies []string
	said   int

	total, read, write, hour int // tokens
}

type entry struct {
	until, life time.Duration
	written     int // tokens that were paid for
	by          int // the number of the request
	used        bool
}

const minimum = 1024

func tokens(bytes int) int { return bytes / 4 }

// cost is that of the input, against the same input without a cache.
func (k *keeper) cost() float64 { return k.paid() / float64(k.total) }

func (k *keeper) paid() float64 {
	return float64(k.total-k.read-k.write-k.hour) + 0.1*float64(k.read) + 1.25*float64(k.write) + 2*float64(k.hour)
}

// unread counts the requests of whose writes something has not been read.
func (k *keeper) unread() int {
	requests := make(map[int]bool)
	for _, e := range k.kept {
		if !e.used && e.written > 0 {
			requests[e.by] = true
		}
	}
	return len(requests)
}

// use returns whether a beginning is kept, and keeps it for longer.
func (k *keeper) use(sum [32]byte) bool {
	e := k.kept[sum]
	if e == nil || e.until < k.now {
		return false
	}
	e.until, e.used = k.now+e.life, true
	return true
}

// blocks are the blocks of a request in their order, and the lives that are asked for behind some of them.
func blocks(t *testing.T, body []byte) (texts []string, lives []time.Duration) {
	var in struct {
		Tools, System []map[string]any
		Messages      []struct {
			Role    string
			Content []map[string]any
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Error(err)
	}
	add := func(b map[string]any, role string) {
		life := time.Duration(0)
		if c, ok := b["cache_control"].(map[string]any); ok {
			if life = 5 * time.Minute; c["ttl"] == "1h" {
				life = time.Hour
			}
			delete(b, "cache_control")
		}
		text, _ := json.Marshal(b)
		texts, lives = append(texts, role+string(text)), append(lives, life)
	}
	for _, b := range in.Tools {
		add(b, "tool")
	}
	for _, b := range in.System {
		add(b, "system")
	}
	for _, m := range in.Messages {
		for _, b := range m.Content {
			add(b, m.Role)
		}
	}
	return texts, lives
}

// anthropic counts a request by Anthropic's rules.
func (k *keeper) anthropic(t *testing.T, body []byte) (total, read, write, hour int) {
	texts, lives := blocks(t, body)
	sums, upTo, marks := make([][32]byte, len(texts)), make([]int, len(texts)), 0
	h, n := sha256.New(), 0
	for i, text := range texts {
		h.Write([]byte(text))
		n += len(text)
		sums[i], upTo[i] = [32]byte(h.Sum(nil)), tokens(n)
		if lives[i] > 0 {
			if marks++; upTo[i] < minimum {
				t.Errorf("a breakpoint after %d tokens", upTo[i])
			}
		}
	}
	if marks > 4 {
		t.Errorf("%d breakpoints", marks)
	}
	hit := -1
	for i := range slices.Backward(texts) {
		for j := i; lives[i] > 0 && j >= max(0, i-20) && hit < 0; j-- {
			if k.use(sums[j]) {
				hit, read = j, upTo[j]
			}
		}
	}
	for i := range hit { // what was kept before is part of what is read
		k.use(sums[i])
	}
	from := read
	for i, life := range lives {
		if life == 0 || i <= hit {
			continue
		}
		k.kept[sums[i]] = &entry{until: k.now + life, life: life, written: upTo[i] - from, by: len(k.bodies)}
		if life == time.Hour {
			hour += upTo[i] - from
		} else {
			write += upTo[i] - from
		}
		from = upTo[i]
	}
	return tokens(n), read, write, hour
}

// openAI counts a request by OpenAI's rules.
func (k *keeper) openAI(t *testing.T, body []byte) (total, read int) {
	var in struct {
		Tools, Messages []json.RawMessage
		Key             string `json:"prompt_cache_key"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Key == "" {
		t.Errorf("%v, key %q", err, in.Key)
	}
	var text []byte
	for _, part := range append(in.Tools, in.Messages...) {
		text = append(text, part...)
	}
	for n := minimum * 4; n <= len(text); n += 128 * 4 {
		sum := sha256.Sum256(append([]byte(in.Key), text[:n]...))
		if k.use(sum) {
			read = tokens(n)
		} else {
			k.kept[sum] = &entry{until: k.now + 5*time.Minute, life: 5 * time.Minute}
		}
	}
	return tokens(len(text)), read
}

func (k *keeper) serve(t *testing.T) string {
	k.kept = make(map[[32]byte]*entry)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		k.bodies, k.now = append(k.bodies, string(body)), k.now+k.step
		claude := strings.HasSuffix(r.URL.Path, "/messages")
		calls := bytes.Count(body, []byte(`"tool_use_id"`)) + bytes.Count(body, []byte(`"tool_call_id"`))
		k.said++
		text := fmt.Sprintf("%d: %s", k.said, strings.Repeat("something new. ", 40))
		id, arguments := fmt.Sprintf("toolu_%d", calls+1), fmt.Sprintf(`{"n":%d}`, calls)
		if claude {
			total, read, write, hour := k.anthropic(t, body)
			k.total, k.read, k.write, k.hour = k.total+total, k.read+read, k.write+write, k.hour+hour
			content := fmt.Sprintf(`{"type":"text","text":%q}`, text)
			if calls < k.tools {
				content = fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"look","input":%s}`, id, arguments)
			}
			fmt.Fprintf(w, `{"model":"m","content":[%s],"stop_reason":"end_turn","usage":{"input_tokens":%d,"output_tokens":9,`+
				`"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"cache_creation":{"ephemeral_1h_input_tokens":%d}}}`,
				content, total-read-write-hour, read, write+hour, hour)
			return
		}
		total, read := k.openAI(t, body)
		k.total, k.read = k.total+total, k.read+read
		message := fmt.Sprintf(`{"content":%q}`, text)
		if calls < k.tools {
			message = fmt.Sprintf(`{"tool_calls":[{"id":%q,"type":"function","function":{"name":"look","arguments":%q}}]}`, id, arguments)
		}
		fmt.Fprintf(w, `{"model":"m","choices":[{"message":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,`+
			`"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":%d}}}`, message, total, read)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

func (k *keeper) model(t *testing.T, provider string) model.LLM {
	t.Helper()
	url := k.serve(t)
	if provider == "openai" {
		m, err := openai.NewModel("gpt-5-mini", openai.Config{BaseURL: url, APIKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m, err := anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: url, APIKey: "k"})
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

// What loops cost, against the same input without a cache; make bench-cost prints it.
func TestCostOfLoops(t *testing.T) {
	for _, c := range []struct {
		name, provider string
		keeper         *keeper
		root           func(*testing.T, model.LLM) agent.Agent
		most           float64
		requests       int
	}{
		{"tool loop", "anthropic", &keeper{tools: 38, step: time.Second},
			func(t *testing.T, m model.LLM) agent.Agent { return toolLoop(t, m, "") }, 0.22, 39},
		{"tool loop", "openai", &keeper{tools: 38, step: time.Second},
			func(t *testing.T, m model.LLM) agent.Agent { return toolLoop(t, m, "") }, 0.18, 39},
		{"tool loop, prompt_cache: off", "anthropic", &keeper{tools: 38, step: time.Second},
			func(t *testing.T, m model.LLM) agent.Agent { return toolLoop(t, m, llmagent.PromptCacheOff) }, 1, 39},
		{"writer and critic, short", "anthropic", &keeper{step: 20 * time.Second},
			func(t *testing.T, m model.LLM) agent.Agent { return writerAndCritic(t, m, 20) }, 1, 12},
		{"writer and critic, short", "openai", &keeper{step: 20 * time.Second},
			func(t *testing.T, m model.LLM) agent.Agent { return writerAndCritic(t, m, 20) }, 1, 12},
		{"writer and critic, 1500 words of rules", "anthropic", &keeper{step: 20 * time.Second},
			func(t *testing.T, m model.LLM) agent.Agent { return writerAndCritic(t, m, 1500) }, 0.45, 12},
	} {
		k := c.keeper
		th := newThread(t, c.root(t, k.model(t, c.provider)))
		th.must("go")
		t.Logf("%-40s %-10s %d requests, cost %.2f, %d%% of input from the cache, %d writes unread", c.name, c.provider,
			len(k.bodies), k.cost(), 100*k.read/k.total, k.unread())
		if len(k.bodies) != c.requests || k.cost() > c.most {
			t.Errorf("%s, %s: %d requests, cost %.3f, want at most %v", c.name, c.provider, len(k.bodies), k.cost(), c.most)
		}
		if n := k.unread(); n > 1 { // the last one of the run
			t.Errorf("%s, %s: %d writes that nobody has read", c.name, c.provider, n)
		}
	}
}

// A run that is killed and resumed sends, byte for byte, what it would have sent, and costs as much.
func TestResumedRunSendsTheSame(t *testing.T) {
	for _, provider := range []string{"anthropic", "openai"} {
		whole := &keeper{tools: 38, step: time.Second}
		play(t, session.InMemoryService(), toolLoop(t, whole.model(t, provider), ""), 0)
		for cut := 7; cut < 80; cut += 24 {
			killed := &keeper{tools: 38, step: time.Second}
			m, svc := killed.model(t, provider), session.InMemoryService()
			id, _ := play(t, svc, toolLoop(t, m, ""), cut)
			r, err := runner.New(runner.Config{AppName: "app", Agent: toolLoop(t, m, ""), SessionService: svc, Durable: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
				if err != nil {
					t.Fatal(err)
				}
			}
			want, got := distinct(whole.bodies), distinct(killed.bodies)
			if !maps.Equal(want, got) {
				t.Errorf("%s, cut at %d: %d requests, and %d when resumed, of which not all are the same", provider, cut, len(want), len(got))
			}
			if killed.paid() > 1.02*whole.paid() {
				t.Errorf("%s, cut at %d: costs %.0f, not %.0f", provider, cut, killed.paid(), whole.paid())
			}
		}
	}
}

func distinct(list []string) map[string]bool {
	all := make(map[string]bool)
	for _, s := range list {
		all[s] = true
	}
	return all
}

// Random agents: the requests of one agent differ only behind the longest beginning that they could share. At
// least that is what stays in the run; and what nobody reads is not written.
func TestRequestsShareWhatTheyCan(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 27))
		k := &keeper{step: time.Second, tools: rnd.IntN(4)}
		rules := strings.Repeat("Look twice. ", 400+rnd.IntN(400))
		cfg := llmagent.Config{Name: "a", Model: k.model(t, "anthropic"), OutputKey: "draft", FixedKeys: []string{"topic"},
			Context: llmagent.ContextConfig{Policy: []llmagent.ContextPolicy{llmagent.ContextFull, llmagent.ContextIteration,
				llmagent.ContextNone}[rnd.IntN(3)]}}
		if rnd.IntN(3) > 0 {
			cfg.Tools = []tool.Tool{answering(t, "look", "it is there")}
		} else {
			k.tools = 0
		}
		draft := rnd.IntN(2) == 0
		switch rnd.IntN(3) {
		case 0:
			cfg.Instruction = rules
		case 1:
			cfg.Instruction = "About {{topic}}. " + rules
		default:
			cfg.StaticInstruction = rules
		}
		if draft {
			cfg.Instruction += "Better than {{draft?}}."
		}
		iterations := uint(1 + rnd.IntN(4))
		th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: iterations}, newAgent(t, cfg)))
		th.must("go", runner.WithStateDelta(map[string]any{"topic": "cats"}))
		for i := range k.bodies[1:] {
			one, _ := blocks(t, []byte(k.bodies[i]))
			next, _ := blocks(t, []byte(k.bodies[i+1]))
			a, b := strings.Join(one, ""), strings.Join(next, "")
			if shared := common(a, b); shared < len(rules) {
				t.Errorf("seed %d: requests %d and %d share only %d bytes, and the rules have %d", seed, i+1, i+2, shared, len(rules))
			}
		}
		about := fmt.Sprintf("%d tool calls, %d iterations, draft %v, context %q, static %v, tools %d", k.tools, iterations,
			draft, cfg.Context.Policy, cfg.StaticInstruction != "", len(cfg.Tools))
		if n := k.unread(); n > 2 { // the first guess of an agent, and what the last request writes
			t.Errorf("seed %d: %d of %d writes that nobody has read, %s", seed, n, len(k.kept), about)
		}
		if k.cost() > 1.05 && len(k.bodies) > 1 {
			t.Errorf("seed %d: %d requests cost %.2f, %s", seed, len(k.bodies), k.cost(), about)
		}
	}
}

func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
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
	if c := rec.requests[1].Cache; c == nil || c.Fresh != 1 || !c.Next {
		t.Errorf("got the hint %+v", c)
	}
}
