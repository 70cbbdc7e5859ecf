// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/remoteagent"
)

// script answers every call of JSON-RPC with results, by method. A stream gets
// several.
func script(r *remote, streams bool, results func(method string) []string) {
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost {
			return false
		}
		body, _ := io.ReadAll(req.Body)
		method := string(body)
		_, method, _ = strings.Cut(method, `"method":"`)
		method, _, _ = strings.Cut(method, `"`)
		for _, result := range results(method) {
			if streams && strings.HasPrefix(method, "S") {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"1\",%s}\n\n", result)
			} else {
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"1",%s}`, result)
			}
		}
		return true
	})
}

// What a server should not send is an error, and never a panic or a loop without
// an end.
func TestServerThatDoesNotKeepToTheProtocol(t *testing.T) {
	for _, streams := range []bool{true, false} {
		for _, tt := range []struct{ result, want string }{
			{`"result":{"task":{"id":"","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, "a task without an ID"},
			{`"result":{"task":{"id":"../x","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, "an ID that cannot be one"},
			{`"result":{"task":{"id":"a/b","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, "an ID that cannot be one"},
			{`"result":{"task":{"id":"a\u0007b","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`, "an ID that cannot be one"},
			{`"result":{"task":{"id":"t","contextId":"c\u001b[2J","status":{"state":"TASK_STATE_WORKING"}}}`, "an ID that cannot be one"},
			{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_BOGUS"}}}`, `the server does not keep to A2A: it sent the state "TASK_STATE_BOGUS" of a task`},
			{`"result":{"task":{"id":"t","contextId":"c","status":{}}}`, `the state "TASK_STATE_UNSPECIFIED" of a task`},
			{`"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[null]}}`, ""},
			{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[null,{"artifactId":"a","parts":[null,{"text":"x"}]}]}}`, ""},
			{`"result":null`, "EOF"},
			{`"result":{}`, "unknown event type"},
			{`"error":{"code":-32602,"message":"no \u001b[31msuch skill"}`, "send a message: no such skill"},
			{`"error":{"code":-31401,"message":"who are you"}`, "send a message: who are you"},
		} {
			kind := kinds[0]
			if kind.streams = streams; !streams && strings.HasPrefix(tt.want, "unknown") {
				tt.want = "could not determine type"
			}
			r := serve(t, kind, nil)
			script(r, streams, func(string) []string { return []string{tt.result} })
			got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi")
			if tt.want == "EOF" { // however the SDK says it
				if got.err == nil {
					t.Errorf("%s: no error", tt.result)
				}
				continue
			}
			if (tt.want == "") != (got.err == nil) || got.err != nil && !strings.Contains(got.err.Error(), tt.want) {
				t.Errorf("streams %t, %s: got %v, want %s", streams, tt.result, got.err, tt.want)
			}
		}
	}
}

// A server cannot answer for another task than the one that it began.
func TestServerThatTalksOfAnotherTask(t *testing.T) {
	r := serve(t, kinds[0], nil)
	script(r, true, func(method string) []string {
		if method == "CancelTask" {
			return []string{`"result":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_CANCELED"}}`}
		}
		return []string{
			`"result":{"task":{"id":"t1","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`,
			`"result":{"statusUpdate":{"taskId":"t2","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`,
		}
	})
	got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi")
	if got.err == nil || !strings.Contains(got.err.Error(), `something about the task "t2", and not about "t1"`) {
		t.Errorf("got %v", got.err)
	}
}

// Streams that never last are given up, and the task is asked for instead.
func TestStreamsThatDoNotLast(t *testing.T) {
	r := serve(t, kinds[0], nil)
	subscribed, looked := 0, 0
	script(r, true, func(method string) []string {
		state := "TASK_STATE_WORKING"
		switch method {
		case "SubscribeToTask":
			if subscribed++; subscribed > 2 {
				return []string{`"error":{"code":-32004,"message":"no streams"}`}
			}
		case "GetTask":
			if looked++; looked > 4 {
				state = "TASK_STATE_COMPLETED"
			}
			return []string{`"result":{"id":"t","contextId":"c","status":{"state":"` + state +
				`","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"done"}]}}}`}
		}
		return []string{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"` + state + `"}}}`}
	})
	got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi")
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "words", []string{"done"}, got.words())
	if subscribed != 3 {
		t.Errorf("subscribed %d times", subscribed)
	}
}

// handled is an http.Client's way to a handler without a network, for simulated
// time.
type handled func(http.ResponseWriter, *http.Request)

func (h handled) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, req)
	if req.Body != nil {
		req.Body.Close()
	}
	return w.Result(), nil
}

// away is an agent whose server answers each call of JSON-RPC by its method.
func away(t *testing.T, change func(*remoteagent.A2AConfig), answer func(method string) string) agent.Agent {
	t.Helper()
	cfg := remoteagent.A2AConfig{Name: "far", AgentCardSource: "http://far.example/card.json", OutputKey: "out"}
	cfg.Client = &http.Client{Transport: handled(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			io.WriteString(w, `{"name": "x", "capabilities": {"streaming": true}, "supportedInterfaces": [{"url": "http://far.example/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}`)
			return
		}
		var call struct{ ID, Method string }
		if err := json.NewDecoder(req.Body).Decode(&call); err != nil {
			t.Error(err)
		}
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,%s}`, call.ID, answer(call.Method))
		if call.Method == "SendStreamingMessage" || call.Method == "SubscribeToTask" {
			w.Header().Set("Content-Type", "text/event-stream")
			answer = "data: " + answer + "\n\n"
		}
		io.WriteString(w, answer)
	})}
	if change != nil {
		change(&cfg)
	}
	a, err := remoteagent.NewA2A(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func task(state, more string) string {
	return `"task":{"id":"t","contextId":"c","status":{"state":"` + state + `"}` + more + `}`
}

// bare is what GetTask answers: a task that is not in anything.
func bare(state, more string) string {
	return `"result":` + strings.TrimPrefix(task(state, more), `"task":`)
}

// A task that comes into a state that A2A does not have is not waited for, and is
// canceled.
func TestTaskInAnUnknownState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looked, canceled := 0, 0
		a := away(t, nil, func(method string) string {
			switch method {
			case "GetTask":
				looked++
				return bare("TASK_STATE_BOGUS"+strings.Repeat("X", 100_000), "")
			case "CancelTask":
				canceled++
				return bare("TASK_STATE_CANCELED", "")
			}
			return `"result":{` + task("TASK_STATE_WORKING", "") + `}`
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got := newTalk(t, a, nil).say(ctx, "Hi")
		if got.err == nil || !strings.Contains(got.err.Error(), `the server does not keep to A2A: it sent the state "TASK_STATE_BOGUSXX`) ||
			len(got.err.Error()) > 300 {
			t.Errorf("got %.300v", got.err)
		}
		if looked > 1 || canceled != 1 {
			t.Errorf("looked %d times, canceled %d times", looked, canceled)
		}
	})
}

// Streams that each say something and break off are given up after a few.
func TestStreamsThatSaySomethingAndDoNotLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		subscribed, looked := 0, 0
		a := away(t, nil, func(method string) string {
			switch method {
			case "SubscribeToTask":
				subscribed++
				return `"result":{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`
			case "GetTask":
				if looked++; looked > 50 {
					return bare("TASK_STATE_COMPLETED", "")
				}
				return bare("TASK_STATE_WORKING", "")
			}
			return `"result":{` + task("TASK_STATE_WORKING", "") + `}`
		})
		if got := newTalk(t, a, nil).say(t.Context(), "Hi"); got.err != nil {
			t.Fatal(got.err)
		}
		if subscribed != 10 {
			t.Errorf("subscribed %d times", subscribed)
		}
	})
}

// Files count for what is kept of a task, which may come in many answers.
func TestManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := func(n int) string {
			return `{"artifactId":"a","parts":[{"raw":"` + base64.StdEncoding.EncodeToString(make([]byte, n)) + `","mediaType":"image/png"}]}`
		}
		a := away(t, func(c *remoteagent.A2AConfig) { c.SizeLimit = 5000 }, func(method string) string {
			switch method {
			case "SubscribeToTask":
				return `"result":{"artifactUpdate":{"taskId":"t","contextId":"c","append":true,"artifact":` + file(2700) + `}}`
			case "GetTask":
				return bare("TASK_STATE_WORKING", `,"artifacts":[`+file(2700)+`]`)
			}
			return `"result":{` + task("TASK_STATE_WORKING", "") + `}`
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := newTalk(t, a, nil).say(ctx, "Hi")
		if _, ok := errors.AsType[*remoteagent.LimitError](got.err); !ok {
			t.Errorf("got %v", got.err)
		}
	})
}

// What was said while nobody listened is not lost.
func TestAnswerThatWasSaidWhileTheStreamWasCut(t *testing.T) {
	r := serve(t, kinds[0], nil)
	done := false
	script(r, true, func(method string) []string {
		switch method {
		case "SubscribeToTask":
			done = true
			return []string{`"result":{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`}
		case "GetTask":
			if done {
				return []string{`"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"all of it"}]}]}`}
			}
			return []string{`"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}`}
		}
		return []string{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`}
	})
	got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi")
	if got.err != nil {
		t.Fatal(got.err)
	}
	equal(t, "words", []string{"all of it"}, got.words())
}

// Few bytes can take a lot of memory.
func TestManySmallParts(t *testing.T) {
	r := serve(t, kinds[0], nil)
	parts := strings.Repeat(`{"text":"x"},`, 300) + `{"text":"x"}`
	script(r, true, func(string) []string {
		return []string{`"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[` + parts + `]}}`}
	})
	got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) { c.SizeLimit = 5000 }), nil).say(t.Context(), "Hi")
	if _, ok := errors.AsType[*remoteagent.LimitError](got.err); !ok {
		t.Errorf("got %v", got.err)
	}
}

// A server that loses a task says so, and the loop's next try begins again.
func TestServerThatForgets(t *testing.T) {
	r := serve(t, kinds[1], nil)
	sent := 0
	script(r, false, func(method string) []string {
		switch {
		case method == "GetTask":
			return []string{`"error":{"code":-32001,"message":"no such task"}`}
		case method == "SendMessage" && sent > 0:
			return []string{`"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"done"}]}}`}
		}
		sent++
		return []string{`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`}
	})
	got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi")
	if got.err == nil || !strings.Contains(got.err.Error(), "the server no longer knows the task: no such task") {
		t.Errorf("got %v", got.err)
	}
	sent = 0
	if got = newTalk(t, retried(t, made(t, r)), nil).say(t.Context(), "Hi"); got.err != nil {
		t.Error(got.err)
	}
	equal(t, "words", []string{"done"}, got.words())
}

// FuzzAnswer: no answer of a server makes the agent panic.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"data":{"a":[1,null]}},{"raw":"AAAA"},{"url":"x"}]}}`,
		`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":null},"artifacts":[{"artifactId":"","parts":null}]}}`,
		`"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_FAILED"},"history":[null]}}`,
	} {
		f.Add(s)
	}
	// Each kind has a server of its own: an abandoned request can still read the card.
	streaming, waiting := serve(f, kinds[0], nil), serve(f, kinds[0], nil)
	streaming.card.Capabilities.Streaming, waiting.card.Capabilities.Streaming = true, false
	f.Fuzz(func(t *testing.T, result string) {
		if strings.Contains(result, "WORKING") || strings.Contains(result, "SUBMITTED") || strings.ContainsAny(result, "\r\n") {
			return // it would be asked for again and again
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		for _, r := range []*remote{streaming, waiting} {
			script(r, r == streaming, func(method string) []string {
				if method != "SendMessage" && method != "SendStreamingMessage" {
					return []string{`"error":{"code":-32001,"message":"no such task"}`}
				}
				return []string{result}
			})
			got := newTalk(t, made(t, r), nil).say(ctx, "Hi")
			if _, ok := errors.AsType[*agent.PanicError](got.err); ok {
				t.Errorf("%s: %v", result, got.err)
			}
		}
	})
}
