// SPDX-License-Identifier: Apache-2.0

package keeper_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/process/keeper"
)

// Example asks twice for the same, and the second request reads what the first has written.
func Example() {
	k := &keeper.Keeper{Say: func(keeper.Request) keeper.Answer { return keeper.Answer{Text: "Hi."} }}
	for range 2 {
		send(k, "/v1/messages", claude(6000, ""))
	}
	fmt.Printf("%+v\n", k.Tokens())
	fmt.Printf("%.2f of the cost without a cache, floor %.2f\n", k.Cost(), k.Tokens().Floor()/float64(k.Tokens().Input))
	// Output:
	// {Input:3014 Read:1507 Write:1507 Hour:0 New:1507}
	// 0.68 of the cost without a cache, floor 0.55
}

func send(k *keeper.Keeper, path, body string) {
	k.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
}

// claude is a request to Anthropic with so many bytes of rules, which it asks to keep, for an hour if ttl says that.
func claude(bytes int, ttl string) string {
	if ttl != "" {
		ttl = `,"ttl":"` + ttl + `"`
	}
	return fmt.Sprintf(`{"system":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral"%s}}],"messages":[]}`,
		strings.Repeat("x", bytes), ttl)
}

// The rules of Anthropic's lives, prices and minimum, and of OpenAI's steps.
func TestRules(t *testing.T) {
	chat := fmt.Sprintf(`{"prompt_cache_key":"a","messages":[{"role":"system","content":%q}]}`, strings.Repeat("x", 6000))
	for name, c := range map[string]struct {
		step   time.Duration
		path   string
		bodies []string
		paid   float64 // of the input without a cache
		unread int
		wrong  bool
	}{
		"read within five minutes":   {4 * time.Minute, "/v1/messages", []string{claude(6000, ""), claude(6000, ""), claude(6000, "")}, 0.48, 0, false},
		"too late":                   {6 * time.Minute, "/v1/messages", []string{claude(6000, ""), claude(6000, "")}, 1.25, 2, false},
		"for an hour":                {6 * time.Minute, "/v1/messages", []string{claude(6000, "1h"), claude(6000, "1h")}, 1.05, 0, false},
		"below the minimum":          {time.Second, "/v1/messages", []string{claude(3000, ""), claude(3000, "")}, 1, 0, true},
		"another beginning":          {time.Second, "/v1/messages", []string{claude(6000, ""), claude(6100, "")}, 1.25, 2, false},
		"automatic, in steps of 128": {time.Second, "/v1/chat/completions", []string{chat, chat}, 0.58, 0, false},
		"another key": {time.Second, "/v1/chat/completions",
			[]string{chat, strings.Replace(chat, `"a"`, `"b"`, 1)}, 1, 0, false},
	} {
		k := &keeper.Keeper{Step: c.step, Say: func(keeper.Request) keeper.Answer { return keeper.Answer{Text: "Hi."} }}
		for _, body := range c.bodies {
			send(k, c.path, body)
		}
		if got := fmt.Sprintf("%.2f", k.Cost()); got != fmt.Sprintf("%.2f", c.paid) || k.Unread() != c.unread || (len(k.Wrong()) > 0) != c.wrong {
			t.Errorf("%s: costs %s, want %.2f; %d writes unread; %q", name, got, c.paid, k.Unread(), k.Wrong())
		}
	}
}
