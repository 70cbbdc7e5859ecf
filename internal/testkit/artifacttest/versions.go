// SPDX-License-Identifier: Apache-2.0

package artifacttest

import (
	"fmt"
	"math"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

func (s *suite) versions() {
	for i := range 12 { // more than one digit
		if got := s.save("a.md", fmt.Sprint("text ", i+1)); got != int64(i+1) {
			s.Fatalf("save %d is version %d, want %d", i+1, got, i+1)
		}
	}
	s.wantText("a.md", 0, "text 12")
	s.wantText("a.md", 1, "text 1")
	s.wantText("a.md", 9, "text 9")
	s.wantText("a.md", 12, "text 12")
	s.wantVersions("a.md", 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
	if got := s.save("b.md", "text"); got != 1 {
		s.Errorf("the first version of another file is %d, want 1", got)
	}
}

func (s *suite) rewrite() {
	s.save("a.md", "old 1")
	s.save("a.md", "old 2")
	if got := s.savePart(one, "a.md", genai.NewPartFromText("new 1"), 1); got != 1 {
		s.Errorf("writing version 1 again gives version %d", got)
	}
	s.wantText("a.md", 1, "new 1")
	s.wantText("a.md", 0, "old 2")
	s.savePart(one, "a.md", genai.NewPartFromText("7"), 7)
	s.wantVersions("a.md", 7, 2, 1)
	if got := s.save("a.md", "8"); got != 8 {
		s.Errorf("after version 7 comes version %d, want 8", got)
	}
}

func (s *suite) lastNumber() {
	s.savePart(one, "a.md", genai.NewPartFromText("text"), math.MaxInt64)
	_, err := s.trySave(one, "a.md", genai.NewPartFromText("more"), 0)
	s.wantInvalid("Save after the last number that there is", err)
	s.wantVersions("a.md", math.MaxInt64)
}

func (s *suite) missing() {
	s.save("a.md", "text")
	_, err := s.load("b.md", 0)
	s.wantMissing("Load of another file", err)
	_, err = s.load("a.md", 7)
	s.wantMissing("Load of another version", err)
	_, err = s.loadFrom(two, "a.md", 0)
	s.wantMissing("Load from another session", err)
	_, err = s.versionsOf("b.md")
	s.wantMissing("Versions of another file", err)
	_, err = s.describe("b.md", 0)
	s.wantMissing("GetArtifactVersion of another file", err)
	_, err = s.describe("a.md", 7)
	s.wantMissing("GetArtifactVersion of another version", err)
	s.remove("b.md", 0)
	s.remove("a.md", 7)
	s.wantVersions("a.md", 1)
}

func (s *suite) deleteVersion() {
	for i := range 3 {
		s.save("a.md", fmt.Sprint("text ", i+1))
	}
	s.remove("a.md", 3)
	s.remove("a.md", 3)
	_, err := s.load("a.md", 3)
	s.wantMissing("Load of a deleted version", err)
	s.wantText("a.md", 0, "text 2")
	s.wantVersions("a.md", 2, 1)
	if got := s.save("a.md", "text 4"); got != 4 {
		s.Errorf("after version 3 was deleted comes version %d, want 4: a number is not given again while there "+
			"is a file", got)
	}
	s.remove("a.md", 1)
	s.wantVersions("a.md", 4, 2)
	s.savePart(one, "a.md", genai.NewPartFromText("text 1"), 1)
	s.wantText("a.md", 1, "text 1")
}

func (s *suite) deleteFile() {
	for _, version := range []int64{0, 1} { // all, and the last that is left
		s.save("a.md", "text")
		s.save("b.md", "text")
		s.remove("a.md", version)
		s.wantVersions("a.md")
		s.wantFiles(app, ana, one, "b.md")
		s.remove("b.md", 0)
		s.wantFiles(app, ana, one)
	}
	s.save("a.md", "again")
	s.wantText("a.md", 0, "again")
	s.save("user:a.md", "of the user")
	s.remove("user:a.md", 0)
	s.wantText("a.md", 0, "again")
}

// owners checks that no user or session sees the files of another.
func (s *suite) owners() {
	s.save("a.md", "text")
	s.save("user:u.md", "text")
	for _, o := range [][3]string{{"other", ana, one}, {app, bob, one}, {"app/ana", "s1", "a.md"}, {"App", "Ana", "S1"}, {app, "..", one},
		{app, ana + "/../" + ana, one}} {
		s.wantFiles(o[0], o[1], o[2])
		_, err := s.svc.Load(s.Context(), &artifact.LoadRequest{AppName: o[0], UserID: o[1], SessionID: o[2],
			FileName: "a.md"})
		s.wantMissing(fmt.Sprintf("Load for %q", o), err)
		if _, err := s.svc.Save(s.Context(), &artifact.SaveRequest{AppName: o[0], UserID: o[1], SessionID: o[2],
			FileName: "mine.md", Part: genai.NewPartFromText("mine")}); err != nil {
			s.Errorf("Save for %q: %v", o, err)
		}
		s.wantFiles(o[0], o[1], o[2], "mine.md")
	}
	s.wantFiles(app, ana, one, "a.md", "user:u.md")
}

func (s *suite) shared() {
	s.save("user:style.md", "dry")
	s.save("style.md", "own")
	part, err := s.loadFrom(two, "user:style.md", 0)
	if err != nil || part.Text != "dry" {
		s.Errorf("Load of a user's file from another session: %+v, %v", part, err)
	}
	s.wantText("style.md", 0, "own")
	s.wantFiles(app, ana, one, "style.md", "user:style.md")
	s.wantFiles(app, ana, two, "user:style.md")
	s.wantFiles(app, bob, one)
	if got := s.savePart(two, "user:style.md", genai.NewPartFromText("wet"), 0); got != 2 {
		s.Errorf("the next version, from another session, is %d, want 2", got)
	}
	s.wantText("user:style.md", 0, "wet")
}
