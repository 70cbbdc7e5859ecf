// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// counting is the text of a definition without models, with n iterations of two steps.
const counting = `name: counting
max_iterations: 40
state: {n: 0}
sub_agents:
  - name: count
    set: {n: state.n + 1}
  - name: say
    text: "It is {{n}}."
    output_key: said
`

// site is a server under test.
type site struct {
	testing.TB
	*server.Server
	url   string
	dir   string
	store session.Service
	logs  *logs

	clients int // with an address of their own: see try
}

// logs is what a server has logged.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// open serves a folder with definitions, by their names.
func open(t testing.TB, definitions map[string]string, change ...func(*server.Config)) *site {
	t.Helper()
	dir := t.TempDir()
	for name, text := range definitions {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &site{TB: t, dir: dir, store: session.InMemoryService(), logs: new(logs)}
	s.start(change...)
	return s
}

// start starts the server, again if it was stopped.
func (s *site) start(change ...func(*server.Config)) {
	s.Helper()
	cfg := server.Config{Config: operations.Config{
		Service: s.store, AppName: "app", UserID: "ana", Dir: s.dir, Leases: supervisor.Leases{Owner: "the test", Dead: func(string) bool { return false }},
		Getenv: func(string) string { return "" }, Log: slog.New(slog.NewTextHandler(s.logs, nil)),
	}}
	for _, f := range change {
		f(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		s.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	s.Server, s.url = srv, web.URL
	s.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // cuts off what is running
		if err := srv.Shutdown(ctx); err != nil && !strings.Contains(err.Error(), "closed") {
			s.Error(err)
		}
		web.Close()
	})
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request. The body is a text as it is, or else JSON. Headers come in pairs.
// write writes a file of the folder.
func (s *site) write(name, text string) {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *site) do(method, path string, body any, headers ...string) answer {
	s.Helper()
	var in io.Reader
	kind := ""
	switch v := body.(type) {
	case nil:
	case string:
		in, kind = strings.NewReader(v), "application/yaml"
	default:
		text, err := json.Marshal(v)
		if err != nil {
			s.Fatal(err)
		}
		in, kind = bytes.NewReader(text), "application/json"
	}
	req, err := http.NewRequestWithContext(s.Context(), method, s.url+path, in)
	if err != nil {
		s.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

// get sends a request that has to succeed, and reads the answer into v if that is not nil.
func (s *site) ok(method, path string, body, v any, headers ...string) answer {
	s.Helper()
	got := s.do(method, path, body, headers...)
	if got.status >= 300 {
		s.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
	}
	if v != nil {
		if err := json.Unmarshal(got.body, v); err != nil {
			s.Fatalf("%s %s: %v\n%s", method, path, err, got.body)
		}
	}
	return got
}

// refused sends a request that has to fail, with a status and a kind of problem.
func (s *site) refused(status int, kind, method, path string, body any, headers ...string) string {
	s.Helper()
	got := s.do(method, path, body, headers...)
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal(got.body, &p); err != nil {
		s.Fatalf("%s %s: %d %s: %v", method, path, got.status, got.body, err)
	}
	if got.status != status || p.Status != status || p.Type != "urn:refrain:"+kind || p.Title == "" ||
		got.header.Get("Content-Type") != "application/problem+json" {
		s.Errorf("%s %s: got %d %s, want %d %s", method, path, got.status, got.body, status, kind)
	}
	return p.Detail
}

// listed is a row of the list of runs.
type listed struct {
	Run        string          `json:"run"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	StopReason string          `json:"stop_reason"`
	Error      string          `json:"error"`
	Iteration  int             `json:"iteration"`
	Waits      []mark.Question `json:"waits"`
}

// run starts a run.
func (s *site) run(req map[string]any, headers ...string) listed {
	s.Helper()
	var row listed
	s.ok("POST", "/api/v1/runs", req, &row, headers...)
	return row
}

// wait waits until a run has ended, is paused or waits, and returns its status.
func (s *site) wait(id string) string {
	s.Helper()
	run, err := s.Supervisor().Wait(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return string(run.Status)
}

// log is the events of a run as the store has them.
func (s *site) log(id string) (events []*session.Event) {
	s.Helper()
	got, err := s.store.Get(s.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: id})
	if err != nil {
		s.Fatal(err)
	}
	for ev := range session.ViewOf(got.Session).Log().All() {
		events = append(events, ev)
	}
	return events
}

// message is a server-sent event.
type message struct {
	id          int64
	event, data string
}

// listen yields the messages of a stream until the consumer has enough.
func (s *site) listen(ctx context.Context, path string, last int64, each func(message) bool) {
	s.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	if last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatInt(last, 10))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		s.Fatalf("%s: %d %s", path, resp.StatusCode, text)
	}
	var m message
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			m.id, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			m.event = value
		case "data":
			m.data = value
		case "":
			if m.event != "" && !each(m) {
				return
			}
			m = message{}
		}
	}
}

// gate is an HTTP server that answers when it is told to.
type gate struct {
	url  string
	came chan struct{} // a value for each request
	let  chan struct{} // a value lets one request through
}

func newGate(t testing.TB) *gate {
	g := &gate{came: make(chan struct{}, 1000), let: make(chan struct{}, 1000)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.came <- struct{}{}
		select {
		case <-g.let:
			fmt.Fprintln(w, "passed")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	g.url = web.URL
	return g
}

// gated is a definition whose step passes the gate in each iteration.
func (g *gate) gated(iterations int) string {
	return fmt.Sprintf(`name: gated
max_iterations: %d
state: {n: 0}
sub_agents:
  - name: count
    set: {n: state.n + 1}
  - name: pass
    url: %s
    output_key: passed
`, iterations, g.url)
}

func private(cfg *server.Config) { cfg.AllowPrivate = true }

// soon is how long something may take that has to happen.
const soon = time.Minute
