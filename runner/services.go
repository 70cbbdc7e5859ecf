// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/values/caserun"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
)

// artifacts returns the artifacts of one session; nil without an artifact service.
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
	return a.SaveVersion(ctx, name, data, 0)
}

// SaveVersion saves a file in place of a version; 0 makes the next version.
func (a *sessionArtifacts) SaveVersion(ctx context.Context, name string, data *genai.Part, version int64) (*artifact.SaveResponse, error) {
	return a.service.Save(ctx, &artifact.SaveRequest{
		AppName: a.session.AppName(), UserID: a.session.UserID(), SessionID: a.session.ID(), FileName: name, Part: data, Version: version,
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

// saveFiles saves the files in the user's message as artifacts if the config asks for it, and replaces each file by a
// text with its name. It does not change the caller's content. Without an artifact service the files stay in the
// message.
func (r *Runner) saveFiles(ctx context.Context, view *session.View, ev *session.Event, cfg agent.RunConfig) error {
	files := r.artifacts(view)
	if !cfg.SaveInputBlobsAsArtifacts || files == nil || ev.Content == nil {
		return nil
	}
	parts := slices.Clone(ev.Content.Parts)
	for i, p := range parts {
		if p == nil || p.InlineData == nil {
			continue
		}
		name := fmt.Sprintf("artifact_%s_%d", ev.InvocationID, i)
		saved, err := files.Save(ctx, name, p)
		if err != nil {
			return fmt.Errorf("save part %d of the user's message as artifact %q: %w", i+1, name, err)
		}
		if ev.Actions.ArtifactDelta == nil {
			ev.Actions.ArtifactDelta = make(map[string]int64)
		}
		ev.Actions.ArtifactDelta[name] = saved.Version
		parts[i] = genai.NewPartFromText("Uploaded file: " + name + ". It has been saved to the artifacts")
	}
	ev.Content = &genai.Content{Role: ev.Content.Role, Parts: parts}
	return nil
}

// memory returns the memory of the session's user; nil without a memory service.
func (r *Runner) memory(s session.Session) agent.Memory {
	if r.cfg.MemoryService == nil {
		return nil
	}
	return &userMemory{r.cfg.MemoryService, ownerOf(s)}
}

type userMemory struct {
	service memory.Service
	session session.Session
}

func (m *userMemory) AddSessionToMemory(ctx context.Context, s session.Session) error {
	return m.service.AddSessionToMemory(ctx, ownerOf(s))
}

// ownerOf returns a session under the user to whom its memory belongs. Each case-run of an eval is a user of its own.
func ownerOf(s session.Session) session.Session {
	if s != nil && caserun.Is(s.ID()) {
		return caseSession{s}
	}
	return s
}

type caseSession struct{ session.Session }

func (s caseSession) UserID() string { return s.Session.UserID() + "/" + s.ID() }

func (m *userMemory) SearchMemory(ctx context.Context, query string) (*memory.SearchResponse, error) {
	return m.service.SearchMemory(ctx, &memory.SearchRequest{
		Query: query, UserID: m.session.UserID(), AppName: m.session.AppName(),
	})
}
