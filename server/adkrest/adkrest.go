// SPDX-License-Identifier: Apache-2.0

// Package adkrest serves ADK's REST API as a handler for your own server: each agent of a loader is an application.
//
//	api, err := adkrest.NewServer(adkrest.ServerConfig{
//		SessionService: session.InMemoryService(),
//		AgentLoader:    agent.NewSingleLoader(root),
//	})
//	if err != nil {
//		return err
//	}
//	defer api.Shutdown(ctx)
//	mux.Handle("/api/", http.StripPrefix("/api", api))
package adkrest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
)

// ServerConfig describes a server.
type ServerConfig struct {
	// SessionService keeps the runs, as sessions of the application refrain and the user user. The default keeps them
	// in memory. It must be a store of this project, or one that wraps such a store: see supervisor.Config.
	SessionService session.Service
	// MemoryService and ArtifactService serve the runs. The defaults keep everything in memory.
	MemoryService   memory.Service
	ArtifactService artifact.Service
	// AgentLoader has the agents. Without one the server keeps sessions, of any application, and runs nothing.
	AgentLoader agent.Loader
	// SSEWriteTimeout is how long a stream of /run_sse lasts at most; 0 means no limit. The run goes on.
	SSEWriteTimeout time.Duration
	// PluginConfig has the plugins of all runs. Shutdown does not close them.
	PluginConfig runner.PluginConfig
	// DebugConfig has no effect, because the log of a run has all of its events.
	DebugConfig DebugTelemetryConfig
	// Hosts are names under which clients reach the server, besides localhost and all IP addresses.
	Hosts []string
	// Token, if it is not empty, must be sent by clients as Authorization: Bearer TOKEN.
	Token string
}

// DebugTelemetryConfig exists for programs that set it.
type DebugTelemetryConfig struct {
	// TraceCapacity has no effect.
	TraceCapacity int
}

// Server serves the API. It is safe for concurrent use.
type Server struct {
	srv    *server.Server
	routes http.Handler
}

// NewServer returns a server, and continues the runs that an earlier server has left unfinished in the session
// service. It fails if the config lacks something.
func NewServer(cfg ServerConfig) (*Server, error) {
	var code program.Code
	if cfg.AgentLoader != nil {
		if _, err := code.AddLoader(cfg.AgentLoader); err != nil {
			return nil, fmt.Errorf("adkrest: %w", err)
		}
	}
	if cfg.SessionService == nil {
		cfg.SessionService = session.InMemoryService()
	}
	if cfg.SSEWriteTimeout < 0 {
		return nil, errors.New("adkrest: SSEWriteTimeout is negative")
	}
	srv, err := server.New(server.Config{
		Config: operations.Config{
			Service: cfg.SessionService, ArtifactService: cfg.ArtifactService, MemoryService: cfg.MemoryService, PluginConfig: cfg.PluginConfig,
			AppName: "refrain", UserID: "user", Dir: ".", OwnOnly: true, Code: code,
			Capacity: operations.Capacity{StateLimit: -1, MaxSessions: -1},
		},
		Token: cfg.Token, Hosts: cfg.Hosts, AnyAddress: true,
	})
	if err != nil {
		return nil, fmt.Errorf("adkrest: %w", err)
	}
	if err := srv.Recover(context.Background()); err != nil {
		slog.Warn("adkrest cannot continue runs", "error", err)
	}
	return &Server{srv, Routes(srv.Handler(), cfg.SSEWriteTimeout)}, nil
}

// ServeHTTP answers a request, such as POST /run.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.routes.ServeHTTP(w, r) }

// Shutdown pauses the runs at their next step boundary. When ctx ends, it cuts off the steps that are still running.
func (s *Server) Shutdown(ctx context.Context) error { return s.srv.Shutdown(ctx) }

// Routes returns only the routes of ADK's API from the handler of a [server.Server], without /api before their paths.
// A stream of /run_sse ends after the time sse; 0 means no limit.
func Routes(h http.Handler, sse time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/") { // the API of the page
			http.NotFound(w, r)
			return
		}
		ctx := r.Context()
		if sse > 0 && r.URL.Path == "/run_sse" {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, sse)
			defer cancel()
		}
		r = r.Clone(ctx)
		r.URL.Path = "/api" + r.URL.Path
		if r.URL.RawPath != "" {
			r.URL.RawPath = "/api" + r.URL.RawPath
		}
		h.ServeHTTP(w, r)
	})
}
