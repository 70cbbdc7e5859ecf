// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// FilesOf says where the files are that the result of a run consists of; empty if the run changed no files of a
// workspace.
func FilesOf(id string, view *session.View) string {
	if view == nil {
		return ""
	}
	v, err := view.State().Get(definition.WorkspaceKey)
	tree, where := definition.WorkspaceValue(v)
	if err != nil || tree == "" {
		return ""
	}
	return progress.Clean("Files: " + cmp.Or(where, "kept in the store") + "; list them with: refrain show " + id + " --files")
}
