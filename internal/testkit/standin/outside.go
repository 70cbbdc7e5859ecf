// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"os"
	"testing"
)

// OutsideOfTemp makes a folder in the user's cache, which is removed when the test ends. Below a folder for temporary files, Codex
// lets every command write, and makes none of the programs that its sandbox with bwrap needs.
func OutsideOfTemp(t testing.TB, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	dir := ""
	if err == nil {
		dir, err = os.MkdirTemp(cache, "refrain-"+name+"-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
