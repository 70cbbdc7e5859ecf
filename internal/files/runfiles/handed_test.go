// SPDX-License-Identifier: Apache-2.0

package runfiles_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
)

// What the state says of the hand-over becomes a command, which a shell reads as the same words.
func TestHanded(t *testing.T) {
	for _, tt := range []struct {
		from, result string
		want         runfiles.Handed
	}{
		{"", "", runfiles.Handed{}},
		{"", "branch refrain/r_1, commit 1f0c", runfiles.Handed{
			Way: "branch", Name: "refrain/r_1", Commit: "1f0c", Command: "git merge refrain/r_1"}},
		{"sub/dir", "branch a;b, commit 1f0c", runfiles.Handed{
			Way: "branch", Name: "a;b", Commit: "1f0c", Command: "git -C sub/dir merge 'a;b'"}},
		{"", "branch fix, commit 1f0c; take it with: git cherry-pick fix", runfiles.Handed{
			Way: "branch", Name: "fix", Commit: "1f0c", Command: "git cherry-pick fix"}},
		{"", "patch out/it's.patch", runfiles.Handed{
			Way: "patch", Name: "out/it's.patch", Command: `git apply 'out/it'\''s.patch'`}},
		{"", "patch r-r_1.patch, because r.patch is no patch of a run; take it with: git -C .. apply <r-r_1.patch", runfiles.Handed{
			Way: "patch", Name: "r-r_1.patch", Command: "git -C .. apply <r-r_1.patch"}},
		{"sub", "patch r.patch", runfiles.Handed{Way: "patch", Name: "r.patch", Command: "git -C sub apply ../r.patch"}},
		{"", "patch r-r_1.patch, because r.patch is no patch of a run", runfiles.Handed{
			Way: "patch", Name: "r-r_1.patch", Command: "git apply r-r_1.patch"}},
		{"sub", "applied to sub", runfiles.Handed{Way: "applied", Name: "sub"}},
	} {
		w := &runfiles.Config{From: tt.from}
		if diff := cmp.Diff(tt.want, w.Handed(map[string]any{"result": tt.result})); diff != "" {
			t.Errorf("%q: %s", tt.result, diff)
		}
	}
	if h := new(runfiles.Config).Handed("no map"); h != (runfiles.Handed{}) {
		t.Errorf("%+v", h)
	}
}
