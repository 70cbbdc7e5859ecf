// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/web/page"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := fs.ReadFile(webui.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ours are the files that are not of others.
func ours(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := fs.WalkDir(webui.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "vendor/") {
			return err
		}
		all[name] = read(t, name)
		return nil
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

func ask(t *testing.T, target string, header map[string]string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	webui.Handler(webui.Files()).ServeHTTP(w, r)
	return w.Result()
}

// Each address within the page gets the page, a file its own kind, and nothing else is served.
func TestHandler(t *testing.T) {
	for target, want := range map[string]string{
		"/":                       "200 text/html; charset=utf-8",
		"/runs/r_1":               "200 text/html; charset=utf-8",
		"/runs/ana.1":             "200 text/html; charset=utf-8",
		"/definitions/loop.v2":    "200 text/html; charset=utf-8",
		"/definitions/x":          "200 text/html; charset=utf-8",
		"/app.js":                 "200 text/javascript; charset=utf-8",
		"/parts/tree.js":          "200 text/javascript; charset=utf-8",
		"/app.css":                "200 text/css; charset=utf-8",
		"/icons.svg":              "200 image/svg+xml",
		"/gone.js":                "404 text/plain; charset=utf-8",
		"/../webui.go":            "404 text/plain; charset=utf-8",
		"/parts/../../webui.go":   "404 text/plain; charset=utf-8",
		"/%2e%2e/webui.go":        "404 text/plain; charset=utf-8",
		"/vendor/codemirror.js":   "200 text/javascript; charset=utf-8",
		"/vendor/VENDOR.md":       "200 text/plain; charset=utf-8",
		"/runs/r_1/no-such-thing": "200 text/html; charset=utf-8",
	} {
		res := ask(t, target, nil)
		if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("Content-Type")); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
		if strings.Contains(want, "html") && res.Header.Get("Content-Security-Policy") != webui.ContentSecurityPolicy {
			t.Errorf("%s has no content security policy", target)
		}
	}
}

// A client that looks for the metadata of OAuth, or for anything else that is not there, learns that it is not there. Only a
// person's browser gets the page with it.
func TestUnknownPathsAreNotThePage(t *testing.T) {
	for _, target := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server/mcp", "/register", "/token",
		"/mcp/x", "/backtest/x", "/compare/x", "/run/r_1", "/parts"} {
		for accept, want := range map[string]string{"application/json": "404 text/plain; charset=utf-8", "*/*": "404 text/plain; charset=utf-8",
			"text/html,*/*;q=0.8": "404 text/html; charset=utf-8"} {
			res := ask(t, target, map[string]string{"Accept": accept})
			if got := fmt.Sprint(res.StatusCode, " ", res.Header.Get("Content-Type")); got != want {
				t.Errorf("%s for %s: %s, want %s", target, accept, got, want)
			}
		}
	}
	for _, target := range []string{"/", "/runs", "/compare", "/backtest", "/definitions", "/definitions/loops/x"} {
		if res := ask(t, target, nil); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %d", target, res.StatusCode)
		}
	}
}

func TestHandlerCompressesAndKnowsWhatTheBrowserHas(t *testing.T) {
	res := ask(t, "/app.js", map[string]string{"Accept-Encoding": "gzip"})
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil || string(text) != read(t, "app.js") {
		t.Errorf("the compressed file is another one: %v", err)
	}
	tag := res.Header.Get("ETag")
	if again := ask(t, "/app.js", map[string]string{"Accept-Encoding": "gzip", "If-None-Match": tag}); again.StatusCode != http.StatusNotModified {
		t.Errorf("the same file again: %d", again.StatusCode)
	}
	if plain := ask(t, "/app.js", map[string]string{"If-None-Match": tag}); plain.StatusCode != http.StatusOK {
		t.Errorf("the file as it is, for who has it compressed: %d", plain.StatusCode)
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	w := httptest.NewRecorder()
	webui.Handler(webui.Files()).ServeHTTP(w, r)
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

var (
	imported  = regexp.MustCompile(`(?m)(?:from |import\()'(\.[^']+)'`)
	said      = regexp.MustCompile(`\bt\('([^']+)'(\s*\+)?`)
	aWord     = regexp.MustCompile(`(?:^|[\s,{])(?:'([^']+)'|(\w+)): (?:'|\[)`)
	elsewhere = regexp.MustCompile(`https?://[^\s'"` + "`" + `<>]+`)
	asHTML    = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function`)
)

// Every file that is imported is there; without a build, nobody else looks.
func TestImportsAreThere(t *testing.T) {
	for name, text := range ours(t) {
		for _, m := range imported.FindAllStringSubmatch(text, -1) {
			if file := "/" + path.Join(path.Dir(name), m[1]); ask(t, file, nil).StatusCode != http.StatusOK {
				t.Errorf("%s imports %s, which is not served", name, file)
			}
		}
	}
}

func words(t *testing.T, lang string) map[string]bool {
	t.Helper()
	keys := make(map[string]bool)
	for _, m := range aWord.FindAllStringSubmatch(read(t, "words/"+lang+".js"), -1) {
		keys[m[1]+m[2]] = true
	}
	return keys
}

// Every text is there in both languages, and every key that is used is a text.
func TestWords(t *testing.T) {
	en, pt := words(t, "en"), words(t, "pt")
	if len(en) < 200 {
		t.Fatalf("found only %d texts", len(en))
	}
	if diff := cmp.Diff(en, pt); diff != "" {
		t.Error("English and Portuguese differ:", diff)
	}
	for name, text := range ours(t) {
		for _, m := range said.FindAllStringSubmatch(text, -1) {
			if m[2] == "" && !en[m[1]] {
				t.Errorf("%s says %q, which no language has", name, m[1])
			}
		}
	}
}

// The page asks no other host, and text of models never becomes HTML.
func TestOnlyItsOwnServer(t *testing.T) {
	for name, text := range ours(t) {
		for _, url := range elsewhere.FindAllString(text, -1) {
			if strings.HasPrefix(url, "http://www.w3.org/") || strings.HasPrefix(url, "http://localhost") {
				continue
			}
			t.Errorf("%s names %s", name, url)
		}
		if m := asHTML.FindString(text); m != "" {
			t.Errorf("%s makes HTML or code of a text: %s", name, m)
		}
	}
	if page := read(t, "index.html"); strings.Contains(page, "<style") || strings.Contains(page, "onclick") || strings.Count(page, "<script") != 1 {
		t.Error("index.html has a script or a style of its own")
	}
}

// The files of others are those that VENDOR.md lists.
func TestVendored(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^\| (\S+) \| .* \| ([0-9a-f]{64}) \|$`).FindAllStringSubmatch(read(t, "vendor/VENDOR.md"), -1)
	if len(listed) < 6 {
		t.Fatalf("VENDOR.md lists %d files", len(listed))
	}
	for _, m := range listed {
		var text []byte
		var err error
		if m[1] == "axe.min.js" {
			text, err = os.ReadFile("testdata/" + m[1])
		} else {
			text, err = fs.ReadFile(webui.Files(), "vendor/"+m[1])
		}
		if sum := sha256.Sum256(text); err != nil || hex.EncodeToString(sum[:]) != m[2] {
			t.Errorf("%s is not what VENDOR.md lists: %v", m[1], err)
		}
	}
	files, err := fs.ReadDir(webui.Files(), "vendor")
	if err != nil || len(files) != len(listed) { // axe is elsewhere, VENDOR.md here
		t.Errorf("%d files, %d listed, %v", len(files), len(listed), err)
	}
}
