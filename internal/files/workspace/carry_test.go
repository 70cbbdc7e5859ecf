// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// carrier makes bundles as a stranger could.
type carrier struct {
	t   *testing.T
	dir string
}

func (c *carrier) git(in string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = c.dir, strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// tree writes a tree of entries such as "100644 a.txt HASH" as it is.
func (c *carrier) tree(entries ...string) string {
	var raw bytes.Buffer
	for _, e := range entries {
		f := strings.Split(e, " ")
		hash, _ := hex.DecodeString(f[2])
		fmt.Fprintf(&raw, "%s %s\x00%s", f[0], f[1], hash)
	}
	return c.git(raw.String(), "hash-object", "-t", "tree", "--literally", "-w", "--stdin")
}

func (c *carrier) blob(text string) string { return c.git(text, "hash-object", "-w", "--stdin") }

// bundle writes a file with refs such as "refs/refrain/r_1/start HASH".
func (c *carrier) bundle(refs map[string]string) string {
	file := filepath.Join(c.t.TempDir(), "a.bundle")
	args := []string{"bundle", "create", "--quiet", file}
	for name, hash := range refs {
		c.git("", "update-ref", name, hash)
		args = append(args, name)
	}
	c.git("", args...)
	return file
}

// What a stranger has made is refused, and nothing is left of it.
func TestReceiveRefuses(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	c := &carrier{t, t.TempDir()}
	c.git("", "init", "--quiet", "--bare", ".")
	file := c.blob("words\n")
	good := c.tree("100644 a.txt " + file)
	empty := c.tree()
	bomb := good
	for range 30 {
		bomb = c.tree("40000 a "+bomb, "40000 b "+bomb)
	}
	deep := good
	var chain strings.Builder // many folders in each other
	for range 3000 {
		fmt.Fprintf(&chain, "040000 tree %s\ta\n\n", deep)
		raw, _ := hex.DecodeString(deep)
		deep = fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "tree %d\x0040000 a\x00%s", 8+len(raw), raw)))
	}
	c.git(chain.String(), "mktree", "--missing", "--batch")
	large := c.tree("100644 large " + c.blob(strings.Repeat("0", 1<<20)))
	run := func(start, notes string) map[string]string {
		return map[string]string{"refs/refrain/r_1/base": good, "refs/refrain/r_1/start": start, "refs/refrain/r_1/notes": notes}
	}
	odd := run(good, empty)
	odd["refs/heads/main"] = c.git("", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit-tree", "-m", "x", good)
	for _, tt := range []struct {
		name string
		refs map[string]string
		want string // "" for what is good
	}{
		{"good", run(good, empty), ""},
		{"ref of an odd name", odd, `ref "` + odd["refs/heads/main"]},
		{"name out of the tree", run(c.tree("40000 .. "+good), empty), "git refuses it"},
		{"repository", run(c.tree("40000 .git "+good), empty), "git refuses it"},
		{"repository inside", run(c.tree("160000 sub "+odd["refs/heads/main"]), empty), "repository \"sub\" inside a tree"},
		{"path as a name", run(c.tree("100644 a/../../b "+file), empty), "git refuses it"},
		{"file in place of a tree", run(file, empty), "it has no tree"},
		{"tree of many files", run(bomb, empty), "files"},
		{"deep tree", run(deep, empty), "too deep in each other"},
		{"large file", run(large, empty), "store"},
		{"no start", map[string]string{"refs/refrain/r_1/base": good, "refs/refrain/r_1/notes": empty}, "it has no tree"},
		{"commit that is a flag", run(good, c.tree("100644 head "+c.blob("--help"))), "its commit is"},
		{"uncommitted file out of the tree", run(good, c.tree("100644 dirty "+c.blob("a.txt\x00../b\x00"))), "leads out of the tree"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bundle := c.bundle(tt.refs)
			store := filepath.Join(t.TempDir(), ".refrain", "files")
			got, err := workspace.Receive(t.Context(), store, bundle, []workspace.Hash{workspace.Hash(good)}, 1<<19)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if err := got.Keep(t.Context(), "r_2", ""); err != nil {
					t.Fatal(err)
				}
				if err := got.Close(); err != nil {
					t.Fatal(err)
				}
				s, err := workspace.OpenStored(t.Context(), store, "r_2")
				if err != nil {
					t.Fatal(err)
				}
				if start, err := s.Start(t.Context()); err != nil || string(start) != good {
					t.Errorf("the start is %s (%v), want %s", start, err, good)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one with %q", err, tt.want)
			}
			if _, err := os.Stat(filepath.Dir(store)); err == nil {
				t.Error("something was written")
			}
		})
	}
	t.Run("tree of the log is missing", func(t *testing.T) {
		_, err := workspace.Receive(t.Context(), filepath.Join(t.TempDir(), "files"), c.bundle(run(good, empty)), []workspace.Hash{workspace.Hash(large)}, 1<<30)
		if err == nil || !strings.Contains(err.Error(), "it has no tree") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("file is missing", func(t *testing.T) {
		lost := c.tree("100644 a.txt " + strings.Repeat("12", 20))
		made := filepath.Join(t.TempDir(), "made")
		made += "-" + c.git(strings.Join([]string{good, file, lost, empty}, "\n"), "pack-objects", "--quiet", made) + ".pack"
		pack, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		bundle := filepath.Join(t.TempDir(), "a.bundle")
		text := fmt.Sprintf("# v2 git bundle\n%s refs/refrain/r_1/base\n%s refs/refrain/r_1/start\n%s refs/refrain/r_1/notes\n\n%s",
			good, lost, empty, pack)
		if err := os.WriteFile(bundle, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = workspace.Receive(t.Context(), filepath.Join(t.TempDir(), "files"), bundle, nil, 1<<30)
		if err == nil || !strings.Contains(err.Error(), `the contents of "a.txt"`) {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("too many objects", func(t *testing.T) {
		bundle := filepath.Join(t.TempDir(), "a.bundle")
		text := fmt.Sprintf("# v2 git bundle\n%s refs/refrain/r_1/base\n\nPACK\x00\x00\x00\x02\xff\xff\xff\xff", good)
		if err := os.WriteFile(bundle, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := workspace.Receive(t.Context(), filepath.Join(t.TempDir(), "files"), bundle, nil, 1<<30)
		if err == nil || !strings.Contains(err.Error(), "4294967295 files and folders in all its versions") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("object that does not hash", func(t *testing.T) {
		bundle := c.bundle(run(good, empty))
		data, err := os.ReadFile(bundle)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-40] ^= 1
		if err := os.WriteFile(bundle, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := workspace.Receive(t.Context(), filepath.Join(t.TempDir(), "files"), bundle, nil, 1<<30); err == nil {
			t.Error("it is accepted")
		}
	})
}

// A small file may have large trees; they are not all kept in memory.
func TestReceiveTakesLittleMemory(t *testing.T) {
	if err := workspace.CheckGit(t.Context()); err != nil {
		t.Skip(err)
	}
	c := &carrier{t, t.TempDir()}
	c.git("", "init", "--quiet", "--bare", ".")
	file := c.blob("")
	entries := make([]string, 200_000)
	for i := range entries {
		entries[i] = fmt.Sprintf("100644 %06d %s", i, file)
	}
	tree := c.tree(entries...)
	bundle := c.bundle(map[string]string{"refs/refrain/r_1/base": tree, "refs/refrain/r_1/start": tree, "refs/refrain/r_1/notes": c.tree()})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := workspace.Receive(t.Context(), filepath.Join(t.TempDir(), "files"), bundle, nil, 1<<30)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if took := after.TotalAlloc - before.TotalAlloc; took > 30<<20 {
		t.Errorf("it has allocated %d MiB for a tree of %d MiB", took>>20, 34*len(entries)>>20)
	}
}
