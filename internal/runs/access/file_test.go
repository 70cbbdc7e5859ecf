// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/runs/access"
)

func newFile(t *testing.T) (*access.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "people.json")
	return access.At(path), path
}

// A token opens the door from the moment it is added until it is removed, also for a file that was opened before. The file has no token.
func TestTokens(t *testing.T) {
	f, path := newFile(t)
	token, err := f.Add(access.Person{Name: "ana", Role: access.Operator}, true)
	if err != nil {
		t.Fatal(err)
	}
	server, err := access.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if who, err := server.WithToken(token); err != nil || who != (access.Person{Name: "ana", Role: access.Operator}) {
		t.Errorf("the token is that of %+v, %v", who, err)
	}
	none, err := f.Add(access.Person{Name: "bob@example.org", Role: access.Reader}, false)
	if err != nil || none != "" {
		t.Errorf("a person without a token has %q, %v", none, err)
	}
	if who, err := server.Named("bob@example.org"); err != nil || who.Role != access.Reader {
		t.Errorf("bob is %+v, %v", who, err)
	}
	for _, wrong := range []string{"", token + "x", token[:len(token)-1], "bob@example.org"} {
		if who, err := server.WithToken(wrong); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("the token %q is that of %+v, %v", wrong, who, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), token) {
		t.Errorf("the file has the token: %s, %v", text, err)
	}
	for _, name := range []string{path, path + ".lock"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
	if err := f.Remove("ana"); err != nil {
		t.Fatal(err)
	}
	if who, err := server.WithToken(token); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("the removed token is that of %+v, %v", who, err)
	}
	if err := f.Remove("bob@exampel.org"); !errors.Is(err, access.ErrUnknown) || !strings.Contains(err.Error(), "did you mean bob@example.org?") {
		t.Errorf("removing nobody: %v", err)
	}
	if _, err := f.Add(access.Person{Name: "bob@example.org", Role: access.Author}, true); err == nil {
		t.Error("a name was added twice")
	}
}

// Commands that change the file at once lose nothing, and a reader never sees a part of it.
func TestChangesAtOnce(t *testing.T) {
	_, path := newFile(t)
	var all sync.WaitGroup
	const each = 10
	for i := range 8 {
		all.Go(func() {
			f := access.At(path) // as a process of its own has it
			for j := range each {
				name := fmt.Sprintf("p%d-%d", i, j)
				if _, err := f.Add(access.Person{Name: name, Role: access.Reader}, true); err != nil {
					t.Error(err)
				}
				if _, err := access.Open(path); err != nil {
					t.Error(err)
				}
				if err := f.Remove(name); j%2 == 1 && err != nil {
					t.Error(err)
				} else if j%2 == 0 {
					_, err = f.Add(access.Person{Name: name, Role: access.Author}, false)
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	list, err := access.At(path).List()
	if err != nil || len(list) != 8*each/2 {
		t.Errorf("the file has %d people, %v", len(list), err)
	}
	left, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path + ".lock"}, left); diff != "" {
		t.Errorf("files stay behind: %s", diff)
	}
}

// A file that cannot be read lets nobody in, and says why. It lets people in again when it can be read.
func TestBadFiles(t *testing.T) {
	f, path := newFile(t)
	token, err := f.Add(access.Person{Name: "ana", Role: access.Operator}, true)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"":                            "EOF",
		string(good[:len(good)/2]):    "unexpected EOF",
		string(good) + "{}":           "something follows",
		`{"people": [{"name": "a"}]}`: "people[0] (a) has no role",
		`{"tokens": []}`:              "unknown field",
		`[]`:                          "cannot unmarshal",
		`{"people": [{"role":"reader","name":"a b"}]}`:                                                                            "cannot be a name",
		`{"people": [{"role":"reader","name":"token"}]}`:                                                                          "stands for clients",
		`{"people": [{"role":"admin","name":"a"}]}`:                                                                               `no role "admin"`,
		`{"people": [{"role":"none","name":"a"}]}`:                                                                                `no role "none"`,
		`{"people": [{"role":"readr","name":"a"}]}`:                                                                               "did you mean reader?",
		`{"people": [{"role":"reader","name":"a"},{"role":"author","name":"a"}]}`:                                                 "is there twice",
		`{"people": [{"role":"reader","name":"a","sha256":"12"}]}`:                                                                "not the hash of a token",
		`{"people": [{"role":"reader","name":"a","sha256":"` + hash + `"},{"role":"author","name":"b","sha256":"` + hash + `"}]}`: "of its own",
		strings.Repeat(" ", 1<<20) + string(good):                                                                                 "more than 1048576 bytes",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if who, err := f.WithToken(token); err == nil || errors.Is(err, access.ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q lets in %+v, %v; want %q", text, who, err, want)
		}
		if _, err := f.Add(access.Person{Name: "b", Role: access.Reader}, true); err == nil {
			t.Errorf("%.80q was replaced", text)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WithToken(token); err != nil {
		t.Errorf("the good file is back: %v", err)
	}
	if err := os.Chmod(path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WithToken(token); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a file that others may write: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WithToken(token); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
