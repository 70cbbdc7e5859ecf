// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/refrain-dev/refrain/session"
)

// healthy says that the process answers.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
	return nil
}

// ready says whether runs can be started: the store answers, and the server is not about to stop.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.draining.Load() {
		return fault(http.StatusServiceUnavailable, "closing", "The server is stopping", "")
	}
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if _, err := s.cfg.Service.List(ctx, &session.ListRequest{AppName: s.cfg.AppName, UserID: "nobody"}); err != nil {
		p := fault(http.StatusServiceUnavailable, "no_store", "The store does not answer", "%v", err)
		p.err = err
		return p
	}
	return s.healthy(w, r)
}

// metrics answers Prometheus.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Metrics == nil {
		return fault(http.StatusNotFound, "no_metrics", "This server has no metrics", "refrain serve has them")
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
	return s.send(w, http.StatusOK, map[string]any{
		"version": s.cfg.Version, "started": s.began, "now": time.Now(), "stopping": s.draining.Load(),
		"allow_commands": s.cfg.AllowCommands, "allow_private": s.cfg.AllowPrivate, "token": s.cfg.Token != "",
		"read_only": s.cfg.ReadOnly,
	})
}
