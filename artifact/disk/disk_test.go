// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
)

func save(t testing.TB, s artifact.Service, name, text string) int64 {
	t.Helper()
	res, err := s.Save(context.Background(), &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: name,
		Part: genai.NewPartFromText(text)})
	if err != nil {
		t.Fatal(err)
	}
	return res.Version
}

func load(s artifact.Service, name string) (string, error) {
	res, err := s.Load(context.Background(), &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: name})
	if err != nil {
		return "", err
	}
	return res.Part.Text, nil
}

// files lists what is below a folder, without the folders.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// E6
func TestFilesOutliveTheService(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "artifacts")
	s, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	save(t, s, "a.md", "one")
	save(t, s, "a.md", "two")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := load(s, "a.md"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Load from a closed service: %v", err)
	}
	s = open(t, dir)
	if got, err := load(s, "a.md"); got != "two" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got := save(t, s, "a.md", "three"); got != 3 {
		t.Errorf("got version %d", got)
	}
}

// What an agent made can be opened by other programs.
func TestContentIsAFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	picture := []byte("\x89PNG\r\n\x1a\n")
	_, err := s.Save(t.Context(), &artifact.SaveRequest{
		AppName: "app", UserID: "ana", SessionID: "s1", FileName: "Bananas 1.PNG", Part: genai.NewPartFromBytes(picture, "image/png"),
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.GetArtifactVersion(t.Context(), &artifact.GetArtifactVersionRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "Bananas 1.PNG"})
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(res.ArtifactVersion.CanonicalURI)
	if err != nil || uri.Scheme != "file" || !strings.HasSuffix(uri.Path, ".png") {
		t.Fatalf("URI %q, %v", res.ArtifactVersion.CanonicalURI, err)
	}
	name := filepath.FromSlash(uri.Path)
	if runtime.GOOS == "windows" {
		name = name[1:]
	}
	got, err := os.ReadFile(name)
	if diff := cmp.Diff(picture, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v: others may read it", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(name)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the folder %v, %v", info.Mode(), err)
	}
}

// A save that was cut off is no version, and its number is not given again.
func TestCrashLeavesNoVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	save(t, s, "a.md", "one")
	cut := filepath.Join(dir, "app", "ana", "sessions", "s1", "a.md", "2")
	if err := os.Mkdir(cut, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"content-xyz.md", "meta-xyz.tmp"} {
		if err := os.WriteFile(filepath.Join(cut, name), []byte("ha"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := load(s, "a.md"); got != "one" || err != nil {
		t.Errorf("the latest is %q, %v", got, err)
	}
	if got := save(t, s, "a.md", "three"); got != 3 {
		t.Errorf("the next version is %d", got)
	}
	if err := s.Delete(t.Context(), &artifact.DeleteRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md"}); err != nil {
		t.Error(err)
	}
	if _, err := load(s, "a.md"); !errors.Is(err, artifact.ErrNotFound) {
		t.Errorf("after Delete: %v", err)
	}
	res, err := s.List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil || len(res.FileNames) > 0 {
		t.Errorf("after Delete: %v, %v", res, err)
	}
}

// Delete leaves nothing behind, and neither does writing a version again.
func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for range 3 {
		if _, err := s.Save(t.Context(), &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md",
			Part: genai.NewPartFromText("x"), Version: 4}); err != nil {
			t.Fatal(err)
		}
	}
	if got := files(t, dir); len(got) != 2 {
		t.Errorf("one version is in %q", got)
	}
	save(t, s, "a.md", "y")
	if err := s.Delete(t.Context(), &artifact.DeleteRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md"}); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "app", "ana", "sessions", "s1")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What systems and people put into a folder is no artifact.
func TestOtherFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	save(t, s, "a.md", "one")
	session := filepath.Join(dir, "app", "ana", "sessions", "s1")
	for _, name := range []string{filepath.Join(session, ".DS_Store"), filepath.Join(session, "a.md", "notes"), filepath.Join(session, "a.md", "2")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(session, "a.md", "007"), 0o700); err != nil {
		t.Fatal(err)
	}
	res, err := s.List(t.Context(), &artifact.ListRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if diff := cmp.Diff([]string{"a.md"}, res.FileNames); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if got := save(t, s, "a.md", "three"); got != 3 {
		t.Errorf("the next version is %d, want 3: 2 is a file of somebody's", got)
	}
}

func TestDamagedMetaIsNamed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	save(t, s, "a.md", "one")
	meta := filepath.Join(dir, "app", "ana", "sessions", "s1", "a.md", "1", "meta.json")
	if err := os.WriteFile(meta, []byte(`{"name":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(s, "a.md"); err == nil || !strings.Contains(err.Error(), "app/ana/sessions/s1/a.md/1/meta.json is damaged") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(meta, []byte(`{"name": "a.md", "content": "gone.md"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(s, "a.md"); err == nil || errors.Is(err, artifact.ErrNotFound) || !strings.Contains(err.Error(), "gone.md") {
		t.Errorf("a content that is gone: %v", err)
	}
}

// T20
func TestCanceledContext(t *testing.T) {
	s := open(t, t.TempDir())
	save(t, s, "a.md", "one")
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	_, saved := s.Save(ctx, &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md", Part: genai.NewPartFromText("x")})
	_, loaded := s.Load(ctx, &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md"})
	_, listed := s.List(ctx, &artifact.ListRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	deleted := s.Delete(ctx, &artifact.DeleteRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md"})
	for _, err := range []error{saved, loaded, listed, deleted} {
		if !errors.Is(err, over) {
			t.Errorf("got %v, want the cause", err)
		}
	}
	if got, err := load(s, "a.md"); got != "one" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOpenFailsOnAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Open(name); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got %v", err)
	}
}
