// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
)

// listening serves a server on a port of its own until the test has ended.
func (s *site) listening(l net.Listener) {
	s.Helper()
	served, srv := make(chan error, 1), s.Server
	go func() { served <- srv.Serve(l) }()
	s.Cleanup(func() {
		if err := srv.Shutdown(context.Background()); err != nil && !strings.Contains(err.Error(), "closed") {
			s.Error(err)
		}
		if err := <-served; err != nil {
			s.Error(err)
		}
	})
}

// port listens on a port of this machine.
func (s *site) port() net.Listener {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// dial connects to a server, and writes something.
func (s *site) dial(l net.Listener, text string) net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(soon))
	_, _ = io.WriteString(conn, text)
	return conn
}

// unfinished is a request whose body does not come.
func unfinished(method, path, header string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", method, path, header)
}

// Connections with unfinished bodies, which nobody with the token has sent, keep nobody out, and are closed.
func TestSlowBodiesWithoutATokenHoldNoPlace(t *testing.T) {
	const most = 512
	s := open(t, nil, func(c *server.Config) { c.Token, c.MaxConns = "correct-horse-battery", most })
	l := s.port()
	s.listening(l)
	requests := []string{
		unfinished("POST", "/api/v1/runs", ""),
		unfinished("POST", "/api/v1/runs", "Authorization: Bearer wrong\r\n"),
		unfinished("POST", "/api/v1/runs", "Origin: https://evil.example\r\n"),
		unfinished("GET", "/healthz", ""),
		unfinished("POST", "/healthz", ""),
		unfinished("POST", "/", ""),
		unfinished("POST", "/mcp", ""),
		"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /api/v1/runs HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n",
		"GET /healthz HTTP/1.1\r\nHost: local",
	}
	var held []net.Conn
	for i := range 2 * most {
		held = append(held, s.dial(l, requests[i%len(requests)]))
		if i%100 == 0 {
			resp, err := http.ReadResponse(bufio.NewReader(s.dial(l, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")), nil)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("behind %d slow bodies: %v, %v", i, resp, err)
			}
		}
	}
	for i, conn := range held {
		if strings.HasSuffix(requests[i%len(requests)], "local") {
			continue // its head has ten seconds
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("connection %d stays open: %q", i, requests[i%len(requests)])
		}
	}
}

// Whoever sends a request that is refused reads the answer, also behind a body.
func TestRefusedBodiesGetTheAnswer(t *testing.T) {
	s := open(t, nil, func(c *server.Config) { c.Token = "correct-horse-battery" })
	l := s.port()
	s.listening(l)
	for _, body := range []int{0, 1000, 200_000} {
		conn := s.dial(l, fmt.Sprintf("POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", body, strings.Repeat("x", body)))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || !resp.Close {
			t.Errorf("%d bytes: %v, %v", body, resp, err)
		}
	}
}

// A body that a handler reads has its time, too, which ends with the body: a request may take longer.
func TestBodiesHaveTheirTime(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(1)}, private, func(c *server.Config) { c.ReadTimeout = 200 * time.Millisecond })
	l := s.port()
	s.listening(l)
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"watch","arguments":{"run":"` + id + `"}}}`
	waits := s.dial(l, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(call), call))
	resp, err := http.ReadResponse(bufio.NewReader(s.dial(l, unfinished("POST", "/api/v1/runs", ""))), nil)
	if err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("an unfinished body: %v, %v", resp, err)
	}
	g.let <- struct{}{}
	if resp, err = http.ReadResponse(bufio.NewReader(waits), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the request that waits: %v, %v", resp, err)
	}
	if body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16)); err != nil || !strings.Contains(string(body), `completed`) {
		t.Errorf("it got %s, %v", body, err)
	}
}

// A connection whose request is answered keeps its place, however many come; they get the places of idle ones.
func TestManyConnections(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.MaxConns = 8 })
	l := s.port()
	s.listening(l)
	var streams []*bufio.Reader
	stream := func() {
		t.Helper()
		r := bufio.NewReader(s.dial(l, "GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"))
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		streams = append(streams, r)
	}
	for range 3 {
		stream()
	}
	for range 1000 {
		s.dial(l, "")
		resp, err := http.ReadResponse(bufio.NewReader(s.dial(l, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
	}
	id := s.run(map[string]any{"definition": "counting"}).Run
	for _, r := range streams {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Fatalf("a stream was closed: %v", err)
			}
			if strings.Contains(line, id) {
				break
			}
		}
	}
	s.logged("a connection was closed", "there are too many")
	if n := strings.Count(s.logs.String(), "there are too many"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	stream() // where all places are in use, a new connection is closed
	_, err := http.ReadResponse(bufio.NewReader(s.dial(l, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")), nil)
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection beyond the limit: %v", err)
	}
}

// A client without the token may try twenty times, and then once a second; the right token always counts.
// What was refused is counted, and logged once a minute.
func TestGuessesAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const token = "correct-horse-battery"
		logs, refused := new(logs), new(atomic.Int64)
		srv, err := server.New(server.Config{
			Config: operations.Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: t.TempDir(),
				Log: slog.New(slog.NewTextHandler(logs, nil))},
			Token: token, Refused: func(string) { refused.Add(1) },
		})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(from, token string) int {
			w := httptest.NewRecorder()
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/api/v1/server", nil)
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+token)
			srv.Handler().ServeHTTP(w, r)
			return w.Code
		}
		count := func(from string) (n int) {
			for range 100 {
				if ask(from, "wrong") == http.StatusUnauthorized {
					n++
				}
				if got := ask(from, token); got != http.StatusOK {
					t.Fatalf("the right token: %d", got)
				}
			}
			return n
		}
		for _, tt := range []struct {
			from string
			want int
		}{{"192.0.2.1:1", 20}, {"192.0.2.1:2", 0}, {"192.0.2.2:1", 20}, {"[2001:db8::1]:1", 20}, {"[2001:db8::2]:1", 0}, {"[2001:db8:0:1::1]:1", 20}} {
			if got := count(tt.from); got != tt.want {
				t.Errorf("%s had %d tries, want %d", tt.from, got, tt.want)
			}
		}
		time.Sleep(5 * time.Second)
		if got := count("192.0.2.1:1"); got != 5 {
			t.Errorf("after five seconds it had %d tries", got)
		}
		if n := strings.Count(logs.String(), "\n"); n != 2 {
			t.Errorf("the log has %d lines, one for each kind: %s", n, logs)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		text := logs.String()
		if n := strings.Count(text, "\n"); n != 4 || !strings.Contains(text, "count=84") || !strings.Contains(text, "count=614") {
			t.Errorf("after a minute: %s", text)
		}
		if refused.Load() != 700 {
			t.Errorf("%d were counted", refused.Load())
		}
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// stalled is a client that has read the head of a stream, and nothing more until it is let go.
type stalled struct {
	header  http.Header
	begins  chan<- struct{} // a value for each piece that was read
	stalls  chan<- struct{}
	release <-chan struct{}
	once    sync.Once
}

func (c *stalled) Header() http.Header { return c.header }
func (c *stalled) WriteHeader(int)     {}
func (c *stalled) Flush()              {}

func (c *stalled) Write(b []byte) (int, error) {
	if len(b) < 10_000 {
		select {
		case c.begins <- struct{}{}:
		default:
		}
		return len(b), nil
	}
	c.once.Do(func() { c.stalls <- struct{}{} })
	<-c.release
	return 0, os.ErrDeadlineExceeded
}

// Readers that do not read cost little, are dropped, and the log says why.
func TestReadersThatDoNotReadCostLittle(t *testing.T) {
	const readers, each = 50, 160 << 10
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(20) + "  - {name: say, text: \"" + strings.Repeat("long ", 4000) + "\", output_key: said}\n"}, private)
	id := s.run(map[string]any{"definition": "gated"}).Run
	<-g.came
	begun := len(s.log(id)) // what follows is kept for readers
	begins, stalls, release := make(chan struct{}, 1), make(chan struct{}, readers), make(chan struct{})
	var all sync.WaitGroup
	join := func() {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", fmt.Sprintf("http://localhost/api/v1/runs/%s/events?after=%d", id, begun), nil)
		r.Header.Set("Accept", "text/event-stream")
		c := &stalled{header: make(http.Header), begins: begins, stalls: stalls, release: release}
		all.Go(func() { s.Handler().ServeHTTP(c, r) })
	}
	join()
	<-begins
	for range 20 {
		g.let <- struct{}{}
	}
	<-stalls
	if got := s.wait(id); got != "completed" {
		t.Fatal(got)
	}
	before := heapInUse()
	for range readers {
		join()
		<-stalls
	}
	cost := (heapInUse() - before) / readers
	t.Logf("a reader costs %d bytes", cost)
	if cost > each {
		t.Errorf("a reader costs %d bytes, want at most %d", cost, each)
	}
	close(release)
	all.Wait()
	s.logged("a client was dropped", "it has read nothing for 10s", id)
	if left := (heapInUse() - before) / readers; left > each/8 {
		t.Errorf("of a reader that has gone, %d bytes are left", left)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A token that can be guessed is refused at the start, with how to make a good one.
func TestShortTokens(t *testing.T) {
	cfg := server.Config{Token: "0123456789abcde",
		Config: operations.Config{Service: session.InMemoryService(), AppName: "app", UserID: "ana", Dir: t.TempDir()}}
	if _, err := server.New(cfg); err == nil || !strings.Contains(err.Error(), "15 characters") || !strings.Contains(err.Error(), "openssl rand") {
		t.Errorf("got %v", err)
	}
	cfg.Token += "f"
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
