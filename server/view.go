// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/prompt"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/web/runpage"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// view sends what the page of a run shows. If the client accepts a stream, view sends it again after each change, at most
// ten times a second.
func (s *Server) view(w http.ResponseWriter, r *http.Request) error {
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	lang := wire.LanguageOf(r)
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		head, err := f.head(lang, 0)
		if err != nil {
			return err
		}
		wire.SendText(w, http.StatusOK, head.text)
		return nil
	}
	c := &client{s: s, w: w, quiet: true}
	return s.streamChanges(r, c, f, "view", func(old time.Duration) (rendering, error) { return f.head(lang, old) })
}

// head returns the head of the run's page as JSON. The result may be up to old out of date.
func (f *feed) head(lang prose.Language, old time.Duration) (rendering, error) {
	return f.render(renderKey{"view", lang}, old, func() any {
		return f.page.Head(runpage.RunInfo{
			ID: f.id, Name: f.name, Status: f.status, Definition: f.definition, Parent: f.parent, Language: lang,
			Looks: f.looks, ReadOnly: f.s.cfg.ReadOnly, Workspace: f.workspace,
		})
	})
}

// readStart records the name, the definition and the workspace with which a run was started, if ev is the event of its start.
func (f *folds) readStart(s *Server, ev *session.Event) {
	var started mark.RunStarted
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted && ev.Mark.Decode(&started) == nil {
		f.name, f.definition = started.Name, s.definitionOf(&started)
		p, err := program.Decode(started)
		if err != nil {
			return // a run that a Go program started has no definition in its log
		}
		if def, err := p.Definition(); err == nil {
			f.looks = looksOf(def)
			if !s.cfg.ReadOnly { // an exported run comes without its files
				f.workspace = def.Workspace
			}
		}
	}
}

// looksOf returns the display names and colors of a definition's agents, by their names.
func looksOf(def *definition.Definition) map[string]runpage.Look {
	looks := make(map[string]runpage.Look)
	for a := range def.Root.All {
		if a.DisplayName != "" || a.Color != "" {
			looks[a.Name] = runpage.Look{Name: a.DisplayName, Color: a.Color}
		}
	}
	return looks
}

// definitionOf returns the name of the definition in the folder that a run was started from, or "" if there is none.
func (s *Server) definitionOf(started *mark.RunStarted) string {
	var p struct{ Program, File, Path string }
	if json.Unmarshal(started.Program, &p) != nil {
		return ""
	}
	if _, own := s.runs.Folder.Own(p.File); own && p.Program == s.cfg.Code.Name {
		return p.File
	}
	name := operations.NameIn(p.Path)
	if name == "" {
		return ""
	}
	if _, _, err := s.runs.Folder.Read(name); err != nil {
		return ""
	}
	return name
}

// viewIterations sends the rows of the page's tree for some iterations of a loop.
func (s *Server) viewIterations(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	from, err := number(q, "from", 1, 0, 1<<40)
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", pageSize, 1, pageMost)
	if err != nil {
		return err
	}
	lang := wire.LanguageOf(r)
	return s.withFeed(w, r, func(f *feed) (any, error) {
		return f.page.Iterations(session.Address(q.Get("loop")), int(from), int(limit), lang)
	})
}

// viewStep sends what the page shows of a step or of an iteration.
func (s *Server) viewStep(w http.ResponseWriter, r *http.Request) error {
	at := session.Address(r.URL.Query().Get("address"))
	log, err := s.runs.Brief(r.Context(), r.PathValue("id"), 0)
	if err != nil {
		return err
	}
	return s.withFeed(w, r, func(f *feed) (any, error) { return f.page.Detail(at, log) })
}

// withFeed answers with the value that tell returns, as JSON without secrets. It locks the feed while tell runs.
func (s *Server) withFeed(w http.ResponseWriter, r *http.Request, tell func(*feed) (any, error)) error {
	f, err := s.follow(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	defer f.leave()
	f.mu.Lock()
	v, err := tell(f)
	var body []byte
	if err == nil {
		body, err = progress.MarshalJSON(v)
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	wire.SendText(w, http.StatusOK, []byte(credential.Masked(string(body))))
	return nil
}

// promptTime limits the time to rebuild a request to a model, and promptMost how many are rebuilt at once.
const (
	promptTime = 20 * time.Second
	promptMost = 2
)

var errPromptTime = errors.New("it takes too long")

// prompt sends the request that a step sent to its model: the last request, or the one whose number is in the query.
func (s *Server) prompt(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	at := session.Address(q.Get("address"))
	if at == "" {
		return problem.Bad("give the address of a step")
	}
	n, err := number(q, "request", 0, 0, 1<<30)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), promptTime, errPromptTime)
	defer cancel()
	leave, err := waitForPlace(ctx, s.places.prompts)
	if err != nil {
		return notRebuilt(err)
	}
	defer leave()
	run, err := s.runs.ReadLog(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	asked, err := prompt.Of(ctx, s.cfg.Code, run, at, int(n))
	_, not := errors.AsType[*prompt.NotRebuiltError](err)
	switch {
	case errors.Is(err, prompt.ErrNotAsked):
		return problem.New(http.StatusNotFound, "not_asked", "The step has asked no model", "%s", at)
	case not, errors.Is(err, errPromptTime):
		return notRebuilt(err)
	case err != nil:
		return err
	}
	return s.SendMasked(w, http.StatusOK, asked)
}

// notRebuilt returns the problem of a request to a model that cannot be rebuilt, with err as its cause.
func notRebuilt(err error) error {
	return problem.New(http.StatusUnprocessableEntity, "not_rebuilt", "The request cannot be rebuilt from the log", "%v", err)
}

// transcript answers with what the coding agent of a step has said and done in its last attempt.
func (s *Server) transcript(w http.ResponseWriter, r *http.Request) error {
	id, at := r.PathValue("id"), session.Address(r.URL.Query().Get("address"))
	if at == "" {
		return problem.Bad("give the address of a step")
	}
	view, err := s.runs.Brief(r.Context(), id, 1)
	if err != nil {
		return err
	}
	name := taskagent.TranscriptName(at)
	got, err := s.runs.ArtifactService.Load(r.Context(), &artifact.LoadRequest{AppName: s.runs.AppName, UserID: s.runs.UserID, SessionID: id,
		FileName: name})
	if run := session.RunOf(view); errors.Is(err, artifact.ErrNotFound) && run != nil && run.Parent != nil {
		all, err := runlog.TranscriptStore{Artifacts: s.runs.ArtifactService, AppName: s.runs.AppName, UserID: s.runs.UserID,
			View: func(ctx context.Context, id string) (*session.View, error) {
				got, err := s.runs.Session(ctx, id)
				if err != nil {
					return nil, err
				}
				return session.ViewOf(got), nil
			}}.Of(r.Context(), id)
		if err != nil {
			return err
		}
		for _, t := range slices.Backward(all) {
			if taskagent.TranscriptPrefix+t.Step == name {
				return s.SendMasked(w, http.StatusOK, map[string]string{"text": brief.CleanText(t.Text)})
			}
		}
	}
	switch {
	case errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrInvalid):
		return problem.New(http.StatusNotFound, "no_transcript", "The step has no transcript", "%s", at)
	case err != nil:
		return err
	}
	return s.SendMasked(w, http.StatusOK, map[string]string{"text": brief.CleanText(got.Part.Text)})
}
