// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"errors"
	"io/fs"
	"iter"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// FilesOf returns a sentence that says where the files of a run's result are. The sentence is empty if no step of the run
// changed files of a workspace, and if the files are not on this machine.
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
		start, branch, err := storedFiles(ctx, id, view)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ""
		case start == tree:
			return "Files: as they were when the run started"
		}
		where = "kept in the store"
		switch {
		case branch != "":
			where = branch
		case becomesBranch(view):
			where += "; make a branch of them with: refrain take " + id
		}
	}
	return brief.Clean("Files: " + where + "; list them with: refrain show " + id + " --files")
}

// becomesBranch reports whether the definition of a run makes a branch of the result.
func becomesBranch(view *session.View) bool {
	p, err := program.Of(view)
	if err != nil {
		return false
	}
	def, err := p.Definition()
	return err == nil && def.Workspace != nil && def.Workspace.Result.Branch != ""
}

// storedFiles returns the hash of the files with which a run began, and the branch that was made of its files; "" if there is none.
func storedFiles(ctx context.Context, id string, view *session.View) (start workspace.Hash, branch string, err error) {
	p, err := program.Of(view)
	if err != nil {
		return "", "", err
	}
	if err := p.Nearby(); err != nil {
		return "", "", err
	}
	stored, err := workspace.OpenStored(ctx, runfiles.Store(p.Root), id)
	if err != nil {
		return "", "", err
	}
	if name, commit := stored.Branch(); name != "" {
		branch = "branch " + name + ", commit " + commit
	}
	start, err = stored.Start(ctx)
	return start, branch, err
}

// FilesRoot returns the folder below which the run's files are: the root in the run's log or, if that folder is not on this
// machine, the current folder.
func FilesRoot(events iter.Seq[*session.Event]) (string, error) {
	for ev := range events {
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
	return "", errors.New("the log of the run does not name the folder of its files")
}
