// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
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
		{"Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat), 50 * time.Second, time.Minute},
		{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT", 0, 0},
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

func TestExcerpt(t *testing.T) {
	got := wire.Excerpt(" a\n\tb \xff " + strings.Repeat("日", 500))
	if !strings.HasPrefix(got, "a b \uFFFD 日") || len([]rune(got)) != 161 {
		t.Errorf("got %q", got)
	}
}
