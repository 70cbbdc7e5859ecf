// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// Beside returns what is kept about the runs of a store in the folder of its saved files. It does not depend on the working directory
// later.
func Beside(e *term.Env, spec string, files artifact.Service) (retention.Beside, error) {
	dir := ArtifactsDir(e, spec)
	if dir == "" {
		return retention.Beside{}, nil
	}
	messages, err := filepath.Abs(MessagesDir(e, spec))
	diaries, _ := DiaryPlace(e, spec, "")
	if err == nil {
		diaries, err = filepath.Abs(diaries)
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return retention.Beside{}, err
	}
	var own os.FileInfo
	if kind, where, err := Spec(e, spec); err == nil && kind == "sqlite" && !programs(e, spec) {
		own, _ = os.Stat(where)
	}
	return retention.Beside{
		Sharing: func(ctx context.Context, id string) (string, error) {
			if owned, ok := files.(*disk.Service); ok && owned != nil {
				owner, err := owned.Store(AppName, UserName, id)
				if err != nil || owner != "" && owner != Owner(e, spec) {
					return owner, err
				}
			}
			return neighbor(ctx, filepath.Dir(dir), own, id)
		},
		Remove: func(id string) error {
			_, diary := DiaryPlace(e, spec, id)
			for _, name := range []string{filepath.Join(messages, MessagesName(e, spec, id)), filepath.Join(diaries, diary)} {
				if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
			return nil
		},
	}, nil
}

// neighbor returns the path of another database that has a run of an ID, in the folder that has the saved files and messages of the
// database own: the run was imported, or the database was copied. It returns "" if there is none.
func neighbor(ctx context.Context, dir string, own os.FileInfo, id string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil // no database, then
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
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
