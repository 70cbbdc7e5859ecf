// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/agent/taskagent"
)

// echo is a server that answers with what it got.
func echo(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Id", "7")
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s\n%s\n%s|%s\n", r.Method, r.URL.RequestURI(), body, r.Header.Get("X-Token"), r.Header.Get("Content-Type"))
	}))
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, cfg taskagent.HTTPConfig, state map[string]any) *ran {
	t.Helper()
	if cfg.Name == "" {
		cfg.Config = taskagent.Config{Name: "h", OutputKey: "out", ResultKey: "all"}
	}
	return run(t.Context(), t, must(taskagent.NewHTTP(cfg)), state)
}

// D1, D2, D4: a request is filled from the state, and its answer is the result.
func TestRequestAndAnswer(t *testing.T) {
	s := echo(t)
	got := request(t, taskagent.HTTPConfig{
		Method:  "POST",
		URL:     s.URL + "/files/{{name}}/{{missing}}?q={{query?}}&x={{analysis.score}}&e=",
		Headers: map[string]string{"X-Token": "t-{{token}}"},
		Body:    "Hello {{name}} {name}",
	}, map[string]any{"name": "a b/ü?#%", "query": "x&y=z ?", "analysis": map[string]any{"score": 7.5}, "token": "abc"})
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := "POST /files/a%20b%2F%C3%BC%3F%23%25/?q=x%26y%3Dz+%3F&x=7.5&e=\nHello a b/ü?#% {name}\nt-abc|"
	equal(t, "out", any(want), got.state["out"])
	equal(t, "words", []string{want}, got.words())
	all := got.state["all"].(map[string]any)
	equal(t, "status", any(200.0), all["status"])
	equal(t, "body", any(want+"\n"), all["body"])
	equal(t, "header", any("7"), all["headers"].(map[string]any)["x-id"])
}

// D4, D18: in a JSON body a text is a text, whatever is in it, and a value that
// stands alone stays what it is.
func TestBodyJSON(t *testing.T) {
	s := echo(t)
	got := request(t, taskagent.HTTPConfig{
		Method: "PUT", URL: s.URL,
		BodyJSON: map[string]any{
			"text": "Say: {{text}}", "n": "{{ n }}", "deep": "{{analysis.list}}", "none": "{{none?}}", "list": []any{1, "{{n}}!", true, nil},
			"tags": []string{"{{n}}"}, "m": map[string]string{"k": "{{text}}"},
		},
	}, map[string]any{"text": "\"a\"\nb", "n": 3, "analysis": map[string]any{"list": []any{1, "x"}}})
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := `PUT /` + "\n" +
		`{"deep":[1,"x"],"list":[1,"3!",true,null],"m":{"k":"\"a\"\nb"},"n":3,"none":"","tags":[3],"text":"Say: \"a\"\nb"}` + "\n|application/json"
	equal(t, "out", any(want), got.state["out"])
}

// D4: no value chooses the server or leaves the path.
func TestURLCannotBeLedElsewhere(t *testing.T) {
	for _, bad := range []string{
		"", "{{url}}", "{{scheme}}://example.com/", "http://{{host}}/", "http://example.com{{x}}", "http://example.com:{{port}}/", "http://a.{{x}}/b",
		"https://{{user}}@example.com/", "https://u:{{password}}@example.com/", "http://{{host}}?x=1", "ftp://example.com/{{x}}", "/path/{{x}}",
		"http://example.com\\{{x}}/", "http://example.com{{^a}}.org/{{/a}}", "http://example.com#{{x}}",
	} {
		if _, err := taskagent.NewHTTP(taskagent.HTTPConfig{Config: taskagent.Config{Name: "h"}, URL: bad}); err == nil {
			t.Errorf("%q is not refused", bad)
		} else {
			has(t, err, "URL")
		}
	}
	_, err := taskagent.NewHTTP(taskagent.HTTPConfig{Config: taskagent.Config{Name: "h"}, URL: "https://ana:hunter2@example.com/{{x}}"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	} else {
		has(t, err, "URL has a name or a password in it; send them in a header")
	}
	s := echo(t)
	for _, value := range []string{"..", "."} {
		got := request(t, taskagent.HTTPConfig{URL: s.URL + "/a/{{x}}/b"}, map[string]any{"x": value})
		has(t, got.err, "has a segment")
	}
	got := request(t, taskagent.HTTPConfig{URL: s.URL + "?{{x}}", Headers: map[string]string{"X-Token": "{{x}}"}}, map[string]any{"x": "..\r\nX-Evil: 1"})
	has(t, got.err, `header "X-Token"`, "line break")
	got = request(t, taskagent.HTTPConfig{URL: s.URL + "?{{x}}"}, map[string]any{"x": "@evil.example/../"})
	equal(t, "query", any("GET /?%40evil.example%2F..%2F\n\n|"), got.state["out"])
}

// G2: a status is an error, and what there was is kept for the next step.
func TestStatus(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "no such draft\n")
	}))
	defer s.Close()
	got := request(t, taskagent.HTTPConfig{URL: s.URL + "/drafts?key=secret"}, nil)
	failed, ok := errors.AsType[*taskagent.StatusError](got.err)
	if !ok || failed.Status != 404 || failed.URL != s.URL+"/drafts" {
		t.Fatalf("the error is %v, want a StatusError", got.err)
	}
	has(t, got.err, "status 404 Not Found: no such draft")
	equal(t, "status", any(404.0), got.state["all"].(map[string]any)["status"])
	if _, ok := got.state["out"]; ok {
		t.Error("the output key is set")
	}
	got = request(t, taskagent.HTTPConfig{URL: s.URL, OKStatus: []int{200, 404}}, nil)
	if got.err != nil {
		t.Error(got.err)
	}
	equal(t, "out", any("no such draft"), got.state["out"])
}

// G10: a server that is busy may say when to come back.
func TestStatusWithRetryAfter(t *testing.T) {
	asks := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", asks)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	for text, want := range map[string]time.Duration{"7": 7 * time.Second, "": 0, "soon": 0, "-1": 0} {
		asks = text
		got := request(t, taskagent.HTTPConfig{URL: s.URL}, nil)
		failed, ok := errors.AsType[*taskagent.StatusError](got.err)
		if !ok || failed.RetryDelay() != want {
			t.Errorf("Retry-After %q: %v, %+v", text, got.err, failed)
		}
	}
}

// D18: an answer can be JSON.
func TestHTTPJSON(t *testing.T) {
	text := `{"score": 8}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
	defer s.Close()
	got := request(t, taskagent.HTTPConfig{
		Config: taskagent.Config{Name: "h", OutputKey: "out", ExitWhen: "result.json.score >= 8.0"}, URL: s.URL, JSON: true,
	}, nil)
	if got.err != nil || !got.events[0].Actions.Escalate {
		t.Errorf("no exit, error %v", got.err)
	}
	equal(t, "out", any(map[string]any{"score": 8.0}), got.state["out"])
	text = "<html>"
	got = request(t, taskagent.HTTPConfig{URL: s.URL, JSON: true}, nil)
	has(t, got.err, "read the answer of "+s.URL+" as JSON")
}

// F11: an answer that is too long is an error.
func TestSizeLimit(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 10_000_000)) }))
	defer s.Close()
	got := request(t, taskagent.HTTPConfig{URL: s.URL}, nil)
	if limit, ok := errors.AsType[*taskagent.LimitError](got.err); !ok || limit.Stream != "body" {
		t.Errorf("the error is %v, want a LimitError", got.err)
	}
	has(t, got.err, "raise the size limit")
	if got := request(t, taskagent.HTTPConfig{URL: s.URL, SizeLimit: 10_000_000}, nil); got.err != nil {
		t.Error(got.err)
	}
}

// Redirects are followed a little, and headers are for the server they were
// written for.
func TestRedirects(t *testing.T) {
	other := echo(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/other":
			http.Redirect(w, r, other.URL+"/seen", http.StatusFound)
		case "/same":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/end":
			io.WriteString(w, r.Header.Get("X-Token"))
		default:
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	}))
	defer s.Close()
	get := func(path string) *ran {
		return request(t, taskagent.HTTPConfig{
			URL: s.URL + path, Headers: map[string]string{"X-Token": "abc"}, RedirectHosts: []string{strings.TrimPrefix(other.URL, "http://")},
		}, nil)
	}
	equal(t, "same server", any("abc"), get("/same").state["out"])
	equal(t, "other server", any("GET /seen\n\n|"), get("/other").state["out"])
	has(t, get("/again").err, "more than 5 redirects")
	has(t, get("/file").err, `redirect to scheme "file"`)
}

// What is sent to one server goes to no other: neither the headers, however a
// redirect leads there, nor a body, nor what changes something.
func TestRedirectsLeaveSecretsBehind(t *testing.T) {
	var mu sync.Mutex
	var got []string
	see := func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%s %s %s%s%s", r.Method, r.URL.Path, r.Header.Get("X-Api-Key"), r.Header.Get("Referer"), body))
	}
	var s *httptest.Server
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		see(r)
		if r.URL.Path == "/back" {
			http.Redirect(w, r, s.URL+"/end", http.StatusTemporaryRedirect)
		}
	}))
	defer other.Close()
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			see(r)
			return
		}
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	listed := []string{strings.TrimPrefix(other.URL, "http://")}
	for _, tt := range []struct {
		method, path, body string
		client             *http.Client
		want               []string
		fails              string
	}{
		{"GET", "/x", "", nil, []string{"GET /x "}, ""},
		{"GET", "/x", "", &http.Client{}, []string{"GET /x "}, ""},
		{"GET", "/back", "", nil, []string{"GET /back ", "GET /end "}, ""},
		{"POST", "/x", "hidden", nil, nil, "it redirects the POST request to another server, " + other.URL + ", to which it is not sent"},
		{"DELETE", "/x", "", nil, nil, "it redirects the DELETE request to another server"},
		{"GET", "/x", "hidden", nil, nil, "it redirects the GET request to another server"},
	} {
		got = nil
		ran := request(t, taskagent.HTTPConfig{
			Method: tt.method, URL: s.URL + tt.path + "?k=hidden", Body: tt.body, Headers: map[string]string{"X-Api-Key": "hidden"}, Client: tt.client,
			RedirectHosts: listed,
		}, nil)
		if (ran.err == nil) != (tt.fails == "") {
			t.Errorf("%s %s: %v", tt.method, tt.path, ran.err)
		}
		if tt.fails != "" {
			has(t, ran.err, tt.fails)
		}
		equal(t, tt.method+" "+tt.path, tt.want, got)
	}
}

// A redirect leads to the same server, or to one that is listed. To any other, such
// as that of a cloud's metadata, nothing is sent: the dialer sees no address.
func TestRedirectsGoWhereTheStepSays(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	}))
	defer s.Close()
	here := s.Listener.Addr().String()
	var dialed []string
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != here {
			dialed = append(dialed, addr)
			return nil, errors.New("the test connects to nobody else")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}
	for _, tt := range []struct {
		to     string
		hosts  []string
		dialed []string
	}{
		{"http://169.254.169.254/latest/meta-data", nil, nil},
		{"http://169.254.169.254/latest/meta-data", []string{"example.com"}, nil},
		{"http://localhost:1/", []string{"localhost"}, nil},
		{"http://localhost:1/", []string{"localhost:1"}, []string{"localhost:1"}},
		{"http://example.invalid/", []string{"EXAMPLE.invalid"}, []string{"example.invalid:80"}},
		{"https://example.invalid/", []string{"example.invalid"}, []string{"example.invalid:443"}},
	} {
		dialed = nil
		got := request(t, taskagent.HTTPConfig{URL: s.URL + "?to=" + url.QueryEscape(tt.to), Client: client, RedirectHosts: tt.hosts}, nil)
		if tt.dialed == nil {
			has(t, got.err, "it redirects to another server")
		}
		equal(t, tt.to, tt.dialed, dialed)
	}
	for _, host := range []string{"", "https://example.com", "example.com/x", "{{host}}", "*.example.com"} {
		if _, err := taskagent.NewHTTP(taskagent.HTTPConfig{Config: taskagent.Config{Name: "a"}, URL: s.URL, RedirectHosts: []string{host}}); err == nil {
			t.Errorf("%q is a host", host)
		}
	}
}

// TLS is not left with what is secret, not even for the same port.
func TestRedirectThatLeavesTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/", http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	got := request(t, taskagent.HTTPConfig{Method: "POST", URL: s.URL, Client: s.Client()}, nil)
	has(t, got.err, "it redirects the POST request to another server, http://")
}

// A server that repeats the request in its error has the secrets of it, and nobody
// else gets them.
func TestHTTPErrorsHaveNoSecrets(t *testing.T) {
	const key = "sk-SECRETKEY1234567890"
	status := http.StatusUnauthorized
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Header.Get("X-Shared"))
		w.WriteHeader(status)
		fmt.Fprintf(w, "\x1b[31mno: %s, %s, %s, %s", r.Header.Get("Authorization"), r.Header.Get("X-Shared"), r.URL.RawQuery,
			strings.Repeat(r.Header.Get("X-Shared"), 200))
	}))
	defer s.Close()
	cfg := taskagent.HTTPConfig{
		URL:     s.URL + "/?access_token={{token}}&q=cats",
		Headers: map[string]string{"Authorization": "Bearer {{key}}", "X-Shared": "{{shared}}"},
	}
	state := map[string]any{"key": key, "token": "tk-QUERY4711", "shared": "hunter2+hunter2"}
	for _, status = range []int{http.StatusUnauthorized, http.StatusInternalServerError} {
		got := request(t, cfg, state)
		if failed, ok := errors.AsType[*taskagent.StatusError](got.err); !ok || failed.Status != status {
			t.Fatal(got.err)
		}
		has(t, got.err, "no: Bearer [secret], [secret], access_token=[secret]&q=cats, [secret][secret]")
		if strings.Contains(got.err.Error(), "\x1b") {
			t.Errorf("%q goes to a terminal", got.err)
		}
		told := fmt.Sprint(got.err, got.state["all"])
		for _, secret := range []string{key, "hunter2", "QUERY4711"} {
			if strings.Contains(told, secret) {
				t.Errorf("%d: %q is in %.300s", status, secret, told)
			}
		}
	}
	status = http.StatusOK // no error: the answer is what it is
	if got := request(t, cfg, state); got.err != nil || !strings.Contains(fmt.Sprint(got.state["out"]), key) {
		t.Errorf("%v, %v", got.err, got.state["out"])
	}
}

// F11: headers that are too long are an error as well.
func TestHeaderLimit(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 20 {
			w.Header().Set(fmt.Sprintf("X-Long-%d", i), strings.Repeat("x", 4000))
		}
	}))
	defer s.Close()
	got := request(t, taskagent.HTTPConfig{URL: s.URL, SizeLimit: 1000}, nil)
	if limit, ok := errors.AsType[*taskagent.LimitError](got.err); !ok || limit.Stream != "headers" {
		t.Errorf("the error is %v, want a LimitError", got.err)
	}
	if got := request(t, taskagent.HTTPConfig{URL: s.URL, SizeLimit: 100_000}, nil); got.err != nil {
		t.Error(got.err)
	}
}

// slow is a server that never answers.
type slow struct{ asked chan struct{} }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	close(s.asked)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// F4: a request takes 30 seconds at most, unless it is told otherwise.
func TestHTTPTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		got := request(t, taskagent.HTTPConfig{URL: "http://example.com/?key=secret", Client: &http.Client{Transport: slow{make(chan struct{})}}}, nil)
		if !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", got.err)
		}
		has(t, got.err, "request http://example.com/: it did not end in its timeout of 30s")
		equal(t, "time", 30*time.Second, time.Since(start))
	})
}

// T20: cancelling ends a request at once, with the cause.
func TestHTTPCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		because := errors.New("Ana pressed stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		server := slow{make(chan struct{})}
		go func() {
			<-server.asked
			cancel(because)
		}()
		a := must(taskagent.NewHTTP(taskagent.HTTPConfig{
			Config: taskagent.Config{Name: "h"}, URL: "http://example.com/", Client: &http.Client{Transport: server},
		}))
		if got := run(ctx, t, a, nil); got.err != because {
			t.Errorf("the error is %v", got.err)
		}
	})
}

// An error of the network does not give the query away.
func TestHTTPErrorKeepsTheQuerySecret(t *testing.T) {
	s := echo(t)
	s.Close()
	got := request(t, taskagent.HTTPConfig{URL: s.URL + "/x?key=secret"}, nil)
	has(t, got.err, "request "+s.URL+"/x: ", "refused")
	if strings.Contains(got.err.Error(), "secret") {
		t.Errorf("the error has the query: %v", got.err)
	}
	got = request(t, taskagent.HTTPConfig{URL: "http://127.0.0.1/{{x}}%zz?key=secret"}, map[string]any{"x": "y"})
	has(t, got.err, "URL: ", "invalid URL escape")
	if strings.Contains(got.err.Error(), "secret") {
		t.Errorf("the error has the query: %v", got.err)
	}
}
