// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// Neighbor returns the path of another database that has a run of an ID, and keeps the saved files and messages of its runs in the
// same folder as the store of spec: the run was imported, or the database was copied. It returns "" if there is none.
func Neighbor(ctx context.Context, e *term.Env, spec, id string) (string, error) {
	dir := ArtifactsDir(e, spec)
	if dir == "" {
		return "", nil
	}
	var own os.FileInfo
	if kind, where, err := Spec(e, spec); err == nil && kind == "sqlite" && !programs(e, spec) {
		own, _ = os.Stat(where)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return "", nil // no database, then
	}
	for _, entry := range entries {
		path := filepath.Join(filepath.Dir(dir), entry.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || os.SameFile(info, own) || !isDatabase(path) {
			continue
		}
		if has, err := hasRun(ctx, path, id); err != nil || has {
			return path, err
		}
	}
	return "", nil
}

// isDatabase reports whether a file begins as an SQLite database does.
func isDatabase(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 16)
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == "SQLite format 3\x00"
}

// hasRun reports whether a database has a run. A database that is no store has none.
func hasRun(ctx context.Context, path, id string) (bool, error) {
	s, err := sqlite.Open(ctx, path, sqlite.Config{ReadOnly: true})
	if err != nil {
		return false, ctx.Err()
	}
	defer s.Close()
	_, err = get(ctx, s, id, 1)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for run %s in %s, which keeps saved files in the same folder: %w", id, path, err)
	}
	return true, nil
}
