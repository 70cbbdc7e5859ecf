// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Root may write everything: the file is used by somebody else.
func TestReadOnlyFileIsAnError(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("to become another user takes root")
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "sqlite.test")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name         string
		file, folder os.FileMode
		want         string
	}{
		{"all may write", 0o666, 0o777, ""},
		{"file", 0o444, 0o777, "the file cannot be written"},
		{"folder", 0o666, 0o555, "see who owns it and its folder"},
		{"file that nobody may read", 0o000, 0o777, "see who owns it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := written(t, 3)
			path := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", ""), "refrain.db")
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, path, read(t, from))
			for name, mode := range map[string]os.FileMode{path: tt.file, filepath.Dir(path): tt.folder} {
				if err := os.Chmod(name, mode); err != nil {
					t.Fatal(err)
				}
			}
			cmd := child(t.Context(), "use", path)
			cmd.Path, cmd.Args[0] = program, program
			cmd.Dir = dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			out, err := cmd.CombinedOutput()
			if (err == nil) != (tt.want == "") || !strings.Contains(string(out), tt.want) {
				t.Errorf("got %v, want %q:\n%s", err, tt.want, out)
			}
		})
	}
}
