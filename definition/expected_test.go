// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/runner"
)

// till is a provider that keeps how requests begin, and counts. A token is four bytes of text.
type till struct {
	kept                            map[uint64]bool
	seed                            maphash.Seed
	said                            int
	requests, input, cached, writes int64
	answer                          int // tokens
}

// blocksOf are the texts of a request in their order, and which of them end with a breakpoint.
func blocksOf(body []byte) (texts []string, marks []bool) {
	type block struct {
		Text, Name, Description string
		Schema                  json.RawMessage `json:"input_schema"`
		Function                json.RawMessage
		Cache                   any `json:"cache_control"`
	}
	var in struct {
		Tools, System []block
		Messages      []struct{ Content json.RawMessage }
	}
	_ = json.Unmarshal(body, &in)
	for i, b := range in.Tools {
		in.Tools[i].Text = b.Name + b.Description + string(b.Schema) + string(b.Function)
	}
	all := append(in.Tools, in.System...)
	for _, m := range in.Messages {
		var parts []block
		if json.Unmarshal(m.Content, &parts) != nil {
			var text string
			_ = json.Unmarshal(m.Content, &text)
			parts = []block{{Text: text}}
		}
		all = append(all, parts...)
	}
	for _, b := range all {
		texts, marks = append(texts, b.Text), append(marks, b.Cache != nil)
	}
	return texts, marks
}

func (k *till) count(body []byte, asked bool) {
	texts, marks := blocksOf(body)
	sum := func(text string) uint64 { return maphash.String(k.seed, text) }
	all := strings.Join(texts, "\x00")
	read, write, n := 0, 0, 0
	if asked {
		var keep []uint64
		for i := range texts {
			if n += len(texts[i]); marks[i] {
				size := n
				for j := i; j >= max(0, i-20); j-- {
					if k.kept[sum(strings.Join(texts[:j+1], "\x00"))] {
						read = max(read, size/4)
						break
					}
					size -= len(texts[j])
				}
				keep, write = append(keep, sum(strings.Join(texts[:i+1], "\x00"))), n/4
			}
		}
		for _, at := range keep {
			k.kept[at] = true
		}
		write = max(0, write-read)
	} else {
		n = len(all) - len(texts) + 1
		for to := 4 * 1024; to <= len(all); to += 4 * 128 {
			if at := sum(all[:to]); k.kept[at] {
				read = to / 4
			} else {
				k.kept[at] = true
			}
		}
		if n >= 4*1024 && strings.Contains(string(body), `"model":"gpt-6`) {
			write = n/4 - read
		}
	}
	k.requests++
	k.input, k.cached, k.writes = k.input+int64(n/4), k.cached+int64(read), k.writes+int64(write)
}

// model opens a model of a provider that is the till.
func (k *till) model(t *testing.T) func(context.Context, string) (model.LLM, error) {
	k.kept, k.seed = make(map[uint64]bool), maphash.MakeSeed()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		claude := strings.HasSuffix(r.URL.Path, "/messages")
		k.count(body, claude)
		k.said++
		text := fmt.Sprintf("%04d%s", k.said, strings.Repeat("words ", 4*k.answer))[:4*k.answer]
		w.Header().Set("Content-Type", "application/json")
		if claude {
			fmt.Fprintf(w, `{"content":[{"type":"text","text":%q}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, text)
			return
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, text)
	}))
	t.Cleanup(srv.Close)
	getenv := func(key string) string {
		return map[string]string{"OPENAI_BASE_URL": srv.URL, "OPENAI_API_KEY": "k", "ANTHROPIC_BASE_URL": srv.URL, "ANTHROPIC_API_KEY": "k"}[key]
	}
	return func(ctx context.Context, name string) (model.LLM, error) { return provider.Open(ctx, name, getenv) }
}

// someLoop draws a loop of agents that ask a model.
func someLoop(rnd *rand.Rand, name string) string {
	words := func(tokens int) string {
		return strings.Repeat(fmt.Sprintf("%04d ", rnd.IntN(10000)), tokens*4/5)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: l\nmax_iterations: %d\nmodel: %s\ninputs: {topic: %q}\nquery: %q\nsub_agents:\n",
		1+rnd.IntN(5), name, words(rnd.IntN(40)), words(10))
	for i := range 1 + rnd.IntN(3) {
		fmt.Fprintf(&b, "  - name: a%d\n    output_key: k%d\n    context: %s\n", i, i,
			[]string{"iteration", "full", "none", "{last: 2}"}[rnd.IntN(4)])
		if rnd.IntN(3) == 0 {
			fmt.Fprintf(&b, "    static_instruction: %q\n", words(rnd.IntN(3000)))
		}
		if rnd.IntN(4) == 0 {
			b.WriteString("    prompt_cache: off\n")
		}
		text := words(20 + rnd.IntN(2500))
		if rnd.IntN(2) == 0 {
			text += " {{topic}} " + words(rnd.IntN(1500))
		}
		if rnd.IntN(2) == 0 {
			text += fmt.Sprintf(" {{k%d?}} ", rnd.IntN(i+1)) + words(rnd.IntN(900))
		}
		fmt.Fprintf(&b, "    instructions: %q\n", text)
	}
	return b.String()
}

// LOOP 34: what is expected of a run is what the run then costs, for loops at random, with a cache that has
// to be asked and with one that is automatic.
func TestExpectedIsWhatARunCosts(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 27))
		name := []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5-mini", "openai/gpt-6.2-sol"}[seed%3]
		text, k := someLoop(rnd, name), &till{answer: 20 + rnd.IntN(400)}
		d := parse(t, text)
		e := d.Expected(definition.Assumed{OutputTokens: int64(k.answer)})
		if len(e.Loops) != 1 || len(e.Uncounted) > 0 {
			t.Fatalf("seed %d: %+v\n%s", seed, e, text)
		}
		root, err := d.Build(t.Context(), definition.BuildConfig{Model: k.model(t)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := runner.NewInMemory("x", root)
		if err != nil {
			t.Fatal(err)
		}
		state, err := d.InitialState(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText(d.Query, genai.RoleUser), agent.RunConfig{}, runner.WithStateDelta(state)) {
			if err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text)
			}
		}
		got := e.Loops[0].Total
		price, _ := budget.Listed(name)
		paid := price.Cost(budget.Usage{InputTokens: k.input, CachedTokens: k.cached, CacheWriteTokens: k.writes, OutputTokens: k.requests * int64(k.answer)})
		near := func(what string, want, got float64) {
			if math.Abs(want-got) > 0.06*want+60*float64(k.requests)*price.Input/1e6 {
				t.Errorf("seed %d, %s: the run has %s %v, expected %v: %+v, of %+v\n%.300s", seed, name, what, want, got, *e, *k, text)
			}
		}
		near("cost", paid, *got.Cost)
		if int64(got.Requests) != k.requests {
			t.Errorf("seed %d: %d requests, expected %d", seed, k.requests, got.Requests)
		}
		if in := float64(k.input); math.Abs(in-float64(got.InputTokens)) > 0.05*in+60*float64(k.requests) {
			t.Errorf("seed %d: %d input tokens, expected %d\n%.200s", seed, k.input, got.InputTokens, text)
		}
	}
}

// What an estimate leaves out is said, and where its prices come from.
func TestExpectedSaysWhatItLeavesOut(t *testing.T) {
	d := parse(t, `name: l
max_iterations: 3
model: openai/gpt-5-mini
prices: {gpt-4.1: {input: 1, output: 1}}
sub_agents:
  - {name: read, command: [ls], output_key: found}
  - {name: write, instructions: "{{found}} {{user_input}}", tools: [count_items], output_key: text}
  - {name: judge, instructions: "{{text}}", model: openai/gpt-4.1, output_key: mark}
  - {name: say, instructions: a, model: openai/unheard-of}
`)
	e := d.Expected(definition.Assumed{})
	var got []string
	for _, u := range e.Uncounted {
		got = append(got, strings.TrimSpace(string(u.What)+" "+u.Name))
	}
	want := "answers, price openai/unheard-of, request, tools write, turns write, value found"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("left out: %s; want %s", text, want)
	}
	if p := e.Prices; len(p) != 2 || p[0].Date != "" || p[1].Date == "" || !strings.HasPrefix(p[1].Source, "https://") {
		t.Errorf("prices %+v", p)
	}
	if l := e.Loops[0]; len(l.Iterations) != 3 || l.Total.Cost != nil || l.Total.Requests != 9 || l.More {
		t.Errorf("%+v", l)
	}
	data, err := json.Marshal(e)
	if err != nil || !strings.Contains(string(data), `"cost":null`) {
		t.Errorf("%s, %v", data, err)
	}
	if e := parse(t, "name: x\ncommand: [ls]").Expected(definition.Assumed{}); len(e.Loops) != 0 {
		t.Errorf("a command: %+v", e)
	}
	e = parse(t, "name: x\ninstructions: abcd").Expected(definition.Assumed{Model: "anthropic/claude-sonnet-4-5-20250929"})
	if len(e.Loops) != 1 || *e.Loops[0].Total.Cost == 0 {
		t.Errorf("outside a loop, with the model of the run: %+v", e)
	}
}

// A loop that runs for long, and in others, is computed in a moment.
func TestExpectedHasAnEnd(t *testing.T) {
	inner := "{name: w, context: full, instructions: a}"
	for i := range 6 {
		inner = fmt.Sprintf("{name: l%d, max_iterations: 100, sub_agents: [%s]}", i, inner)
	}
	e := parse(t, "name: x\nmax_iterations: 0\ntimeout: 1h\nsub_agents: ["+inner+"]").Expected(definition.Assumed{})
	if l := e.Loops[0]; !l.More || l.Total.Requests > 2000 {
		t.Errorf("%d requests, more: %v", l.Total.Requests, l.More)
	}
}
