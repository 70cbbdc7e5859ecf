// SPDX-License-Identifier: Apache-2.0

// Package modeltest holds the suite that every model passes, and servers on
// loopback that speak the providers' wire formats, written from the providers'
// documentation. The servers answer from a script and fail the test on a
// request that the provider would refuse.
//
//	srv := modeltest.OpenAIServer(t, scripted.Script{Answers: []scripted.Answer{{Text: "Hello."}}})
//	llm, err := openai.NewModel("gpt-5-mini", openai.Config{BaseURL: srv.BaseURL, APIKey: "key"})
package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// Server is a local server of one provider's wire format.
type Server struct {
	// BaseURL is the base URL to give to a client of the provider.
	BaseURL string

	t      testing.TB
	d      dialect
	script *scripted.Model
	gone   context.Context // ends with the test

	mu       sync.Mutex
	requests []*Request
}

// Request is a request that a server got, in the types of package model. Schemas are in
// ParametersJsonSchema and ResponseJsonSchema, as json.RawMessage.
type Request struct {
	model.LLMRequest
	// Stream is whether a stream was asked for.
	Stream bool
}

// Requests returns the requests so far.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// dialect is a provider's wire format.
type dialect interface {
	// decode reads a request and says what the provider would refuse in it.
	decode(r *http.Request, body []byte) (*Request, error)
	// problem is the body of an error.
	problem(f scripted.Failure) any
	// whole is the body of an answer.
	whole(a scripted.Answer) any
	// frames are the events of a streamed answer.
	frames(a scripted.Answer, req *Request) []frame
	// blankLine is what ends an event of a stream.
	blankLine() string
}

// frame is one event of a stream as it goes over the wire.
type frame struct {
	text  string
	shows bool // a piece of text or of thought
}

// lf is for dialects whose lines end as Unix's do.
type lf struct{}

// blankLine is what ends an event of a stream.
func (lf) blankLine() string { return "\n\n" }

// dataFrame is an event without a name.
func dataFrame(v any, shows bool) frame { return frame{"data: " + marshal(v) + "\n\n", shows} }

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // of our own making
	}
	return string(data)
}

type object = map[string]any

func newServer(t testing.TB, d dialect, script scripted.Script, path string) *Server {
	t.Helper()
	m, err := scripted.New(script)
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(context.Background())
	s := &Server{t: t, d: d, script: m, gone: gone}
	h := httptest.NewServer(s)
	t.Cleanup(func() {
		leave()
		h.Close()
	})
	s.BaseURL = h.URL + path
	return s
}

// ServeHTTP answers a request from the script.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	req, err := s.d.decode(r, body)
	if err != nil {
		s.t.Errorf("%s %s: a request that the provider refuses: %v\n%s", r.Method, r.URL, err, body)
		s.fail(w, scripted.Failure{Status: http.StatusBadRequest, Code: "invalid_request_error", Message: err.Error()})
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.mu.Unlock()
	a, err := s.script.Take(&req.LLMRequest)
	if err != nil {
		s.t.Errorf("%s: %v", r.URL, err)
		s.fail(w, scripted.Failure{Status: http.StatusNotFound, Code: "not_found_error", Message: err.Error()})
		return
	}
	s.wait(r, a.Delay)
	switch {
	case a.Error != nil:
		s.fail(w, *a.Error)
	case req.Stream:
		s.stream(w, r, a, req)
	default:
		s.whole(w, r, a)
	}
}

func (s *Server) wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	case <-s.gone.Done():
	}
}

func (s *Server) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.gone.Done():
	}
}

func (s *Server) fail(w http.ResponseWriter, f scripted.Failure) {
	if f.Status == 0 {
		panic(http.ErrAbortHandler) // the connection is lost
	}
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(f.RetryAfter.Seconds(), 'f', -1, 64))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	fmt.Fprint(w, marshal(s.d.problem(f)))
}

func (s *Server) whole(w http.ResponseWriter, r *http.Request, a scripted.Answer) {
	w.Header().Set("Content-Type", "application/json")
	body := marshal(s.d.whole(a))
	switch {
	case a.Hang:
		s.hang(r)
	case a.Garbage:
		fmt.Fprint(w, "<html>a gateway's page</html>")
	case a.Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		fmt.Fprint(w, body[:len(body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	default:
		fmt.Fprint(w, body)
	}
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, a scripted.Answer, req *Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	frames := s.d.frames(a, req)
	switch {
	case a.Cut:
		frames = upTo(frames, (countShown(frames)+1)/2)
	case a.Hang, a.Garbage:
		frames = upTo(frames, min(1, countShown(frames)))
	}
	if a.Garbage {
		frames = append(frames, frame{text: "data: {\"half a thing\":" + s.d.blankLine()})
	}
	for i, f := range frames {
		if i > 0 && f.shows {
			s.wait(r, a.Pace)
		}
		if _, err := fmt.Fprint(w, f.text); err != nil {
			return
		}
		w.(http.Flusher).Flush()
	}
	if a.Hang {
		s.hang(r)
	}
}

// countShown counts the frames that show something.
func countShown(frames []frame) (n int) {
	for _, f := range frames {
		if f.shows {
			n++
		}
	}
	return n
}

// upTo is the frames to the nth that shows something, at least those that come
// before the first.
func upTo(frames []frame, n int) []frame {
	for i, f := range frames {
		if f.shows {
			if n--; n < 0 {
				return slices.Clone(frames[:i])
			} else if n == 0 {
				return slices.Clone(frames[:i+1])
			}
		}
	}
	return slices.Clone(frames[:min(1, len(frames))])
}

// arguments are those of a call, as text.
func arguments(c scripted.Call) string {
	if c.Raw != "" {
		return c.Raw
	}
	return marshal(c.Args)
}

// isMalformed reports whether the arguments of a call are not JSON.
func isMalformed(c scripted.Call) bool { return !json.Valid([]byte(arguments(c))) }

// halves splits a text in two, as arguments of functions are streamed.
func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }
