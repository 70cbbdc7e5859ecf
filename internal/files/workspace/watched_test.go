// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

func TestWritesToTheRepositoryAreNoticed(t *testing.T) {
	from := repository(t)
	look := func() *workspace.Look {
		t.Helper()
		l, err := workspace.LookAt(t.Context(), filepath.Join(from, "sub"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	before := look()
	index := sh(t, from, "sha256sum .git/index")
	if got := look().Changed(before, nil); got != nil {
		t.Errorf("nothing has changed, and it says %q", got)
	}
	if sh(t, from, "sha256sum .git/index") != index {
		t.Error("the index was written")
	}
	sh(t, from, "mkdir -p .refrain/files; echo x > .refrain/files/own; git branch refrain/fix")
	if got := look().Changed(before, func(ref string) bool { return ref == "refs/heads/refrain/fix" }); got != nil {
		t.Errorf("the run has written, and it says %q", got)
	}
	sh(t, from, `echo more >> new.txt; echo again >> sub/deep/win.txt; echo y > sub/y; git branch other; git config a.b c
echo evil > .git/hooks/pre-push; git checkout -q -b moved; rm staged`)
	want := ".git/config .git/hooks/pre-push HEAD new.txt refs/heads/moved refs/heads/other refs/heads/refrain/fix staged sub/deep/win.txt sub/y"
	if got := strings.Join(look().Changed(before, nil), " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if none, err := workspace.LookAt(t.Context(), t.TempDir()); err != nil || none != nil || none.Changed(before, nil) != nil {
		t.Errorf("a folder without a repository: %v, %v", none, err)
	}
}
