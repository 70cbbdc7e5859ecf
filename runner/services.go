// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
)

// artifacts narrows the artifact service to one session; nil without one.
func (r *Runner) artifacts(s session.Session) agent.Artifacts {
	if r.cfg.ArtifactService == nil {
		return nil
	}
	return &sessionArtifacts{r.cfg.ArtifactService, s}
}

type sessionArtifacts struct {
	service artifact.Service
	session session.Session
}

func (a *sessionArtifacts) Save(ctx context.Context, name string, data *genai.Part) (*artifact.SaveResponse, error) {
	return a.service.Save(ctx, &artifact.SaveRequest{
		AppName: a.session.AppName(), UserID: a.session.UserID(), SessionID: a.session.ID(), FileName: name, Part: data,
	})
}

func (a *sessionArtifacts) List(ctx context.Context) (*artifact.ListResponse, error) {
	return a.service.List(ctx, &artifact.ListRequest{
		AppName: a.session.AppName(), UserID: a.session.UserID(), SessionID: a.session.ID(),
	})
}

func (a *sessionArtifacts) Load(ctx context.Context, name string) (*artifact.LoadResponse, error) {
	return a.LoadVersion(ctx, name, 0)
}

func (a *sessionArtifacts) LoadVersion(ctx context.Context, name string, version int) (*artifact.LoadResponse, error) {
	return a.service.Load(ctx, &artifact.LoadRequest{
		AppName: a.session.AppName(), UserID: a.session.UserID(), SessionID: a.session.ID(), FileName: name,
		Version: int64(version),
	})
}

// memory narrows the memory service to the session's user; nil without one.
func (r *Runner) memory(s session.Session) agent.Memory {
	if r.cfg.MemoryService == nil {
		return nil
	}
	return &userMemory{r.cfg.MemoryService, s}
}

type userMemory struct {
	service memory.Service
	session session.Session
}

func (m *userMemory) AddSessionToMemory(ctx context.Context, s session.Session) error {
	return m.service.AddSessionToMemory(ctx, s)
}

func (m *userMemory) SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error) {
	return m.service.SearchMemory(ctx, &memory.SearchRequest{
		Query: query, UserID: m.session.UserID(), AppName: m.session.AppName(),
	})
}
