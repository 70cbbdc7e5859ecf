// SPDX-License-Identifier: Apache-2.0

// Package mcptoolset gives agents the tools of an MCP server, through the official Go SDK.
//
//	files, err := mcptoolset.New(mcptoolset.Config{
//		Command:    []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "."},
//		ToolFilter: tool.StringPredicate([]string{"read_file", "list_directory"}),
//	})
//	if err != nil {
//		return err
//	}
//	defer files.Close()
//
// The toolset connects to the server when its tools are first needed. If the session breaks, it
// connects again, at most once for each call.
//
// A question of the server during a call (elicitation) is asked as a consent is: see [tool.RequestForm].
package mcptoolset

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/tool"
)

// ErrClosed is returned by the methods of a toolset after [Toolset.Close].
var ErrClosed = errors.New("the toolset is closed")

// DefaultConnectTimeout is the default of [Config.ConnectTimeout].
const DefaultConnectTimeout = 30 * time.Second

// Config describes a toolset for [New]. Exactly one of Command, URL and Transport names the
// server.
type Config struct {
	// Name is the toolset's name; the default is "mcp".
	Name string

	// Command starts a server that uses its standard input and output. No shell is involved.
	Command []string
	// Dir is the command's working directory; the default is the current directory.
	Dir string
	// Env holds environment variables as "NAME=value": for the command, in addition to the few that
	// programs need, or those that URL and Headers name. InheritEnv passes all variables of this process, including keys of other
	// services, except those that Refrain itself uses: REFRAIN_…, TEMPORAL_…, keys of models, headers
	// of telemetry, PGPASSWORD. In everything that the server sends, [secret] replaces the values of
	// variables that are named like secrets, such as X_API_KEY.
	Env        []string
	InheritEnv bool

	// URL is the endpoint of a server with streamable HTTP.
	URL string
	// Headers are sent with every request to that host, and to no other. In Headers and URL, ${NAME}
	// stands for the value of a variable in Env.
	Headers http.Header
	// OAuth signs in at the server of URL when that wants it, such as an [auth.AuthorizationCodeHandler]; nil means that the
	// toolset does not sign in. How a person is asked, and where tokens are kept, is up to the handler. Do not set
	// the header Authorization too.
	OAuth auth.OAuthHandler
	// RoundTripper sends the requests to URL; the default is that of package net/http.
	RoundTripper http.RoundTripper

	// Transport is any other connection to a server. If the transport can connect only once,
	// the toolset cannot reconnect.
	Transport mcp.Transport

	// Client talks to the server; the default lets it ask a person, in forms, and offers it no other
	// feature. With your own client the tools are listed each time they are needed.
	Client *mcp.Client
	// ToolFilter decides which tools a model gets; the default is all.
	ToolFilter tool.Predicate
	// Prefix is put before the tools' names, to distinguish those of two servers. The filter sees
	// names with the prefix.
	Prefix string
	// RequireConfirmation and RequireConfirmationProvider ask a person before
	// calls; see [tool.WithConfirmation].
	RequireConfirmation         bool
	RequireConfirmationProvider tool.ConfirmationProvider
	// Effect is the calls' effect on the outside world; see [tool.EffectOf]. The default is the
	// effect that the server declares for each tool.
	Effect tool.Effect
	// ConnectTimeout limits the time to connect, with the start of a command; 0 means
	// [DefaultConnectTimeout].
	ConnectTimeout time.Duration
}

// Toolset provides the tools of one MCP server. It is safe for concurrent use, and [Toolset.Close]
// ends it.
type Toolset struct {
	cfg    Config
	client *mcp.Client
	dial   dialer
	// secrets are those that the dialer's transport does not strike out itself.
	secrets *credential.Secrets
	view    tool.Toolset // with filter and confirmation
	lists   atomic.Int64 // how often the server said that its list has changed
	wg      sync.WaitGroup

	connecting chan struct{}   // holds a token while one connects
	closing    context.Context // over when the toolset is closed
	close      context.CancelFunc

	asks          atomic.Bool   // the server asks in the middle of calls, which are made one at a time then
	alone, places chan struct{} // hold tokens of calls under way; see enter

	mu    sync.Mutex
	conn  *connection                     // nil if there is none
	calls map[*inquiry]*mcp.ClientSession // under way
}

// New returns a toolset that is not connected yet. It fails on a config with no way to a server or
// with several, and on an invalid URL.
func New(cfg Config) (*Toolset, error) {
	if cfg.Name == "" {
		cfg.Name = "mcp"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = DefaultConnectTimeout
	}
	dial, err := newDialer(&cfg)
	if err != nil {
		return nil, fmt.Errorf("mcp toolset %q: %w", cfg.Name, err)
	}
	s := &Toolset{cfg: cfg, dial: dial, client: cfg.Client, connecting: make(chan struct{}, 1), secrets: new(credential.Secrets),
		alone: make(chan struct{}, 1), places: make(chan struct{}, mostCalls), calls: make(map[*inquiry]*mcp.ClientSession)}
	if cfg.URL != "" {
		s.secrets = child.Secrets(cfg.Env)
	}
	s.closing, s.close = context.WithCancel(context.Background())
	if s.client == nil {
		s.client = mcp.NewClient(&mcp.Implementation{Name: "refrain", Version: "v1"}, &mcp.ClientOptions{
			Capabilities:           &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}},
			ElicitationHandler:     s.elicit,
			MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.lists.Add(1) },
		})
	}
	s.view = lister{s}
	if cfg.ToolFilter != nil {
		s.view = tool.FilterToolset(s.view, cfg.ToolFilter)
	}
	if cfg.RequireConfirmation || cfg.RequireConfirmationProvider != nil {
		s.view = tool.WithConfirmation(s.view, cfg.RequireConfirmation, cfg.RequireConfirmationProvider)
	}
	return s, nil
}

// Name returns the toolset's name.
func (s *Toolset) Name() string { return s.cfg.Name }

// Tools lists the server's tools, and connects to the server if necessary. It returns an error if
// the server cannot be reached.
func (s *Toolset) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	return s.view.Tools(ctx)
}

// Close ends the session and the server's process, if there is one, and waits for it. Running calls
// fail.
func (s *Toolset) Close() error {
	s.mu.Lock()
	c := s.conn
	s.conn = nil
	s.close() // under the lock: from here on no session begins
	s.mu.Unlock()
	var err error
	if c != nil {
		err = c.close()
	}
	s.wg.Wait()
	s.dial.close()
	if err != nil {
		return fmt.Errorf("close mcp toolset %q: %w", s.cfg.Name, err)
	}
	return nil
}

// lister is the toolset before anything is filtered.
type lister struct{ *Toolset }

func (l lister) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	defs, err := l.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the tools of mcp toolset %q: %w", l.cfg.Name, err)
	}
	tools := make([]tool.Tool, len(defs))
	for i, def := range defs {
		tools[i] = &remote{set: l.Toolset, def: def}
	}
	return tools, nil
}
