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

// healthy says that the process answers.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

// ready says whether runs can be started: the store can be written, and the server is not about to stop.
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
	probeEvery = time.Second     // at most so often, however many ask
	probeTime  = 5 * time.Second // that it may take
)

// storeProbe remembers whether the store was there a moment ago.
type storeProbe struct {
	mu   sync.Mutex
	last time.Time
	err  error
}

// look tries the store, unless that was done a moment ago. Whoever asks meanwhile waits for the result.
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

// tryStore makes a session and removes it. Nothing less than a commit meets a full disk.
func tryStore(ctx context.Context, cfg *Config) error {
	if cfg.ReadOnly {
		_, err := cfg.Service.List(ctx, &session.ListRequest{AppName: cfg.AppName, UserID: "nobody"})
		return err
	}
	id := cmp.Or(cfg.Owner, "server")
	_, err := cfg.Service.Create(ctx, &session.CreateRequest{AppName: probeApp, UserID: cfg.UserID, SessionID: id})
	if err != nil && !errors.Is(err, session.ErrExists) { // one that is left over can be removed, too
		return err
	}
	return cfg.Service.Delete(ctx, &session.DeleteRequest{AppName: probeApp, UserID: cfg.UserID, SessionID: id})
}

// left says in the log which run the server has let go without a word in the run's own log, and what to do.
func (s *Server) left(id string, end supervisor.Ending) {
	if !end.Dropped() {
		return
	}
	s.cfg.Log.Error("a run was dropped: its log says that it is running, and this server does not drive it any more",
		"run", id, "definition", end.Run.Name, "error", end.Err, "next", "see that the store can be written and that no other "+
			"process drives the run; then resume it on the page, or with "+cmp.Or(s.cfg.Code.Name, "refrain")+" resume "+id+
			", or start the server again")
}

// metrics answers Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return problem.New(http.StatusNotFound, "no_metrics", "This server has no metrics", "refrain serve has them")
	}
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// index is what stands at / if there is no page.
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
func (s *Server) about(w http.ResponseWriter, _ *http.Request) error {
	return s.Send(w, http.StatusOK, map[string]any{
		"version": s.cfg.Version, "started": s.began, "now": time.Now(), "stopping": s.runs.Closing(),
		"allow_commands": s.cfg.AllowCommands, "allow_private": s.cfg.AllowPrivate, "token": s.cfg.Token != "",
		"read_only": s.cfg.ReadOnly,
	})
}
