// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// mounting is the variable of the process that may mount.
const mounting = "REFRAIN_TEST_MOUNTS"

// Nothing of a run changes files behind a mount point in its tree, such as one that an agent with the rights of root has made.
func TestMountPointsAreNotCrossed(t *testing.T) {
	needGit(t)
	if os.Getenv(mounting) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), mounting+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if _, ran := err.(*exec.ExitError); err != nil && !ran {
			t.Skipf("this system gives no namespace of mounts: %v", err)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		} else if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skipf("this system permits no mounts: %v", err)
	}
	from := repository(t)
	outside := t.TempDir()
	write(t, outside, "precious", "mine")
	store := t.TempDir()
	tree := open(t, workspace.Config{From: from, Store: store})
	for _, name := range []string{"with blank", "sub"} { // not ignored, and a folder of the state
		at := filepath.Join(tree.Dir(), name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(outside, at, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		for what, do := range map[string]func() error{
			"Snapshot": func() error { _, err := tree.Snapshot(ctx); return err },
			"Restore":  func() error { _, err := tree.Restore(ctx, tree.Start()); return err },
			"Beside":   func() error { _, err := tree.Beside(ctx, "b"); return err },
		} {
			if err := do(); !isA[*workspace.MountError](err) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		tree.Close()
		if err := workspace.Remove(ctx, store, "r_1"); !isA[*workspace.MountError](err) {
			t.Errorf("%s: Remove: %v", name, err)
		}
		if text, err := os.ReadFile(filepath.Join(outside, "precious")); string(text) != "mine" {
			t.Errorf("%s: the file behind the mount point: %q, %v", name, text, err)
		}
		if err := syscall.Unmount(at, 0); err != nil {
			t.Fatal(err)
		}
		tree = open(t, workspace.Config{From: from, Store: store})
	}
	if _, err := tree.Restore(t.Context(), tree.Start()); err != nil {
		t.Errorf("without mounts: %v", err)
	}
}
