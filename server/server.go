// SPDX-License-Identifier: Apache-2.0

// Package server drives runs and serves them over HTTP: its own API under /api/v1, which openapi.json
// describes, the API of Google's ADK under /api, the Model Context Protocol at /mcp, and the
// Agent2Agent protocol under /a2a.
//
//	srv, err := server.New(server.Config{Config: operations.Config{
//		Service: store, AppName: "refrain", UserID: "user", Dir: "loops",
//	}})
//	if err != nil {
//		return err
//	}
//	if err := srv.Recover(ctx); err != nil {
//		return err
//	}
//	go srv.Serve(listener)
//	<-ctx.Done()
//	return srv.Shutdown(context.Background())
//
// A run does not depend on a connection. A client that disconnects loses no events, and can continue
// after the number of its last event. The server disconnects a client that reads too slowly, and the
// run continues.
//
// Package operations carries out the requests of all protocols.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/internal/runs/scheduler"
	"github.com/refrain-dev/refrain/internal/web/adk"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/supervisor"
)

// Config describes a server.
type Config struct {
	// Config chooses the runs that are served, and limits what the definitions of clients may do. Its Log also gets
	// refused requests (one record a minute for each kind), dropped runs, and internal errors.
	operations.Config

	// Token is the token that clients must send. It has at least 16 characters. If it is empty, the server accepts
	// every client that reaches its address, so set it unless the address is a loopback one.
	Token string
	// People are those who have a token of their own, and those whom a proxy names. With them, or with Proxy.Header, the server accepts
	// nobody else but a client with Token.
	People *access.File
	// Proxy is the proxy before the server.
	Proxy Proxy
	// Hosts are the names under which browsers may reach the server, without ports. "localhost" and
	// the loopback addresses are always allowed. AnyAddress adds all IP addresses, for a server
	// that listens on all of the machine's.
	Hosts      []string
	AnyAddress bool

	// MaxBody is the largest body of a request, in bytes. MaxStreams is the largest number of streams of events plus
	// calls that wait for a run. MaxConns is the largest number of connections. 0 means the default of
	// [operations.Bounds]. One client (an address; in IPv6 a network of 64 bits) can use at most half of the streams
	// and half of the connections. If there is no place for a new connection, the server closes the oldest connection
	// that has no request in progress; if there is none, it closes the new connection.
	MaxBody              int64
	MaxStreams, MaxConns int
	// ReadTimeout is how long a client may take to send a body. For a body that the server does not use, such as that
	// of a request without the token, it is 1 s. WriteTimeout is how long a client may take to read one piece of a
	// response. IdleTimeout is how long a connection stays open without a request. 0 means the default of
	// [operations.Bounds].
	ReadTimeout, WriteTimeout, IdleTimeout time.Duration

	// Schedules starts the runs of the file schedules.yaml in Dir, from [Server.Recover] until Shutdown.
	Schedules bool
	// Keep says how long runs are kept after their end, from [Server.Recover] until Shutdown. With Schedules, the file may have other
	// times for the runs of a schedule.
	Keep retention.Rule

	// Around, if it is set, wraps the handler of all requests, for example to read their trace.
	Around func(http.Handler) http.Handler
	// Metrics answers /metrics, which needs the token as the API does. Optional.
	Metrics http.Handler

	// Page answers requests that are not below /api; the default is a short text.
	Page http.Handler
	// BasePath is the path at which a proxy serves the server, such as /refrain; empty means the root. The server answers
	// requests with this path and without it, because a proxy may remove it.
	BasePath string
	// Refused, if it is set, is called for each refused request, with the kind of problem.
	Refused func(kind string)
	// Version is the program's version.
	Version string
}

// Server serves runs. It is safe for concurrent use.
type Server struct {
	*wire.Exchange

	cfg       Config
	runs      *operations.Runs
	a2a       http.Handler // of all paths below a2aPath
	allRoutes []wire.Route // all routes of the handler, with their whole paths
	http      *http.Server
	clients   clients
	places    places
	began     time.Time

	closing chan struct{} // closed when streams have to end
	once    sync.Once
	store   storeProbe
	mcp     func() *mcp.Server // creates the server at the first call

	pushes   *pushes
	timer    *scheduler.Scheduler
	cleaning cleaning
	list     *board
	pieces   adk.Pieces // pieces of streamed answers, for ADK's API
	feeds    feeds
}

// clients has what the server remembers of its clients.
type clients struct {
	guesses guesses
	present attendance
}

// places limits the requests that stay open or cost much.
type places struct {
	streams streams
	tries   chan struct{} // has one value for each try of a definition in progress
	prompts chan struct{} // has one value for each prompt that is being rebuilt
	diffs   chan struct{} // has one value for each comparison of files in progress
}

const tokenLeast = 16 // the least length of a token, in characters

// New returns a server that drives no run yet. It fails if the config lacks a required field, or
// if the folder cannot be opened.
func New(cfg Config) (*Server, error) {
	if n := utf8.RuneCountInString(cfg.Token); n > 0 && n < tokenLeast {
		return nil, fmt.Errorf("the token has %d characters, which can be guessed: give one of at least %d, such as the output of: "+
			"openssl rand -hex 20", n, tokenLeast)
	}
	if base := cfg.BasePath; base != "" && (base[0] != '/' || path.Clean(base) != base || base == "/" || strings.ContainsAny(base, "?#%\"<> ")) {
		return nil, fmt.Errorf("the base path is %q: write a path that begins with a slash and does not end with one, such as /refrain", base)
	}
	cfg.MaxBody = cmp.Or(cfg.MaxBody, operations.BoundOfBody.Default)
	cfg.MaxStreams = cmp.Or(cfg.MaxStreams, int(operations.BoundOfStreams.Default))
	cfg.MaxConns = cmp.Or(cfg.MaxConns, int(operations.BoundOfConns.Default))
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, time.Duration(operations.BoundOfReading.Default))
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, time.Duration(operations.BoundOfWriting.Default))
	cfg.IdleTimeout = cmp.Or(cfg.IdleTimeout, time.Duration(operations.BoundOfIdling.Default))
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if err := cfg.Proxy.check(); err != nil {
		return nil, err
	}
	s := &Server{
		places: places{
			streams: streams{most: cfg.MaxStreams}, tries: make(chan struct{}, tryMost), prompts: make(chan struct{}, promptMost),
			diffs: make(chan struct{}, compareMost),
		},
		began: time.Now(), closing: make(chan struct{}), feeds: feeds{byRun: make(map[string]*feed)},
		Exchange: &wire.Exchange{
			Log: cfg.Log, MaxBody: cfg.MaxBody, Refusals: &wire.Refusals{Log: cfg.Log, Told: cfg.Refused}, Replies: new(wire.Replies),
		},
	}
	observe := cfg.Observe
	cfg.Observe = func(sup *supervisor.Config) {
		sup.OnEvent, sup.OnEnding, sup.OnRecovery = s.onEvent, s.onEnding, s.onRecovery
		if observe != nil {
			observe(sup)
		}
	}
	var err error
	if s.runs, err = operations.New(cfg.Config); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	cfg.Config = s.runs.Config // with its defaults
	s.cfg, s.list = cfg, newBoard(s)
	s.mcp, s.pushes = sync.OnceValue(s.newMCP), newPushes(s)
	s.timer = scheduler.New(scheduler.Config{Runs: s.runs})
	handler := atBasePath(cfg.BasePath, s.guard(s.routes()))
	if cfg.Around != nil {
		handler = cfg.Around(handler)
	}
	s.http = &http.Server{
		Handler: s.behindProxy(handler), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: cfg.IdleTimeout,
		MaxHeaderBytes: 64 << 10, ConnState: connState, ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
	return s, nil
}

// atBasePath returns a handler that serves next at the path base and at the root.
func atBasePath(base string, next http.Handler) http.Handler {
	if base == "" {
		return next
	}
	stripped := http.StripPrefix(base, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == base:
			http.Redirect(w, r, base+"/", http.StatusPermanentRedirect)
		case strings.HasPrefix(r.URL.Path, base+"/"):
			stripped.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Handler returns the handler of all requests. Use it with your own server, instead of Serve.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Supervisor returns the supervisor that drives the runs.
func (s *Server) Supervisor() *supervisor.Supervisor { return s.runs.Supervisor }

// Recover continues the unfinished runs of the store that no process drives, and looks for more such runs until
// Shutdown: see [supervisor.Supervisor.Recover]. With Config.Schedules it also starts the runs of schedules. The error lists the runs that could not be continued.
// It does nothing if Config.ReadOnly is set.
func (s *Server) Recover(ctx context.Context) error {
	if !s.runs.Offers(true) {
		return nil
	}
	s.pushes.watchStore()
	runs, err := s.runs.Supervisor.Recover(ctx)
	s.onRecovery(runs, nil)
	if s.cfg.Schedules {
		s.timer.Start()
	}
	s.cleaning.start(s.cleaner(), func(err error) { s.cfg.Log.Warn("remove old runs", "error", credential.Masked(err.Error())) })
	return err
}

// onRecovery logs the runs that a look for unfinished runs has continued, and its failure.
func (s *Server) onRecovery(runs []*supervisor.Run, err error) {
	for _, run := range runs {
		s.cfg.Log.Info("continue a run that was left unfinished", "run", run.ID())
	}
	if err != nil {
		s.cfg.Log.Warn("look for runs that were left unfinished", "error", credential.Masked(err.Error()))
	}
}

// Serve accepts connections until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(&conns{Listener: l, most: s.cfg.MaxConns, shared: s.cfg.Proxy.trusts, closed: func(from string) {
		s.Refusals.Add(context.Background(), "too_many_connections", "a connection was closed", "there are too many", from,
			"limit", s.cfg.MaxConns)
	}})
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown stops the server gracefully: it starts no more runs, pauses those that it drives at
// their next step boundary, ends the streams and closes the connections. When ctx ends, it cuts
// off the steps that are still running. [Server.Recover] continues the runs.
func (s *Server) Shutdown(ctx context.Context) error {
	s.timer.Close()
	s.cleaning.end()
	err := s.runs.Close(ctx)
	s.once.Do(func() { close(s.closing) })
	s.pushes.close()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if late := s.http.Shutdown(within); late != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.feeds.mu.Lock()
	followed := s.feeds.byRun
	s.feeds.byRun = make(map[string]*feed)
	s.feeds.mu.Unlock()
	for _, f := range followed {
		f.cancel()
		<-f.done
	}
	s.clients.present.close()
	s.Refusals.Flush()
	return errors.Join(err, s.runs.Folder.Close())
}
