// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/remoteagent"
)

const apiKey = "sk-SECRETKEY1234567890"

// What a server repeats of the headers in its errors goes no further, nor does what
// could do harm to a terminal, nor all of a long answer.
func TestErrorsHaveNoSecrets(t *testing.T) {
	says := fmt.Sprintf(`{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"who is Bearer %s?"}]}`, apiKey)
	for _, tt := range []struct{ answer, want string }{
		{`"error":{"code":-31401,"message":"wrong key: Bearer ` + apiKey + `"}`, "send a message: wrong key: Bearer [secret]"},
		{`"error":{"code":-32602,"message":"hunter2hunter2 and qk-SECRET4711"}`, "send a message: [secret] and [secret]"},
		{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_FAILED","message":` + says + `}}}`, "the remote agent has failed: who is Bearer [secret]?"},
		{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"` + apiKey + `"}}}`, `the state "[secret]" of a task`},
		{`"result":{"unknown":"` + apiKey + strings.Repeat("x", 5000) + `"}`, "unknown event type"},
		{`"result":{"` + apiKey + `":"\u001b[2J"}`, ""},
	} {
		for i, streams := range []bool{true, false} {
			r := serve(t, kinds[i], nil)
			script(r, streams, func(string) []string { return []string{tt.answer} })
			got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) {
				c.Headers = map[string]string{"Authorization": "Bearer " + apiKey, "X-Shared": "hunter2hunter2"}
				c.AgentCardSource += "?api_key=qk-SECRET4711"
			}), nil).say(t.Context(), "Hi")
			want := tt.want
			if !streams && strings.HasPrefix(want, "unknown") {
				want = "could not determine type"
			}
			if got.err == nil || !strings.Contains(got.err.Error(), want) || strings.Contains(got.err.Error(), apiKey) ||
				len(got.err.Error()) > 2200 || strings.Contains(got.err.Error(), "\x1b") {
				t.Errorf("streams %t, %.80s: got %.3000v", streams, tt.answer, got.err)
			}
		}
	}
}

// A proxy's words in the status line are nobody's to trust either.
func TestCardErrorsHaveNoSecrets(t *testing.T) {
	r := serve(t, kinds[0], nil)
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		conn, buf, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		defer conn.Close()
		fmt.Fprintf(buf, "HTTP/1.1 401 no: %s\x1b[31m\r\nContent-Length: 0\r\n\r\n", req.Header.Get("X-Api-Key"))
		buf.Flush()
		return true
	})
	got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) { c.Headers = map[string]string{"X-Api-Key": apiKey} }), nil).say(t.Context(), "Hi")
	if got.err == nil || !strings.Contains(got.err.Error(), "401 no: [secret]; give what the agent wants to see in Headers") {
		t.Errorf("got %q", fmt.Sprint(got.err))
	}
}

// The log says which agent was asked, without the query of its card's address.
func TestQueryOfTheCardIsNotInTheLog(t *testing.T) {
	r := serve(t, kinds[0], writes("x"))
	tk := newTalk(t, made(t, r, source(r.URL+"?key="+apiKey)), nil)
	for range 2 { // the second goes on with the conversation
		got := tk.say(t.Context(), "Hi")
		if got.err != nil {
			t.Fatal(got.err)
		}
		text, err := json.Marshal(got.events)
		if err != nil || strings.Contains(string(text), apiKey) || !strings.Contains(string(text), r.URL+"?sha256=") {
			t.Errorf("%s, %v", text, err)
		}
	}
	if a, b := r.message(0), r.message(1); b.ContextID == "" || b.ContextID == a.ContextID {
		t.Errorf("the contexts are %q and %q", a.ContextID, b.ContextID)
	}
	tk.agent = made(t, r, source(r.URL+"?key=other"))
	tk.runner = newRunner(t, tk.svc, tk.agent)
	if got := tk.say(t.Context(), "Hi"); got.err != nil || r.message(2).ContextID == r.message(1).ContextID {
		t.Errorf("another query is the same agent: %v", got.err)
	}
}
