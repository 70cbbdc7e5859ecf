// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session/mark"
)

// acts are who did what to a run, by its log.
func (s *site) acts(id string) (all []string) {
	s.Helper()
	add := func(what, by string) { all = append(all, what+" "+by) }
	for _, ev := range s.log(id) {
		if ev.Mark == nil {
			continue
		}
		var err error
		switch ev.Mark.Kind {
		case mark.KindRunStarted:
			var d mark.RunStarted
			err = ev.Mark.Decode(&d)
			add("started", d.By)
		case mark.KindRunTaken:
			var d mark.RunTaken
			err = ev.Mark.Decode(&d)
			add("taken", d.By)
		case mark.KindRunPaused:
			var d mark.RunPaused
			err = ev.Mark.Decode(&d)
			add("paused", d.By)
		case mark.KindRunEnded:
			var d mark.RunEnded
			err = ev.Mark.Decode(&d)
			add("ended", d.By)
		case mark.KindAnswered:
			var d mark.Answer
			err = ev.Mark.Decode(&d)
			add("answered", d.By)
		case mark.KindHinted:
			var d mark.Hinted
			err = ev.Mark.Decode(&d)
			add("told", d.Hints[0].By)
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	return all
}

const goOn = "name: asking\nsub_agents:\n  - {name: ok, question: Go on?}\n"

// Through each door, the log has the name that the server knows, and not the one that the client claims.
func TestTheLogSaysWhoDidIt(t *testing.T) {
	g := newGate(t)
	s, people, tokens := crew(t, map[string]string{"asking.yaml": goOn, "gated.yaml": g.gated(3), "counting.yaml": counting}, private)
	second, err := people.Add(access.Person{Name: "uli", Role: access.Operator}, true)
	if err != nil {
		t.Fatal(err)
	}
	oto, uli := []string{"Authorization", tokens["oto"]}, []string{"Authorization", "Bearer " + second}
	expect := func(id string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, s.acts(id)); diff != "" {
			t.Errorf("run %s: %s", id, diff)
		}
	}
	const owner = "the test"

	run := s.run(map[string]any{"definition": "gated"}, oto...).Run
	at := "/api/v1/runs/" + run
	<-g.came
	s.ok("POST", at+":tell", map[string]any{"text": "Be brief", "by": "the pope"}, nil, uli...)
	s.ok("POST", at+":pause", map[string]any{"reason": "lunch", "by": "the pope"}, nil, oto...)
	g.let <- struct{}{}
	s.wait(run)
	s.ok("POST", at+":resume", nil, nil, uli...)
	<-g.came
	s.ok("POST", at+":cancel", nil, nil, oto...)
	s.wait(run)
	expect(run, "started oto", "paused oto", "taken uli", "told uli", "ended oto")
	var fork listed
	s.ok("POST", at+":fork", map[string]any{"iteration": 1}, &fork, uli...)
	expect(fork.Run, "started oto", "paused oto", "taken uli", "paused uli")

	run = s.run(map[string]any{"definition": "asking"}, oto...).Run
	s.wait(run)
	s.ok("POST", "/api/v1/runs/"+run+":answer", map[string]any{"value": true, "by": "the pope"}, nil, uli...)
	s.wait(run)
	for _, act := range s.acts(run) {
		if strings.HasPrefix(act, "answered") && act != "answered uli" || strings.Contains(act, "pope") {
			t.Errorf("the question was %s", act)
		}
	}

	client := &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(second)}}
	expect(dial(t, client, "").call("run", map[string]any{"definition": "counting"}).Run, "started uli", "ended "+owner)
	for _, by := range speeches {
		token := strings.TrimPrefix(tokens["oto"], "Bearer ")
		p := s.peer("counting", by, &http.Client{Transport: bearer(token)})
		expect(string(p.send(a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("go"))).ID), "started oto", "ended "+owner)
	}
	s.ok("POST", "/api/apps/counting/users/u/sessions/s", nil, nil, uli...)
	s.ok("POST", "/api/run", map[string]any{"app_name": "counting", "user_id": "u", "session_id": "s",
		"new_message": map[string]any{"role": "user", "parts": []any{map[string]any{"text": "go"}}}}, nil, uli...)
	expect("counting/u/s", "started uli", "ended "+owner)

	s.ok("PUT", "/api/v1/definitions/new", counting, nil, "Authorization", tokens["ada"], "If-None-Match", "*")
	for _, line := range []string{
		`change=start of=` + run + ` by=oto from=127.0.0.1:`, `change=fork of=` + fork.Run + ` by=uli`, `change="write definition" of=new by=ada`,
		`change=answer of=` + run + ` by=uli`,
	} {
		if !strings.Contains(s.logs.String(), line) {
			t.Errorf("the server's log lacks %q:\n%s", line, s.logs)
		}
	}
}

// One token for everybody is no person: what such clients claim counts, as it does without a token.
func TestOneTokenIsNoPerson(t *testing.T) {
	const token = "0123456789abcdef0123"
	for name, change := range map[string]func(*server.Config){"token": func(cfg *server.Config) { cfg.Token = token }, "local": func(*server.Config) {}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, map[string]string{"asking.yaml": goOn}, change)
			h := []string{"Authorization", "Bearer " + token}
			run := s.run(map[string]any{"definition": "asking"}, h...).Run
			s.wait(run)
			s.ok("POST", "/api/v1/runs/"+run+":cancel", nil, nil, h...)
			if diff := cmp.Diff([]string{"started the test", "paused the test", "ended the test"}, s.acts(run)); diff != "" {
				t.Error(diff)
			}
			var about struct {
				You struct {
					Name, Role string
					Anonymous  bool
				}
			}
			s.ok("GET", "/api/v1/server", nil, &about, h...)
			if about.You.Name != name || about.You.Role != "author" || !about.You.Anonymous {
				t.Errorf("the server calls the client %+v", about.You)
			}
		})
	}
}

// The token of a person who is removed opens nothing, and the person's streams end. The streams of others go on. The same holds for
// a role that has changed.
func TestRemovalEndsStreams(t *testing.T) {
	s, people, tokens := crew(t, map[string]string{"asking.yaml": goOn})
	run := s.run(map[string]any{"definition": "asking"}, "Authorization", tokens["oto"]).Run
	s.wait(run)
	stream := func(name string) *bufio.Reader {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		t.Cleanup(cancel)
		req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/runs/"+run+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", tokens[name])
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", name, resp.Status)
		}
		return bufio.NewReader(resp.Body)
	}
	ends := func(r *bufio.Reader, whose string) {
		t.Helper()
		if _, err := io.Copy(io.Discard, r); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the stream of %s ends with %v", whose, err)
		}
	}
	ann, oto, ada := stream("ann"), stream("oto"), stream("ada")
	if err := people.Remove("ann"); err != nil {
		t.Fatal(err)
	}
	ends(ann, "ann, who was removed")
	s.refused(401, "no_token", "GET", "/api/v1/runs", nil, "Authorization", tokens["ann"])
	if err := people.Remove("oto"); err != nil {
		t.Fatal(err)
	}
	token, err := people.Add(access.Person{Name: "oto", Role: access.Reader}, true)
	if err != nil {
		t.Fatal(err)
	}
	ends(oto, "oto, who has another token and role")
	s.refused(401, "no_token", "GET", "/api/v1/runs", nil, "Authorization", tokens["oto"])
	s.refused(403, "not_permitted", "POST", "/api/v1/runs/"+run+":cancel", nil, "Authorization", "Bearer "+token)
	s.ok("POST", "/api/v1/runs/"+run+":cancel", nil, nil, "Authorization", tokens["ada"])
	for {
		line, err := ada.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream of ada, who stays, ends with %v", err)
		}
		if strings.Contains(line, "run_ended") {
			break
		}
	}
}

// While the file of people cannot be read, the server accepts nobody but the holder of its own token.
func TestUnreadablePeople(t *testing.T) {
	const token = "0123456789abcdef0123"
	dir := t.TempDir()
	path := filepath.Join(dir, "people.json")
	people := access.At(path)
	ana, err := people.Add(access.Person{Name: "ana", Role: access.Author}, true)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, nil, fromLoopback, func(cfg *server.Config) {
		cfg.People, cfg.Token, cfg.Proxy.Header, cfg.Proxy.Role = people, token, "X-Forwarded-User", access.Reader
	})
	s.ok("GET", "/api/v1/runs", nil, nil, "Authorization", "Bearer "+ana)
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, h := range [][]string{{"Authorization", "Bearer " + ana}, {"Authorization", "Bearer wrong"}, {"X-Forwarded-User", "bob"}} {
		s.refused(503, "no_people", "GET", "/api/v1/runs", nil, h...)
	}
	s.refused(401, "no_token", "GET", "/api/v1/runs", nil)
	s.ok("GET", "/api/v1/runs", nil, nil, "Authorization", "Bearer "+token)
	if !strings.Contains(s.logs.String(), "the file of people cannot be read") {
		t.Errorf("the log does not say why:\n%s", s.logs)
	}
}

// from sends a GET with headers from an address of this machine, and returns the status and the body.
func (s *site) from(address, path string, headers ...string) (int, string) {
	s.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext(ctx, network, addr)
	}}
	req, err := http.NewRequestWithContext(s.Context(), "GET", s.url+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: transport, Timeout: soon}).Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The header of the proxy counts from the proxy's addresses only. The file gives the names their roles, and the proxy's role is for
// the rest.
func TestProxyNamesPeople(t *testing.T) {
	people := access.At(filepath.Join(t.TempDir(), "people.json"))
	if _, err := people.Add(access.Person{Name: "ada@example.org", Role: access.Author}, false); err != nil {
		t.Fatal(err)
	}
	token, err := people.Add(access.Person{Name: "script", Role: access.Operator}, true)
	if err != nil {
		t.Fatal(err)
	}
	trust := func(role access.Role) func(*server.Config) {
		return func(cfg *server.Config) {
			cfg.People = people
			cfg.Proxy = server.Proxy{From: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Header: "X-Forwarded-User", Role: role}
		}
	}
	open, closed := open(t, nil, trust(access.Reader)), open(t, nil, trust(access.None))
	const path, proxy, header = "/api/v1/server", "127.0.0.2", "X-Forwarded-User"
	for _, tt := range []struct {
		what, from string
		on         *site
		headers    []string
		status     int
		want       string
	}{
		{"a name of the file", proxy, closed, []string{header, "ada@example.org"}, 200, `"name":"ada@example.org","role":"author"`},
		{"another name", proxy, open, []string{header, "bob"}, 200, `"name":"bob","role":"reader"`},
		{"another name, without a role for it", proxy, closed, []string{header, "bob"}, 403, "no_role"},
		{"a forged name", "127.0.0.1", open, []string{header, "ada@example.org"}, 401, "no_token"},
		{"a forged name beside a token", "127.0.0.1", open, []string{header, "ada@example.org", "Authorization", "Bearer " + token}, 200, `"name":"script"`},
		{"a forged address", "127.0.0.1", open, []string{"X-Forwarded-For", proxy, header, "ada@example.org"}, 401, "no_token"},
		{"no name, and a token", proxy, open, []string{"Authorization", "Bearer " + token}, 200, `"name":"script"`},
		{"no name", proxy, open, nil, 401, "no_token"},
		{"two names", proxy, open, []string{header, "ada@example.org", header, "bob"}, 403, "bad_name"},
		{"a name of the server's own", proxy, open, []string{header, "local"}, 403, "bad_name"},
	} {
		if status, body := tt.on.from(tt.from, path, tt.headers...); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.what, status, body, tt.status, tt.want)
		}
	}
}

// Behind the proxy, the client's own address has its tries for tokens. A client cannot choose the address.
func TestClientsBehindAProxy(t *testing.T) {
	s := open(t, nil, func(cfg *server.Config) {
		cfg.Token = "0123456789abcdef0123"
		cfg.Proxy.From = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/31")}
	})
	const path, proxy = "/api/v1/runs", "127.0.0.2"
	try := func(from, forwarded string) int {
		status, _ := s.from(from, path, "X-Forwarded-For", forwarded)
		return status
	}
	begun := time.Now()
	for i := 0; try(proxy, "10.0.0.7") == 401; i++ {
		if i > 100 && time.Since(begun) < 20*time.Second {
			t.Fatal("a client behind the proxy has no limit")
		}
	}
	for i, forwarded := range []string{"10.0.0.7", "10.9.9.9, 10.0.0.7", "10.0.0.7, 127.0.0.3"} {
		if status := try(proxy, forwarded); status != 429 && time.Since(begun) < time.Second {
			t.Errorf("%d: the client with X-Forwarded-For: %s gets %d", i, forwarded, status)
		}
	}
	for _, forwarded := range []string{"10.0.0.8", "10.0.0.7, 10.0.0.8", "10.0.0.7, nonsense"} {
		if status := try(proxy, forwarded); status != 401 {
			t.Errorf("another client, with X-Forwarded-For: %s, gets %d", forwarded, status)
		}
	}
	if status := try("127.0.0.1", "10.0.0.7"); status != 401 {
		t.Errorf("a client that is no proxy gets %d for the address of another one", status)
	}
	if !strings.Contains(s.logs.String(), "from=10.0.0.7") {
		t.Errorf("the log has other addresses:\n%s", s.logs)
	}
}
