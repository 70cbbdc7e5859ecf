// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

func Example() {
	ctx := context.Background()
	from, err := os.MkdirTemp("", "project")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(from)
	t, err := workspace.Open(ctx, workspace.Config{From: from, Store: filepath.Join(from, ".refrain", "files"), Run: "r_12"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()
	if err := os.WriteFile(filepath.Join(t.Dir(), "notes.txt"), []byte("two\nlines\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	h, err := t.Snapshot(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	changes, err := t.Files(ctx, t.Start(), h)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range changes {
		fmt.Println(c.Status, c.Path, c.Added)
	}
	// Output: A notes.txt 2
}
