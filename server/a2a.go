// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	urlpath "path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/log"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/supervisor"
)

// Where clients of the Agent2Agent protocol are served: each definition is an agent, in version 1.0 below
// a2aNow and in 0.3 below a2aPath.
const (
	a2aPath  = "/a2a/"
	a2aNow   = a2aPath + "v1/"
	cardPath = "/.well-known/agent-card.json"
)

// toAgentREST lists the methods and paths of the binding to HTTP, which are below /v1 in version 0.3.
var toAgentREST = [][2]string{
	{"POST", "/message:send"},
	{"POST", "/message:stream"},
	{"GET", "/tasks"},
	{"GET", "/tasks/{id}"},
	{"GET", "/tasks/{id}:subscribe"},
	{"POST", "/tasks/{id}:subscribe"},
	{"POST", "/tasks/{id}:cancel"},
	{"GET", "/tasks/{id}/pushNotificationConfigs"},
	{"POST", "/tasks/{id}/pushNotificationConfigs"},
	{"GET", "/tasks/{id}/pushNotificationConfigs/{config}"},
	{"DELETE", "/tasks/{id}/pushNotificationConfigs/{config}"},
}

// a2aRoutes returns all operations over A2A, which overA2A carries out.
func a2aRoutes() []wire.Route {
	const old, now = a2aPath + "{definition}", a2aNow + "{definition}"
	all := []wire.Route{
		wire.At("POST", old, nil), wire.At("POST", now, nil), // JSON-RPC
		wire.At("GET", old+cardPath, nil), wire.At("GET", now+cardPath, nil), wire.At("GET", cardPath, nil),
		wire.At("GET", old+"/v1/card", nil), wire.At("GET", now+"/extendedAgentCard", nil),
	}
	for _, r := range toAgentREST {
		all = append(all, wire.At(r[0], old+"/v1"+r[1], nil), wire.At(r[0], now+r[1], nil))
	}
	return all
}

// overA2A answers what a client sends to an agent. What the protocol says, its own SDK reads and writes.
func (s *Server) overA2A(w http.ResponseWriter, r *http.Request) error {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, a2aPath), "/")
	old := name != "v1"
	if !old {
		name, path, _ = strings.Cut(path, "/")
	}
	none := error(nil)
	if name != "" && path == "" && strings.HasSuffix(r.URL.Path, "/") { // clients in Python join the address with "/"
		at := *r.URL
		at.Path, at.RawPath = strings.TrimSuffix(at.Path, "/"), strings.TrimSuffix(at.RawPath, "/")
		r = r.Clone(r.Context())
		r.URL = &at
	}
	if clean := urlpath.Clean("/"+path) == "/"+path; path != "" && !clean || !s.knows(r) {
		id, instead := oddTask(path)
		if instead == "" {
			return s.noRoute(w, r)
		}
		path, none = instead, problem.NoRun(id, supervisor.ErrNotFound)
	}
	if _, _, err := s.runs.Folder.Read(name); err != nil {
		return err
	}
	if path = "/" + path; path == cardPath {
		return s.sendCard(w, r, name, old)
	}
	var body []byte
	if r.Method == http.MethodPost {
		var err error
		body, err = s.Body(w, r, "application/json", "application/a2a+json")
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	agent := &a2aAgent{s: s, name: name, old: old, err: cmp.Or(fitting(old, r.Header.Get(a2a.SvcParamVersion)), none, emptyPage(r, body))}
	options := []a2asrv.TransportOption{
		a2asrv.WithTransportKeepAlive(beat), a2asrv.WithTransportPanicHandler(s.panicked),
	}
	var h http.Handler
	switch rpc := path == "/"; {
	case rpc && old:
		h = a2av0.NewJSONRPCHandler(agent, options...)
	case rpc:
		h = a2asrv.NewJSONRPCHandler(agent, options...)
	case old:
		h = a2av0.NewRESTHandler(agent, options...)
	default:
		h = a2asrv.NewRESTHandler(agent, options...)
	}
	r = r.WithContext(log.AttachLogger(r.Context(), slog.New(slog.DiscardHandler))) // that a client left is no error
	at := *r.URL
	at.Path, at.RawPath = path, ""
	r.URL = &at
	h.ServeHTTP(w, r)
	return nil
}

// oddTask is the ID of a task in a path, such as ../../x or none, that makes it no path of the protocol, and
// the path with another ID in its place, so that the answer is one of the protocol. It is empty for other paths.
func oddTask(path string) (id, instead string) {
	before, id, found := strings.Cut(path, "tasks/")
	if !found || before != "" && before != "v1/" {
		return "", ""
	}
	verb := ""
	if i := strings.LastIndexByte(id, ':'); i >= 0 {
		id, verb = id[:i], id[i:]
	}
	if id != "" && operations.CheckID(id) == nil {
		return "", ""
	}
	return id, before + "tasks/_" + verb
}

// knows reports whether there is an operation for a request.
func (s *Server) knows(r *http.Request) bool {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return slices.ContainsFunc(s.known, func(known wire.Route) bool {
		return known.Method == method && has(known, r.URL.EscapedPath())
	})
}

// fitting is the error for a client that speaks another version of the protocol than its address.
func fitting(old bool, version string) error {
	want := "1."
	if old {
		want = "0.3."
	}
	if version == "" || strings.HasPrefix(version+".", want) {
		return nil
	}
	return a2a.NewError(a2a.ErrVersionNotSupported, fmt.Sprintf("this address speaks A2A %s; the agent's card names the "+
		"address of each version", strings.TrimSuffix(want, ".")))
}

func (s *Server) panicked(v any) error {
	s.cfg.Log.Error("a request panicked", "path", a2aPath, "panic", v, "stack", string(debug.Stack()))
	return a2a.NewError(a2a.ErrInternalError, "the server failed with a panic; its log has the details")
}

// onlyCard is the card of a server with one definition. Its address names no version of the protocol: it is for both.
func (s *Server) onlyCard(w http.ResponseWriter, r *http.Request) error {
	all, err := s.runs.Definitions()
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return problem.New(http.StatusNotFound, "no_card", "The server is not one agent", "it has %d definitions, and each is an "+
			"agent: the card of one is at %sNAME%s", len(all), a2aNow, cardPath)
	}
	return s.sendCard(w, r, all[0].Name, true)
}

// sendCard sends the card of an agent, in the form of 1.0, or if old is set in one for clients of 0.3 too.
func (s *Server) sendCard(w http.ResponseWriter, r *http.Request, name string, old bool) error {
	file, text, err := s.runs.Folder.Read(name)
	if err != nil {
		return err
	}
	def, err := s.runs.Folder.Load(file, text)
	if err != nil {
		return s.runs.Here(err)
	}
	here := schemeOf(r) + "://" + r.Host + s.cfg.BasePath
	card := cardOf(name, operations.TagOf(text), def)
	add := func(at string, version a2a.ProtocolVersion) {
		for _, binding := range []a2a.TransportProtocol{a2a.TransportProtocolJSONRPC, a2a.TransportProtocolHTTPJSON} {
			card.SupportedInterfaces = append(card.SupportedInterfaces,
				&a2a.AgentInterface{URL: here + at + name, ProtocolBinding: binding, ProtocolVersion: version})
		}
	}
	add(a2aNow, a2a.Version)
	add(a2aPath, a2av0.Version)
	if s.cfg.Token != "" {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{"token": a2a.HTTPAuthSecurityScheme{
			Scheme: "Bearer", Description: "The token that the server was started with.",
		}}
		card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"token": {}}}
	}
	body, err := progress.MarshalJSON(card)
	if producer, ok := a2av0.NewStaticAgentCardProducer(card).(a2asrv.AgentCardJSONProducer); err == nil && ok && old {
		var more []byte
		if more, err = producer.CardJSON(r.Context()); err == nil {
			body, err = both(body, more)
		}
	}
	if err != nil {
		return err
	}
	sendTagged(w, r, []byte(credential.Masked(string(body))), "private, max-age=60")
	return nil
}

// both returns a card in the form of 1.0 with what only that of 0.3 has. The SDK's own form for both has security schemes
// that clients of 1.0 do not know.
func both(now, old []byte) ([]byte, error) {
	var card, more map[string]any
	if err := errors.Join(json.Unmarshal(now, &card), json.Unmarshal(old, &more)); err != nil {
		return nil, err
	}
	complement(card, more)
	return progress.MarshalJSON(card)
}

// complement adds the members of an object that another one lacks, also in the objects in it.
func complement(to, from map[string]any) {
	for key, v := range from {
		has, known := to[key]
		inner, isObject := has.(map[string]any)
		other, areObjects := v.(map[string]any)
		switch {
		case !known:
			to[key] = v
		case isObject && areObjects:
			complement(inner, other)
		}
	}
}

// cardOf tells about the agent that a definition is. Its version changes with the text.
func cardOf(name, tag string, def *definition.Definition) *a2a.AgentCard {
	about := cmp.Or(def.Description, "Runs "+def.Root.Shown()+".")
	skill := a2a.AgentSkill{
		ID: name, Name: def.Root.Shown(), Description: about, Tags: []string{string(def.Root.Type)},
		InputModes: []string{"text/plain"}, OutputModes: []string{"text/plain"},
	}
	if len(def.Inputs) > 0 {
		text, _ := json.Marshal(def.Inputs) // what a definition can hold is JSON
		skill.Description += "\n\nBesides the text, a message can have one part of data, an object with values for " +
			"these inputs: " + string(text)
	}
	if len(def.Inputs)+len(def.State) > 0 {
		skill.InputModes = append(skill.InputModes, "application/json")
	}
	if def.Query != "" {
		skill.Examples = []string{def.Query}
	}
	return &a2a.AgentCard{
		Name: def.Root.Shown(), Description: about, Version: strings.Trim(tag, `"`),
		Capabilities:      a2a.AgentCapabilities{Streaming: true, PushNotifications: true},
		DefaultInputModes: skill.InputModes, DefaultOutputModes: skill.OutputModes,
		Skills: []a2a.AgentSkill{skill},
	}
}

// fails returns an error in the form of the protocol.
func (a *a2aAgent) fails(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if said, ok := errors.AsType[*a2a.Error](err); ok {
		return said
	}
	p := problem.Of(err)
	text := credential.Masked(p.Whole())
	if p.Status >= 500 && p.Err != nil {
		a.s.cfg.Log.Error("a request failed", "path", a2aPath+a.name, "error", text)
	}
	kind := a2a.ErrInternalError
	switch {
	case p.Type == "urn:refrain:run_not_found", p.Type == "urn:refrain:run_not_begun":
		kind = a2a.ErrTaskNotFound
	case p.Type == "urn:refrain:closing", p.Type == "urn:refrain:busy", p.Type == "urn:refrain:key_in_use":
		kind = a2a.ErrServerError
	case p.Status == http.StatusConflict:
		kind = a2a.ErrUnsupportedOperation
	case p.Status == http.StatusForbidden:
		kind = a2a.ErrUnauthorized
	case p.Status < 500:
		kind = a2a.ErrInvalidParams
	}
	return a2a.NewError(kind, text).WithDetails(map[string]any{"type": p.Type})
}

// about is what the metadata of a task, of a status and of an artifact has, under "refrain".
func about(t *toldRun) map[string]any {
	text, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	return map[string]any{"refrain": json.RawMessage(credential.Masked(string(progress.EscapeJSON(text))))}
}
