// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// endpoint is a server's, with a client and connections of its own.
func endpoint(t *testing.T, h http.HandlerFunc) *wire.Endpoint {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return at(t, srv.URL, srv.Client())
}

func at(t *testing.T, baseURL string, client *http.Client) *wire.Endpoint {
	t.Helper()
	to, err := wire.NewEndpoint(baseURL, "ask", http.Header{"X-Api-Key": {"sk-SECRETKEY"}}, client)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// ask posts a request in one of the two ways and returns what was answered, one
// line for each event.
func ask(ctx context.Context, to *wire.Endpoint, stream bool) (string, error) {
	ctx, x := wire.Watch(ctx, "test")
	request := map[string]any{"stream": stream, "text": "<Zwölf>"}
	if !stream {
		body, err := x.Post(ctx, to, request)
		return string(body), err
	}
	var lines []string
	for ev, err := range x.PostForEvents(ctx, to, request) {
		if err != nil {
			return strings.Join(lines, "\n"), err
		}
		lines = append(lines, string(ev.Data))
	}
	return strings.Join(lines, "\n"), x.Broken(ctx)
}

// both runs a test of whole answers and of streams, and looks for goroutines
// that stay behind.
func both(t *testing.T, run func(t *testing.T, stream bool)) {
	t.Helper()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			running := goleak.IgnoreCurrent()
			t.Cleanup(func() {
				if err := leaktest.Find(running); err != nil {
					t.Error(err)
				}
			})
			run(t, stream)
		})
	}
}

func TestWhatIsPosted(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		to := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			accept := map[bool]string{false: "application/json", true: "text/event-stream"}[stream]
			want := fmt.Sprintf("{\"stream\":%v,\"text\":\"<Zwölf>\"}\n", stream)
			if r.Method != "POST" || r.URL.Path != "/ask" || string(body) != want || r.ContentLength != int64(len(want)) || r.Header.Get("Accept") != accept ||
				r.Header.Get("Content-Type") != "application/json" || r.Header.Get("User-Agent") != "refrain" || r.Header.Get("X-Api-Key") != "sk-SECRETKEY" {
				t.Errorf("got %s %s, %v: %s", r.Method, r.URL, r.Header, body)
			}
			io.WriteString(w, "data: yes\n\n")
		})
		for range 2 {
			if _, err := ask(t.Context(), to, stream); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A base URL is taken as people write it; a query, as that of Azure's
// api-version, stays.
func TestBaseURLs(t *testing.T) {
	for base, want := range map[string]string{
		"": "/ask", "/": "/ask", "/v1": "/v1/ask", "/v1/": "/v1/ask", "/openai/v1/?api-version=preview": "/openai/v1/ask?api-version=preview",
		"/a%2Fb": "/a%2Fb/ask",
	} {
		asked := ""
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = r.RequestURI }))
		if _, err := ask(t.Context(), at(t, srv.URL+base, srv.Client()), false); err != nil || asked != want {
			t.Errorf("%s: asked %s, %v; want %s", base, asked, err, want)
		}
		srv.Close()
	}
	for _, base := range []string{"", "localhost:80", "ftp://example.org", "http://", "http://a:SECRET@exa mple.org/%"} {
		if _, err := wire.NewEndpoint(base, "ask", nil, nil); err == nil || strings.Contains(err.Error(), "SECRET") ||
			!strings.Contains(err.Error(), "is not an http URL") {
			t.Errorf("%q: got %v", base, err)
		}
	}
}

func TestCompressedAnswers(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		to := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("no gzip is asked for: %v", r.Header)
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, "data: one\n\ndata: two\n\n")
			z.Close()
		})
		want := map[bool]string{false: "data: one\n\ndata: two\n\n", true: "one\ntwo"}[stream]
		if got, err := ask(t.Context(), to, stream); got != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// No redirect carries the request or its key to another server, whatever its
// status is.
func TestRedirectsToAnotherServer(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		for _, status := range []int{301, 302, 303, 307, 308} {
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("%d: another server got %s %v", status, r.Method, r.Header)
			}))
			to := endpoint(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
			_, err := ask(t.Context(), to, stream)
			if e, ok := errors.AsType[*model.APIError](err); !ok || e.Status != status || e.Retryable ||
				!strings.Contains(err.Error(), "redirects to another server, "+other.URL) {
				t.Errorf("%d: got %v", status, err)
			}
			other.Close()
		}
	})
}

// Within a server a redirect brings the request and its key.
func TestRedirectedRequestIsWhole(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		to := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/ask" {
				http.Redirect(w, r, "/there", http.StatusPermanentRedirect)
				return
			}
			body, _ := io.ReadAll(r.Body)
			if len(body) == 0 || r.Method != "POST" || r.Header.Get("X-Api-Key") == "" {
				t.Errorf("got %s, %v: %s", r.Method, r.Header, body)
			}
			io.WriteString(w, "data: yes\n\n")
		})
		if _, err := ask(t.Context(), to, stream); err != nil {
			t.Error(err)
		}
	})
}

// Whoever asks a provider's support needs the provider's name for the request,
// wherever it went wrong.
func TestErrorsNameTheRequest(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		for _, header := range []string{"X-Request-Id", "Request-Id"} {
			for says, answer := range map[string]http.HandlerFunc{
				"test: status 429: slow down (request req_1)": func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(429)
					io.WriteString(w, `{"error":{"message":"slow down"}}`)
				},
				"test: status 502: Bad Gateway: no JSON (request req_1)": func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(502)
					io.WriteString(w, "no JSON")
				},
				"test: status 200: the answer broke off (request req_1): unexpected EOF": func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", "100")
					io.WriteString(w, "data: one\n\n")
				},
			} {
				to := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set(header, "req_1")
					answer(w, r)
				})
				_, err := ask(t.Context(), to, stream)
				if e, ok := errors.AsType[*model.APIError](err); !ok || e.RequestID != "req_1" || err.Error() != says {
					t.Errorf("%s: got %v", header, err)
				}
			}
		}
		ctx, x := wire.Watch(t.Context(), "test")
		to := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Request-Id", "sk-SECRETKEY "+strings.Repeat("long", 100))
			io.WriteString(w, "data: one\n\n")
		})
		if _, err := x.Post(ctx, to, nil); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{x.Garbage(ctx, []byte("hm"), nil), x.Cut(ctx), x.Problem([]byte(`{"error":{"message":"it broke"}}`))} {
			e, ok := errors.AsType[*model.APIError](err)
			if !ok || !strings.HasPrefix(e.RequestID, "[secret] ") || len(e.RequestID) > 200 {
				t.Errorf("got %+v", e)
			}
		}
	})
}

// gone is a server that says when its client has left.
func gone(began, left chan<- struct{}, before string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // else the server does not see that the client leaves
		io.WriteString(w, before)
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
		close(left)
	}
}

// Cancelling closes the connection: the provider stops to write, and to charge.
func TestCancelClosesTheConnection(t *testing.T) {
	both(t, func(t *testing.T, stream bool) {
		began, left := make(chan struct{}), make(chan struct{})
		to := endpoint(t, gone(began, left, "data: one\n\n"))
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		go func() {
			<-began
			cancel(stop)
		}()
		if _, err := ask(ctx, to, stream); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
		select {
		case <-left:
		case <-time.After(time.Minute):
			t.Error("the connection is still open")
		}
	})
}

func TestConsumerThatStopsClosesTheConnection(t *testing.T) {
	running := goleak.IgnoreCurrent()
	began, left := make(chan struct{}), make(chan struct{})
	srv := httptest.NewServer(gone(began, left, "data: one\n\n"))
	ctx, x := wire.Watch(t.Context(), "test")
	for _, err := range x.PostForEvents(ctx, at(t, srv.URL, srv.Client()), nil) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	select {
	case <-left:
	case <-time.After(time.Minute):
		t.Error("the connection is still open")
	}
	srv.Close()
	if err := leaktest.Find(running); err != nil {
		t.Error(err)
	}
}

func TestRequestThatIsNoJSON(t *testing.T) {
	to := endpoint(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
	ctx, x := wire.Watch(t.Context(), "test")
	_, err := x.Post(ctx, to, map[string]any{"f": func() {}})
	if _, ok := errors.AsType[*model.APIError](err); ok || err == nil || !strings.HasPrefix(err.Error(), "ask test: json: ") {
		t.Errorf("got %v", err)
	}
}

// An event that has no end is not waited for.
func TestEventWithoutAnEnd(t *testing.T) {
	ctx, x := wire.Watch(t.Context(), "test")
	for _, err := range x.PostForEvents(ctx, at(t, "http://test", &http.Client{Transport: endless(200)}), nil) {
		e, ok := errors.AsType[*model.APIError](err)
		if !ok || e.Retryable || !strings.Contains(e.Error(), "an event without an end: it is longer than") {
			t.Errorf("got %v", err)
		}
	}
}
