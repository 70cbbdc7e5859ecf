// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/operations"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/server/internal/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// An application of ADK is a definition. A session of it is a session here whose ID is
// app/user/session, so that its runs are listed with all others.

// adkKey is a session as ADK names it.
type adkKey struct{ app, user, session string }

func (k adkKey) id() string { return k.app + "/" + k.user + "/" + k.session }

func (k adkKey) check() error {
	if err := operations.CheckName(k.app); err != nil {
		return err
	}
	for _, part := range []string{k.user, k.session} {
		if part == "" || len(part) > 128 || strings.ContainsFunc(part, func(r rune) bool { return r == '/' || r < ' ' || r == 0x7f }) {
			return problem.Bad("%q cannot be the ID of a user or a session", part)
		}
	}
	return nil
}

func adkKeyIn(r *http.Request) (adkKey, error) {
	k := adkKey{r.PathValue("app"), r.PathValue("user"), r.PathValue("session")}
	return k, k.check()
}

func (s *Server) adkApps(w http.ResponseWriter, _ *http.Request) error {
	names, files, err := s.runs.Folder.List()
	if err != nil {
		return err
	}
	apps := []string{}
	for _, name := range names {
		if text, err := s.runs.Folder.ReadFile(files[name]); err == nil {
			if d, ok := s.runs.Describe(name, files[name], text); ok && d.Valid {
				apps = append(apps, name)
			}
		}
	}
	return s.Send(w, http.StatusOK, apps)
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// adkSend answers with a session as ADK's clients get it.
func (s *Server) adkSend(w http.ResponseWriter, r *http.Request, k adkKey, one session.Session) {
	s.Streamed(w, r, func(t *wire.Stream) {
		t.Member("id", k.session)
		t.Member("appName", k.app)
		t.Member("userId", k.user)
		t.State(maps.Collect(one.State().All()))
		t.Members("events", "[", func(t *wire.Stream) {
			for ev := range one.Events().All() {
				m, err := adkEvent(ev)
				t.Fail(err)
				if m != nil {
					t.Item(m)
				}
			}
			t.Fail(session.ViewOf(one).Err())
		}, "]")
		t.Member("lastUpdateTime", seconds(one.LastUpdateTime()))
	})
}

// adkListed is a session in a list, as ADK's clients get it: without its state and its events.
type adkListed struct {
	ID             string           `json:"id"`
	AppName        string           `json:"appName"`
	UserID         string           `json:"userId"`
	State          map[string]any   `json:"state"`
	Events         []map[string]any `json:"events"`
	LastUpdateTime float64          `json:"lastUpdateTime"`
}

// adkEvent is an event as ADK's clients get it, nil if they would see nothing in it. Clients in Python
// refuse fields that they do not know.
func adkEvent(ev *session.Event) (map[string]any, error) {
	text, err := encoded(ev)
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	for _, ours := range []string{"seq", "address", "iteration", "attempt", "mark"} {
		delete(m, ours)
	}
	m["timestamp"] = seconds(ev.Timestamp)
	actions, _ := m["actions"].(map[string]any)
	if actions == nil {
		actions = map[string]any{}
		m["actions"] = actions
	}
	delete(actions, "exit")
	if delta, ok := actions["stateDelta"].(map[string]any); ok {
		maps.DeleteFunc(delta, func(key string, _ any) bool { return strings.HasPrefix(key, mark.KeyPrefix) })
		if len(delta) == 0 {
			delete(actions, "stateDelta")
		}
	}
	if delta, ok := actions["artifactDelta"].(map[string]any); ok && len(delta) == 0 {
		delete(actions, "artifactDelta")
	}
	if ev.Iteration > 0 {
		meta, _ := m["customMetadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["loop_iteration"] = ev.Iteration - 1
		m["customMetadata"] = meta
	}
	if ev.Content == nil && len(actions) == 0 && ev.ErrorCode == "" && ev.ErrorMessage == "" {
		return nil, nil
	}
	return m, nil
}

// adkCreate makes a session. The body is {state, events}, or the state itself.
func (s *Server) adkCreate(w http.ResponseWriter, r *http.Request) error {
	k := adkKey{r.PathValue("app"), r.PathValue("user"), r.PathValue("session")}
	var body map[string]any
	text, err := s.Body(w, r, "application/json")
	if err != nil {
		return err
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &body); err != nil {
			return problem.Bad("read the body: %v", err)
		}
	}
	state := body
	wrapped := len(body) > 0
	for key := range body {
		wrapped = wrapped && slices.Contains([]string{"state", "events", "sessionId", "session_id"}, key)
	}
	if wrapped {
		state, _ = body["state"].(map[string]any)
		if events, _ := body["events"].([]any); len(events) > 0 {
			return problem.New(http.StatusNotImplemented, "no_events", "A session cannot begin with events here", "")
		}
		for _, key := range []string{"sessionId", "session_id"} {
			if id, ok := body[key].(string); ok && k.session == "" {
				k.session = id
			}
		}
	}
	if k.session == "" {
		k.session = operations.NewID()
	}
	if err := k.check(); err != nil {
		return err
	}
	if _, _, err := s.runs.Folder.Read(k.app); err != nil {
		return err
	}
	got, err := s.runs.Service.Create(r.Context(), &session.CreateRequest{AppName: s.runs.AppName, UserID: s.runs.UserID,
		SessionID: k.id(), State: state})
	if err != nil {
		return err
	}
	s.adkSend(w, r, k, got.Session)
	return nil
}

func (s *Server) adkSession(w http.ResponseWriter, r *http.Request) error {
	k, err := adkKeyIn(r)
	if err != nil {
		return err
	}
	one, err := s.runs.Session(r.Context(), k.id())
	if err != nil {
		return err
	}
	s.adkSend(w, r, k, one)
	return nil
}

func (s *Server) adkSessions(w http.ResponseWriter, r *http.Request) error {
	k := adkKey{r.PathValue("app"), r.PathValue("user"), "x"}
	if err := k.check(); err != nil {
		return err
	}
	got, err := s.runs.Service.List(r.Context(), &session.ListRequest{AppName: s.runs.AppName, UserID: s.runs.UserID, Brief: true})
	if err != nil {
		return err
	}
	all := []adkListed{}
	for _, one := range got.Sessions {
		id, ok := strings.CutPrefix(one.ID(), k.app+"/"+k.user+"/")
		if !ok {
			continue
		}
		all = append(all, adkListed{ID: id, AppName: k.app, UserID: k.user, State: map[string]any{},
			Events: []map[string]any{}, LastUpdateTime: seconds(one.LastUpdateTime())})
	}
	return s.Send(w, http.StatusOK, all)
}

// adkPatch changes the state of a session whose run nobody drives.
func (s *Server) adkPatch(w http.ResponseWriter, r *http.Request) error {
	k, err := adkKeyIn(r)
	if err != nil {
		return err
	}
	var req struct {
		StateDelta map[string]any `json:"stateDelta"`
	}
	if err := s.Read(w, r, &req); err != nil {
		return err
	}
	one, err := s.runs.Brief(r.Context(), k.id(), 0)
	if err != nil {
		return err
	}
	if run := session.RunOf(one); run != nil && !run.Status.Over() {
		return problem.New(http.StatusConflict, "run_under_way", "The run has not ended", "its state changes by its events alone")
	}
	for key := range req.StateDelta {
		if strings.HasPrefix(key, mark.KeyPrefix) {
			return problem.Bad("the key %q is the log's own", key)
		}
	}
	ev := session.NewEvent(r.Context(), "p-"+operations.NewID())
	ev.Author, ev.Actions.StateDelta = "user", req.StateDelta
	if err := s.runs.Service.AppendEvent(r.Context(), one, ev); err != nil {
		return err
	}
	return s.adkSession(w, r)
}

func (s *Server) adkDelete(w http.ResponseWriter, r *http.Request) error {
	k, err := adkKeyIn(r)
	if err != nil {
		return err
	}
	if err := s.runs.Remove(r.Context(), k.id()); err != nil && !errors.Is(err, session.ErrNotFound) { // as ADK does
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// adkRequest asks for a run, as ADK's clients do.
type adkRequest struct {
	AppName             string         `json:"appName"`
	UserID              string         `json:"userId"`
	SessionID           string         `json:"sessionId"`
	NewMessage          *genai.Content `json:"newMessage"`
	Streaming           bool           `json:"streaming"`
	StateDelta          map[string]any `json:"stateDelta"`
	FunctionCallEventID string         `json:"functionCallEventId"`
	InvocationID        string         `json:"invocationId"`
}

// adkStart starts a run, or answers the question of one that waits. It returns the last event before.
func (s *Server) adkStart(w http.ResponseWriter, r *http.Request) (id string, seen int64, err error) {
	var req adkRequest
	if err := s.Read(w, r, &req); err != nil {
		return "", 0, err
	}
	k := adkKey{req.AppName, req.UserID, req.SessionID}
	if err := k.check(); err != nil {
		return "", 0, err
	}
	id = k.id()
	one, err := s.runs.Session(r.Context(), id)
	if err != nil {
		return "", 0, err
	}
	seen = session.LastSeen(one)
	if run := session.RunOf(one); run != nil && run.Status == mark.RunWaiting {
		return id, seen, s.adkAnswer(r.Context(), id, req.NewMessage)
	}
	return id, seen, s.runs.StartIn(r.Context(), id, k.app, req.NewMessage, func(def *definition.Definition) (map[string]any, error) {
		return adkState(def, maps.Collect(one.State().All()), req.StateDelta)
	})
}

// adkState is what a run adds to the state of its session: what the definition gives and the session
// does not have, and what the request says.
func adkState(def *definition.Definition, has, delta map[string]any) (map[string]any, error) {
	known := slices.Collect(maps.Keys(def.State))
	for _, in := range def.Inputs {
		known = append(known, in.Name)
	}
	given := make(map[string]any)
	for _, from := range []map[string]any{has, delta} {
		for _, key := range known {
			if v := from[key]; v != nil {
				given[key] = v
			}
		}
	}
	values, err := operations.AsTexts(given)
	if err != nil {
		return nil, err
	}
	state, err := def.InitialState(values)
	if err != nil {
		return nil, err
	}
	for key := range has {
		delete(state, key)
	}
	maps.Copy(state, delta)
	return state, nil
}

// adkAnswer answers the question that a run waits for: with what a function has returned, or else with
// the text.
func (s *Server) adkAnswer(ctx context.Context, id string, message *genai.Content) error {
	open, err := s.runs.Supervisor.Questions(ctx, id)
	if err != nil {
		return err
	}
	if len(open) == 0 || message == nil || len(message.Parts) == 0 {
		return problem.New(http.StatusConflict, "no_question", "The run waits for an answer", "send it as newMessage")
	}
	q := open[0]
	var value any
	var text strings.Builder
	for _, p := range message.Parts {
		if p.FunctionResponse != nil {
			value = p.FunctionResponse.Response
			if result, ok := p.FunctionResponse.Response["result"]; ok && len(p.FunctionResponse.Response) == 1 {
				value = result
			}
		}
		text.WriteString(p.Text)
	}
	if value == nil {
		value = text.String()
		if q.Kind == mark.AskApproval {
			value = slices.Contains([]string{"yes", "y", "true", "ok"}, strings.ToLower(strings.TrimSpace(text.String())))
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.runs.Answer(context.WithoutCancel(ctx), id, &operations.AnswerRequest{Question: q.ID, Value: data})
}

// adkFollow gives each the events behind one until the run ends, is paused or waits. That the client
// leaves ends this, and not the run.
func (s *Server) adkFollow(r *http.Request, id string, seen int64, each func(map[string]any) error) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	for ev, err := range s.runs.Supervisor.Watch(ctx, id, seen) {
		if err != nil {
			return err
		}
		if ev.Author != "user" {
			m, err := adkEvent(ev)
			if err == nil && m != nil {
				err = each(m)
			}
			if err != nil {
				return err
			}
		}
		if ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindRunPaused, mark.KindRunEnded:
			if _, err := s.runs.Supervisor.Wait(ctx, id); err != nil { // whoever drives it has to let go of it
				return err
			}
			one, err := s.runs.Brief(ctx, id, 1)
			if err != nil {
				return err
			}
			if session.LastSeen(one) > ev.Seq {
				continue // an answer has come meanwhile
			}
			var end mark.RunEnded
			if ev.Mark.Kind == mark.KindRunEnded && ev.Mark.Decode(&end) == nil && end.Status == mark.RunFailed {
				return problem.New(http.StatusInternalServerError, "run_failed", "The run has failed", "%s", end.Error)
			}
			return nil
		}
	}
	return nil
}

func (s *Server) adkRun(w http.ResponseWriter, r *http.Request) error {
	id, seen, err := s.adkStart(w, r)
	if err != nil {
		return err
	}
	all := []map[string]any{}
	if err := s.adkFollow(r, id, seen, func(m map[string]any) error { all = append(all, m); return nil }); err != nil {
		return err
	}
	return s.Send(w, http.StatusOK, all)
}

func (s *Server) adkRunSSE(w http.ResponseWriter, r *http.Request) error {
	leave, err := s.place()
	if err != nil {
		return err
	}
	defer leave()
	id, seen, err := s.adkStart(w, r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	c := &client{s: s, w: w}
	if err := c.write(); err != nil {
		return nil
	}
	err = s.adkFollow(r, id, seen, func(m map[string]any) error {
		text, err := progress.MarshalJSON(m)
		if err != nil {
			return err
		}
		return c.write([]byte("data: "), text, []byte("\n\n"))
	})
	if err != nil && r.Context().Err() == nil {
		text, _ := progress.MarshalJSON(map[string]string{"error": credential.Masked(problem.Of(err).Detail)})
		_ = c.write([]byte("event: error\ndata: "), text, []byte("\n\n"))
	}
	return nil
}

func (s *Server) adkNotHere(http.ResponseWriter, *http.Request) error {
	return problem.New(http.StatusNotImplemented, "not_here", "This server has no such thing", "")
}

// adkSessionTrace has no spans: the events tell all there is.
func (s *Server) adkSessionTrace(w http.ResponseWriter, _ *http.Request) error {
	return s.Send(w, http.StatusOK, []any{})
}

func (s *Server) adkArtifacts(w http.ResponseWriter, r *http.Request) error {
	k, err := adkKeyIn(r)
	if err != nil {
		return err
	}
	got, err := s.runs.ArtifactService.List(r.Context(), &artifact.ListRequest{AppName: s.runs.AppName, UserID: s.runs.UserID, SessionID: k.id()})
	if err != nil {
		return err
	}
	names := got.FileNames
	if names == nil {
		names = []string{}
	}
	return s.Send(w, http.StatusOK, names)
}

func (s *Server) adkArtifact(w http.ResponseWriter, r *http.Request) error {
	k, err := adkKeyIn(r)
	if err != nil {
		return err
	}
	version := int64(0)
	for _, text := range []string{r.PathValue("version"), r.URL.Query().Get("version")} {
		if text == "" {
			continue
		}
		if version, err = strconv.ParseInt(text, 10, 64); err != nil || version < 1 {
			return problem.Bad("%q is not the number of a version", text)
		}
	}
	got, err := s.runs.ArtifactService.Load(r.Context(), &artifact.LoadRequest{AppName: s.runs.AppName, UserID: s.runs.UserID,
		SessionID: k.id(), FileName: r.PathValue("artifact"), Version: version})
	if err != nil {
		return err
	}
	return s.Send(w, http.StatusOK, got.Part)
}

func (s *Server) adkDeleteArtifact(w http.ResponseWriter, r *http.Request) error {
	k, err := adkKeyIn(r)
	if err != nil {
		return err
	}
	err = s.runs.ArtifactService.Delete(r.Context(), &artifact.DeleteRequest{AppName: s.runs.AppName, UserID: s.runs.UserID,
		SessionID: k.id(), FileName: r.PathValue("artifact")})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
