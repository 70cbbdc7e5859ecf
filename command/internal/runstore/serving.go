// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/refrain-dev/refrain/command/internal/term"
)

// served is what a server publishes about itself for other processes that use the same store.
type served struct {
	URL   string `json:"url"`
	Owner string `json:"owner"`
}

// servedFile returns the file in which a server publishes its address; empty for a store in memory.
func (s *Stock) servedFile(e *term.Env) string {
	dir := ArtifactsDir(e, s.spec)
	if dir == "" {
		return ""
	}
	file := filepath.Join(filepath.Dir(dir), "server.json")
	if !filepath.IsAbs(file) {
		file = filepath.Join(s.Dir, file)
	}
	return file
}

// Announce publishes that a server serves the store, until silence is called.
func (s *Stock) Announce(e *term.Env, where string) (silence func(), err error) {
	file := s.servedFile(e)
	if file == "" {
		return func() {}, nil
	}
	text, err := json.Marshal(served{where, OwnerName()})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o600)
	}
	return func() {
		if now, err := os.ReadFile(file); err == nil && string(now) == string(text)+"\n" {
			_ = os.Remove(file)
		}
	}, err
}

// Served returns the address of a run in the server of the store; empty if no server serves it. A killed server leaves its file
// behind, so Served checks that the server answers.
func (s *Stock) Served(ctx context.Context, e *term.Env, id string) string {
	text, err := os.ReadFile(s.servedFile(e))
	var at served
	if err != nil || json.Unmarshal(text, &at) != nil || OwnerIsDead(at.Owner) || !answers(ctx, at.URL) {
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
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
