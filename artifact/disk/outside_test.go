// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

// A link in the folder leads nowhere, whoever put it there.
func TestLinksLeadNowhere(t *testing.T) {
	for _, at := range []string{"app", "app/ana", "app/ana/sessions/s1", "app/ana/sessions/s1/a.md", "app/ana/sessions/s1/a.md/1"} {
		t.Run(filepath.Base(at), func(t *testing.T) {
			outside, dir := t.TempDir(), t.TempDir()
			s := open(t, dir)
			link := filepath.Join(dir, filepath.FromSlash(at))
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(outside, link); err != nil {
				t.Skip(err)
			}
			req := &artifact.SaveRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md", Part: genai.NewPartFromText("x"), Version: 1}
			if _, err := s.Save(t.Context(), req); err == nil {
				t.Error("Save wrote through a link")
			}
			if got, err := load(s, "a.md"); err == nil {
				t.Errorf("Load read %q through a link", got)
			}
			_ = s.Delete(t.Context(), &artifact.DeleteRequest{AppName: "app", UserID: "ana", SessionID: "s1", FileName: "a.md"})
			if left := files(t, outside); len(left) > 0 {
				t.Errorf("written outside: %q", left)
			}
			if _, err := os.Stat(outside); err != nil {
				t.Error(err)
			}
		})
	}
}

// portable are names that every file system takes, and takes for one.
var portable = regexp.MustCompile(`^[a-z0-9_~-][a-z0-9._~-]{0,90}$`)

var device = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

// E6: whatever a model or a caller calls things, nothing is written outside the
// folder, everything is found again, and nothing is taken for something else.
func FuzzNames(f *testing.F) {
	for _, n := range []string{
		"report.md", "Report.md", "..", "../../x", "a/b", `a\b`, "/etc/passwd", `C:\x`, "user:style.md", "user:../x", "a\x00b", "\xff", "", ".", "...", "a.",
		"CON", "nul.txt", "é", "e\u0301", "ſ", "K", "İ", "🍌", strings.Repeat("é", 200), "a~b", "a ", "\n", "~", "app~aaaaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		f.Add("app", "ana", "s1", n)
		f.Add(n, n, n, "a.md")
	}
	f.Fuzz(func(t *testing.T, app, user, session, name string) {
		outer := t.TempDir()
		dir := filepath.Join(outer, "artifacts")
		s := open(t, dir)
		// Texts that some file system could take for the same.
		names := []string{name}
		for _, other := range []string{strings.ToUpper(name), strings.ToLower(name), strings.TrimRight(name, ". "), name + ".", name + " ", name + "~"} {
			if other != name {
				names = append(names, other)
			}
		}
		saved := make(map[string]bool)
		for _, n := range names {
			req := &artifact.SaveRequest{AppName: app, UserID: user, SessionID: session, FileName: n, Part: genai.NewPartFromText("of " + n)}
			_, err := s.Save(t.Context(), req)
			if invalid := req.Validate(); invalid != nil {
				if !errors.Is(err, artifact.ErrInvalid) {
					t.Errorf("Save %q: %v, want ErrInvalid", n, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("Save %q: %v", n, err)
			}
			saved[n] = true
		}
		for n := range saved {
			res, err := s.Load(t.Context(), &artifact.LoadRequest{AppName: app, UserID: user, SessionID: session, FileName: n})
			if err != nil || res.Part.Text != "of "+n {
				t.Errorf("Load %q: %+v, %v", n, res, err)
			}
		}
		if len(saved) > 0 {
			res, err := s.List(t.Context(), &artifact.ListRequest{AppName: app, UserID: user, SessionID: session})
			if err != nil || len(res.FileNames) != len(saved) {
				t.Fatalf("List: %+v, %v, want the %d names %v", res, err, len(saved), saved)
			}
			for _, n := range res.FileNames {
				if !saved[n] {
					t.Errorf("List has %q, which nobody saved", n)
				}
			}
		}
		tree(t, outer)
	})
}

// tree checks every path below a folder.
func tree(t *testing.T, outer string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(outer), ".", func(name string, d fs.DirEntry, err error) error {
		base := d.Name()
		switch {
		case err != nil:
			return err
		case name == "." || name == "artifacts":
		case !strings.HasPrefix(name, "artifacts/"):
			t.Errorf("%q is outside", name)
		case !portable.MatchString(base) || strings.HasSuffix(base, ".") || device.MatchString(base):
			t.Errorf("%q is no name for every file system", base)
		case !d.IsDir() && strings.Count(name, "/") < 6:
			t.Errorf("%q is a file where only folders are", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
