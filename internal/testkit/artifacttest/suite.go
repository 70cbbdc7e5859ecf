// SPDX-License-Identifier: Apache-2.0

// Package artifacttest checks that an artifact service keeps the promises of artifact.Service.
// Every service of this project passes it, and so should your own services and wrappers.
//
//	func TestService(t *testing.T) {
//		artifacttest.TestService(t, func(t *testing.T) artifact.Service { return mystore.Open(t.TempDir()) })
//	}
package artifacttest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
)

// TestService runs the suite. Each subtest calls open for an empty service; open cleans up by
// t.Cleanup.
func TestService(t *testing.T, open func(t *testing.T) artifact.Service) {
	tests := []struct {
		name string
		run  func(*suite)
	}{
		{"versions", (*suite).versions},
		{"a version written again", (*suite).rewrite},
		{"the last number", (*suite).lastNumber},
		{"what is not there", (*suite).missing},
		{"delete a version", (*suite).deleteVersion},
		{"delete a file", (*suite).deleteFile},
		{"owners", (*suite).owners},
		{"files of a user", (*suite).shared},
		{"contents", (*suite).contents},
		{"descriptions", (*suite).descriptions},
		{"names", (*suite).names},
		{"bad names", (*suite).badNames},
		{"incomplete requests", (*suite).incomplete},
		{"savers of one file", (*suite).savers},
		{"readers beside a writer", (*suite).readers},
		{"savers beside a deleter", (*suite).deleter},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(&suite{T: t, svc: open(t)}) })
	}
}

const app, ana, bob, one, two = "app", "ana", "bob", "s1", "s2"

// suite is one subtest with its service.
type suite struct {
	*testing.T
	svc artifact.Service
}

// save stores a text in ana's first session and returns its version.
func (s *suite) save(name, text string) int64 {
	s.Helper()
	return s.savePart(one, name, genai.NewPartFromText(text), 0)
}

func (s *suite) savePart(session, name string, part *genai.Part, version int64) int64 {
	s.Helper()
	got, err := s.trySave(session, name, part, version)
	if err != nil {
		s.Fatalf("Save %q: %v", name, err)
	}
	return got
}

func (s *suite) trySave(session, name string, part *genai.Part, version int64) (int64, error) {
	res, err := s.svc.Save(s.Context(), &artifact.SaveRequest{
		AppName: app, UserID: ana, SessionID: session, FileName: name, Part: part, Version: version,
	})
	if err != nil {
		return 0, err
	}
	return res.Version, nil
}

// load fetches a file from ana's first session; version 0 is the latest.
func (s *suite) load(name string, version int64) (*genai.Part, error) {
	return s.loadFrom(one, name, version)
}

func (s *suite) loadFrom(session, name string, version int64) (*genai.Part, error) {
	res, err := s.svc.Load(s.Context(), &artifact.LoadRequest{AppName: app, UserID: ana, SessionID: session,
		FileName: name, Version: version})
	if err != nil {
		return nil, err
	}
	return res.Part, nil
}

func (s *suite) remove(name string, version int64) {
	s.Helper()
	if err := s.tryRemove(name, version); err != nil {
		s.Errorf("Delete version %d of %q: %v", version, name, err)
	}
}

func (s *suite) tryRemove(name string, version int64) error {
	return s.svc.Delete(s.Context(), &artifact.DeleteRequest{AppName: app, UserID: ana, SessionID: one, FileName: name, Version: version})
}

func (s *suite) versionsOf(name string) ([]int64, error) {
	res, err := s.svc.Versions(s.Context(), &artifact.VersionsRequest{AppName: app, UserID: ana, SessionID: one,
		FileName: name})
	if err != nil {
		return nil, err
	}
	return res.Versions, nil
}

func (s *suite) describe(name string, version int64) (*artifact.ArtifactVersion, error) {
	res, err := s.svc.GetArtifactVersion(s.Context(), &artifact.GetArtifactVersionRequest{
		AppName: app, UserID: ana, SessionID: one, FileName: name, Version: version,
	})
	if err != nil {
		return nil, err
	}
	return res.ArtifactVersion, nil
}

// wantText demands a text of ana's first session.
func (s *suite) wantText(name string, version int64, want string) {
	s.Helper()
	part, err := s.load(name, version)
	if err != nil || part.Text != want {
		s.Errorf("Load version %d of %q: got %+v, %v, want %q", version, name, part, err, want)
	}
}

// wantVersions demands the versions of a file, the newest first; none means
// that there is no file.
func (s *suite) wantVersions(name string, want ...int64) {
	s.Helper()
	got, err := s.versionsOf(name)
	if len(want) == 0 {
		s.wantMissing("Versions", err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		s.Errorf("Versions of %q: %v (-want +got):\n%s", name, err, diff)
	}
}

// wantFiles checks the names that a session lists.
func (s *suite) wantFiles(app, user, session string, want ...string) {
	s.Helper()
	res, err := s.svc.List(s.Context(), &artifact.ListRequest{AppName: app, UserID: user, SessionID: session})
	if err != nil {
		s.Fatalf("List: %v", err)
	}
	got := res.FileNames
	if len(got) == 0 {
		got = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("List of %s/%s/%s, sorted (-want +got):\n%s", app, user, session, diff)
	}
}

// wantMissing checks the error for a missing file or version.
func (s *suite) wantMissing(what string, err error) {
	s.Helper()
	if !errors.Is(err, artifact.ErrNotFound) || !errors.Is(err, fs.ErrNotExist) {
		s.Errorf("%s: got error %v, want artifact.ErrNotFound, which is fs.ErrNotExist", what, err)
	}
}

// wantInvalid demands the error for a request that cannot be.
func (s *suite) wantInvalid(what string, err error) {
	s.Helper()
	if !errors.Is(err, artifact.ErrInvalid) {
		s.Errorf("%s: got error %v, want artifact.ErrInvalid", what, err)
	}
}
