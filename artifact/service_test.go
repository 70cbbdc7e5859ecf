// SPDX-License-Identifier: Apache-2.0

package artifact_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

const app, user, one, two = "app", "ana", "s1", "s2"

func save(t *testing.T, s artifact.Service, session, name, text string) int64 {
	t.Helper()
	res, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: app, UserID: user, SessionID: session, FileName: name, Part: genai.NewPartFromText(text)})
	if err != nil {
		t.Fatal(err)
	}
	return res.Version
}

func load(t *testing.T, s artifact.Service, session, name string, version int64) (string, error) {
	t.Helper()
	res, err := s.Load(t.Context(), &artifact.LoadRequest{AppName: app, UserID: user, SessionID: session, FileName: name, Version: version})
	if err != nil {
		return "", err
	}
	return res.Part.Text, nil
}

func list(t *testing.T, s artifact.Service, session string) []string {
	t.Helper()
	res, err := s.List(t.Context(), &artifact.ListRequest{AppName: app, UserID: user, SessionID: session})
	if err != nil {
		t.Fatal(err)
	}
	return res.FileNames
}

func versions(t *testing.T, s artifact.Service, name string) ([]int64, error) {
	t.Helper()
	res, err := s.Versions(t.Context(), &artifact.VersionsRequest{AppName: app, UserID: user, SessionID: one, FileName: name})
	if err != nil {
		return nil, err
	}
	return res.Versions, nil
}

// E6
func TestVersions(t *testing.T) {
	s := artifact.InMemoryService()
	for i := range 3 {
		if got := save(t, s, one, "a.md", fmt.Sprint("text ", i+1)); got != int64(i+1) {
			t.Fatalf("version %d, want %d", got, i+1)
		}
	}
	for version, want := range map[int64]string{0: "text 3", 1: "text 1", 3: "text 3"} {
		if got, err := load(t, s, one, "a.md", version); got != want || err != nil {
			t.Errorf("version %d: %q, %v, want %q", version, got, err, want)
		}
	}
	got, err := versions(t, s, "a.md")
	if diff := cmp.Diff([]int64{3, 2, 1}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: app, UserID: user, SessionID: one, FileName: "a.md", Version: 2, Part: genai.NewPartFromText("new 2")}); err != nil {
		t.Fatal(err)
	}
	if got, _ := load(t, s, one, "a.md", 2); got != "new 2" {
		t.Errorf("version 2 after it was written again: %q", got)
	}
}

// E6
func TestMissingArtifacts(t *testing.T) {
	s := artifact.InMemoryService()
	save(t, s, one, "a.md", "text")
	_, missing := load(t, s, one, "b.md", 0)
	_, version := load(t, s, one, "a.md", 7)
	_, session := load(t, s, two, "a.md", 0)
	_, none := versions(t, s, "b.md")
	_, meta := s.GetArtifactVersion(t.Context(), &artifact.GetArtifactVersionRequest{AppName: app, UserID: user, SessionID: one, FileName: "b.md"})
	for _, err := range []error{missing, version, session, none, meta} {
		if !errors.Is(err, artifact.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want ErrNotFound and fs.ErrNotExist", err)
		}
	}
}

// E6
func TestDelete(t *testing.T) {
	s := artifact.InMemoryService()
	for range 2 {
		save(t, s, one, "a.md", "text")
	}
	remove := func(version int64) {
		t.Helper()
		if err := s.Delete(t.Context(), &artifact.DeleteRequest{AppName: app, UserID: user, SessionID: one, FileName: "a.md", Version: version}); err != nil {
			t.Fatal(err)
		}
	}
	remove(2)
	remove(9)
	if got := save(t, s, one, "a.md", "text"); got != 3 {
		t.Errorf("after version 2 was deleted: version %d, want 3", got)
	}
	remove(0)
	remove(0)
	if got := list(t, s, one); len(got) != 0 {
		t.Errorf("files after all were deleted: %q", got)
	}
	save(t, s, one, "a.md", "text")
	remove(1)
	if _, err := versions(t, s, "a.md"); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("after the last version was deleted: %v", err)
	}
}

// E6
func TestUserFilesAreShared(t *testing.T) {
	s := artifact.InMemoryService()
	save(t, s, one, "user:style.md", "dry")
	save(t, s, one, "own.md", "text")
	if got, err := load(t, s, two, "user:style.md", 0); got != "dry" || err != nil {
		t.Errorf("from another session: %q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"own.md", "user:style.md"}, list(t, s, one)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"user:style.md"}, list(t, s, two)); diff != "" {
		t.Error(diff)
	}
}

// E6
func TestArtifactVersionDescribesTheContent(t *testing.T) {
	s := artifact.InMemoryService()
	save(t, s, one, "a", "text")
	if _, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: app, UserID: user, SessionID: one, FileName: "a", Part: genai.NewPartFromBytes([]byte{1}, "image/png")}); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int64]string{1: "text/plain", 0: "image/png"} {
		res, err := s.GetArtifactVersion(t.Context(), &artifact.GetArtifactVersionRequest{AppName: app, UserID: user, SessionID: one, FileName: "a", Version: version})
		if err != nil {
			t.Fatal(err)
		}
		if v := res.ArtifactVersion; v.MimeType != want || v.CreateTime.IsZero() || v.Version == 0 {
			t.Errorf("version %d: %+v, want %s", version, v, want)
		}
	}
}

// E6
func TestBadRequests(t *testing.T) {
	s := artifact.InMemoryService()
	for _, name := range []string{"", "user:", "a/b", `a\b`, "..", "../a", ".", "user:../a", "a\x00"} {
		if _, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: app, UserID: user, SessionID: one, FileName: name, Part: genai.NewPartFromText("x")}); !errors.Is(err, artifact.ErrInvalid) {
			t.Errorf("Save %q: %v", name, err)
		}
		if _, err := load(t, s, one, name, 0); !errors.Is(err, artifact.ErrInvalid) {
			t.Errorf("Load %q: %v", name, err)
		}
		if err := s.Delete(t.Context(), &artifact.DeleteRequest{AppName: app, UserID: user, SessionID: one, FileName: name}); !errors.Is(err, artifact.ErrInvalid) {
			t.Errorf("Delete %q: %v", name, err)
		}
	}
	if _, err := s.List(t.Context(), &artifact.ListRequest{UserID: user}); !errors.Is(err, artifact.ErrInvalid) || !strings.Contains(err.Error(), "AppName, SessionID") {
		t.Errorf("List without an app and a session: %v", err)
	}
	if _, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: app, UserID: user, SessionID: one, FileName: "a", Part: &genai.Part{}}); !errors.Is(err, artifact.ErrInvalid) {
		t.Errorf("Save of nothing: %v", err)
	}
	if _, err := load(t, s, one, "a", -1); !errors.Is(err, artifact.ErrInvalid) {
		t.Errorf("Load of a negative version: %v", err)
	}
}

// E6
func TestConcurrentSavesGetTheirOwnVersions(t *testing.T) {
	s := artifact.InMemoryService()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: app, UserID: user, SessionID: one, FileName: "a", Part: genai.NewPartFromText("x")})
			if err != nil {
				t.Error(err)
			}
			if _, err := load(t, s, one, "a", 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := versions(t, s, "a"); len(got) != 20 || got[0] != 20 || err != nil {
		t.Errorf("versions %v, %v", got, err)
	}
}
