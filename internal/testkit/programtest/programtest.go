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
	binary := filepath.Join(t.TempDir(), name)
	build(t, "example.com/"+name, root, src, []string{"build", "-o", binary, "."})
	return binary
}

// BuildAll compiles all packages below src as [Build] does, as a module with the given path, and links the programs
// in the named folders. It returns the folder of the binaries, which have the names of their folders.
func BuildAll(t testing.TB, module, root, src string, folders []string) string {
	t.Helper()
	dir := t.TempDir()
	link := []string{"build", "-ldflags=-s -w", "-o", dir}
	for _, f := range folders {
		link = append(link, "./"+f)
	}
	build(t, module, root, src, []string{"vet", "./..."}, link)
	return dir
}

// build runs go commands in a copy of src whose module has the given path.
func build(t testing.TB, module, root, src string, commands ...[]string) {
	t.Helper()
	if testing.Short() {
		t.Skip("links a program")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err == nil {
			text = moduleLine().ReplaceAll(text, []byte("module "+module))
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	requires := []string{"mod", "edit", "-require", "github.com/refrain-dev/refrain@v0.0.0",
		"-replace", "github.com/refrain-dev/refrain=" + root}
	for _, args := range append([][]string{requires}, commands...) {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args, err, out)
		}
	}
}
