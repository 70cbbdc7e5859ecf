// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver is a webhook on this machine. What it answers to each request is a
// matter of the test.
type receiver struct {
	*httptest.Server
	*testing.T

	mu     sync.Mutex
	events []hook.Event
	heads  []http.Header
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	r := &receiver{T: t}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var ev hook.Event
		if err == nil {
			err = json.Unmarshal(body, &ev)
		}
		if err != nil {
			t.Errorf("%s %s: %v", req.Method, body, err)
		}
		wh, _ := standardwebhooks.NewWebhook(secret)
		if req.Header.Get("webhook-signature") != "" {
			if err := wh.Verify(body, req.Header); err != nil {
				t.Error(err)
			}
		}
		r.mu.Lock()
		r.events, r.heads = append(r.events, ev), append(r.heads, req.Header)
		r.mu.Unlock()
		if answer != nil {
			answer(w, req)
		}
	}))
	t.Cleanup(func() {
		r.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return r
}

func (r *receiver) hook(cfg hook.WebhookConfig) *hook.Hook {
	r.Helper()
	if cfg.URL == "" {
		cfg.URL = r.URL + "/in?key=hidden"
	}
	h, err := hook.NewWebhook(cfg)
	if err != nil {
		r.Fatal(err)
	}
	return h
}

func say(words string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, words) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

var told = hook.Event{ID: "call-abc-before_tool", Type: hook.BeforeTool, Data: hook.Data{
	Run: "e-1", Session: "s1", Agent: "writer", Address: "refine[2]/writer", Iteration: 2, Score: new(7.5),
	Tool: &hook.Tool{Name: "send_mail", CallID: "c1", Args: map[string]any{"to": "ana"}},
}}

// E7: what is told is signed as Standard Webhooks say, with an ID by which whoever
// is told knows a repetition.
func TestWebhookIsSigned(t *testing.T) {
	r := newReceiver(t, nil)
	h := r.hook(hook.WebhookConfig{Secret: secret})
	for range 2 {
		if err := h.Call(t.Context(), told); err != nil {
			t.Fatal(err)
		}
	}
	for i, head := range r.heads {
		if head.Get("webhook-id") != told.ID || head.Get("webhook-signature") == "" || head.Get("Content-Type") != "application/json" {
			t.Errorf("headers: %v", head)
		}
		if since := time.Since(r.events[i].Timestamp); since < 0 || since > time.Minute {
			t.Errorf("it says that it is of %s", r.events[i].Timestamp)
		}
		r.events[i].Timestamp = time.Time{}
		if diff := cmp.Diff(told, r.events[i]); diff != "" {
			t.Error(diff)
		}
	}
	if len(r.heads) != 2 {
		t.Errorf("it was told %d times", len(r.heads))
	}
	if got := h.String(); got != "webhook "+r.URL+"/…" {
		t.Errorf("it is called %q", got)
	}
	plain := r.hook(hook.WebhookConfig{})
	if err := plain.Call(t.Context(), told); err != nil || r.heads[2].Get("webhook-signature") != "" || r.heads[2].Get("webhook-id") == "" {
		t.Errorf("without a secret: %v, %v", err, r.heads[2])
	}
}

// E7: a veto stops what is to be done. Whoever is asked for one and does not
// answer as it should stops it too, unless that is not wanted.
func TestVeto(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answer  http.HandlerFunc
		onError hook.OnError
		veto    string // the reason
		fails   string
		passed  string // over
	}{
		{name: "a veto", answer: say(`{"veto": true, "reason": "not on\u001b[31m Fridays"}`), veto: "not on[31m Fridays"},
		{name: "a veto where errors do not count", answer: say(`{"veto": true}`), onError: hook.Continue, veto: ""},
		{name: "no veto", answer: say(`{"veto": false}`), veto: "-"},
		{name: "no veto, with words", answer: say(" {\"reason\": \"fine\", \"veto\": false}\n"), veto: "-"},
		{name: "another question", answer: say(`{"approved": false}`), veto: "-", fails: `the value at "/approved" does not belong there`},
		{name: "no answer", answer: say(`{}`), veto: "-", fails: "it does not say veto"},
		{name: "a reason for nothing", answer: say(`{"reason": "no"}`), veto: "-", fails: "it does not say veto"},
		{name: "null", answer: say(`null`), veto: "-", fails: "it does not say veto"},
		{name: "a list", answer: say(`[{"veto": false}]`), veto: "-", fails: "does not belong there"},
		{name: "both", answer: say(`{"veto":true,"veto":false}`), veto: "-", fails: `duplicate object member name "veto"`},
		{name: "a veto of null", answer: say(`{"veto": null}`), veto: "-", fails: "it does not say veto"},
		{name: "a veto that is a map", answer: say(`{"veto": {"is": true}}`), veto: "-", fails: `the value at "/veto" does not belong there`},
		{name: "in capitals", answer: say(`{"VETO": true, "veto": false}`), veto: "-", fails: `the value at "/VETO"`},
		{name: "a reason that is a number", answer: say(`{"veto": false, "reason": 1}`), veto: "-", fails: `the value at "/reason" does not belong there`},
		{name: "two answers", answer: say(`{"veto": false}{"veto": true}`), veto: "-", fails: "after top-level value"},
		{name: "half an answer", answer: say(`{"veto": false`), veto: "-", fails: "unexpected EOF"},
		{name: "no comma", answer: say(`{"veto": false "reason": ""}`), veto: "-", fails: "neither empty nor JSON"},
		{name: "nothing", answer: status(http.StatusNoContent), veto: "-"},
		{name: "no JSON", answer: say("nope"), veto: "-", fails: "neither empty nor JSON"},
		{name: "a veto in words", answer: say(`{"veto": "true"}`), veto: "-", fails: "neither empty nor JSON"},
		{name: "too much", answer: say(strings.Repeat(" ", 70_000)), veto: "-", fails: "longer than 65536 bytes"},
		{name: "out of order", answer: status(http.StatusServiceUnavailable), veto: "-", fails: "it answered 503 Service Unavailable"},
		{name: "out of order, and no matter", answer: status(http.StatusServiceUnavailable), onError: hook.Continue, veto: "-", passed: "it answered 503"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t, tt.answer)
			var passed string
			h := r.hook(hook.WebhookConfig{Secret: secret, Config: hook.Config{Veto: true, OnError: tt.onError, Failed: func(err error) { passed = err.Error() }}})
			err := h.Call(t.Context(), told)
			veto, stops := errors.AsType[*hook.VetoError](err)
			switch {
			case tt.veto != "-":
				if !stops || veto.Reason != tt.veto || !strings.HasPrefix(err.Error(), "webhook "+r.URL+"/… vetoes the tool call") || !veto.Permanent() {
					t.Errorf("got error %v", err)
				}
			case tt.fails != "":
				if err == nil || stops || !strings.Contains(err.Error(), tt.fails) || strings.Contains(err.Error(), "hidden") {
					t.Errorf("got error %v", err)
				}
			case err != nil:
				t.Errorf("got error %v", err)
			}
			if !strings.Contains(passed, tt.passed) || tt.passed == "" && passed != "" {
				t.Errorf("passed over: %q", passed)
			}
			if len(r.events) != 1 {
				t.Errorf("asked %d times", len(r.events))
			}
		})
	}
}

// says is an http.Client's way to a server that gives one answer.
type says string

func (s says) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(s))), Request: req}, nil
}

// FuzzVerdict: nothing passes a gate but what says so and nothing else.
func FuzzVerdict(f *testing.F) {
	for _, s := range []string{``, `{"veto":false}`, `{"veto":true,"veto":false}`, `null`, `{"approved":false}`,
		`{"veto":false,"reason":"x"} `, `{"veto":{"veto":false}`, `{"\u0076eto":false}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		h, err := hook.NewWebhook(hook.WebhookConfig{URL: "http://gate/", Config: hook.Config{Veto: true}, Client: &http.Client{Transport: says(answer)}})
		if err != nil {
			t.Fatal(err)
		}
		if h.Call(t.Context(), told) != nil || strings.TrimSpace(answer) == "" {
			return
		}
		var v map[string]any
		err = json.Unmarshal([]byte(answer), &v)
		delete(v, "reason")
		if err != nil || len(v) != 1 || v["veto"] != false || strings.Count(answer, ":") > 1 && !strings.Contains(answer, "reason") &&
			!strings.Contains(answer, `\`) {
			t.Errorf("%s lets pass", answer)
		}
	})
}

// A hook that only watches stops nothing, whatever it answers.
func TestWatchingStopsNothing(t *testing.T) {
	r := newReceiver(t, say(`{"veto": true}`))
	if err := r.hook(hook.WebhookConfig{}).Call(t.Context(), told); err != nil {
		t.Error(err)
	}
	after := told
	after.Type = hook.AfterTool
	if err := r.hook(hook.WebhookConfig{Config: hook.Config{Veto: true}}).Call(t.Context(), after); err != nil {
		t.Errorf("what is done cannot be stopped: %v", err)
	}
}

// E7: what is over is told once more if the server is out of order, as the same
// message.
func TestToldAgain(t *testing.T) {
	for code, want := range map[int]int{http.StatusBadGateway: 2, http.StatusForbidden: 1} {
		n := 0
		r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
			if n++; n == 1 {
				w.WriteHeader(code)
			}
		})
		ev := told
		ev.Type, ev.ID = hook.AfterTool, "call-abc-after_tool"
		failed := 0
		err := r.hook(hook.WebhookConfig{Secret: secret, Config: hook.Config{Failed: func(error) { failed++ }}}).Call(t.Context(), ev)
		if err != nil || len(r.events) != want || failed != 2-want {
			t.Errorf("after %d: told %d times, %d failed, %v", code, len(r.events), failed, err)
		}
		if want == 2 && cmp.Diff(r.events[0], r.events[1]) != "" {
			t.Errorf("told %+v and then %+v", r.events[0], r.events[1])
		}
	}
}

// A hook that does not answer in time, and one that is asked while the run is
// canceled.
func TestNoAnswer(t *testing.T) {
	held := make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, req *http.Request) {
		select {
		case <-held:
		case <-req.Context().Done():
		}
	})
	defer close(held)
	h := r.hook(hook.WebhookConfig{Config: hook.Config{Veto: true, Timeout: 50 * time.Millisecond}})
	if err := h.Call(t.Context(), told); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it did not answer in 50ms") {
		t.Errorf("got error %v", err)
	}
	why := errors.New("somebody has canceled it")
	lenient := r.hook(hook.WebhookConfig{Config: hook.Config{Failed: func(err error) { t.Error(err) }}})
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	if err := lenient.Call(ctx, told); err != why {
		t.Errorf("got error %v", err)
	}
	if err := lenient.Call(ctx, told); err != why {
		t.Errorf("got error %v", err)
	}
}

// A redirect leads to no other server, and does not turn the message into
// another request.
func TestRedirects(t *testing.T) {
	other := newReceiver(t, nil)
	for _, tt := range []struct {
		to    func(r *receiver) string
		code  int
		fails string
		asked int
	}{
		{func(r *receiver) string { return r.URL + "/new" }, http.StatusTemporaryRedirect, "", 2},
		{func(r *receiver) string { return r.URL + "/in" }, http.StatusPermanentRedirect, "it answered 308", 4},
		{func(r *receiver) string { return other.URL + "/new" }, http.StatusTemporaryRedirect, "it redirects to another server, " + other.URL + "/…, which", 1},
		{func(r *receiver) string { return r.URL + "/new" }, http.StatusFound, "it answered 302", 1},
	} {
		var r *receiver
		r = newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/in" {
				http.Redirect(w, req, tt.to(r), tt.code)
			}
		})
		err := r.hook(hook.WebhookConfig{Secret: secret, Config: hook.Config{OnError: hook.Fail}}).Call(t.Context(), told)
		if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%d: got error %v", tt.code, err)
		}
		if len(r.events) != tt.asked {
			t.Errorf("%d: it was told %d times, want %d", tt.code, len(r.events), tt.asked)
		}
	}
	if len(other.events) > 0 {
		t.Error("the other server was told")
	}
}

// What is told over TLS is not told again without it, not even to the same port.
func TestRedirectThatLeavesTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://"+req.Host+"/", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	h, err := hook.NewWebhook(hook.WebhookConfig{URL: s.URL, Client: s.Client(), Config: hook.Config{OnError: hook.Fail}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Call(t.Context(), told); err == nil || !strings.Contains(err.Error(), "it redirects to another server, http://") {
		t.Errorf("got error %v", err)
	}
}

// With many services the path of the address is the secret, and a server repeats
// it: nobody is shown it.
func TestAddressIsSecret(t *testing.T) {
	const path = "/services/T0/B0/PATHSECRET"
	r := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Query().Get("key") {
		case "veto-4711":
			fmt.Fprintf(w, `{"veto": true, "reason": "not at %s"}`, req.URL)
		case "mute-4711":
			fmt.Fprintf(w, `{"%s": true}`, req.URL.Path)
		case "lost-4711":
			w.Header().Set("Location", "http://["+req.URL.Path)
			w.WriteHeader(http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, url := range []string{gone.URL + path, r.URL + path, r.URL + path + "?key=veto-4711", r.URL + path + "?key=mute-4711",
		r.URL + path + "?key=lost-4711"} {
		h := r.hook(hook.WebhookConfig{URL: url, Config: hook.Config{Veto: true}})
		if h.String() != "webhook "+strings.TrimSuffix(url, url[strings.Index(url, "/services"):])+"/…" {
			t.Errorf("it is called %s", h)
		}
		err := h.Call(t.Context(), told)
		if err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "-4711") {
			t.Errorf("%s: got error %v", url, err)
		}
	}
}

// What cannot be a webhook is refused, in words without its secrets.
func TestWebhookConfig(t *testing.T) {
	for _, cfg := range []hook.WebhookConfig{
		{URL: ""}, {URL: "ftp://u:hidden@h/"}, {URL: "https:///hidden"}, {URL: "http://h:hidden/"},
		{URL: "http://h", Secret: "not base64: hidden"}, {URL: "http://h", Secret: "whsec_aGlkZGVu"},
		{URL: "http://h", Config: hook.Config{Timeout: -1}}, {URL: "http://h", Config: hook.Config{OnError: "retry"}},
	} {
		h, err := hook.NewWebhook(cfg)
		if err == nil || strings.Contains(fmt.Sprint(err), "hidden") {
			t.Errorf("%+v: %v, %v", cfg, h, err)
		}
	}
}
