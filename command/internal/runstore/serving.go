// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/session/lease"
)

// publication is what a server publishes about itself for other processes that use the same store. Seal proves that a process of this user
// has written it: see trust.Keeper.
type publication struct {
	URL   string `json:"url"`
	Owner string `json:"owner"`
	Seal  string `json:"seal"`
}

// serverFile returns the name of the file in which a server of the store publishes its address. Stores in one folder, such as two
// databases, or a database and one on PostgreSQL, have files of their own; the default store has server.json.
func (s *Stock) serverFile(e *term.Env) string {
	store := cmp.Or(Owner(e, s.spec), "sqlite")
	if kind, where, err := Spec(e, s.spec); store == "sqlite" && err == nil && kind == "sqlite" {
		store += ":" + filepath.Base(where)
	}
	if store == "sqlite:"+filepath.Base(defaultStore) {
		return "server.json"
	}
	sum := sha256.Sum256([]byte(store))
	return "server-" + hex.EncodeToString(sum[:8]) + ".json"
}

// sealed returns the text that the seal of an announcement in a file is for. It names the file, so that no announcement is valid elsewhere.
func (a *publication) sealed(file string) string { return file + "\n" + a.URL + "\n" + a.Owner }

// sealPurpose is the purpose of these seals.
const sealPurpose = "server"

// servedFolder returns the folder in which a server publishes its address; empty for a store in memory.
func (s *Stock) servedFolder(e *term.Env) string {
	dir := ArtifactsDir(e, s.spec)
	if dir == "" {
		return ""
	}
	dir = filepath.Dir(dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Dir, dir)
	}
	return dir
}

// Announce publishes that a server serves the store, until silence is called. It replaces what is in the place of the file, and never
// follows a link. Without a state folder, or for an address that is not of this machine alone, Announce publishes nothing.
func (s *Stock) Announce(e *term.Env, where string) (silence func(), err error) {
	nothing := func() {}
	dir := s.servedFolder(e)
	if dir == "" || !isLoopback(where) {
		return nothing, nil
	}
	k, err := trust.Open(e.Getenv)
	if err != nil {
		return nothing, fmt.Errorf("refrain run --watch will not find this server: %w", err)
	}
	a := publication{URL: where, Owner: lease.Process()}
	serverFile := s.serverFile(e)
	a.Seal = k.Seal(sealPurpose, a.sealed(filepath.Join(dir, serverFile)))
	text, err := json.Marshal(a)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nothing, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nothing, err
	}
	temp := serverFile + "." + rand.Text()
	if err = root.WriteFile(temp, append(text, '\n'), 0o600); err == nil {
		err = root.Rename(temp, serverFile)
	}
	if err != nil {
		return nothing, errors.Join(err, root.Close())
	}
	return func() {
		if now, err := readPlain(root, serverFile); err == nil && string(now) == string(text)+"\n" {
			_ = root.Remove(serverFile)
		}
		_ = root.Close()
	}, nil
}

// readPlain reads a small regular file, and follows no link.
func readPlain(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return nil, fs.ErrInvalid
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.Join(fs.ErrInvalid, err)
	}
	return io.ReadAll(io.LimitReader(f, 1<<16))
}

// isLoopback reports whether an address of HTTP is one of this machine alone, without a user, a path or a query.
func isLoopback(where string) bool {
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Served returns the address of a run in the server of the store; empty if no server of this user serves it. A killed server leaves its
// file behind, so Served checks that the server answers.
func (s *Stock) Served(ctx context.Context, e *term.Env, id string) string {
	dir := s.servedFolder(e)
	if dir == "" {
		return ""
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ""
	}
	defer root.Close()
	serverFile := s.serverFile(e)
	text, err := readPlain(root, serverFile)
	var at publication
	if err != nil || json.Unmarshal(text, &at) != nil || !isLoopback(at.URL) {
		return ""
	}
	k, err := trust.Open(e.Getenv)
	if err != nil || !k.Sealed(sealPurpose, at.sealed(filepath.Join(dir, serverFile)), at.Seal) || lease.Dead(at.Owner) || !answers(ctx, at.URL) {
		return ""
	}
	return at.URL + "/runs/" + url.PathEscape(id)
}

// answers reports whether the server at the address is healthy.
func answers(ctx context.Context, at string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/healthz", nil)
	if err != nil {
		return false
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
