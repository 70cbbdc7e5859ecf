// SPDX-License-Identifier: Apache-2.0

// Package programtest builds the program of a user of Refrain, which is in a Go module of its own.
//
//	binary := programtest.Build(t, "moved", "../..", "testdata/moved")
package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

var moduleLine = lazyregexp.New(`(?m)^module .*$`)

// Build builds the program in the folder src from the module cache, and returns the path of the binary, which is
// called name and is in a temporary folder. The program uses the checkout whose go.mod is in the folder root. Build
// replaces the go.mod of the program by that of the checkout, because the go command would otherwise look for modules
// that only the tests of Refrain's modules use. So the program cannot need a module that Refrain does not need.
func Build(t testing.TB, name, root, src string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("links a program")
	}
	binary := filepath.Join(t.TempDir(), name)
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			text = moduleLine().ReplaceAll(text, []byte("module example.com/"+name))
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"mod", "edit", "-require", "github.com/refrain-dev/refrain@v0.0.0", "-replace", "github.com/refrain-dev/refrain=" + root},
		{"build", "-ldflags=-s -w", "-o", binary, "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args, err, out)
		}
	}
	return binary
}
