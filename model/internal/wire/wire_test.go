// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/wire"
)

// refused is the error of an answer.
func refused(t *testing.T, status int, header http.Header) *model.APIError {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
	}))
	defer srv.Close()
	ctx, x := wire.Watch(t.Context(), "test")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := wire.Client(nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	e, ok := errors.AsType[*model.APIError](x.Fail(ctx, errors.New("an SDK's")))
	if !ok {
		t.Fatalf("got %v", e)
	}
	return e
}

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		least, most time.Duration
	}{
		{"Retry-After", "3", 3 * time.Second, 3 * time.Second},
		{"Retry-After", " 0.25 ", 250 * time.Millisecond, 250 * time.Millisecond},
		{"Retry-After-Ms", "1200", 1200 * time.Millisecond, 1200 * time.Millisecond},
		{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 50 * time.Minute, time.Hour},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
		{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", 24 * time.Hour, 24 * time.Hour},
		{"Retry-After", "-5", 0, 0},
		{"Retry-After", "NaN", 0, 0},
		{"Retry-After", "1e300", 24 * time.Hour, 24 * time.Hour},
		{"Retry-After", "soon", 0, 0},
	} {
		if got := refused(t, 429, http.Header{tt.name: {tt.value}}).RetryAfter; got < tt.least || got > tt.most {
			t.Errorf("%s: %s: got %v", tt.name, tt.value, got)
		}
	}
}

func TestNothingWasSent(t *testing.T) {
	ctx, x := wire.Watch(t.Context(), "test")
	err := x.Fail(ctx, errors.New("cannot be put in words"))
	if _, ok := errors.AsType[*model.APIError](err); ok || err.Error() != "ask test: cannot be put in words" {
		t.Errorf("got %v", err)
	}
}

func TestServerIsNotThere(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	url := srv.URL
	srv.Close()
	ctx, x := wire.Watch(t.Context(), "test")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = wire.Client(nil).Do(req)
	if _, retry := model.Retryable(x.Fail(ctx, err)); !retry {
		t.Errorf("got %v", x.Fail(ctx, err))
	}
}

func TestServerIsNotTrusted(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	srv.Config.ErrorLog = nil
	ctx, x := wire.Watch(t.Context(), "test")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = wire.Client(nil).Do(req)
	err = x.Fail(ctx, err)
	if _, ok := errors.AsType[*model.APIError](err); !ok {
		t.Fatalf("got %v", err)
	}
	if _, retry := model.Retryable(err); retry {
		t.Errorf("%v is called retryable", err)
	}
}

// credentials adds what a client's transport knows, as that of Vertex AI.
type credentials struct{ http.RoundTripper }

func (c credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer ya29.SECRETTOKEN")
	return c.RoundTripper.RoundTrip(req)
}

// What a transport below adds is as secret as what is sent through it.
func TestCredentialsOfTheTransport(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, "who is "+r.Header.Get("Authorization")+"?")
	}))
	defer srv.Close()
	ctx, x := wire.Watch(t.Context(), "test")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := wire.Client(&http.Client{Transport: credentials{http.DefaultTransport}}).Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Fail(ctx, errors.New("an SDK's")).Error(); got != "test: status 403: Forbidden: who is Bearer [secret]?" {
		t.Errorf("got %q", got)
	}
}

// telling is a transport whose errors have the request in them.
type telling struct{}

func (telling) RoundTrip(req *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("no way for %v", req.Header)
}

func TestErrorsOfTheTransport(t *testing.T) {
	ctx, x := wire.Watch(t.Context(), "test")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "sk-SECRETKEY")
	_, err = wire.Client(&http.Client{Transport: telling{}}).Do(req)
	if got := x.Fail(ctx, err).Error(); got != "test: no answer: no way for map[X-Api-Key:[[secret]]]" {
		t.Errorf("got %q", got)
	}
}

// endless is a server whose answers have no end.
type endless int

func (e endless) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(e), Body: endlessBody{}, Request: req}, nil
}

type endlessBody struct{}

func (endlessBody) Read(p []byte) (int, error) { return len(p), nil }
func (endlessBody) Close() error               { return nil }

// Of an answer without an end only so much is read, and of a refusal only what
// explains it.
func TestAnswersWithoutAnEnd(t *testing.T) {
	for status, most := range map[int]int64{http.StatusOK: 256 << 20, http.StatusBadRequest: 16 << 10} {
		ctx, x := wire.Watch(t.Context(), "test")
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := wire.Client(&http.Client{Transport: endless(status)}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if n != most || err != nil {
			t.Errorf("%d: read %d bytes, %v", status, n, err)
		}
		e, ok := errors.AsType[*model.APIError](x.Fail(ctx, errors.New("an SDK's")))
		if !ok || e.Status != status || e.Retryable || status == 200 && !strings.Contains(e.Error(), "an answer without an end: it is longer than") {
			t.Errorf("got %v", e)
		}
	}
}

// A client that follows redirects does so within the server, and its own policy
// counts there.
func TestRedirectsWithinTheServer(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/end" {
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	never := errors.New("never")
	for _, tt := range []struct {
		to     string
		policy func(*http.Request, []*http.Request) error
		asked  int
		fails  bool
	}{
		{"/end", nil, 2, false},
		{"/?to=/", nil, 10, true},
		{"/end", func(*http.Request, []*http.Request) error { return never }, 1, true},
	} {
		asked = 0
		ctx, _ := wire.Watch(t.Context(), "test")
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/?to="+url.QueryEscape(tt.to), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := wire.Client(&http.Client{CheckRedirect: tt.policy}).Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if (err != nil) != tt.fails || asked != tt.asked {
			t.Errorf("to %s: asked %d times, %v", tt.to, asked, err)
		}
	}
}

func FuzzProblem(f *testing.F) {
	f.Add(`{"error":{"message":"m","type":"t","code":"c"}}`)
	f.Add(`[{"error":{"code":429,"status":"S","details":[{"retryDelay":"3s"}]}}]`)
	f.Add(`{"error":"text"}`)
	f.Add(`{"detail":"Not Found"}`)
	f.Add("<html>\xff")
	f.Fuzz(func(t *testing.T, body string) {
		_, x := wire.Watch(t.Context(), "test")
		err := x.Problem([]byte(body))
		e, ok := errors.AsType[*model.APIError](err)
		if !ok || !strings.HasPrefix(err.Error(), "test") {
			t.Errorf("got %v", e)
		}
	})
}
