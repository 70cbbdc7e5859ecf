// SPDX-License-Identifier: Apache-2.0

package artifacttest

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

// names checks that a file may have any name that is not a path, and that no two names share a
// file.
func (s *suite) names() {
	names := []string{
		"report.md", "Report.md", "REPORT.MD", "report.md.", "report.md ", " report.md", ".report.md", "report~.md", "report%2emd",
		"é.md", "e\u0301.md", "É.md", "報告.md", "🍌.png", "\u202eabc", "a b", "a\nb", "a\tb", "-", "--help", "~", "_", "*", "?", "a:b", "$HOME", "'; rm -rf",
		"con", "CON", "nul.txt", "aux", "com1", "COM1.log", "lpt9", "meta.json", "sessions", "shared", "1", "user", "User:a", "user: a",
		strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("é", 300), strings.Repeat("a", 5000) + "b",
		strings.Repeat("a", 5000) + "c",
	}
	for _, n := range names {
		names = append(names, "user:"+n)
	}
	for _, n := range names {
		if got := s.save(n, "of "+n); got != 1 {
			s.Errorf("the first version of %q is %d: another name is taken for it", n, got)
		}
	}
	for _, n := range names {
		s.wantText(n, 0, "of "+n)
	}
	slices.Sort(names)
	s.wantFiles(app, ana, one, names...)
	s.remove("Report.md", 0)
	s.wantText("report.md", 0, "of report.md")
}

func (s *suite) badNames() {
	for _, name := range []string{"", "user:", "a/b", `a\b`, "/a", "..", "../a", ".", "a/../b", "user:../a", "user:.", "a\x00", "a\xff"} {
		_, err := s.trySave(one, name, genai.NewPartFromText("x"), 0)
		s.wantInvalid(fmt.Sprintf("Save %q", name), err)
		_, err = s.load(name, 0)
		s.wantInvalid(fmt.Sprintf("Load %q", name), err)
		s.wantInvalid(fmt.Sprintf("Delete %q", name), s.tryRemove(name, 0))
		_, err = s.versionsOf(name)
		s.wantInvalid(fmt.Sprintf("Versions of %q", name), err)
		_, err = s.describe(name, 0)
		s.wantInvalid(fmt.Sprintf("GetArtifactVersion of %q", name), err)
	}
	s.wantFiles(app, ana, one)
}

func (s *suite) incomplete() {
	_, err := s.svc.List(s.Context(), &artifact.ListRequest{UserID: ana})
	s.wantInvalid("List without an app and a session", err)
	if err == nil || !strings.Contains(err.Error(), "AppName, SessionID") {
		s.Errorf("List without an app and a session: %v does not say what is missing", err)
	}
	_, err = s.svc.Save(s.Context(), &artifact.SaveRequest{UserID: ana})
	s.wantInvalid("Save of nothing anywhere", err)
	if err == nil || !strings.Contains(err.Error(), "AppName, SessionID, FileName, Part missing") {
		s.Errorf("Save of nothing anywhere: %v does not say what is missing", err)
	}
	_, err = s.svc.Load(s.Context(), &artifact.LoadRequest{AppName: app, UserID: ana})
	if s.wantInvalid("Load without a session and a name", err); err == nil || !strings.Contains(err.Error(), "SessionID, FileName missing") {
		s.Errorf("Load without a session and a name: %v does not say what is missing", err)
	}
	for _, part := range []*genai.Part{nil, {}, {FileData: &genai.FileData{FileURI: "file:///etc/passwd"}}} {
		_, err = s.trySave(one, "a", part, 0)
		s.wantInvalid("Save of nothing", err)
	}
	_, err = s.trySave(one, "a", genai.NewPartFromText("x"), -1)
	s.wantInvalid("Save of a negative version", err)
	_, err = s.load("a", -1)
	s.wantInvalid("Load of a negative version", err)
	_, err = s.describe("a", -1)
	s.wantInvalid("GetArtifactVersion of a negative version", err)
	s.wantInvalid("Delete of a negative version", s.tryRemove("a", -1))
	s.wantFiles(app, ana, one)
}
