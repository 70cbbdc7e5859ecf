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
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/supervisor"
)

// The paths of the Agent2Agent protocol. Each definition is an agent. Version 1.0 is served below a2aNow, and version 0.3
// below a2aPath.
const (
	a2aPath  = "/a2a/"
	a2aNow   = a2aPath + "v1/"
	cardPath = "/.well-known/agent-card.json"
)

// toAgentREST lists the methods and paths of the binding to HTTP, which are below /v1 in version 0.3.
var toAgentREST = []struct {
	method, path string
	role         access.Role
}{
	{"POST", "/message:send", access.Operator},
	{"POST", "/message:stream", access.Operator},
	{"GET", "/tasks", access.Reader},
	{"GET", "/tasks/{id}", access.Reader},
	{"GET", "/tasks/{id}:subscribe", access.Reader},
	{"POST", "/tasks/{id}:subscribe", access.Reader},
	{"POST", "/tasks/{id}:cancel", access.Operator},
	{"GET", "/tasks/{id}/pushNotificationConfigs", access.Operator},
	{"POST", "/tasks/{id}/pushNotificationConfigs", access.Operator},
	{"GET", "/tasks/{id}/pushNotificationConfigs/{config}", access.Operator},
	{"DELETE", "/tasks/{id}/pushNotificationConfigs/{config}", access.Operator},
}

// a2aRoutes returns all operations over A2A, which handleA2A carries out.
func a2aRoutes() []wire.Route {
	const old, now = a2aPath + "{definition}", a2aNow + "{definition}"
	all := []wire.Route{
		wire.At("POST", old, access.Reader, nil), wire.At("POST", now, access.Reader, nil), // JSON-RPC, whose methods need what they do
		wire.At("GET", old+cardPath, access.Reader, nil), wire.At("GET", now+cardPath, access.Reader, nil),
		wire.At("GET", cardPath, access.Reader, nil),
		wire.At("GET", old+"/v1/card", access.Reader, nil), wire.At("GET", now+"/extendedAgentCard", access.Reader, nil),
	}
	for _, r := range toAgentREST {
		all = append(all, wire.At(r.method, old+"/v1"+r.path, r.role, nil), wire.At(r.method, now+r.path, r.role, nil))
	}
	return all
}

// handleA2A answers a request to an agent. The SDK of the protocol decodes the request and encodes the response.
func (s *Server) handleA2A(w http.ResponseWriter, r *http.Request) error {
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
	role, known := s.roleFor(r)
	if err := operations.Permit(r.Context(), role); err != nil {
		return err
	}
	if clean := urlpath.Clean("/"+path) == "/"+path; path != "" && !clean || !known {
		id, instead := replaceBadTaskID(path)
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
	agent := &a2aAgent{s: s, name: name, old: old, err: cmp.Or(checkVersion(old, r.Header.Get(a2a.SvcParamVersion)), none, checkPageSize(r, body))}
	options := []a2asrv.TransportOption{
		a2asrv.WithTransportKeepAlive(keepAlive), a2asrv.WithTransportPanicHandler(s.logPanic),
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
	r = r.WithContext(log.AttachLogger(r.Context(), slog.New(slog.DiscardHandler))) // the SDK would log that a client left
	at := *r.URL
	at.Path, at.RawPath = path, ""
	r.URL = &at
	h.ServeHTTP(w, r)
	return nil
}

// replaceBadTaskID finds a task ID in a path that no run can have, such as ../../x or an empty one. It returns the ID and the path
// with a harmless ID in its place, so that the SDK can answer that there is no such task. It returns empty texts for all
// other paths.
func replaceBadTaskID(path string) (id, instead string) {
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

// roleFor returns the role that the route of a request needs; known is false if the server has no such route.
func (s *Server) roleFor(r *http.Request) (role access.Role, known bool) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(s.allRoutes, func(known wire.Route) bool {
		return known.Method == method && fitsRoute(known, r.URL.EscapedPath())
	})
	if i < 0 {
		return access.Reader, false
	}
	return s.allRoutes[i].Role, true
}

// checkVersion returns an error if a client speaks another version of the protocol than the one that its address serves.
func checkVersion(old bool, version string) error {
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

// logPanic logs a panic of a handler of the SDK, and returns the error for the client.
func (s *Server) logPanic(v any) error {
	s.cfg.Log.Error("a request panicked", "path", a2aPath, "panic", v, "stack", string(debug.Stack()))
	return a2a.NewError(a2a.ErrInternalError, "the server failed with a panic; its log has the details")
}

// sendOnlyCard sends the card of the agent if the server has exactly one definition. The path of this card names no version of
// the protocol, so the card is in a form that clients of both versions can read.
func (s *Server) sendOnlyCard(w http.ResponseWriter, r *http.Request) error {
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

// sendCard sends the card of an agent in the form of version 1.0. If old is true, the card also has the fields of 0.3.
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
	if s.cfg.Token != "" || s.cfg.People != nil {
		card.SecuritySchemes = a2a.NamedSecuritySchemes{"token": a2a.HTTPAuthSecurityScheme{
			Scheme: "Bearer", Description: "The token that the operator of the server gives out.",
		}}
		card.SecurityRequirements = a2a.SecurityRequirementsOptions{{"token": {}}}
	}
	body, err := progress.MarshalJSON(card)
	if producer, ok := a2av0.NewStaticAgentCardProducer(card).(a2asrv.AgentCardJSONProducer); err == nil && ok && old {
		var more []byte
		if more, err = producer.CardJSON(r.Context()); err == nil {
			body, err = mergeCards(body, more)
		}
	}
	if err != nil {
		return err
	}
	sendTagged(w, r, []byte(credential.Masked(string(body))), "private, max-age=60")
	return nil
}

// mergeCards returns the card now, in the form of 1.0, plus the fields that only old has, in the form of 0.3. The SDK can also
// make a card for both versions, but that one has security schemes that clients of 1.0 do not know.
func mergeCards(now, old []byte) ([]byte, error) {
	var card, more map[string]any
	if err := errors.Join(json.Unmarshal(now, &card), json.Unmarshal(old, &more)); err != nil {
		return nil, err
	}
	complement(card, more)
	return progress.MarshalJSON(card)
}

// complement adds to the object to the members of from that it lacks. It does the same in nested objects.
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

// cardOf returns the card of the agent that a definition describes. The version in it changes with the definition's text.
func cardOf(name, tag string, def *definition.Definition) *a2a.AgentCard {
	about := cmp.Or(def.Description, "Runs "+def.Root.Shown()+".")
	skill := a2a.AgentSkill{
		ID: name, Name: def.Root.Shown(), Description: about, Tags: []string{string(def.Root.Type)},
		InputModes: []string{"text/plain"}, OutputModes: []string{"text/plain"},
	}
	if len(def.Inputs) > 0 {
		text, _ := json.Marshal(def.Inputs) // cannot fail, because a definition has only JSON values
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

// protocolError returns err as an error of the protocol. It returns nil and context.Canceled unchanged, and logs internal errors.
func (a *a2aAgent) protocolError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if protocolErr, ok := errors.AsType[*a2a.Error](err); ok {
		return protocolErr
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

// taskMetadata returns the metadata of a task or of a status: the run's row, under the key "refrain".
func taskMetadata(t *runEntry) map[string]any {
	text, err := json.Marshal(t)
	if err != nil {
		return nil
	}
	return map[string]any{"refrain": json.RawMessage(credential.Masked(string(progress.EscapeJSON(text))))}
}
