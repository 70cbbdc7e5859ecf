// SPDX-License-Identifier: Apache-2.0

package taskagent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/refrain-dev/refrain/agent/taskagent"
)

// A command starts in the folder that was checked, and its report is read and removed there, also while another program replaces the
// folder by a link to one outside of the root.
func TestTheWorkingDirectoryIsTheFolderThatWasChecked(t *testing.T) {
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside, link := filepath.Join(temp, "root"), filepath.Join(temp, "outside"), filepath.Join(temp, "link")
	for _, dir := range []string{filepath.Join(root, "in"), outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	precious := filepath.Join(outside, "report.xml")
	if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-quit:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "in"), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	ran, through, removed := 0, 0, 0
	for i := range 1500 {
		report := ""
		if i%3 == 0 {
			report = "report.xml"
		}
		got := command(t, taskagent.CommandConfig{Args: []string{"pwd", "-P"}, Root: root, Dir: "in", Tests: report}, nil)
		if _, err := os.Stat(precious); err != nil {
			removed++
			if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got.err != nil && strings.Contains(got.err.Error(), "escapes") {
			continue
		}
		ran++
		if said, _ := got.state["out"].(string); said == outside {
			through++
		}
	}
	close(quit)
	<-done
	if through > 0 || removed > 0 || ran == 0 {
		t.Errorf("of %d commands %d worked outside, and %d files outside were removed", ran, through, removed)
	}
}
