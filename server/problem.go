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
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/definition/form"
	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/progress/prose"
	"github.com/refrain-dev/refrain/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// problem is an error as a client gets it: RFC 9457.
type problem struct {
	// Type names the kind of problem, for programs.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Problems are those of a definition.
	Problems definition.Problems `json:"problems,omitempty"`

	agent, field string // where in the definition; empty if nowhere or everywhere

	err    error             // the reason; it is logged if the server is to blame
	header map[string]string // of the answer
}

func (p *problem) Error() string { return p.Title + ": " + p.Detail }

func (p *problem) Unwrap() error { return p.err }

// fault is a problem of a kind.
func fault(status int, kind, title, format string, args ...any) *problem {
	return &problem{Type: "urn:refrain:" + kind, Title: title, Status: status, Detail: fmt.Sprintf(format, args...)}
}

// bad is a request that makes no sense.
func bad(format string, args ...any) *problem {
	return fault(http.StatusBadRequest, "bad_request", "The request makes no sense", format, args...)
}

// foreign is the error of a text of another product that is no definition.
type foreign interface {
	error
	Problems() definition.Problems
}

// problemOf translates an error.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if all, ok := errors.AsType[definition.Problems](err); ok {
		p := fault(http.StatusUnprocessableEntity, "bad_definition", "The definition has mistakes", "%s", all.Summary())
		p.Problems = all
		return p
	}
	if other, ok := errors.AsType[foreign](err); ok {
		return problemOf(other.Problems())
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault(http.StatusRequestEntityTooLarge, "too_large", "The request is too large",
			"the limit is %d bytes", large.Limit)
	}
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		return fault(http.StatusConflict, "run_held", "Another process drives the run", "it is %s", held.Owner)
	}
	if errors.Is(err, runlog.ErrNoEvents) {
		return fault(http.StatusNotFound, "run_not_begun", "The run has not begun", "%v", err)
	}
	if k, ok := supervisor.KindOf(err); ok {
		return fault(k.Status, k.Problem, k.Title, "%v", err)
	}
	if in, ok := errors.AsType[*definition.InputError](err); ok {
		return fault(http.StatusUnprocessableEntity, "bad_input", "An input does not fit", "%v", in)
	}
	p := fault(http.StatusInternalServerError, "internal", "The server could not do that", "%v", err)
	p.err = err
	return p
}

// masked is a text without keys and passwords.
func masked(text string) string {
	text, _ = credential.Cleaned(text, "[secret]")
	return credential.WithoutTokens(text, "[secret]")
}

// noRun names the run in an error that says that there is no such run. Other errors it returns as they are.
func noRun(id string, err error) error {
	if !errors.Is(err, session.ErrNotFound) && !errors.Is(err, supervisor.ErrNotFound) {
		return err
	}
	p := fault(http.StatusNotFound, "run_not_found", "There is no such run", "there is no run %q", id)
	p.err = err
	return p
}

// answering makes a handler of an operation: its error becomes a problem.
func (s *Server) answering(do func(*Server, http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.cfg.Log.ErrorContext(r.Context(), "a request panicked", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			s.refuse(w, r, fault(http.StatusInternalServerError, "internal", "The server could not do that", "a panic"))
		}()
		if err := do(s, w, r); err != nil {
			s.refuse(w, r, err)
		}
	})
}

// refuse answers with a problem. Nobody waits for the answer to a request that was canceled.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	p := problemOf(err)
	p = new(*p) // it may be shared
	p.Detail = masked(p.Detail)
	if languageOf(r) == prose.Portuguese {
		p.Problems = slices.Clone(p.Problems)
		for i, one := range p.Problems {
			p.Problems[i] = form.ProblemInPortuguese(one)
		}
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusUnauthorized,
		http.StatusMisdirectedRequest, http.StatusTooManyRequests:
		s.refusals.add(r.Context(), strings.TrimPrefix(p.Type, "urn:refrain:"), "a request was refused", p.Title, r.RemoteAddr,
			"method", r.Method, "path", masked(r.URL.Path))
	}
	if p.Status >= 500 && p.err != nil {
		s.cfg.Log.ErrorContext(r.Context(), "a request failed", "method", r.Method, "path", masked(r.URL.Path), "error", p.Detail)
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	body, err := progress.MarshalJSON(p)
	if err != nil {
		body = []byte(`{"type":"urn:refrain:internal","title":"The server could not do that","status":500}`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

// send answers with JSON.
func (s *Server) send(w http.ResponseWriter, status int, v any) error {
	body, err := progress.MarshalJSON(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
	return nil
}

// read reads the body of a request, which is JSON, into v. An unknown field is a mistake. An empty
// body leaves v as it is.
func (s *Server) read(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := s.body(w, r, "application/json")
	if err != nil || len(body) == 0 {
		return err
	}
	return decode(body, v)
}

func decode(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badBody(body, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return bad("the body has more than one JSON value: something follows the first")
	}
	return nil
}

// badBody says what is wrong with a body that cannot be read.
func badBody(body []byte, err error) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return bad("the body is empty: send JSON")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("the body is no whole JSON: it ends too early")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return bad("the body is no JSON: byte %d: %v", syntax.Offset, syntax)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return bad("%s must be %s and not %s", cmp.Or(wrong.Field, "the body"), kindOf(wrong.Type), wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return bad("there is no field %s", name)
	}
	return bad("read the body: %v", err)
}

// kindOf is what a type of Go is in JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Uint:
		return "a whole number of at least 0"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
