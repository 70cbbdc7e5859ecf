// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/list"
	"context"
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
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
)

// policy allows a browser to load only resources of this server for the page.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'"

// guard passes on only requests that are allowed. A request must name one of the server's hosts, which prevents DNS
// rebinding. A request that changes something must not come from a page of another origin. If the server has a token, the
// request must have it, or come from a person whom the server knows: see identify. guard also limits the time that a client
// takes to send a request and to read the response.
func (s *Server) guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w := &deadlineWriter{ResponseWriter: rw, s: s, r: r}
		_ = w.extend() // also for a response whose handler writes nothing
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		if isSecure(r) {
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
		}
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("X-Frame-Options", "DENY")
		if needsToken(r) {
			h.Set("Cache-Control", "no-store")
		}
		var p *problem.Problem
		var who access.Person
		switch {
		case !s.hasHost(r.Host):
			p = problem.New(http.StatusMisdirectedRequest, "wrong_host", "This server has another name",
				"it does not answer for this Host; start it with --host to give it one more name")
		case origin.Check(r) != nil || !sameScheme(r):
			p = problem.New(http.StatusForbidden, "cross_origin", "Another page may not do that",
				"the request comes from a page of another origin")
		case needsToken(r):
			if who, p = s.recognize(r); p == nil {
				var leave func()
				r, leave = s.enter(r, who)
				defer leave()
			}
		}
		switch read := p == nil && needsToken(r); { // read: the handler reads the body
		case r.ContentLength != 0 && read:
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.cfg.ReadTimeout))
			r.Body = &timedBody{r.Body, w, r}
		case r.ContentLength != 0:
			wire.Unread(w)
		case read:
			markBusy(r.Context())
		}
		if p != nil {
			h.Set("Connection", "close")
			s.Refuse(w, r, p)
			return
		}
		next.ServeHTTP(w, r.WithContext(operations.WithCaller(r.Context(), newCaller(r, who))))
	})
}

// newCaller returns the caller of a request that guard has allowed; nobody for one that needs no token.
func newCaller(r *http.Request, who access.Person) operations.Caller {
	return operations.Caller{Person: who, Anonymous: isAnonymous(who), Address: r.RemoteAddr,
		Via: r.Method + " " + r.URL.Path, Agent: fromAgent(r.URL.Path)}
}

// fromAgent reports whether a path belongs to a protocol that agents speak: MCP, A2A or ADK's API. People use the page and the
// API below v1Path.
func fromAgent(path string) bool {
	return path == mcpPath || strings.HasPrefix(path, a2aPath) || strings.HasPrefix(path, adkPath) && !strings.HasPrefix(path, v1Path)
}

// timedBody is a request body with a deadline, which is removed at the end of the body. Until then the connection can be
// closed for another one: see [conns].
type timedBody struct {
	io.ReadCloser
	w http.ResponseWriter
	r *http.Request
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{})
		markBusy(b.r.Context())
	}
	return n, err
}

// needsToken reports whether a request needs the token, if the server has one. These are requests to the API, over MCP or A2A,
// for the card of an agent or for the metrics. The card shows what the folder contains, and the metrics show the costs, so a
// client without the token must not read them. The page itself has no secrets, and the health checks must work without a token.
func needsToken(r *http.Request) bool {
	path := r.URL.Path
	return strings.HasPrefix(path, adkPath) || path == mcpPath || strings.HasPrefix(path, a2aPath) || path == cardPath ||
		path == metricsPath
}

// isSecure reports whether a browser treats the page's origin as secure, because the browser reaches the server or its
// proxy by TLS, or because the server is on the same machine. For other origins Chromium reports an opener policy as an error.
func isSecure(r *http.Request) bool {
	host := hostname(r.Host)
	addr, err := netip.ParseAddr(host)
	return schemeOf(r) == "https" || host == "localhost" || err == nil && addr.IsLoopback()
}

// schemeOf returns the scheme, https or http, by which the client reaches the server or its proxy.
func schemeOf(r *http.Request) string {
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		return "https"
	}
	return "http"
}

// sameScheme returns false for a request that changes something and comes from a page with another scheme. It trusts a
// browser that sends Sec-Fetch-Site, because [http.CrossOriginProtection] checks that header.
func sameScheme(r *http.Request) bool {
	origin, safe := r.Header.Get("Origin"), r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	return origin == "" || safe || r.Header.Get("Sec-Fetch-Site") != "" || strings.HasPrefix(origin, schemeOf(r)+"://")
}

// hostname returns a Host header without its port, in lower case.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// hasHost reports whether the Host of a request is one of the server's names.
func (s *Server) hasHost(host string) bool {
	host = hostname(host)
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || s.cfg.AnyAddress || slices.Contains(s.cfg.Hosts, host)
	}
	return host == "localhost" || slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// deadlineWriter is a response writer that gives the client a new deadline for each piece of the response. A client that does not read
// is dropped.
type deadlineWriter struct {
	http.ResponseWriter
	s *Server
	r *http.Request

	dropped bool
}

// extend sets the deadline for the next piece.
func (t *deadlineWriter) extend() error {
	err := http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(t.s.cfg.WriteTimeout))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (t *deadlineWriter) Write(b []byte) (written int, err error) {
	for piece := range slices.Chunk(b, chunk) {
		if err := t.extend(); err != nil {
			return written, err
		}
		n, err := t.ResponseWriter.Write(piece)
		if written += n; err != nil {
			return written, t.logDropped(err)
		}
	}
	return written, nil
}

// WriteHeader also sets the deadline for a response without a body.
func (t *deadlineWriter) WriteHeader(status int) {
	_ = t.extend()
	t.ResponseWriter.WriteHeader(status)
}

// FlushError is for a [http.ResponseController].
func (t *deadlineWriter) FlushError() error {
	return t.logDropped(http.NewResponseController(t.ResponseWriter).Flush())
}

// Flush is for callers that do not use a [http.ResponseController].
func (t *deadlineWriter) Flush() { _ = t.FlushError() }

// Unwrap lets a [http.ResponseController] set deadlines.
func (t *deadlineWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// logDropped logs, once, that the client was dropped, if err is a missed deadline. It returns err.
func (t *deadlineWriter) logDropped(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) && !t.dropped {
		t.dropped = true
		t.s.Refusals.Add(t.r.Context(), "slow_reader", "a client was dropped", "it has read nothing for "+t.s.cfg.WriteTimeout.String(),
			t.r.RemoteAddr, "path", credential.Masked(t.r.URL.Path))
	}
	return err
}

// guesses limits the requests of each client with a wrong token or none: 20 at once, and then one a second. Further ones get
// status 429. A request with the right token is never delayed, because the token is compared first.
type guesses struct {
	mu sync.Mutex
	of map[netip.Prefix]*rate.Limiter
}

const (
	guessesAtOnce  = 20
	guessesClients = 4096 // how many clients are remembered
)

// take uses up one try of a client. If the client has no try left, take returns how long it must wait for one.
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

// forget makes room for one more client. It removes the clients that have all of their tries again and, if that is not
// enough, any others.
func (g *guesses) forget(now time.Time) {
	maps.DeleteFunc(g.of, func(_ netip.Prefix, one *rate.Limiter) bool { return one.TokensAt(now) >= guessesAtOnce })
	for client := range g.of {
		if len(g.of) < guessesClients {
			return
		}
		delete(g.of, client)
	}
}

// tokenProblem returns the problem of a request without the right token.
func (s *Server) tokenProblem(r *http.Request) *problem.Problem {
	if wait := s.clients.guesses.take(clientOf(r.RemoteAddr), time.Now()); wait > 0 {
		seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
		return problem.New(http.StatusTooManyRequests, "slow_down", "Too many requests without the token", "try again in %s s", seconds).
			With("Retry-After", seconds)
	}
	return problem.New(http.StatusUnauthorized, "no_token", "The token is missing or wrong", "send it as Authorization: Bearer TOKEN").
		With("WWW-Authenticate", `Bearer realm="refrain"`)
}

// conns is a listener that limits the number of its connections; one client can have at most half of them. If there is no
// place for a new connection, conns closes the oldest idle one. A connection is idle unless the server answers a request on it
// that needs the token (see needsToken), that guard has allowed and whose body is complete. So a client cannot block others with
// connections that send nothing.
type conns struct {
	net.Listener
	most   int
	shared func(netip.Addr) bool // reports whether an address is a proxy's, whose connections are those of many clients
	closed func(from string)     // is called for each connection that was closed because there was no place

	mu   sync.Mutex
	all  int
	of   map[netip.Prefix]int // connections of each client
	idle list.List            // the idle connections, each a *conn, the oldest first
}

// conn is a connection with a place.
type conn struct {
	net.Conn
	l      *conns
	client netip.Prefix

	// l.mu guards these.
	idle *list.Element // its element of l.idle; nil if the connection is not idle
	gone bool          // the place was given back
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

// place gives a connection a place. lost is the connection that the caller must close for lack of places: an old one, or raw
// itself, and then c is nil.
func (l *conns) place(raw net.Conn) (c *conn, lost net.Conn) {
	c = &conn{Conn: raw, l: l, client: clientOf(raw.RemoteAddr().String())}
	l.mu.Lock()
	defer l.mu.Unlock()
	crowded := l.of[c.client] >= max(1, l.most/2) && !l.shared(c.client.Addr())
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
	c.setBusy()
	c.l.all--
	if c.l.of[c.client]--; c.l.of[c.client] == 0 {
		delete(c.l.of, c.client)
	}
}

// setBusy marks the connection as not idle, so that it is not closed for another one. l.mu is held.
func (c *conn) setBusy() {
	if c.idle != nil {
		c.l.idle.Remove(c.idle)
		c.idle = nil
	}
}

// connKey is the key under which a request's context has its *conn.
type connKey struct{}

// markBusy marks the connection of a request as not idle, because the server answers the request.
func markBusy(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.l.mu.Lock()
		c.setBusy()
		c.l.mu.Unlock()
	}
}

// connState marks a connection as idle again after its request was answered. It is the server's [http.Server.ConnState].
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

// clientOf returns the client that an address belongs to: an IPv4 address itself, or the network of 64 bits of an IPv6
// address, because one client can have all addresses of such a network. It is invalid if addr is not an address with a port.
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
