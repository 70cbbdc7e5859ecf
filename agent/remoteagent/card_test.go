// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/refrain-dev/refrain/agent/remoteagent"
)

func source(s string) func(*remoteagent.A2AConfig) {
	return func(c *remoteagent.A2AConfig) { c.AgentCardSource = s }
}

// A26: the agent's card is found from its address, or is given.
func TestCardIsFound(t *testing.T) {
	r := serve(t, kinds[0], writes("x"))
	text, err := json.Marshal(r.card)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "card.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*remoteagent.A2AConfig){
		"below the address":         source(r.URL),
		"with a slash":              source(r.URL + "/"),
		"the card's own address":    source(r.URL + a2asrv.WellKnownAgentCardPath),
		"an interface of the agent": source(r.URL + "/invoke"),
		"a file":                    source(file),
		"given":                     func(c *remoteagent.A2AConfig) { c.AgentCardSource, c.AgentCard = "", r.card },
	} {
		if got := newTalk(t, made(t, r, change), nil).say(t.Context(), "Hi"); got.err != nil {
			t.Errorf("%s: %v", name, got.err)
		}
	}
	// Where there is another agent's card, it is not taken for this one's.
	got := newTalk(t, made(t, r, source(r.URL+"/other/agent")), nil).say(t.Context(), "Hi")
	if got.err == nil || !strings.Contains(got.err.Error(), "read agent card "+
		r.URL+"/other/agent/.well-known/agent-card.json: 404 Not Found, and there is no card of this agent at ") {
		t.Errorf("got %v", got.err)
	}
}

// Cards of before A2A 0.3 are in another place.
func TestCardInTheOldPlace(t *testing.T) {
	r := serve(t, kinds[4], writes("x"))
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		switch req.URL.Path {
		case a2asrv.WellKnownAgentCardPath:
			http.NotFound(w, req)
			return true
		case "/.well-known/agent.json":
			req.URL.Path = a2asrv.WellKnownAgentCardPath
		}
		return false
	})
	if got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi"); got.err != nil {
		t.Error(got.err)
	}
}

// A card cannot lead anywhere else, and what is secret does not go there.
func TestCardCannotLeadElsewhere(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for _, tt := range []struct {
		name, url, want string
		redirect        bool
	}{
		{"another host", elsewhere, `; if that is right, ask for the card there, or list it in Hosts`, false},
		{"another port", other.URL, `requests go to the server of the agent's card only: "` + other.URL + `" is not one of ["`, false},
		{"TLS on the same port", "https://HERE", `requests go to the server of the agent's card only: "https://127.0.0.1:`, false},
		{"a file", "file:///etc/passwd", "is neither http nor https", false},
		{"no host", "http:///x", "has no host", false},
		{"a redirect", elsewhere, `requests go to the server of the agent's card only: "http://localhost:`, true},
		{"a redirect to another port", other.URL, `requests go to the server of the agent's card only: "` + other.URL, true},
	} {
		r := serve(t, kinds[0], writes("x"))
		if tt.redirect {
			r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
				if req.Method == http.MethodPost {
					http.Redirect(w, req, tt.url, http.StatusTemporaryRedirect)
				}
				return req.Method == http.MethodPost
			})
		} else {
			r.card.SupportedInterfaces[0].URL = strings.Replace(tt.url, "HERE", strings.TrimPrefix(r.URL, "http://"), 1)
		}
		got := newTalk(t, made(t, r), nil).say(t.Context(), "Hi")
		if got.err == nil || !strings.Contains(got.err.Error(), tt.want) {
			t.Errorf("%s: got %v", tt.name, got.err)
		}
	}
	if asked != 0 {
		t.Errorf("the other host got %d requests", asked)
	}
	r := serve(t, kinds[0], writes("x"))
	there := strings.Replace(r.URL, "127.0.0.1", "localhost", 1)
	r.card.SupportedInterfaces[0].URL = there + "/invoke"
	for host, want := range map[string]bool{
		strings.TrimPrefix(there, "http://"): true, strings.ToUpper(there) + "/": true, "localhost": false, "https" + strings.TrimPrefix(there, "http"): false,
	} {
		got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) { c.Hosts = []string{host} }), nil).say(t.Context(), "Hi")
		if (got.err == nil) != want {
			t.Errorf("Hosts %q: got %v", host, got.err)
		}
	}
}

// A card that is given is trusted, and those that it names are not trusted to say
// who else gets what is secret.
func TestGivenCardDoesNotRedirectElsewhere(t *testing.T) {
	asked := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer other.Close()
	r := serve(t, kinds[0], nil)
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		http.Redirect(w, req, other.URL, http.StatusTemporaryRedirect)
		return true
	})
	got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) {
		c.AgentCardSource, c.AgentCard, c.Headers = "", r.card, map[string]string{"X-Api-Key": "sk-SECRET"}
	}), nil).say(t.Context(), "Hi")
	if got.err == nil || !strings.Contains(got.err.Error(), "requests go to the server of the agent's card only") || asked != 0 {
		t.Errorf("got %v, and %d requests elsewhere", got.err, asked)
	}
}

// What is asked over TLS is not asked without it, not even at the same port.
func TestNothingLeavesTLS(t *testing.T) {
	var s *httptest.Server
	s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		plain := "http" + strings.TrimPrefix(s.URL, "https")
		if req.Method == http.MethodPost || req.URL.Query().Has("redirect") {
			http.Redirect(w, req, plain, http.StatusTemporaryRedirect)
			return
		}
		if !req.URL.Query().Has("post") {
			fmt.Fprintf(w, `{"name": "x", "supportedInterfaces": [{"url": "%s/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}`, plain)
			return
		}
		fmt.Fprintf(w, `{"name": "x", "supportedInterfaces": [{"url": "%s/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}`, s.URL)
	}))
	defer s.Close()
	for _, query := range []string{"", "?redirect", "?post"} {
		a, err := remoteagent.NewA2A(remoteagent.A2AConfig{Name: "far", AgentCardSource: s.URL + "/card.json" + query, Client: s.Client()})
		if err != nil {
			t.Fatal(err)
		}
		got := newTalk(t, a, nil).say(t.Context(), "Hi")
		if got.err == nil || !strings.Contains(got.err.Error(), `requests go to the server of the agent's card only: "http://127.0.0.1:`) {
			t.Errorf("%q: got %v", query, got.err)
		}
	}
}

// What cannot be used says so.
func TestCardThatCannotBeUsed(t *testing.T) {
	for _, tt := range []struct {
		status int
		card   string
		want   string
	}{
		{200, `{"name": "x"}`, "the agent's card names no interface"},
		{200, `{"name": "x", "supportedInterfaces": [null]}`, "the agent's card names no interface"},
		{200, `{"name": "x", "supportedInterfaces": [{"url": "HERE/x", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]}`, "JSONRPC and HTTP+JSON can"},
		{200, `{"name": "x", "supportedInterfaces": [{"url": "HERE/x", "protocolBinding": "JSONRPC", "protocolVersion": "7.0"}]}`, "JSONRPC and HTTP+JSON can"},
		{200, `hello`, "invalid character"},
		{401, `{}`, "401 Unauthorized; give what the agent wants to see in Headers"},
		{503, `{}`, "503 Service Unavailable"},
		{200, `{"name": "` + strings.Repeat("x", 2000) + `"}`, "the answer is longer than the limit of 1000 bytes"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, strings.ReplaceAll(tt.card, "HERE", "http://"+req.Host))
		}))
		a, err := remoteagent.NewA2A(remoteagent.A2AConfig{Name: "far", AgentCardSource: s.URL + "/?token=secret", SizeLimit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		got := newTalk(t, a, nil).say(t.Context(), "Hi")
		if got.err == nil || !strings.Contains(got.err.Error(), tt.want) || strings.Contains(got.err.Error(), "secret") {
			t.Errorf("%s: got %v", tt.card[:min(60, len(tt.card))], got.err)
		}
		s.Close()
	}
}

func TestConfig(t *testing.T) {
	for _, tt := range []struct {
		cfg  remoteagent.A2AConfig
		want string
	}{
		{remoteagent.A2AConfig{Name: "far"}, `A2A agent "far": AgentCardSource is empty, and there is no AgentCard`},
		{remoteagent.A2AConfig{Name: "user", AgentCardSource: "x.json"}, `cannot be named "user"`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", AgentCard: &a2a.AgentCard{}}, "both AgentCard and AgentCardSource are set"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "ftp://x/y"}, `AgentCardSource: "ftp://x/y" is no URL of http or https`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://"}, "does not start with http:// or https:// and a host"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://{{host}}/x"}, "a value cannot choose the server"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x.{{host}}/x"}, "a value cannot choose the server"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://ana:secret@x/y"}, "send them in a header"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "{{file}}"}, "is no URL"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x/{{#a}}b{{/a}}"}, "a URL cannot have sections"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x/{{a"}, "AgentCardSource: 1:11: {{a is not closed"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Payload: map[string]any{"a": []any{"{{b"}}}, `Payload["a"][0]: 1:1: {{b is not closed`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Payload: make(chan int)}, "Payload: json: unsupported type"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Headers: map[string]string{"a b": "", "host": ""}}, `Headers["a b"]: not a name of a header`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", SizeLimit: -1}, "SizeLimit is negative"},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Hosts: []string{"http://y"}}, `Hosts: "http://y" must be https`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Hosts: []string{"y/z"}}, `Hosts: "y/z" is not a server such as`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Hosts: []string{""}}, `Hosts: "" is not a server such as`},
		{remoteagent.A2AConfig{Name: "far", AgentCardSource: "https://x", Hosts: []string{"ftp://y"}}, `Hosts: "ftp://y" is neither http nor https`},
	} {
		if _, err := remoteagent.NewA2A(tt.cfg); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

// An answer is bounded, however it comes.
func TestSizeLimit(t *testing.T) {
	for _, kind := range kinds {
		r := serve(t, kind, writes(strings.Repeat("x", 3000), strings.Repeat("y", 3000)))
		got := newTalk(t, made(t, r, func(c *remoteagent.A2AConfig) { c.SizeLimit = 5000 }), nil).say(t.Context(), "Hi")
		if limit, ok := errors.AsType[*remoteagent.LimitError](got.err); !ok || limit.Limit != 5000 {
			t.Errorf("%s: got %v", kind.name, got.err)
		}
	}
}
