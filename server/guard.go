// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/list"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
)

// policy is what a browser may load for the page: what comes from here, and nothing else.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'"

// guarded lets requests through that may come in: to one of the server's names, so that no other
// name can be pointed here (DNS rebinding); from no page of another origin, if they change
// something; and with the token, if there is one. All that a client sends and reads has its time.
func (s *Server) guarded(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := &timely{ResponseWriter: rw, s: s, r: r}
		_ = w.extend() // also for an answer of which nothing is written
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if trustworthy(r) {
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
		}
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		if closed(r) {
			h.Set("Cache-Control", "no-store")
		}
		var p *problem.Problem
		switch {
		case !s.named(r.Host):
			p = problem.New(http.StatusMisdirectedRequest, "wrong_host", "This server has another name",
				"it does not answer for this Host; start it with --host to give it one more name")
		case origin.Check(r) != nil || !sameScheme(r):
			p = problem.New(http.StatusForbidden, "cross_origin", "Another page may not do that",
				"the request comes from a page of another origin")
		case s.cfg.Token != "" && closed(r) && !s.proven(r):
			p = s.unproven(r)
		}
		switch read := p == nil && closed(r); { // by its handler
		case r.ContentLength != 0 && read:
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.ReadTimeout))
			r.Body = &timedBody{r.Body, w, r}
		case r.ContentLength != 0:
			wire.Unread(w)
		case read:
			letIn(r.Context())
		}
		if p != nil {
			h.Set("Connection", "close")
			s.Refuse(w, r, p)
			return
		}
		next.ServeHTTP(w, r.WithContext(operations.WithCaller(r.Context(), s.callerOf(r))))
	})
}

// The names of callers whose token has none.
const (
	callerToken = "token"
	callerLocal = "local"
)

// callerOf returns who sends a request that was let in.
func (s *Server) callerOf(r *http.Request) operations.Caller {
	c := operations.Caller{Name: callerToken, Address: r.RemoteAddr, Via: r.Method + " " + r.URL.Path, Agent: fromAgent(r.URL.Path)}
	if s.cfg.Token == "" {
		c.Name = callerLocal
	}
	return c
}

// fromAgent reports whether a path belongs to a protocol that agents speak: MCP, A2A or ADK's API. People use the page and the
// API below v1Path.
func fromAgent(path string) bool {
	return path == mcpPath || strings.HasPrefix(path, a2aPath) || strings.HasPrefix(path, adkPath) && !strings.HasPrefix(path, v1Path)
}

// timedBody is a body with a deadline, which ends with the body. Until then the request does not count as
// let in: see [conns].
type timedBody struct {
	io.ReadCloser
	w http.ResponseWriter
	r *http.Request
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{})
		letIn(b.r.Context())
	}
	return n, err
}

// closed reports whether a request needs the token, if there is one: a request to the API, from a client of MCP or A2A, or for the
// metrics. The page itself has no secrets, and the health checks must work without a token. The
// card of an agent says what the folder holds, and the metrics what it costs, which is nobody's business
// without the token.
func closed(r *http.Request) bool {
	path := r.URL.Path
	return strings.HasPrefix(path, adkPath) || path == mcpPath || strings.HasPrefix(path, a2aPath) || path == cardPath ||
		path == metricsPath
}

// trustworthy reports whether a browser takes the page's origin for safe: it is reached by TLS, if only
// up to a proxy, or on this machine. Elsewhere Chromium calls an opener policy an error.
func trustworthy(r *http.Request) bool {
	host := hostname(r.Host)
	addr, err := netip.ParseAddr(host)
	return schemeOf(r) == "https" || host == "localhost" || err == nil && addr.IsLoopback()
}

// schemeOf is how the client reaches the server, if only up to a proxy.
func schemeOf(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}

// sameScheme refuses a change by a page that was loaded with another scheme. A browser that says itself
// that the origin is the same is believed.
func sameScheme(r *http.Request) bool {
	origin, safe := r.Header.Get("Origin"), r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	return origin == "" || safe || r.Header.Get("Sec-Fetch-Site") != "" || strings.HasPrefix(origin, schemeOf(r)+"://")
}

// hostname is a Host without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// named reports whether the server has the name that a request is for.
func (s *Server) named(host string) bool {
	host = hostname(host)
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || s.cfg.AnyAddress || slices.Contains(s.cfg.Hosts, host)
	}
	return host == "localhost" || slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// proven reports whether a request has the token. It takes the same time for every wrong token.
func (s *Server) proven(r *http.Request) bool {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	return ok && strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// timely gives a client the same time for each piece of an answer, and drops a client that does not
// read.
type timely struct {
	http.ResponseWriter
	s *Server
	r *http.Request

	dropped bool
}

// extend gives the client the time for another piece.
func (t *timely) extend() error {
	err := http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.s.cfg.WriteTimeout))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (t *timely) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, chunk) {
		if err := t.extend(); err != nil {
			return written, err
		}
		n, err := t.ResponseWriter.Write(piece)
		if written += n; err != nil {
			return written, t.tells(err)
		}
	}
	return written, nil
}

// WriteHeader also starts the time of an answer without a body.
func (t *timely) WriteHeader(status int) {
	_ = t.extend()
	t.ResponseWriter.WriteHeader(status)
}

// FlushError is for a [http.ResponseController].
func (t *timely) FlushError() error {
	return t.tells(http.NewResponseController(t.ResponseWriter).Flush())
}

// Flush is for callers that do not use a [http.ResponseController].
func (t *timely) Flush() { _ = t.FlushError() }

// Unwrap lets a [http.ResponseController] set deadlines.
func (t *timely) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// tells logs, once, that the client was dropped.
func (t *timely) tells(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !t.dropped {
		t.dropped = true
		t.s.Refusals.Add(t.r.Context(), "slow_reader", "a client was dropped", "it has read nothing for "+t.s.cfg.WriteTimeout.String(),
			t.r.RemoteAddr, "path", credential.Masked(t.r.URL.Path))
	}
	return err
}

// guesses counts requests with a wrong token or none, by client. A client may make a few at once, and then
// one a second; more are answered with 429. A right token is never held up: it is compared first.
type guesses struct {
	mu sync.Mutex
	of map[netip.Prefix]*rate.Limiter
}

const (
	guessesAtOnce  = 20
	guessesClients = 4096 // that are remembered
)

// take takes a try, and returns how long to wait for one if there is none.
func (g *guesses) take(client netip.Prefix, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = make(map[netip.Prefix]*rate.Limiter)
	}
	if len(g.of) >= guessesClients {
		g.forget(now)
	}
	one := g.of[client]
	if one == nil {
		one = rate.NewLimiter(1, guessesAtOnce)
		g.of[client] = one
	}
	try := one.ReserveN(now, 1)
	if wait = try.DelayFrom(now); wait > 0 {
		try.CancelAt(now)
	}
	return wait
}

// forget makes room for a client: without those that have all their tries again, or else without any one.
func (g *guesses) forget(now time.Time) {
	maps.DeleteFunc(g.of, func(_ netip.Prefix, one *rate.Limiter) bool { return one.TokensAt(now) >= guessesAtOnce })
	for client := range g.of {
		if len(g.of) < guessesClients {
			return
		}
		delete(g.of, client)
	}
}

// unproven is the problem of a request without the token.
func (s *Server) unproven(r *http.Request) *problem.Problem {
	if wait := s.guesses.take(clientOf(r.RemoteAddr), time.Now()); wait > 0 {
		seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
		return problem.New(http.StatusTooManyRequests, "slow_down", "Too many requests without the token", "try again in %s s", seconds).
			With("Retry-After", seconds)
	}
	return problem.New(http.StatusUnauthorized, "no_token", "The token is missing or wrong", "send it as Authorization: Bearer TOKEN").
		With("WWW-Authenticate", `Bearer realm="refrain"`)
}

// conns is a listener that limits its connections, and those of one client to half of the limit. When
// there is no place for a new connection, it closes the oldest idle one, on which the server answers no
// request that it has let in. So connections that only hold a place, such as with an unfinished body, keep
// no client out.
type conns struct {
	net.Listener
	most   int
	closed func(from string) // is told of each connection that was closed for lack of places

	mu   sync.Mutex
	all  int
	of   map[netip.Prefix]int // connections of each client
	idle list.List            // of *conn, the oldest first
}

// conn is a connection with a place.
type conn struct {
	net.Conn
	l      *conns
	client netip.Prefix

	// l.mu guards these.
	idle *list.Element // nil while a request is answered, and at the end
	gone bool
}

// Accept returns the next connection that has a place.
func (l *conns) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, lost := l.place(raw)
		if lost != nil {
			_ = lost.Close()
			l.closed(lost.RemoteAddr().String())
		}
		if c != nil {
			return c, nil
		}
	}
}

// place gives a connection a place. lost is the connection that has none for it.
func (l *conns) place(raw net.Conn) (c *conn, lost net.Conn) {
	c = &conn{Conn: raw, l: l, client: clientOf(raw.RemoteAddr().String())}
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.of[c.client] >= max(1, l.most/2)
	if crowded || l.all >= l.most {
		old := l.idle.Front()
		for crowded && old != nil && old.Value.(*conn).client != c.client {
			old = old.Next()
		}
		if old == nil {
			return nil, raw
		}
		out := old.Value.(*conn)
		out.leave()
		lost = out
	}
	if l.of == nil {
		l.of = make(map[netip.Prefix]int)
	}
	l.all++
	l.of[c.client]++
	c.idle = l.idle.PushBack(c)
	return c, lost
}

// Close gives the place back.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.leave()
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// leave gives the place back. l.mu is held.
func (c *conn) leave() {
	if c.gone {
		return
	}
	c.gone = true
	c.busy()
	c.l.all--
	if c.l.of[c.client]--; c.l.of[c.client] == 0 {
		delete(c.l.of, c.client)
	}
}

// busy keeps the connection from being closed for another one. l.mu is held.
func (c *conn) busy() {
	if c.idle != nil {
		c.l.idle.Remove(c.idle)
		c.idle = nil
	}
}

// connKey is the key under which a request's context has its *conn.
type connKey struct{}

// letIn says that the server answers a request that it has let in.
func letIn(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.l.mu.Lock()
		c.busy()
		c.l.mu.Unlock()
	}
}

// connState is [http.Server.ConnState]: a connection is idle again when its request was answered.
func connState(raw net.Conn, state http.ConnState) {
	c, ok := raw.(*conn)
	if !ok || state != http.StateIdle {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if c.idle == nil && !c.gone {
		c.idle = c.l.idle.PushBack(c)
	}
}

// clientOf is who an address belongs to: the address itself, or in version 6 of the protocol its network
// of 64 bits, all of which one client can have.
func clientOf(addr string) netip.Prefix {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	client, _ := ip.Prefix(bits)
	return client
}
