// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"slices"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/values/caserun"
)

// Load fetches a version of a file, as it was saved.
func (s *Service) Load(ctx context.Context, req *artifact.LoadRequest) (*artifact.LoadResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	dir := folder(req.AppName, req.UserID, req.SessionID, req.FileName)
	for try := 1; ; try++ {
		version, m, err := s.find(ctx, dir, req.FileName, req.Version)
		if err != nil {
			return nil, err
		}
		data, err := s.root.ReadFile(path.Join(versionDir(dir, version), m.Content))
		switch {
		case err == nil:
			return &artifact.LoadResponse{Part: m.join(data)}, nil
		case errors.Is(err, fs.ErrNotExist) && try < maxTries: // written anew or deleted meanwhile
		default:
			return nil, fmt.Errorf("load version %d of file %q: %w", version, req.FileName, err)
		}
	}
}

// List returns the names of the files of a session and of its user, sorted.
func (s *Service) List(ctx context.Context, req *artifact.ListRequest) (*artifact.ListResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	names := []string{}
	dirs := []string{sessionDir(req.AppName, req.UserID, req.SessionID)}
	if !caserun.Is(req.SessionID) {
		dirs = append(dirs, sharedDir(req.AppName, req.UserID))
	}
	for _, dir := range dirs {
		files, err := s.folders(dir)
		if err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
		for _, file := range files {
			_, m, err := s.find(ctx, path.Join(dir, file), file, 0)
			switch {
			case err == nil:
				names = append(names, m.Name)
			case !errors.Is(err, artifact.ErrNotFound):
				return nil, fmt.Errorf("list files: %w", err)
			}
		}
	}
	slices.Sort(names)
	return &artifact.ListResponse{FileNames: names}, nil
}

// Versions returns the versions of a file, the newest first.
func (s *Service) Versions(ctx context.Context, req *artifact.VersionsRequest) (*artifact.VersionsResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	dir := folder(req.AppName, req.UserID, req.SessionID, req.FileName)
	begun, err := s.numbers(dir)
	if err != nil {
		return nil, fmt.Errorf("versions of file %q: %w", req.FileName, err)
	}
	var versions []int64
	for _, n := range begun {
		_, _, err := s.find(ctx, dir, req.FileName, n)
		switch {
		case err == nil:
			versions = append(versions, n)
		case !errors.Is(err, artifact.ErrNotFound):
			return nil, err
		}
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("versions of file %q: %w", req.FileName, artifact.ErrNotFound)
	}
	return &artifact.VersionsResponse{Versions: versions}, nil
}

// GetArtifactVersion describes a version of a file. Its URI is that of the file
// with the content.
func (s *Service) GetArtifactVersion(ctx context.Context, req *artifact.GetArtifactVersionRequest) (*artifact.GetArtifactVersionResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	dir := folder(req.AppName, req.UserID, req.SessionID, req.FileName)
	version, m, err := s.find(ctx, dir, req.FileName, req.Version)
	if err != nil {
		return nil, err
	}
	mime := "text/plain"
	if m.Part.InlineData != nil {
		mime = m.Part.InlineData.MIMEType
	}
	file := filepath.ToSlash(filepath.Join(s.path, filepath.FromSlash(versionDir(dir, version)), m.Content))
	if file[0] != '/' { // a drive's letter
		file = "/" + file
	}
	return &artifact.GetArtifactVersionResponse{ArtifactVersion: &artifact.ArtifactVersion{
		Version: version, CreateTime: m.CreateTime, MimeType: mime,
		CanonicalURI: (&url.URL{Scheme: "file", Path: file}).String(),
	}}, nil
}

// find fetches the description of a version of a file; 0 means the latest. The name is for the
// error.
func (s *Service) find(ctx context.Context, dir, name string, version int64) (int64, *meta, error) {
	if ctx.Err() != nil {
		return 0, nil, context.Cause(ctx)
	}
	numbers := []int64{version}
	what := fmt.Sprintf("version %d of file %q", version, name)
	if version == 0 {
		what = fmt.Sprintf("file %q", name)
		var err error
		if numbers, err = s.numbers(dir); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	for _, n := range numbers {
		m, err := s.meta(versionDir(dir, n))
		switch {
		case err == nil:
			return n, m, nil
		case !errors.Is(err, fs.ErrNotExist): // else deleted, or not yet whole
			return 0, nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return 0, nil, fmt.Errorf("%s: %w", what, artifact.ErrNotFound)
}
