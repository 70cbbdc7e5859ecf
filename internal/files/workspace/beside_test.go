// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

func beside(t testing.TB, tree *workspace.Tree, name string) *workspace.Tree {
	t.Helper()
	s, err := tree.Beside(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestATreeBesideHasTheFilesAndItsOwnState(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from, Copy: []string{".env"}})
	write(t, tree.Dir(), "a.go", "package b\n")
	fork := snapshot(t, tree)
	want := files(t, tree.Dir(), ".git")
	a, b := beside(t, tree, "a"), beside(t, tree, "b/../..")
	for _, s := range []*workspace.Tree{a, b} {
		if _, err := s.Ensure(t.Context(), fork); err != nil {
			t.Fatal(err)
		}
		same(t, "a tree beside", want, files(t, s.Dir(), ".git"))
		if s.Start() != tree.Start() || !strings.HasPrefix(s.Dir(), filepath.Dir(tree.Dir())) {
			t.Errorf("it begins with %s and is in %s", s.Start(), s.Dir())
		}
	}
	if _, err := tree.Beside(t.Context(), "a"); !errors.Is(err, workspace.ErrLocked) {
		t.Errorf("a second use of a tree: %v", err)
	}
	// At the same time, also with the same files.
	var wg sync.WaitGroup
	var hashes [2]workspace.Hash
	for i, s := range []*workspace.Tree{a, b} {
		wg.Go(func() {
			for n := range 10 {
				if err := os.WriteFile(filepath.Join(s.Dir(), "same"), fmt.Append(nil, n), 0o600); err != nil {
					t.Error(err)
				}
				h, err := s.Snapshot(t.Context())
				if err != nil {
					t.Error(err)
				}
				hashes[i] = h
			}
		})
	}
	wg.Wait()
	if hashes[0] != hashes[1] {
		t.Errorf("the same files are %v", hashes)
	}
	same(t, "the tree itself", want, files(t, tree.Dir(), ".git"))

	// It is found again, and its files are those that it had.
	a.Close()
	again := beside(t, tree, "a")
	if h := snapshot(t, again); h != hashes[0] {
		t.Errorf("opened again it has %s, want %s", h, hashes[0])
	}
	write(t, again.Dir(), "stranger", "x")
	again.Close()
	again = beside(t, tree, "a")
	if _, err := again.Ensure(t.Context(), hashes[0]); !isA[*workspace.StrangerError](err) {
		t.Errorf("a stranger's edit: %v", err)
	}
	again.Close()
	b.Close()
	tree.Close()
	if err := workspace.Remove(t.Context(), filepath.Join(from, ".refrain", "files"), "r_1"); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, from, "git --git-dir .refrain/files/store for-each-ref; ls .refrain/files/runs"); got != "" {
		t.Errorf("removed, it leaves %s", got)
	}
}

func TestMerge(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	for name, tt := range map[string]struct {
		a, b     string
		conflict []string
	}{
		"different files":     {"echo 1 > one; rm new.txt; chmod +x a.go", "echo 2 > two; ln -s two link2; rm -r sub", nil},
		"the same change":     {"echo 1 > one; rm new.txt", "echo 1 > one; rm new.txt; echo 2 > two", nil},
		"one does nothing":    {"echo 1 > one", ":", nil},
		"one file":            {"echo 1 > one; echo 1 >> a.go", "echo 2 > one; echo 2 >> a.go; echo x > y", []string{"a.go", "one"}},
		"modes":               {"chmod +x a.go", "echo 1 >> a.go", []string{"a.go"}},
		"deleted and changed": {"rm a.go", "echo 1 >> a.go", []string{"a.go"}},
		"a file and a folder": {"echo 1 > d", "mkdir d; echo 2 > d/e", []string{"d"}},
		"in a folder's place": {"rm -r sub; echo 1 > sub", "echo 2 > sub/more", []string{"sub"}},
		"a folder for a file": {"rm a.go; mkdir a.go; echo 1 > a.go/x", "echo 2 > two", nil},
		"a link for a file":   {"rm a.go; ln -s new.txt a.go", "rm a.go; ln -s link a.go", []string{"a.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			base := tree.Start()
			made := make(map[string]workspace.Hash)
			for side, script := range map[string]string{"a": tt.a, "b": tt.b} {
				if _, err := tree.Ensure(t.Context(), base); err != nil {
					t.Fatal(err)
				}
				sh(t, tree.Dir(), script)
				made[side] = snapshot(t, tree)
			}
			h, err := tree.Merge(t.Context(), base, made)
			if tt.conflict != nil {
				conflict, _ := errors.AsType[*workspace.ConflictError](err)
				if conflict == nil || !slices.Equal(conflict.Paths, tt.conflict) || !slices.Equal(conflict.Branches, []string{"a", "b"}) ||
					!strings.Contains(err.Error(), "a and b changed the same files differently: "+tt.conflict[0]) {
					t.Errorf("%v, want a conflict about %v", err, tt.conflict)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tree.Ensure(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			sh(t, tree.Dir(), tt.a+"\n"+strings.ReplaceAll(tt.b, "rm ", "rm -f "))
			want := files(t, tree.Dir(), ".git")
			if _, err := tree.Restore(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			same(t, "merged", want, files(t, tree.Dir(), ".git"))
		})
	}
	unknown := map[string]workspace.Hash{"a": "0123456789012345678901234567890123456789"}
	if _, err := tree.Merge(t.Context(), tree.Start(), unknown); !errors.Is(err, workspace.ErrUnknownTree) {
		t.Errorf("an unknown tree: %v", err)
	}
}

// Changes drawn at random: what each of three has done is in the merged tree, or the conflict names what two of them did.
func TestMergeOfRandomChanges(t *testing.T) {
	from := repository(t)
	tree := open(t, workspace.Config{From: from})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	for range 12 {
		made, all, conflict := make(map[string]workspace.Hash), make(map[string]string), make(map[string]bool)
		for _, side := range []string{"a", "b", "c"} {
			if _, err := tree.Ensure(t.Context(), tree.Start()); err != nil {
				t.Fatal(err)
			}
			did := make(map[string]string)
			for range random.IntN(3) {
				name, text := fmt.Sprintf("r%d/f", random.IntN(12)), fmt.Sprint(random.IntN(2))
				write(t, tree.Dir(), name, text)
				did[name] = text
			}
			for name, text := range did {
				if other, ok := all[name]; ok && other != text {
					conflict[name] = true
				}
				all[name] = text
			}
			made[side] = snapshot(t, tree)
		}
		h, err := tree.Merge(t.Context(), tree.Start(), made)
		if e, ok := errors.AsType[*workspace.ConflictError](err); ok || len(conflict) > 0 {
			if e == nil || !slices.Equal(e.Paths, slices.Sorted(maps.Keys(conflict))) {
				t.Errorf("%v, want a conflict about %v", err, conflict)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		changes, err := tree.Files(t.Context(), tree.Start(), h)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range changes {
			got = append(got, c.Path)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), got); diff != "" {
			t.Errorf("merged (-want +got):\n%s", diff)
		}
	}
}
