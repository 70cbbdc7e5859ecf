// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"errors"

	"github.com/refrain-dev/refrain/definition/runfiles"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// FilesOf says where the files are that the result of a run consists of; empty if the run changed no files of a
// workspace.
func FilesOf(id string, view *session.View) string {
	if view == nil {
		return ""
	}
	v, err := view.State().Get(runfiles.Key)
	tree, where := runfiles.Value(v)
	if err != nil || tree == "" {
		return ""
	}
	return progress.Clean("Files: " + cmp.Or(where, "kept in the store") + "; list them with: refrain show " + id + " --files")
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
