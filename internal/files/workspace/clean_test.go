// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// A clean checkout has the files of its tree alone, whatever the folder of the run has, and what happens
// there happens nowhere else.
func TestCleanHasTheFilesOfTheTree(t *testing.T) {
	seed := rand.Uint64()
	draw := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	from := repository(t)
	tree := open(t, workspace.Config{From: from, Copy: []string{".env"}})
	outside := filepath.Join(filepath.Dir(from), "outside")
	write(t, outside, "mine", "mine")
	overlay := filepath.Join(filepath.Dir(from), "overlay")
	names := []string{"a.go", "sub/deep/win.txt", "sub", "link", "made", "made/x", "made/x/y"}
	for i := range 12 {
		for range 3 {
			name := filepath.Join(tree.Dir(), names[draw.IntN(len(names))])
			os.RemoveAll(name)
			switch draw.IntN(3) {
			case 0:
				_ = os.Symlink(outside, name)
			case 1:
				_ = os.MkdirAll(filepath.Dir(name), 0o755)
				_ = os.WriteFile(name, fmt.Append(nil, draw.IntN(3)), 0o755)
			}
		}
		h := snapshot(t, tree)
		want := files(t, tree.Dir(), ".git", ".env", "build")
		around := files(t, outside)
		sh(t, tree.Dir(), "echo dirt > dirt; mkdir -p build; echo dirt > build/dirt")
		os.RemoveAll(overlay)
		laid := names[draw.IntN(len(names))]
		write(t, overlay, laid, "hidden")
		err := tree.Clean(t.Context(), h, nil, overlay, func(dir string, env []string) error {
			got := files(t, dir, ".git", ".env")
			if text, err := os.ReadFile(filepath.Join(dir, laid)); err != nil || string(text) != "hidden" {
				t.Errorf("round %d: the overlay's %s has %q: %v", i, laid, text, err)
			}
			if text, err := os.ReadFile(filepath.Join(dir, ".env")); err != nil || string(text) != "secret\n" {
				t.Errorf("round %d: .env has %q: %v", i, text, err)
			}
			for _, m := range []map[string]string{want, got} {
				for name := range m { // what the overlay replaces
					if name == laid || strings.HasPrefix(laid, name+"/") || strings.HasPrefix(name, laid+"/") {
						delete(m, name)
					}
				}
			}
			same(t, fmt.Sprintf("round %d", i), want, got)
			sh(t, dir, "git status -s > /dev/null; echo x > x; rm -rf sub")
			if !strings.Contains(strings.Join(env, " "), "REFRAIN_WORKSPACE="+dir) {
				t.Errorf("the environment is %q", env)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "outside", around, files(t, outside))
		sh(t, tree.Dir(), "rm dirt")
		if got := snapshot(t, tree); got != h {
			t.Fatalf("round %d: the tree became %s", i, got)
		}
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(tree.Dir()), "clean-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What a step fails with comes back, an unknown tree is an error, and what a killed process has left goes away.
func TestCleanThatFails(t *testing.T) {
	from := repository(t)
	cfg := workspace.Config{From: from, Exclude: []string{"new.txt", "sub"}}
	tree := open(t, cfg)
	for _, gone := range []string{"new.txt", "sub"} {
		if _, err := os.Lstat(filepath.Join(tree.Dir(), gone)); err == nil {
			t.Errorf("%s was copied", gone)
		}
	}
	write(t, tree.Dir(), "sub/made", "by the agent")
	if got := snapshot(t, tree); got != tree.Start() {
		t.Error("an excluded folder is part of the state")
	}
	failed := errors.New("failed")
	if err := tree.Clean(t.Context(), tree.Start(), nil, "", func(string, []string) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	never := func(string, []string) error { t.Error("it was used"); return nil }
	if err := tree.Clean(t.Context(), workspace.Hash(strings.Repeat("1", 40)), nil, "", never); !errors.Is(err, workspace.ErrUnknownTree) {
		t.Errorf("got %v", err)
	}
	if err := tree.Clean(t.Context(), tree.Start(), nil, filepath.Join(from, "nowhere"), never); err == nil {
		t.Error("an overlay that is not there is no error")
	}
	room := filepath.Dir(tree.Dir())
	write(t, room, "clean-1/tree/x", "left by a process that was killed")
	tree.Close()
	open(t, cfg)
	if left, _ := filepath.Glob(filepath.Join(room, "clean-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestTracked(t *testing.T) {
	from := repository(t)
	sh(t, from, `mkdir never was; echo x > was/x; git add was; git commit -qm was; git rm -qr --cached was; git commit -qm gone
echo x > never/x; git init -q own; echo x > own/x; git -C own add x`)
	for folder, want := range map[string]bool{"sub": true, "was": true, "never": false, "own": false} {
		if got, err := workspace.Tracked(t.Context(), from, filepath.Join(from, folder)); err != nil || got != want {
			t.Errorf("%s: %t, %v", folder, got, err)
		}
	}
	plain := t.TempDir()
	if got, err := workspace.Tracked(t.Context(), plain, plain); got || err != nil {
		t.Errorf("a plain folder: %t, %v", got, err)
	}
}

func TestLiteral(t *testing.T) {
	for _, name := range []string{"a", "a*b", "[a", "a?", `a\b`, "a/[b]*"} {
		if p := workspace.Literal(name); !workspace.Match(p, name) || !workspace.Match(p, name+"/x") || workspace.Match(p, name+"y") {
			t.Errorf("%q became %q", name, p)
		}
	}
}
