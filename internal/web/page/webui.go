// SPDX-License-Identifier: Apache-2.0

// Package webui is the page: the files that a browser loads to watch runs, answer their
// questions and write definitions. They are served as they are written, without a build, and
// they talk only to /api/v1 of the server that serves them.
//
//	mux.Handle("/", webui.Handler(webui.Files()))
//
// static/vendor holds libraries of others; static/vendor/VENDOR.md names them.
package webui

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/internal/values/gzipped"
)

//go:embed static
var static embed.FS

// Files returns the files of the page, index.html at the root.
func Files() fs.FS {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the name above is wrong
	}
	return files
}

// ContentSecurityPolicy is what the page may do: load from its own server alone, and run no
// script that is not a file of it.
const ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the files of the page. An address within the page, such as /runs/ana.1, gets index.html. Any other path gets
// 404, with index.html, which says so, if the client asks for HTML. Files are compressed once and kept in memory; a browser asks
// whether they have changed each time.
func Handler(files fs.FS) http.Handler { return HandlerBelow("", files) }

// HandlerBelow is Handler for a page that browsers see below a path, such as /refrain. Requests arrive without that path.
func HandlerBelow(base string, files fs.FS) http.Handler {
	return &handler{base: base, files: files, kept: map[string]*file{}}
}

type handler struct {
	base  string
	files fs.FS

	mu   sync.Mutex
	kept map[string]*file
}

// file is one file as it is sent.
type file struct {
	kind, tag      string
	plain, zipped  []byte
	compressesWell bool
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
		return
	}
	name, known := strings.TrimPrefix(path.Clean(r.URL.Path), "/"), true
	if isPage(name) {
		name = "index.html"
	}
	f, err := h.load(name)
	if err != nil && strings.Contains(r.Header.Get("Accept"), "text/html") {
		known = false
		f, err = h.load("index.html")
	}
	if err != nil {
		http.Error(w, "there is no "+r.URL.Path, http.StatusNotFound)
		return
	}
	header := w.Header()
	header.Set("Content-Security-Policy", ContentSecurityPolicy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", f.kind)
	header.Set("Vary", "Accept-Encoding")
	body, tag := f.plain, f.tag
	if f.compressesWell && gzipped.Wanted(r) {
		header.Set("Content-Encoding", "gzip")
		body, tag = f.zipped, f.tag+"z"
	}
	if !known {
		header.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusNotFound)
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
		return
	}
	header.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}

// isPage reports whether the page has a view at the path, as app.js decides.
func isPage(name string) bool {
	first, _, below := strings.Cut(name, "/")
	switch first {
	case "runs", "definitions":
		return true
	case "", "compare", "backtest":
		return !below
	}
	return false
}

func (h *handler) load(name string) (*file, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.kept[name]; f != nil {
		return f, nil
	}
	plain, zipped, err := h.read(name)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(plain)
	f := &file{kind: kindOf(name), tag: hex.EncodeToString(sum[:8]), plain: plain}
	f.zipped, f.compressesWell = zipped, len(zipped) < len(plain)*9/10
	h.kept[name] = f
	return f, nil
}

// read returns a file and its compressed form. A large one is there as NAME.gz alone.
func (h *handler) read(name string) (plain, zipped []byte, err error) {
	if plain, err = fs.ReadFile(h.files, name); err == nil {
		if name == "index.html" { // the other files are found from those that it names
			plain = bytes.ReplaceAll(plain, []byte(`="/`), []byte(`="`+h.base+`/`))
		}
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(plain) // to memory: it does not fail
		_ = z.Close()
		return plain, out.Bytes(), nil
	}
	zipped, missing := fs.ReadFile(h.files, name+".gz")
	if missing != nil {
		return nil, nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, nil, err
	}
	plain, err = io.ReadAll(z)
	return plain, zipped, err
}

// kinds are the media types of the page's files. The machine is not asked first, whose table may say anything about .js.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".md":   "text/plain; charset=utf-8",
}

func kindOf(name string) string {
	ext := path.Ext(name)
	return cmp.Or(kinds[ext], mime.TypeByExtension(ext), "application/octet-stream")
}
