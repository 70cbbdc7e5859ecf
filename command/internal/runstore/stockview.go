// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
)

// Taken waits until a process has taken over a run.
func (s *Stock) Taken(ctx context.Context, id string, seen int64) error {
	for ev, err := range s.Service.(store.Watcher).Watch(ctx, KeyOf(id), seen) {
		if err != nil || ev.Mark != nil && ev.Mark.Kind == mark.KindRunTaken {
			return err
		}
	}
	return context.Cause(ctx)
}

// LastSeq returns the number of a run's last event.
func (s *Stock) LastSeq(ctx context.Context, id string) (int64, error) {
	view, err := get(ctx, s.Service, id, 1)
	if err != nil {
		return 0, err
	}
	return view.LastSeq(), nil
}

// View returns a run's log, and the run's status from the log; nil if the log has none.
func (s *Stock) View(ctx context.Context, id string) (*session.View, *mark.Run, error) {
	view, err := get(ctx, s.Service, id, 0)
	if err != nil {
		return nil, nil, err
	}
	return view, session.RunOf(view), nil
}

// OpenMessages opens the file for the output of a background process, in the folder of the store.
func OpenMessages(e *term.Env, s *Stock, id string) (*os.File, error) {
	dir := MessagesDir(e, s.spec)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Dir, dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(MessagesName(id), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}

// MessagesDir returns the folder of the output of background processes.
func MessagesDir(e *term.Env, spec string) string {
	return filepath.Join(filepath.Dir(ArtifactsDir(e, spec)), "messages")
}

// MessagesName returns the name of a run's file in that folder; every ID gives a valid name.
func MessagesName(id string) string { return url.PathEscape(id) + ".txt" }
