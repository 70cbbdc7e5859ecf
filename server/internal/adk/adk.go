// SPDX-License-Identifier: Apache-2.0

// Package adk serves the REST API of Google's ADK: its clients find each definition as an application.
//
//	api := &adk.API{Exchange: x, Runs: runs, Place: place, Closing: closing}
//	for _, r := range api.Routes() {
//		mux.Handle(r.Method+" /api"+r.Path, x.Answering(r.Do))
//	}
package adk

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
	"github.com/refrain-dev/refrain/definition/runfiles"
	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/operations"
	"github.com/refrain-dev/refrain/operations/problem"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/server/internal/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// API answers the clients of ADK.
type API struct {
	*wire.Exchange
	Runs *operations.Runs
	// Place takes a place among the streams of the server, and Closing is closed when they have to end.
	Place   func() (leave func(), err error)
	Closing <-chan struct{}
	// Pieces has those of streamed answers. Required.
	Pieces *Pieces
}

// Routes are the operations of the API.
func (a *API) Routes() []wire.Route {
	return []wire.Route{
		wire.At("GET", "/list-apps", a.apps),
		wire.At("POST", "/run", a.run),
		wire.At("POST", "/run_sse", a.runSSE),
		wire.At("GET", "/run_live", a.notHere),
		wire.At("GET", "/apps/{app}/users/{user}/sessions", a.sessions),
		wire.At("POST", "/apps/{app}/users/{user}/sessions", a.create),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}", keyed(a.session)),
		wire.At("POST", "/apps/{app}/users/{user}/sessions/{session}", a.create),
		wire.At("PATCH", "/apps/{app}/users/{user}/sessions/{session}", keyed(a.patch)),
		wire.At("DELETE", "/apps/{app}/users/{user}/sessions/{session}", keyed(a.delete)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/artifacts", keyed(a.artifacts)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/artifacts/{artifact}", keyed(a.artifact)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/artifacts/{artifact}/versions/{version}", keyed(a.artifact)),
		wire.At("DELETE", "/apps/{app}/users/{user}/sessions/{session}/artifacts/{artifact}", keyed(a.deleteArtifact)),
		wire.At("GET", "/apps/{app}/users/{user}/sessions/{session}/events/{event}/graph", a.notHere),
		wire.At("GET", "/debug/trace/{event}", a.notHere),
		wire.At("GET", "/debug/trace/session/{session}", a.sessionTrace),
		wire.At("GET", "/apps/{app}/eval_sets", a.notHere),
		wire.At("POST", "/apps/{app}/eval_sets/{set}", a.notHere),
		wire.At("GET", "/apps/{app}/eval_results", a.notHere),
	}
}

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

// keyed gives an operation the session that its path names.
func keyed(do func(http.ResponseWriter, *http.Request, sessionKey) error) func(http.ResponseWriter, *http.Request) error {
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
		t.Member("id", k.session)
		t.Member("appName", k.app)
		t.Member("userId", k.user)
		t.State(maps.Collect(one.State().All()))
		t.List("events", func(t *wire.Stream) {
			for ev := range one.Events().All() {
				m, err := event(ev)
				t.Fail(err)
				if m != nil {
					t.Item(m)
				}
			}
			t.Fail(session.ViewOf(one).Err())
		})
		t.Member("lastUpdateTime", seconds(one.LastUpdateTime()))
	})
}

// listed is a session in a list, as ADK's clients get it: without its state and its events.
type listed struct {
	ID             string           `json:"id"`
	AppName        string           `json:"appName"`
	UserID         string           `json:"userId"`
	State          map[string]any   `json:"state"`
	Events         []map[string]any `json:"events"`
	LastUpdateTime float64          `json:"lastUpdateTime"`
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
		k.session = supervisor.NewID()
	}
	if err := k.check(); err != nil {
		return err
	}
	if _, _, err := a.Runs.Folder.Read(k.app); err != nil {
		return err
	}
	if err := givable(state); err != nil {
		return err
	}
	got, err := a.Runs.Service.Create(r.Context(), &session.CreateRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID,
		SessionID: k.id(), State: state})
	if err != nil {
		return err
	}
	a.sendSession(w, r, k, got.Session)
	return nil
}

func (a *API) session(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	one, err := a.Runs.Session(r.Context(), k.id())
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
	all := []listed{}
	for _, one := range got.Sessions {
		id, ok := strings.CutPrefix(one.ID(), k.app+"/"+k.user+"/")
		if !ok {
			continue
		}
		all = append(all, listed{ID: id, AppName: k.app, UserID: k.user, State: map[string]any{},
			Events: []map[string]any{}, LastUpdateTime: seconds(one.LastUpdateTime())})
	}
	return a.Send(w, http.StatusOK, all)
}

// patch changes the state of a session whose run nobody drives.
func (a *API) patch(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	var req struct {
		StateDelta map[string]any `json:"stateDelta"`
	}
	if err := a.Read(w, r, &req); err != nil {
		return err
	}
	one, err := a.Runs.Brief(r.Context(), k.id(), 0)
	if err != nil {
		return err
	}
	if run := session.RunOf(one); run != nil && !run.Status.Over() {
		return problem.New(http.StatusConflict, "run_under_way", "The run has not ended", "its state changes by its events alone")
	}
	if err := givable(req.StateDelta); err != nil {
		return err
	}
	ev := session.NewEvent(r.Context(), "p-"+supervisor.NewID())
	ev.Author, ev.Actions.StateDelta = "user", req.StateDelta
	if err := a.Runs.Service.AppendEvent(r.Context(), one, ev); err != nil {
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

// request asks for a run, as ADK's clients do.
type request struct {
	AppName             string         `json:"appName"`
	UserID              string         `json:"userId"`
	SessionID           string         `json:"sessionId"`
	NewMessage          *genai.Content `json:"newMessage"`
	Streaming           bool           `json:"streaming"`
	StateDelta          map[string]any `json:"stateDelta"`
	FunctionCallEventID string         `json:"functionCallEventId"`
	InvocationID        string         `json:"invocationId"`
}

// read reads the request for a run.
func (a *API) read(w http.ResponseWriter, r *http.Request) (req request, k sessionKey, err error) {
	if err = a.Read(w, r, &req); err == nil {
		k = sessionKey{req.AppName, req.UserID, req.SessionID}
		err = k.check()
	}
	return req, k, err
}

// start starts a run, or answers the question of one that waits. It returns the last event before.
func (a *API) start(r *http.Request, req *request, k sessionKey) (id string, seen int64, err error) {
	id = k.id()
	one, err := a.Runs.Session(r.Context(), id)
	if err != nil {
		return "", 0, err
	}
	seen = session.LastSeen(one)
	if run := session.RunOf(one); run != nil && run.Status == mark.RunWaiting {
		return id, seen, a.answer(r.Context(), id, req.NewMessage)
	}
	if err := givable(req.StateDelta); err != nil {
		return "", 0, err
	}
	return id, seen, a.Runs.StartIn(r.Context(), id, k.app, req.NewMessage, req.Streaming, func(def *definition.Definition) (map[string]any, error) {
		return stateOf(def, maps.Collect(one.State().All()), req.StateDelta)
	})
}

// stateOf is what a run adds to the state of its session: what the definition gives and the session
// does not have, and what the request says.
func stateOf(def *definition.Definition, has, delta map[string]any) (map[string]any, error) {
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

// answer answers the question that a run waits for: with what a function has returned, or else with
// the text.
func (a *API) answer(ctx context.Context, id string, message *genai.Content) error {
	open, err := a.Runs.Supervisor.Questions(ctx, id)
	if err != nil {
		return err
	}
	if len(open) == 0 || message == nil || len(message.Parts) == 0 {
		return problem.New(http.StatusConflict, "no_question", "The run waits for an answer", "send it as newMessage")
	}
	q := open[0]
	var data json.RawMessage
	var text strings.Builder
	for _, p := range message.Parts {
		if p.FunctionResponse != nil {
			value := any(p.FunctionResponse.Response)
			if result, ok := p.FunctionResponse.Response["result"]; ok && len(p.FunctionResponse.Response) == 1 {
				value = result
			}
			if data, err = json.Marshal(value); err != nil {
				return err
			}
		}
		text.WriteString(p.Text)
	}
	if data == nil {
		data = operations.Said(&q, text.String())
	}
	return a.Runs.Answer(context.WithoutCancel(ctx), id, &operations.AnswerRequest{Question: q.ID, Value: data})
}

// follow gives each the events behind one until the run ends, is paused or waits, and pieces of answers in between if
// there are any. That the client leaves ends this, and not the run.
func (a *API) follow(r *http.Request, id string, seen int64, between *pieces, each func(map[string]any) error) error {
	ctx, cancel := context.WithCancel(r.Context())
	type said struct {
		ev  *session.Event
		err error
	}
	log := make(chan said)
	defer func() {
		cancel()
		for range log { // until Watch has ended
		}
	}()
	go func() {
		defer close(log)
		for ev, err := range a.Runs.Supervisor.Watch(ctx, id, seen) {
			select {
			case log <- said{ev, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	show := func(evs ...*session.Event) error {
		for _, ev := range evs {
			if ev.Author == "user" {
				continue
			}
			m, err := event(ev)
			if err == nil && m != nil {
				err = each(m)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	var more <-chan struct{}
	if between != nil {
		more = between.wake
	}
	for {
		select {
		case <-a.Closing:
			return supervisor.ErrClosed
		case <-more:
			if err := show(between.take(seen)...); err != nil {
				return err
			}
		case s, ok := <-log:
			if !ok {
				return nil
			}
			if s.err != nil {
				return s.err
			}
			if between != nil {
				if err := show(between.take(s.ev.Seq - 1)...); err != nil {
					return err
				}
			}
			seen = s.ev.Seq
			if err := show(s.ev); err != nil {
				return err
			}
			if over, err := a.over(ctx, id, s.ev); over || err != nil {
				return err
			}
		}
	}
}

// over reports whether a run has come to rest with an event. The error is that of a run that has failed.
func (a *API) over(ctx context.Context, id string, ev *session.Event) (bool, error) {
	if ev.Mark == nil || ev.Mark.Kind != mark.KindRunPaused && ev.Mark.Kind != mark.KindRunEnded {
		return false, nil
	}
	if _, err := a.Runs.Supervisor.Wait(ctx, id); err != nil { // whoever drives it has to let go of it
		return false, err
	}
	one, err := a.Runs.Brief(ctx, id, 1)
	if err != nil || session.LastSeen(one) > ev.Seq { // an answer has come meanwhile
		return false, err
	}
	var end mark.RunEnded
	if ev.Mark.Kind == mark.KindRunEnded && ev.Mark.Decode(&end) == nil && end.Status == mark.RunFailed {
		return true, problem.New(http.StatusInternalServerError, "run_failed", "The run has failed", "%s", end.Error)
	}
	return true, nil
}

func (a *API) run(w http.ResponseWriter, r *http.Request) error {
	req, k, err := a.read(w, r)
	if err != nil {
		return err
	}
	req.Streaming = false // it answers with whole events
	id, seen, err := a.start(r, &req, k)
	if err != nil {
		return err
	}
	all := []map[string]any{}
	if err := a.follow(r, id, seen, nil, func(m map[string]any) error { all = append(all, m); return nil }); err != nil {
		return err
	}
	return a.Send(w, http.StatusOK, all)
}

func (a *API) runSSE(w http.ResponseWriter, r *http.Request) error {
	leave, err := a.Place()
	if err != nil {
		return err
	}
	defer leave()
	req, k, err := a.read(w, r)
	if err != nil {
		return err
	}
	var between *pieces
	if req.Streaming {
		var stop func()
		between, stop = a.Pieces.follow(k.id())
		defer stop()
	}
	id, seen, err := a.start(r, &req, k)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if err := wire.Write(w); err != nil {
		return nil
	}
	err = a.follow(r, id, seen, between, func(m map[string]any) error {
		text, err := progress.MarshalJSON(m)
		if err != nil {
			return err
		}
		return wire.Write(w, []byte("data: "), text, []byte("\n\n"))
	})
	if err != nil && r.Context().Err() == nil {
		text, _ := progress.MarshalJSON(map[string]string{"error": credential.Masked(problem.Of(err).Detail)})
		_ = wire.Write(w, []byte("event: error\ndata: "), text, []byte("\n\n"))
	}
	return nil
}

func (a *API) notHere(http.ResponseWriter, *http.Request) error {
	return problem.New(http.StatusNotImplemented, "not_here", "This server has no such thing", "")
}

// sessionTrace has no spans: the events tell all there is.
func (a *API) sessionTrace(w http.ResponseWriter, _ *http.Request) error {
	return a.Send(w, http.StatusOK, []any{})
}

func (a *API) artifacts(w http.ResponseWriter, r *http.Request, k sessionKey) error {
	got, err := a.Runs.ArtifactService.List(r.Context(), &artifact.ListRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID, SessionID: k.id()})
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
	err := a.Runs.ArtifactService.Delete(r.Context(), &artifact.DeleteRequest{AppName: a.Runs.AppName, UserID: a.Runs.UserID,
		SessionID: k.id(), FileName: r.PathValue("artifact")})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
