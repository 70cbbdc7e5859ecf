// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// state is the value of [Key].
type state struct {
	hash, base    workspace.Hash
	commit        workspace.Hash // the last commit of [workspace.Tree.Commit]
	run           string
	protected, by string
	left          string // names of repositories that are not stored
	edits         string // what persons have edited: FROM:TO for each time, two trees
	result, kept  string
	lines         int64
	known         bool // the state has one
}

func stateOf(v any) (t state) {
	m, ok := v.(map[string]any)
	text := func(key string) string { s, _ := m[key].(string); return s }
	t = state{hash: workspace.Hash(text("tree")), base: workspace.Hash(text("base")), commit: workspace.Hash(text("commit")), run: text("run"),
		protected: text("protected"), by: text("protected_by"),
		left: text("left_out"), edits: text("edits"), result: text("result"), kept: text("kept"), known: ok}
	switch lines := m["lines"].(type) {
	case int64:
		t.lines = lines
	case float64: // from a store
		t.lines = int64(lines)
	}
	return t
}

func (t state) value() map[string]any {
	m := map[string]any{"tree": string(t.hash), "run": t.run}
	for key, v := range map[string]string{"base": string(t.base), "commit": string(t.commit),
		"protected": t.protected, "protected_by": t.by, "left_out": t.left, "edits": t.edits,
		"result": t.result, "kept": t.kept} {
		if v != "" {
			m[key] = v
		}
	}
	if t.lines > 0 {
		m["lines"] = t.lines
	}
	return m
}

// Value reads the value of [Key]: the hash of the files, and where the files of the result went, such as "branch
// refrain/r_1, commit 1f0c". Each result is empty if the value does not have it.
func Value(v any) (files workspace.Hash, result string) {
	t := stateOf(v)
	return t.hash, t.result
}

// Trees returns the hashes of the files, of the bases of limits, and of what persons have edited, in a change of the state, for the run and for
// the branches of parallel agents.
func Trees(delta map[string]any) (all []workspace.Hash) {
	for key, v := range delta {
		if !IsKey(key) {
			continue
		}
		t := stateOf(v)
		for _, h := range append(treesOf(t.edits), t.hash, t.base) {
			if h.Valid() {
				all = append(all, h)
			}
		}
	}
	return all
}

// treesOf returns the trees of edits, two for each.
func treesOf(edits string) (all []workspace.Hash) {
	for edit := range strings.FieldsSeq(edits) {
		from, to, _ := strings.Cut(edit, ":")
		all = append(all, workspace.Hash(from), workspace.Hash(to))
	}
	return all
}
