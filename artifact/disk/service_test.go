// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"testing"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/internal/testkit/artifacttest"
)

// E6
func TestService(t *testing.T) {
	artifacttest.TestService(t, func(t *testing.T) artifact.Service { return open(t, t.TempDir()) })
}

func open(t testing.TB, dir string) *disk.Service {
	t.Helper()
	s, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The store that has saved the first file of a session owns its files, until the last of them is deleted.
func TestFilesBelongToAStore(t *testing.T) {
	dir := t.TempDir()
	var all [3]*disk.Service
	for i, store := range []string{"a", "b", ""} {
		s, err := disk.OpenFor(dir, store)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all[i] = s
	}
	owner := func(want string) {
		t.Helper()
		if got, err := all[2].Store("app", "ana", "s1"); got != want || err != nil {
			t.Errorf("the files belong to %q, %v, not to %q", got, err, want)
		}
	}
	remove := func(s *disk.Service, name string) {
		t.Helper()
		if err := s.Delete(t.Context(), &artifact.DeleteRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: name}); err != nil {
			t.Fatal(err)
		}
	}
	owner("")
	save(t, all[0], "user:shared.md", "shared")
	owner("")
	save(t, all[0], "one.md", "1")
	save(t, all[1], "two.md", "2")
	owner("a")
	if got, err := all[1].List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); err != nil || len(got.FileNames) != 3 {
		t.Errorf("the files are %v, %v", got, err)
	}
	remove(all[1], "one.md")
	owner("a")
	remove(all[1], "two.md")
	owner("")
	save(t, all[1], "two.md", "2")
	owner("b")
	remove(all[1], "two.md")
	save(t, all[2], "one.md", "1") // of an earlier version
	save(t, all[1], "two.md", "2")
	owner("")
}
