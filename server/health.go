// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// healthy answers "ok", to show that the process is alive.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

// ready answers "ok" if runs can be started. It fails if the server is stopping or if the store cannot be written.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.runs.Closing() {
		return problem.New(http.StatusServiceUnavailable, "closing", "The server is stopping", "")
	}
	if err := s.store.look(r.Context(), &s.cfg); err != nil {
		title := "The store cannot be written"
		if s.cfg.ReadOnly {
			title = "The store does not answer"
		}
		p := problem.New(http.StatusServiceUnavailable, "no_store", title, "%v", err)
		p.Err = err
		return p
	}
	return s.healthy(w, r)
}

// Times of the probe of the store.
const (
	probeEvery = time.Second     // the least time between two probes, however many clients ask
	probeTime  = 5 * time.Second // how long a probe may take
)

// storeProbe keeps the result of the last probe of the store.
type storeProbe struct {
	mu   sync.Mutex
	last time.Time
	err  error
}

// look probes the store, unless it did so less than probeEvery ago, and returns the result. Other callers wait meanwhile and
// get the same result.
func (p *storeProbe) look(ctx context.Context, cfg *Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.IsZero() || time.Since(p.last) >= probeEvery {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime) // the result is not only for this client
		defer cancel()
		p.err = tryStore(ctx, cfg)
		p.last = time.Now()
	}
	return p.err
}

// probeApp owns the session that tryStore makes, so that no list of runs has it.
const probeApp = "refrain-readyz"

// tryStore creates a session and deletes it, because only a commit shows that the disk is full. In a read-only store it
// only lists sessions.
func tryStore(ctx context.Context, cfg *Config) error {
	if cfg.ReadOnly {
		_, err := cfg.Service.List(ctx, &session.ListRequest{AppName: cfg.AppName, UserID: "nobody"})
		return err
	}
	id := cmp.Or(cfg.Owner, "server")
	_, err := cfg.Service.Create(ctx, &session.CreateRequest{AppName: probeApp, UserID: cfg.UserID, SessionID: id})
	if err != nil && !errors.Is(err, session.ErrExists) { // Delete also removes a session that an earlier probe has left
		return err
	}
	return cfg.Service.Delete(ctx, &session.DeleteRequest{AppName: probeApp, UserID: cfg.UserID, SessionID: id})
}

// onEnding is called when the server stops driving a run. If the run's own log does not record this, onEnding writes the run, the
// cause and what to do next to the server's log.
func (s *Server) onEnding(id string, end supervisor.Ending) {
	if !end.Dropped() {
		return
	}
	s.cfg.Log.Error("a run was dropped: its log says that it is running, and this server does not drive it any more",
		"run", id, "definition", end.Run.Name, "error", end.Err, "next", "see that the store can be written and that no other "+
			"process drives the run; then resume it on the page, or with "+cmp.Or(s.cfg.Code.Name, "refrain")+" resume "+id+
			", or start the server again")
}

// metrics answers with the metrics for Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return problem.New(http.StatusNotFound, "no_metrics", "This server has no metrics", "refrain serve has them")
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// index answers at / if the server has no page.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "refrain serves runs of loops of agents.\n\n"+
		"  /api/v1/openapi.json   what the API can do\n"+
		"  /api/v1/runs           the runs\n"+
		"  /api/v1/definitions    the definitions\n"+
		"  /api/list-apps         the same for clients of ADK\n"+
		"  /healthz, /readyz      how the server is\n"+
		"  /metrics               the same, for Prometheus\n")
	return nil
}

// about describes the server.
func (s *Server) about(w http.ResponseWriter, r *http.Request) error {
	return s.Send(w, http.StatusOK, map[string]any{
		"version": s.cfg.Version, "started": s.began, "now": time.Now(), "stopping": s.runs.Closing(),
		"allow_commands": s.cfg.AllowCommands, "allow_private": s.cfg.AllowPrivate, "token": s.cfg.Token != "" || s.cfg.People != nil,
		"read_only": s.cfg.ReadOnly, "you": callerInfo(r.Context()),
	})
}
