// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/internal/shellword"
	"github.com/refrain-dev/refrain/workspace"
)

// WorkspaceValue reads the value of [WorkspaceKey]: the hash of the files, and where those of the result went, such as
// "branch refrain/r_1, commit 1f0c". Each is empty if the value does not say it.
func WorkspaceValue(v any) (files workspace.Hash, result string) {
	t := treeOf(v)
	return t.hash, t.result
}

// WorkspaceTrees returns the hashes of the files, and of the bases of limits, that a change of the state names: those of the
// run and of the branches of parallel agents.
func WorkspaceTrees(delta map[string]any) (all []workspace.Hash) {
	for key, v := range delta {
		if key != WorkspaceKey && !strings.HasPrefix(key, WorkspaceKeyOf("")) {
			continue
		}
		t := treeOf(v)
		for _, h := range []workspace.Hash{t.hash, t.base} {
			if h.Valid() {
				all = append(all, h)
			}
		}
	}
	return all
}

// Handed says where the files of a result went. It is zero while they are in the store alone.
type Handed struct {
	// Way is branch, patch or applied; Name is that of the branch, of the file or of the folder.
	Way    string `json:"way,omitzero"`
	Name   string `json:"name,omitzero"`
	Commit string `json:"commit,omitzero"`
	// Command takes the files over, for a shell in the root of the run. It is empty if they were applied.
	Command string `json:"command,omitzero"`
}

// Handed reads from the value of [WorkspaceKey] where the files went.
func (w *Workspace) Handed(v any) (h Handed) {
	_, result := WorkspaceValue(v)
	if name, ok := strings.CutPrefix(result, "branch "); ok {
		h = Handed{Way: "branch", Name: name}
		h.Name, h.Commit, _ = strings.Cut(name, ", commit ")
		h.Commit, h.Command, _ = strings.Cut(h.Commit, taken)
		h.Command = cmp.Or(h.Command, w.taking(workspace.Merge, h.Name))
	} else if name, ok := strings.CutPrefix(result, "patch "); ok {
		name, _, _ = strings.Cut(name, insteadOf)
		h = Handed{Way: "patch", Name: name}
		if seen, err := filepath.Rel(filepath.FromSlash(cmp.Or(w.From, ".")), name); err == nil {
			h.Command = w.git() + "apply " + shellword.Of(seen)
		}
	} else if name, ok := strings.CutPrefix(result, "applied to "); ok {
		h = Handed{Way: "applied", Name: name}
	}
	return h
}

// taken is what follows the commit of a branch in the value of [WorkspaceKey]: the command of [Workspace.taking].
const taken = "; take it with: "

// taking returns the command that takes a branch over.
func (w *Workspace) taking(way workspace.Taking, branch string) string {
	branch = shellword.Of(branch)
	if way == workspace.ApplyDiff {
		return fmt.Sprintf("%sdiff --binary %s~ %[2]s | %[1]sapply", w.git(), branch)
	}
	return w.git() + string(way) + " " + branch
}

// git returns the beginning of a command of git in the folder of the files, for a shell in the root of the run.
func (w *Workspace) git() string {
	if from := filepath.FromSlash(cmp.Or(w.From, ".")); from != "." {
		return "git -C " + shellword.Of(from) + " "
	}
	return "git "
}
