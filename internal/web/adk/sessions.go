// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// An application of ADK is a definition. A session of it is a session here whose ID is
// app/user/session, so that its runs are listed with all others.

// sessionKey is a session as ADK names it.
type sessionKey struct{ app, user, session string }

func (k sessionKey) id() string { return k.app + "/" + k.user + "/" + k.session }

func (k sessionKey) check() error {
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

// withKey gives an operation the session that its path names.
func withKey(do func(http.ResponseWriter, *http.Request, sessionKey) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		k := sessionKey{r.PathValue("app"), r.PathValue("user"), r.PathValue("session")}
		if err := k.check(); err != nil {
			return err
		}
		return do(w, r, k)
	}
}

func (a *API) apps(w http.ResponseWriter, _ *http.Request) error {
	all, err := a.Runs.Definitions()
	if err != nil {
		return err
	}
	apps := []string{}
	for _, d := range all {
		if d.Valid {
			apps = append(apps, d.Name)
		}
	}
	return a.Send(w, http.StatusOK, apps)
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// sendSession answers with a session as ADK's clients get it.
func (a *API) sendSession(w http.ResponseWriter, r *http.Request, k sessionKey, one session.Session) {
	a.Streamed(w, r, func(t *wire.Stream) {
		writeSession(t, k, one, func(t *wire.Stream) {
			for ev := range one.Events().All() {
				m, err := event(ev)
				t.Fail(err)
				if m != nil {
					t.Item(m)
				}
			}
			t.Fail(session.ViewOf(one).Err())
		})
	})
}

// writeSession writes the members of a session, whose events fill writes.
func writeSession(t *wire.Stream, k sessionKey, one session.Session, events func(*wire.Stream)) {
	t.Member("id", k.session)
	t.Member("appName", k.app)
	t.Member("userId", k.user)
	t.State(maps.Collect(one.State().All()))
	t.List("events", events)
	t.Member("lastUpdateTime", seconds(one.LastUpdateTime()))
}

// event is an event as ADK's clients get it, nil if they would see nothing in it. Clients in Python
// refuse fields that they do not know.
func event(ev *session.Event) (map[string]any, error) {
	text, err := wire.Event(ev)
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
	if ev.Partial { // no log has given it an ID and a time
		m["id"], m["timestamp"] = "p-"+supervisor.NewID(), seconds(time.Now())
	}
	actions, _ := m["actions"].(map[string]any)
	if actions == nil {
		actions = map[string]any{}
		m["actions"] = actions
	}
	delete(actions, "exit")
	if delta, ok := actions["stateDelta"].(map[string]any); ok {
		maps.DeleteFunc(delta, func(key string, _ any) bool { return strings.HasPrefix(key, mark.KeyPrefix) })
	}
	acts := false
	for _, does := range actions {
		delta, ok := does.(map[string]any)
		acts = acts || !ok || len(delta) > 0
	}
	for _, always := range []string{"stateDelta", "artifactDelta"} { // ADK writes both in each event
		if actions[always] == nil {
			actions[always] = map[string]any{}
		}
	}
	if ev.Iteration > 0 {
		meta, _ := m["customMetadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["loop_iteration"] = ev.Iteration - 1
		m["customMetadata"] = meta
	}
	if ev.Content == nil && !acts && ev.ErrorCode == "" && ev.ErrorMessage == "" {
		return nil, nil
	}
	return m, nil
}

// create makes a session. The body is {state, events}, or the state itself.
func (a *API) create(w http.ResponseWriter, r *http.Request) error {
	k := sessionKey{r.PathValue("app"), r.PathValue("user"), r.PathValue("session")}
	var body map[string]any
	text, err := a.Body(w, r, "application/json")
	if err != nil {
		return err
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &body); err != nil {
			return problem.Bad("read the body: %v", err)
		}
	}
	var events []*session.Event
	state := body
	wrapped := len(body) > 0
	for key := range body {
		wrapped = wrapped && slices.Contains([]string{"state", "events", "sessionId", "session_id"}, key)
	}
	if wrapped {
		state, _ = body["state"].(map[string]any)
		list, _ := body["events"].([]any)
		if events, err = readEvents(list); err != nil {
			return err
		}
		for _, key := range []string{"sessionId", "session_id"} {
			if id, ok := body[key].(string); ok && k.session == "" {
				k.session = id
			}
		}
	}
	if k.session == "" {
		k.session = supervisor.NewID()
	}
	if err := k.check(); err != nil {
		return err
	}
	if err := a.knows(k.app); err != nil {
		return err
	}
	if err := givable(state); err != nil {
		return err
	}
	made, err := a.Runs.CreateSession(r.Context(), k.id(), state, events)
	if err != nil {
		return err
	}
	a.sendSession(w, r, k, made)
	return nil
}

// knows returns an error if there is no such application. A server without any keeps sessions of all.
func (a *API) knows(app string) error {
	_, _, err := a.Runs.Folder.Read(app)
	if err == nil {
		return nil
	}
	if all, other := a.Runs.Definitions(); a.Runs.OwnOnly && other == nil && len(all) == 0 {
		return nil
	}
	return err
}

// appInfo describes the agents of an application, for clients that evaluate it.
func (a *API) appInfo(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("app")
	file, text, err := a.Runs.Folder.Read(name)
	if err != nil {
		return err
	}
	def, err := a.Runs.Folder.Load(file, text)
	if err != nil {
		return a.Runs.Here(err)
	}
	agents := make(map[string]any)
	for one := range def.Root.All {
		subs := []string{}
		for _, sub := range one.SubAgents {
			subs = append(subs, sub.Name)
		}
		about := map[string]any{"name": one.Name, "description": one.Description, "instruction": "", "tools": []any{}, "subAgents": subs}
		if one.LLM != nil {
			about["instruction"], about["tools"] = one.LLM.Instructions, toolsOf(one.LLM)
		}
		agents[one.Name] = about
	}
	return a.Send(w, http.StatusOK, map[string]any{"name": name, "rootAgentName": def.Root.Name, "description": def.Description,
		"language": "yaml", "isComputerUse": false, "agents": agents})
}

// toolsOf describes the tools of a model as far as its definition does: the server of an MCP tool is not started.
func toolsOf(l *definition.LLM) []any {
	all := []any{}
	add := func(name, description string, parameters any) {
		about := map[string]any{"name": name}
		if description != "" {
			about["description"] = description
		}
		if parameters != nil {
			about["parametersJsonSchema"] = parameters
		}
		all = append(all, map[string]any{"functionDeclarations": []any{about}})
	}
	for i := range l.Tools {
		switch t := &l.Tools[i]; {
		case t.MCP != nil:
			for _, name := range t.MCP.Only {
				add(t.MCP.Prefix+name, "", nil)
			}
		case t.Agent != nil && t.Parameters != nil:
			add(t.Agent.Name, t.Agent.Description, t.Parameters)
		case t.Agent != nil:
			add(t.Agent.Name, t.Agent.Description, nil)
		default:
			add(t.Exit+t.Func, "", nil)
		}
	}
	return all
}

func (a *API) session(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	one, err := a.Runs.Session(r.Context(), caseRun(k))
	if err != nil {
		return err
	}
	a.sendSession(w, r, k, one)
	return nil
}

func (a *API) sessions(w http.ResponseWriter, r *http.Request) error {
	k := sessionKey{r.PathValue("app"), r.PathValue("user"), "x"}
	if err := k.check(); err != nil {
		return err
	}
	got, err := a.Runs.Service.List(r.Context(), &session.ListRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID, Brief: true})
	if err != nil {
		return err
	}
	a.StreamedList(w, r, func(t *wire.Stream) {
		for _, brief := range got.Sessions {
			id, ok := strings.CutPrefix(brief.ID(), k.app+"/"+k.user+"/")
			if !ok {
				continue
			}
			one, err := a.Runs.Service.Get(r.Context(), &session.GetRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID,
				SessionID: brief.ID(), NumRecentEvents: 1})
			if errors.Is(err, session.ErrNotFound) {
				continue // deleted in between
			}
			if t.Fail(err); err != nil {
				return
			}
			t.Object(func(t *wire.Stream) {
				writeSession(t, sessionKey{k.app, k.user, id}, one.Session, func(*wire.Stream) {}) // a list has no events
			})
		}
	})
	return nil
}

// patch changes the state of a session whose run nobody drives.
func (a *API) patch(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	var req struct {
		StateDelta map[string]any `json:"stateDelta"`
	}
	if err := a.Read(w, r, &req); err != nil {
		return err
	}
	one, err := a.Runs.Session(r.Context(), k.id())
	if err != nil {
		return err
	}
	if run := session.RunOf(one); run != nil && !run.Status.IsFinal() {
		return problem.New(http.StatusConflict, "run_under_way", "The run has not ended", "its state changes by its events alone")
	}
	if err := givable(req.StateDelta); err != nil {
		return err
	}
	if err := a.Runs.ChangeState(r.Context(), one, req.StateDelta); err != nil {
		return err
	}
	return a.session(w, r, k)
}

// givable reports what a client may not give as state: what the log keeps there, and the files of a workspace, which would
// be handed over as the result of a run.
func givable(state map[string]any) error {
	for key, v := range state {
		if m, _ := v.(map[string]any); strings.HasPrefix(key, mark.KeyPrefix) || runfiles.IsKey(key) && m["tree"] != nil {
			return problem.Bad("the key %q is the log's own", key)
		}
	}
	return nil
}

func (a *API) delete(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	if err := a.Runs.Remove(r.Context(), k.id()); err != nil && !errors.Is(err, session.ErrNotFound) { // as ADK does
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (a *API) artifacts(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	got, err := a.Runs.ArtifactService.List(r.Context(), &artifact.ListRequest{
		AppName: a.Runs.AppName, UserID: a.Runs.UserID, SessionID: k.id()})
	if err != nil {
		return err
	}
	names := got.FileNames
	if names == nil {
		names = []string{}
	}
	return a.Send(w, http.StatusOK, names)
}

func (a *API) artifact(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	version, err := int64(0), error(nil)
	for _, text := range []string{r.PathValue("version"), r.URL.Query().Get("version")} {
		if text == "" {
			continue
		}
		if version, err = strconv.ParseInt(text, 10, 64); err != nil || version < 1 {
			return problem.Bad("%q is not the number of a version", text)
		}
	}
	got, err := a.Runs.ArtifactService.Load(r.Context(), &artifact.LoadRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID,
		SessionID: k.id(), FileName: r.PathValue("artifact"), Version: version})
	if err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, got.Part)
}

func (a *API) deleteArtifact(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	file := r.PathValue("artifact")
	err := a.Runs.Change(r.Context(), "delete file", func() (string, error) {
		return k.id() + "/" + file, a.Runs.ArtifactService.Delete(r.Context(), &artifact.DeleteRequest{AppName: a.Runs.AppName,
			UserID: a.Runs.UserID, SessionID: k.id(), FileName: file})
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
