// SPDX-License-Identifier: Apache-2.0

// Package keeper is a model provider for tests and benchmarks. It caches prompts by the documented rules of
// Anthropic, OpenAI and Gemini, and computes the cost of input. A token is four bytes of JSON.
//
//	k := &keeper.Keeper{Say: func(r keeper.Request) keeper.Answer { return keeper.Answer{Text: "Hi."} }}
//	srv := httptest.NewServer(k)
//	// ask a model whose base URL is srv.URL
//	fmt.Println(k.Cost())
package keeper

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Keeper is a provider: an http.Handler for the three providers' APIs, without streaming.
type Keeper struct {
	// Say returns the model's answer. It may return the same answer for the same request, so that a resumed run gets
	// the answers of the run before it.
	Say func(Request) Answer
	// Step is the time that passes between two requests. If Now is set, it replaces this clock.
	Step time.Duration
	Now  func() time.Time

	mu       sync.Mutex
	clock    time.Time
	kept     map[[32]byte]*entry
	entries  []*entry // including expired ones
	requests []Request
	sent     []string // the prompts, for Tokens.New
	wrong    []string
	tokens   Tokens
}

// Request is a request to the model.
type Request struct {
	Number  int    // from 1
	Agent   string // the name before the path of the API, or else the name in the instructions; may be ""
	Results int    // of tools, in the conversation
	Body    string
}

// Answer is a text, or a tool call if Call is not empty. Arguments is a JSON object.
type Answer struct{ Text, Call, Arguments string }

// Tokens counts the input of requests. Input includes Read, the tokens read from the cache, Write, those written into
// it for five minutes, and Hour, those written for an hour. New counts the tokens that no earlier request has sent.
type Tokens struct{ Input, Read, Write, Hour, New int }

// Share returns the share of the input that was read from the cache.
func (t Tokens) Share() float64 { return float64(t.Read) / float64(t.Input) }

// Paid returns the cost of the input, in tokens of plain input. Reading a token costs 0.1, and writing a token costs
// 1.25, or 2 for an hour.
func (t Tokens) Paid() float64 {
	return float64(t.Input-t.Read-t.Write-t.Hour) + 0.1*float64(t.Read) + 1.25*float64(t.Write) + 2*float64(t.Hour)
}

// Floor returns what the input would cost with a cache that never expires, matches every prefix and costs nothing to write.
func (t Tokens) Floor() float64 { return float64(t.New) + 0.1*float64(t.Input-t.New) }

// Tokens returns the counts of all requests so far.
func (k *Keeper) Tokens() Tokens {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tokens
}

// Cost returns the cost of the input relative to the cost of the same input without a cache.
func (k *Keeper) Cost() float64 {
	t := k.Tokens()
	return t.Paid() / float64(t.Input)
}

// Requests returns the requests so far.
func (k *Keeper) Requests() []Request {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests
}

// Wrong returns what requests did that the providers forbid, or that has no effect, such as too many breakpoints, a
// breakpoint after fewer tokens than the minimum, or one for an hour after one for five minutes.
func (k *Keeper) Wrong() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrong
}

// Unread returns the number of requests that wrote something into the cache that no request has read.
func (k *Keeper) Unread() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	requests := make(map[int]bool)
	for _, e := range k.entries {
		if !e.used && e.written > 0 {
			requests[e.by] = true
		}
	}
	return len(requests)
}

// Common returns the length in bytes of the common prefix of two texts.
func Common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

var internalName = lazyregexp.New(`Your internal name is \\"([^\\"]*)\\"`)

func (k *Keeper) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	api, in := apiOf(r.URL.Path), Request{Number: len(k.requests) + 1, Body: string(data)}
	if first, _, _ := strings.Cut(strings.TrimLeft(r.URL.Path, "/"), "/"); !strings.HasPrefix(first, "v1") {
		in.Agent = first
	} else if found := internalName().FindStringSubmatch(in.Body); found != nil {
		in.Agent = found[1]
	}
	in.Results = strings.Count(in.Body, `"tool_use_id"`) + strings.Count(in.Body, `"tool_call_id"`) +
		strings.Count(in.Body, `"functionResponse"`)
	k.requests = append(k.requests, in)
	k.tick()
	texts, lives, err := parts(in.Body)
	if err != nil {
		k.wrong = append(k.wrong, fmt.Sprintf("request %d: %v", in.Number, err))
	}
	prompt := strings.Join(texts, "")
	t := Tokens{Input: tokens(len(prompt)), New: tokens(len(prompt))}
	for _, earlier := range k.sent {
		t.New = min(t.New, tokens(len(prompt)-Common(earlier, prompt)))
	}
	k.sent = append(k.sent, prompt)
	if api == anthropic {
		k.atBreakpoints(&t, texts, lives)
	} else {
		t.Read = k.bySteps(cacheKey(in.Body), prompt)
	}
	k.tokens.Input, k.tokens.Read, k.tokens.New = k.tokens.Input+t.Input, k.tokens.Read+t.Read, k.tokens.New+t.New
	k.tokens.Write, k.tokens.Hour = k.tokens.Write+t.Write, k.tokens.Hour+t.Hour
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answers[api](in, k.Say(in), t)); err != nil {
		k.wrong = append(k.wrong, err.Error())
	}
}

func (k *Keeper) tick() {
	if k.clock = k.clock.Add(k.Step); k.Now != nil {
		k.clock = k.Now()
	}
	if k.kept == nil {
		k.kept = make(map[[32]byte]*entry)
	}
}
