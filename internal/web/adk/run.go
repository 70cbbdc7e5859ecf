// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

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
	text, err := a.Body(w, r, "application/json")
	if err != nil {
		return req, k, err
	}
	if err = wire.Decode(camel(text), &req); err == nil {
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
	state := func(def *definition.Definition) (map[string]any, error) {
		return stateOf(def, maps.Collect(one.State().All()), req.StateDelta)
	}
	return id, seen, a.Runs.StartIn(r.Context(), id, k.app, req.NewMessage, req.Streaming, state)
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
		data = operations.AnswerValue(&q, text.String())
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
	leave, err := a.Place(r.Context()) // it waits as a stream does
	if err != nil {
		return err
	}
	defer leave()
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
	leave, err := a.Place(r.Context())
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

// Pieces hands the pieces of streamed answers to the streams of their runs. No log has them. A stream that does not take
// its pieces loses the later ones; the whole answer follows from the log.
type Pieces struct {
	mu   sync.Mutex
	runs map[string][]*pieces
}

// piecesMost is how many pieces wait for a stream.
const piecesMost = 1000

// pieces are those of one run for one stream.
type pieces struct {
	wake chan struct{} // there are new ones
	of   *Pieces

	seen int64 // the last whole event of the run; of.mu guards it and list
	list []piece
}

// piece is an event that came when the log ended with an event.
type piece struct {
	behind int64
	ev     *session.Event
}

// Hear takes an event of a run that this process drives, whole or a piece.
func (p *Pieces) Hear(id string, ev *session.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.runs[id] {
		l.hear(ev)
	}
}

// follow returns the pieces of a run from now on, until stop is called.
func (p *Pieces) follow(id string) (l *pieces, stop func()) {
	l = &pieces{wake: make(chan struct{}, 1), of: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = make(map[string][]*pieces)
	}
	p.runs[id] = append(p.runs[id], l)
	return l, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.runs[id] = slices.DeleteFunc(p.runs[id], func(o *pieces) bool { return o == l })
		if len(p.runs[id]) == 0 {
			delete(p.runs, id)
		}
	}
}

// hear takes an event, and never waits. of.mu is held.
func (l *pieces) hear(ev *session.Event) {
	if !ev.Partial {
		l.seen = max(l.seen, ev.Seq)
		return
	}
	if len(l.list) == piecesMost || ev.Content == nil {
		return
	}
	l.list = append(l.list, piece{l.seen, ev})
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the pieces that came before the event behind the one with this number.
func (l *pieces) take(seen int64) (evs []*session.Event) {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	n := 0
	for n < len(l.list) && l.list[n].behind <= seen {
		evs = append(evs, l.list[n].ev)
		n++
	}
	l.list = l.list[n:]
	return evs
}
