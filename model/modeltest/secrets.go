// SPDX-License-Identifier: Apache-2.0

package modeltest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/model"
)

// TestSecrets checks that a model sends its key to no other server and that no error contains
// it, whatever the server does. open returns a model at a base URL, with a key.
func TestSecrets(t *testing.T, open func(t testing.TB, baseURL, key string) model.LLM) {
	const key = "sk-SECRETKEY1234567890"
	for _, tt := range []struct {
		name   string
		status int
		answer string // of what was said in the request's headers
		says   string
	}{
		{"a refusal", 401, `{"error":{"message":"wrong key: %s","type":"authentication_error"}}`, "wrong key: "},
		{"a code", 400, `{"error":{"message":"no","code":"%[1]s","status":"%[1]s","type":"%[1]s"}}`, "[secret]"},
		{"a failure that is no JSON", 500, "<p>the proxy got <b>%s</b> and broke", "the proxy got "},
		{"a key that is cut", 502, "%[1]s" + strings.Repeat(" ", 16<<10-len(key)-12) + "%[1]s", "[secret]"},
		{"garbage", 200, "%s is no answer", ""},
		{"a piece of garbage", 200, "data: %s\n\n", "not understood"},
		{"a failure in a stream", 200, "event: error\ndata: {\"error\":{\"message\":\"wrong key: %s\",\"code\":401,\"type\":\"authentication_error\"}}\n\n", ""},
		{"what harms a terminal", 400, `{"error":{"message":"\u001b[2Jno\u009b31m %s"}}`, "no "},
		{"a long story", 400, `{"error":{"message":"%s` + strings.Repeat("long ", 3000) + `"}}`, "long long"},
		{"a body without an end", 400, "%s" + strings.Repeat("long ", 30000), "long long"},
	} {
		both(t, tt.name, func(t *testing.T, stream bool) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				said := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key") + r.URL.Query().Get("key")
				if !strings.HasSuffix(said, key) {
					t.Errorf("the key is not in the headers: %v", r.Header)
				}
				w.Header().Set("Content-Type", "application/json")
				if strings.Contains(tt.answer, "data:") {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				w.WriteHeader(tt.status)
				fmt.Fprintf(w, tt.answer, said)
			}))
			defer srv.Close()
			s := ask(t.Context(), t, open(t, srv.URL, key), userSays("Say it."), stream)
			e, ok := errors.AsType[*model.APIError](s.err)
			if !ok {
				t.Fatalf("got %v", s.err)
			}
			told := fmt.Sprintf("%v %s %s %v", s.err, e.Code, e.Message, e.Err)
			if strings.Contains(told, key[:8]) || strings.ContainsAny(told, "\x1b\u009b") ||
				len(s.err.Error()) > 2500 || !strings.Contains(told, tt.says) {
				t.Errorf("it says %q", told)
			}
		})
	}
	both(t, "a redirect", func(t *testing.T, stream bool) {
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			t.Errorf("another server got %v: %s", r.Header, body)
		}))
		defer other.Close()
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		defer srv.Close()
		s := ask(t.Context(), t, open(t, srv.URL, key), userSays("Say it."), stream)
		e, ok := errors.AsType[*model.APIError](s.err)
		if !ok || e.Retryable || !strings.Contains(e.Error(), "it redirects to another server, "+other.URL) {
			t.Errorf("got %v", s.err)
		}
	})
}
