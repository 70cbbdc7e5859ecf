// SPDX-License-Identifier: Apache-2.0

package runstore

import (
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
	m, _ := v.(map[string]any)
	if tree, _ := m["tree"].(string); err != nil || tree == "" {
		return ""
	}
	where, _ := m["result"].(string)
	if where == "" {
		where = "kept in the store"
	}
	return progress.Clean("Files: " + where + "; list them with: refrain show " + id + " --files")
}
