// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/process/keeper"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/anthropic"
	"github.com/refrain-dev/refrain/model/gemini"
	"github.com/refrain-dev/refrain/model/openai"
)

// provider is where a model is.
type provider struct {
	name  string
	model string // as the list of prices has it
	open  func(ctx context.Context, baseURL string) (model.LLM, error)
}

var providers = []provider{
	{"Anthropic", "anthropic/claude-sonnet-4-5", func(_ context.Context, url string) (model.LLM, error) {
		return anthropic.NewModel("claude-sonnet-4-5", anthropic.Config{BaseURL: url, APIKey: "k"})
	}},
	{"OpenAI", "openai/gpt-5-mini", func(_ context.Context, url string) (model.LLM, error) {
		return openai.NewModel("gpt-5-mini", openai.Config{BaseURL: url + "/v1", APIKey: "k"})
	}},
	{"Gemini", "gemini/gemini-2.5-flash", func(ctx context.Context, url string) (model.LLM, error) {
		return gemini.NewModel(ctx, "gemini-2.5-flash", &genai.ClientConfig{Backend: genai.BackendGeminiAPI, APIKey: "k",
			HTTPOptions: genai.HTTPOptions{BaseURL: url}})
	}},
}

// opener opens the model of an agent. All frameworks send their requests with the same client, and only ours says what
// a cache is to keep: the others have no words for that at their defaults.
type opener func(agent string) model.LLM

// framework runs a loop with the models of an opener.
type framework struct {
	name string
	run  func(t *testing.T, l costLoop, open opener) error
}

var frameworks = []framework{{"ours", runOurs}, {"ADK", runADK}, {"Eino", runEino}}

// said are the answers of a loop's agents, the first one first. They are the same for all frameworks.
type said map[string][]keeper.Answer

// costed runs a loop and returns the provider, with what it has counted. Requests are 20 seconds apart.
func costed(t *testing.T, f framework, l costLoop, p provider) *keeper.Keeper {
	t.Helper()
	var mu sync.Mutex
	turns := make(map[string]int)
	k := &keeper.Keeper{Step: 20 * time.Second, Say: func(r keeper.Request) keeper.Answer {
		mu.Lock()
		defer mu.Unlock()
		list, n := l.said[r.Agent], turns[r.Agent]
		if turns[r.Agent]++; n >= len(list) {
			return keeper.Answer{Text: "Done."}
		}
		a := list[n]
		if a.Call == exitTool {
			for _, name := range []string{"exitLoop", "exit_loop"} {
				if strings.Contains(r.Body, `"`+name+`"`) {
					a.Call = name
				}
			}
		}
		return a
	}}
	srv := httptest.NewServer(k)
	defer srv.Close()
	open := func(agent string) model.LLM {
		m, err := p.open(t.Context(), srv.URL+"/"+agent)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := f.run(t, l, open); err != nil {
		t.Fatalf("%s, %s, %s: %v", f.name, l.name, p.name, err)
	}
	for _, wrong := range k.Wrong() {
		t.Errorf("%s, %s, %s: %s", f.name, l.name, p.name, wrong)
	}
	for name, list := range l.said {
		if turns[name] < len(list) {
			t.Errorf("%s, %s, %s: %s was asked %d times, not %d", f.name, l.name, p.name, name, turns[name], len(list))
		}
	}
	return k
}

// What the input of the loops costs, ours and with ADK for Go and Eino at their defaults: ours is cheaper in each, or
// as cheap, to 2 %: ours tells an agent its name in each request, as ADK does, and Eino does not. make bench-cost
// prints the table, in dollars for a thousand loops. The floor is that of our requests, with a cache that lasts for
// ever and knows every prefix.
func TestCostAgainstPeers(t *testing.T) {
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\t\tdollars\t\t\t\tcached\t\t\trequests\t\t\t\n")
	fmt.Fprint(w, "loop\tprovider\tours\tADK\tEino\tfloor\tours\tADK\tEino\tours\tADK\tEino\t\n")
	for _, l := range costLoops(t) {
		for _, p := range providers {
			var dollars, cached, requests [3]float64
			var floor float64
			list, ok := budget.Listed(p.model)
			if !ok {
				t.Fatalf("%s has no list price", p.model)
			}
			for i, f := range frameworks {
				k := costed(t, f, l, p)
				sum := k.Tokens()
				dollars[i], cached[i], requests[i] = sum.Paid()*list.Input/1e3, 100*sum.Share(), float64(len(k.Requests()))
				if i > 0 {
					if dollars[i] < 0.98*dollars[0] {
						t.Errorf("%s, %s: ours costs %.2f dollars, and %s %.2f", l.name, p.name, dollars[0], f.name, dollars[i])
					}
					continue
				}
				floor = sum.Floor() * list.Input / 1e3
				if k.Cost() > 1 || k.Unread() > 1 {
					t.Errorf("%s, %s: costs %.3f of what it costs without a cache, %d writes that nobody has read", l.name, p.name,
						k.Cost(), k.Unread())
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f %%\t%.0f %%\t%.0f %%\t%.0f\t%.0f\t%.0f\t\n", l.name, p.name, dollars[0],
				dollars[1], dollars[2], floor, cached[0], cached[1], cached[2], requests[0], requests[1], requests[2])
		}
	}
	if err := w.Flush(); err != nil {
		t.Error(err)
	}
	t.Log("\n" + table.String())
}
