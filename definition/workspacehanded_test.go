// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
)

// What the state says of the hand-over becomes a command, which a shell reads as the same words.
func TestHanded(t *testing.T) {
	for _, tt := range []struct {
		from, result string
		want         definition.Handed
	}{
		{"", "", definition.Handed{}},
		{"", "branch refrain/r_1, commit 1f0c", definition.Handed{
			Way: "branch", Name: "refrain/r_1", Commit: "1f0c", Command: "git merge refrain/r_1"}},
		{"sub/dir", "branch a;b, commit 1f0c", definition.Handed{
			Way: "branch", Name: "a;b", Commit: "1f0c", Command: "git -C sub/dir merge 'a;b'"}},
		{"", "branch fix, commit 1f0c; take it with: git cherry-pick fix", definition.Handed{
			Way: "branch", Name: "fix", Commit: "1f0c", Command: "git cherry-pick fix"}},
		{"", "patch out/it's.patch", definition.Handed{
			Way: "patch", Name: "out/it's.patch", Command: `git apply 'out/it'\''s.patch'`}},
		{"sub", "patch r.patch", definition.Handed{Way: "patch", Name: "r.patch", Command: "git -C sub apply ../r.patch"}},
		{"", "patch r-r_1.patch, because r.patch is no patch of a run", definition.Handed{
			Way: "patch", Name: "r-r_1.patch", Command: "git apply r-r_1.patch"}},
		{"sub", "applied to sub", definition.Handed{Way: "applied", Name: "sub"}},
	} {
		w := &definition.Workspace{From: tt.from}
		if diff := cmp.Diff(tt.want, w.Handed(map[string]any{"result": tt.result})); diff != "" {
			t.Errorf("%q: %s", tt.result, diff)
		}
	}
	if h := new(definition.Workspace).Handed("no map"); h != (definition.Handed{}) {
		t.Errorf("%+v", h)
	}
}
