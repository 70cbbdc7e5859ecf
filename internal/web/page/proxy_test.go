// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/web/page"
	"github.com/refrain-dev/refrain/server"
)

// nginx finds nginx. In CI it has to be there.
func nginx(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("REFRAIN_CI") != "" {
		t.Fatal("no nginx: .ci/debian nginx nginx installs it")
	}
	t.Skip("no nginx on this machine; on Debian: apt-get install nginx")
	return ""
}

// signIn stands in for oauth2-proxy: it signs in the person whose turn it is, and says by a cookie who sends a request.
func signIn(t *testing.T, next *atomic.Value) (address string) {
	mux := http.NewServeMux()
	mux.HandleFunc("/oauth2/auth", func(w http.ResponseWriter, r *http.Request) {
		who, err := r.Cookie("who")
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Auth-Request-Email", who.Value)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("/oauth2/start", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "who", Value: next.Load().(string), Path: "/", Secure: true, HttpOnly: true})
		http.Redirect(w, r, r.Header.Get("X-Auth-Request-Redirect"), http.StatusFound)
	})
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

// startNginx starts nginx with the recipe of doc/server.md, before a server and a sign-in at their addresses. It returns the address of
// the page, and a client that knows its certificate.
func startNginx(t *testing.T, behind, signIn string) (string, *http.Client) {
	t.Helper()
	program := nginx(t)
	doc, err := os.ReadFile("../../../doc/server.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(doc)
	if recipe == nil {
		t.Fatal("doc/server.md has no recipe for nginx")
	}
	dir, err := os.MkdirTemp("", "refrain-nginx-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sample := httptest.NewTLSServer(nil) // for its certificate
	pair := sample.TLS.Certificates[0]
	client := sample.Client()
	sample.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	here := free.Addr().String()
	free.Close()
	site := strings.NewReplacer("listen 443 ssl", "listen "+here+" ssl", "/etc/ssl/loops.pem", dir+"/loops.pem",
		"/etc/ssl/loops.key", dir+"/loops.key", "127.0.0.1:8080", behind, "127.0.0.1:4180", signIn).Replace(string(recipe[1]))
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	var conf strings.Builder
	conf.WriteString(user + "daemon off;\nworker_processes 1;\npid " + dir + "/pid;\nerror_log stderr warn;\nevents {}\nhttp {\naccess_log off;\n")
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		conf.WriteString(name + "_temp_path " + dir + "/" + name + ";\n")
	}
	for name, text := range map[string][]byte{
		"loops.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"loops.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), "nginx.conf": []byte(conf.String() + site + "}\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf"))
	var says strings.Builder
	cmd.Stderr = &says
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", here)
		if err == nil {
			c.Close()
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case err := <-ended:
			ended <- err
			t.Fatalf("nginx: %v\n%s", err, says.String())
		case <-ctx.Done():
			t.Fatal("nginx does not listen")
		}
	}
	return "https://" + here, client
}

// Behind a real nginx with TLS, a path and a sign-in, as doc/server.md has it: the page says who one is and leaves out what one may
// not do, and the log and the page say who started a run. A client's own header does not count.
func TestPeopleBehindNginx(t *testing.T) {
	people := access.At(filepath.Join(t.TempDir(), "people.json"))
	for name, role := range map[string]access.Role{"ann@example.org": access.Reader, "oto@example.org": access.Operator} {
		if _, err := people.Add(access.Person{Name: name, Role: role}, false); err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, map[string]string{"climb.yaml": quick}, func(cfg *server.Config) {
		cfg.BasePath, cfg.Page, cfg.People = "/refrain", webui.HandlerBelow("/refrain", webui.Files()), people
		cfg.Proxy = server.Proxy{From: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Header: "X-Forwarded-User"}
	})
	var next atomic.Value
	var client *http.Client
	s.url, client = startNginx(t, strings.TrimPrefix(s.url, "http://"), signIn(t, &next))

	next.Store("oto@example.org")
	p := open(t, s)
	p.visit("/refrain/definitions")
	p.sees("oto@example.org · operator")
	p.until("no way to change a definition", `![...document.querySelectorAll('button')].some(b => b.innerText.includes('New agent'))`)
	p.press("Run climb")
	p.confirms()
	p.until("the run", `location.pathname.startsWith('/refrain/runs/')`)
	p.sees("Why it stopped")
	p.sees("Who did what")
	p.until("the person", `document.querySelector('[aria-labelledby=h-acts]').innerText.includes('oto@example.org')`)
	p.picture("who-did-it")
	p.accessible("who-did-it")
	id, err := eval[string](p, `location.pathname.split('/').pop()`)
	if err != nil {
		t.Fatal(err)
	}

	next.Store("ann@example.org")
	reader := open(t, s)
	reader.visit("/refrain/runs/" + id + "?a=1&b=2")
	reader.until("the whole address after the sign-in", `location.search == '?a=1&b=2'`)
	reader.sees("ann@example.org · reader")
	reader.sees("oto@example.org")
	reader.until("nothing to do but look", `![...document.querySelectorAll('.head .acts button')].some(b => /Fork|Run again|Remove|Go on/.test(b.innerText))`)
	reader.visit("/refrain/definitions/climb")
	reader.sees("Your role lets you look at definitions")
	reader.until("a form to look at", `document.querySelector('fieldset.formset')?.disabled`)

	send := func(method, path, who string) (status int, body string) {
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+"/refrain/api/v1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.AddCookie(&http.Cookie{Name: "who", Value: who})
		req.Header.Set("X-Forwarded-User", "oto@example.org")
		req.Header.Set("X-Forwarded-For", "10.1.2.3")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var all json.RawMessage
		_ = json.NewDecoder(resp.Body).Decode(&all)
		return resp.StatusCode, string(all)
	}
	if status, body := send("POST", "/runs/"+id+":cancel", "ann@example.org"); status != http.StatusForbidden || !strings.Contains(body, "not_permitted") {
		t.Errorf("a reader who claims to be an operator cancels: %d %s", status, body)
	}
	if status, body := send("GET", "/server", "eve@example.org"); status != http.StatusForbidden || !strings.Contains(body, "no_role") {
		t.Errorf("a stranger: %d %s", status, body)
	}
	if status, body := send("GET", "/runs/"+id+"/events?kind=run_started", "ann@example.org"); status != http.StatusOK ||
		!strings.Contains(body, fmt.Sprintf(`"by":%q`, "oto@example.org")) {
		t.Errorf("the log has: %d %s", status, body)
	}
}
