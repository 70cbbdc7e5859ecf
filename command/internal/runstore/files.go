// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"errors"
	"io/fs"

	"github.com/refrain-dev/refrain/definition/runfiles"
	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/workspace"
)

// FilesOf says where the files are that the result of a run consists of. It is empty if no step of the run has changed files
// of a workspace, and if the files are not on this machine.
func FilesOf(ctx context.Context, id string, view *session.View) string {
	if view == nil {
		return ""
	}
	v, err := view.State().Get(runfiles.Key)
	tree, where := runfiles.Value(v)
	if err != nil || tree == "" {
		return ""
	}
	if where == "" {
		start, err := filesAtStart(ctx, id, view)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ""
		case start == tree:
			return "Files: as they were when the run started"
		}
		where = "kept in the store"
	}
	return brief.Clean("Files: " + where + "; list them with: refrain show " + id + " --files")
}

// filesAtStart returns the hash of the files with which a run began.
func filesAtStart(ctx context.Context, id string, view *session.View) (workspace.Hash, error) {
	p, err := program.Of(view)
	if err != nil {
		return "", err
	}
	if err := p.Nearby(); err != nil {
		return "", err
	}
	stored, err := workspace.OpenStored(ctx, runfiles.Store(p.Root), id)
	if err != nil {
		return "", err
	}
	return stored.Start(ctx)
}

// FilesRoot returns the root of a run, below which its files are: that of its log or, if that folder is not on this machine, the
// current folder in its place.
func FilesRoot(events []*session.Event) (string, error) {
	for _, ev := range events {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindRunStarted {
			continue
		}
		var started mark.RunStarted
		if err := ev.Mark.Decode(&started); err != nil {
			return "", err
		}
		p, err := program.Decode(started)
		if err != nil {
			return "", err
		}
		err = p.Nearby()
		return p.Root, err
	}
	return "", errors.New("its log does not say where its files are")
}
