// SPDX-License-Identifier: Apache-2.0

package acpclient_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/taskagent/internal/acpclient"
	"github.com/refrain-dev/refrain/agent/taskagent/internal/codingcli"
)

// goesOn asks a program of these answers with a config, and returns the methods that the client has called too.
func goesOn(t *testing.T, cfg acpclient.Config, answers map[string]string) (got *asked, called string) {
	t.Helper()
	var sent bytes.Buffer
	cfg.Continues = true
	got = ask(t, cfg, func(in io.Reader, out io.Writer) { _ = answer(io.TeeReader(in, &sent), out, answers) })
	for line := range bytes.Lines(sent.Bytes()) {
		var m struct{ Method string }
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		called += " " + strings.TrimPrefix(m.Method, "session/")
	}
	return got, strings.TrimSpace(called)
}

// update is an update of a session.
func update(session, what string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":{"sessionUpdate":` + what + "}}}\n"
}

// message is one that a user or an agent has said.
func message(session, from, text string) string {
	return update(session, `"`+from+`_message_chunk","content":{"type":"text","text":"`+text+`"},"_meta":{"usage":{"inputTokens":7,"outputTokens":7}}`)
}

// A program that copies conversations goes on with a copy. One that can only load them goes on with the conversation itself
// if the prompts in it are those that belong to the state. What it gives back of it is neither new text nor usage, nor an
// edit. In all other cases it begins a new one, and says why.
func TestConversation(t *testing.T) {
	first, _ := goesOn(t, acpclient.Config{Prompt: "Mend it:\n 1."}, map[string]string{"initialize": load})
	if len(first.report.Asked) != 64 {
		t.Fatalf("got %+v", first.report)
	}
	edit := func(s string) string {
		return update(s, `"tool_call","toolCallId":"1","kind":"edit","title":"Old","status":"completed","locations":[{"path":"/work/old"}]`)
	}
	cost := func(s, amount string) string {
		return update(s, `"usage_update","used":1,"size":2,"cost":{"amount":`+amount+`,"currency":"USD"}`)
	}
	replay := func(s string) string {
		return message(s, "user", "Mend ") + message(s, "user", `it: \n1.\n`) + edit(s) + message(s, "agent", "old") + cost(s, "0.4")
	}
	then := func(s string) string {
		return message(s, "agent", "new") + cost(s, "0.6") + `"result":{"stopReason":"end_turn"}`
	}
	begins := `"result":{"sessionId":"s9"}`
	loads := func(answer, session string) map[string]string {
		return map[string]string{"initialize": load, "session/load": answer, "session/new": begins, "session/prompt": then(session)}
	}
	copies := func(answer, session string) map[string]string {
		return map[string]string{"initialize": fork, "session/fork": answer, "session/new": begins, "session/prompt": then(session)}
	}
	for name, tt := range map[string]struct {
		answers                  map[string]string
		called, session, renewed string
	}{
		"copied":               {copies(replay("s2")+`"result":{"sessionId":"s2"}`, "s2"), "fork prompt", "s2", ""},
		"no copy":              {copies(`"result":{"sessionId":"s1"}`, "s9"), "fork new prompt", "s9", "gave no copy"},
		"a copy without an ID": {copies(`"result":{"sessionId":""}`, "s9"), "fork new prompt", "s9", "gave no copy"},
		"no ID":                {copies(`"result":[]`, "s9"), "fork new prompt", "s9", "gave no copy"},
		"not there to copy": {copies(`"error":{"code":-32603,"message":"Internal error","data":{"details":"no rollout"}}`, "s9"),
			"fork new prompt", "s9", "does not have it: Internal error no rollout"},
		"loaded":    {loads(replay("s1")+`"result":{}`, "s1"), "load prompt", "s1", ""},
		"of null":   {loads(replay("s1")+`"result":null`, "s1"), "load prompt", "s1", ""},
		"undone":    {loads(replay("s1")+message("s1", "user", "Mend it: 2.")+`"result":{}`, "s9"), "load new prompt", "s9", "rolled back"},
		"asked now": {loads(replay("s1")+message("s1", "user", "x")+`"result":{}`, "s9"), "load new prompt", "s9", "rolled back"},
		// As Qwen Code does for an ID that it does not know.
		"empty":      {loads(`"result":{}`, "s9"), "load new prompt", "s9", "leaves out a part"},
		"of another": {loads(replay("s3")+`"result":{}`, "s9"), "load new prompt", "s9", "leaves out a part"},
		"too long to be read": {loads(replay("s1")+message("s1", "user", strings.Repeat("x", 9<<20))+`"result":{}`, "s9"),
			"load new prompt", "s9", "leaves out a part"},
		"lost": {loads(`"error":{"code":-32002,"message":"Resource not found"}`, "s9"), "load new prompt", "s9",
			"does not have it: Resource not found"},
	} {
		t.Run(name, func(t *testing.T) {
			var doing []string
			got, called := goesOn(t, acpclient.Config{Prompt: "x", Conversation: "s1", Asked: first.report.Asked,
				Doing: func(words string) { doing = append(doing, words) }}, tt.answers)
			r := got.report
			if called != "initialize "+tt.called || r.Session != tt.session {
				t.Errorf("it was called %q: %+v", called, r)
			}
			if !strings.Contains(r.Renewed, tt.renewed) || (r.Renewed == "") != (tt.renewed == "") {
				t.Errorf("it says %q", r.Renewed)
			}
			if got.err != nil || r.Outcome != codingcli.OK || r.Answer != "new" || r.Files != nil || doing != nil || r.Usage.InputTokens > 7 ||
				r.Usage.Cost == nil || *r.Usage.Cost != 0.6 || r.Total.Cost != 0.6 {
				t.Errorf("what it gave back counts: %+v\n%v %v", r, doing, got.err)
			}
		})
	}
	// What is known of the prompts goes on with the conversation.
	second, _ := goesOn(t, acpclient.Config{Prompt: "Mend it: 2.", Conversation: "s1", Asked: first.report.Asked},
		map[string]string{"initialize": load, "session/load": replay("s1") + `"result":{}`})
	third, called := goesOn(t, acpclient.Config{Prompt: "Mend it: 3.", Conversation: "s1", Asked: second.report.Asked}, map[string]string{
		"initialize": load, "session/load": replay("s1") + message("s1", "user", "Mend it: 2.") + message("s1", "agent", "old") + `"result":{}`})
	if third.report.Renewed != "" || called != "initialize load prompt" {
		t.Errorf("the third iteration: %v %+v", called, third.report)
	}
}

// What programs offer.
const (
	fork = `"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"fork":{},"resume":{}}}}`
	load = `"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"resume":{}}}}`
)

// A program that can neither copy nor load a conversation is not asked: not for the first iteration either.
func TestNoConversation(t *testing.T) {
	for _, offers := range []string{`{}`, `{"loadSession":false}`, `{"sessionCapabilities":{"resume":{},"fork":null}}`} {
		for _, id := range []string{"", "s1"} {
			got, called := goesOn(t, acpclient.Config{Prompt: "x", Conversation: id},
				map[string]string{"initialize": `"result":{"protocolVersion":1,"agentCapabilities":` + offers + `}`})
			if r := got.report; !r.Unable || r.Outcome != codingcli.NotConfigured || called != "initialize" || got.err != nil {
				t.Errorf("%s: %v %+v %v", offers, called, r, got.err)
			}
		}
	}
}

// A program that is not signed in has not lost its conversation, and one that gives it back when it has been asked already
// is ended.
func TestConversationFails(t *testing.T) {
	got, called := goesOn(t, acpclient.Config{Prompt: "x", Conversation: "s1"},
		map[string]string{"initialize": load, "session/load": `"error":{"code":-32000,"message":"sign in"}`})
	if r := got.report; r.Outcome != codingcli.NotConfigured || r.Answer != "sign in" || r.Renewed != "" || called != "initialize load" {
		t.Errorf("%v %+v", called, r)
	}
	first, _ := goesOn(t, acpclient.Config{Prompt: "1"}, map[string]string{"initialize": load})
	for late, ends := range map[string]bool{message("s1", "user", "2"): true, message("s1", "user", "it: "): false,
		message("s1", "agent", "I go.") + message("s1", "user", "remember"): false} {
		got, _ := goesOn(t, acpclient.Config{Prompt: "Mend it: 3.", Conversation: "s1", Asked: first.report.Asked}, map[string]string{"initialize": load,
			"session/load": message("s1", "user", "1") + `"result":{}`, "session/prompt": late + `"result":{"stopReason":"end_turn"}`})
		if (got.err != nil) != ends || ends && !strings.Contains(got.err.Error(), "only after it was asked") {
			t.Errorf("%s: %v", late, got.err)
		}
	}
}
