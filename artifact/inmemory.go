// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/caserun"
)

// InMemoryService returns a service that keeps files in the memory of this process.
func InMemoryService() Service {
	return &inMemory{folders: make(map[folder]map[string]*file)}
}

// folder identifies the owner of a file: a session or, without a session, a user.
type folder struct{ app, user, session string }

// file has the versions saved under one name.
type file struct {
	versions map[int64]artifactVersion
	newest   int64 // ever given: a deleted number is not given again, as long as there is a file
}

type artifactVersion struct {
	part *genai.Part
	at   time.Time
}

type inMemory struct {
	mu      sync.RWMutex
	folders map[folder]map[string]*file
}

// folderOf says where a file name leads.
func folderOf(app, user, session, name string) folder {
	if strings.HasPrefix(name, KeyPrefixUser) && !caserun.Is(session) {
		session = ""
	}
	return folder{app, user, session}
}

func (s *inMemory) Save(_ context.Context, req *SaveRequest) (*SaveResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in := folderOf(req.AppName, req.UserID, req.SessionID, req.FileName)
	files := s.folders[in]
	if files == nil {
		files = make(map[string]*file)
		s.folders[in] = files
	}
	f := files[req.FileName]
	if f == nil {
		f = &file{versions: make(map[int64]artifactVersion)}
		files[req.FileName] = f
	}
	version := req.Version
	if version == 0 {
		version = f.newest + 1
	}
	if version < 0 {
		return nil, fmt.Errorf("save file %q: %w: there is no number after version %d", req.FileName, ErrInvalid,
			f.newest)
	}
	f.newest = max(f.newest, version)
	f.versions[version] = artifactVersion{req.Part, time.Now()}
	return &SaveResponse{Version: version}, nil
}

func (s *inMemory) Load(_ context.Context, req *LoadRequest) (*LoadResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	_, v, err := s.find(folderOf(req.AppName, req.UserID, req.SessionID, req.FileName), req.FileName, req.Version)
	if err != nil {
		return nil, err
	}
	return &LoadResponse{Part: v.part}, nil
}

func (s *inMemory) Delete(_ context.Context, req *DeleteRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	files := s.folders[folderOf(req.AppName, req.UserID, req.SessionID, req.FileName)]
	f := files[req.FileName]
	if f == nil {
		return nil
	}
	delete(f.versions, req.Version)
	if req.Version == 0 || len(f.versions) == 0 {
		delete(files, req.FileName)
	}
	return nil
}

func (s *inMemory) List(_ context.Context, req *ListRequest) (*ListResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := slices.Collect(maps.Keys(s.folders[folder{req.AppName, req.UserID, req.SessionID}]))
	if !caserun.Is(req.SessionID) {
		names = slices.AppendSeq(names, maps.Keys(s.folders[folder{req.AppName, req.UserID, ""}]))
	}
	slices.Sort(names)
	return &ListResponse{FileNames: names}, nil
}

func (s *inMemory) Versions(_ context.Context, req *VersionsRequest) (*VersionsResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	f := s.folders[folderOf(req.AppName, req.UserID, req.SessionID, req.FileName)][req.FileName]
	if f == nil {
		return nil, fmt.Errorf("versions of file %q: %w", req.FileName, ErrNotFound)
	}
	return &VersionsResponse{Versions: f.newestFirst()}, nil
}

func (s *inMemory) GetArtifactVersion(_ context.Context, req *GetArtifactVersionRequest) (*GetArtifactVersionResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	n, v, err := s.find(folderOf(req.AppName, req.UserID, req.SessionID, req.FileName), req.FileName, req.Version)
	if err != nil {
		return nil, err
	}
	mime := "text/plain"
	if v.part.InlineData != nil {
		mime = v.part.InlineData.MIMEType
	}
	return &GetArtifactVersionResponse{ArtifactVersion: &ArtifactVersion{Version: n, CreateTime: v.at, MimeType: mime}},
		nil
}

// find fetches a version of a file; 0 is the latest.
func (s *inMemory) find(in folder, name string, version int64) (int64, artifactVersion, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f := s.folders[in][name]
	if f == nil {
		return 0, artifactVersion{}, fmt.Errorf("file %q: %w", name, ErrNotFound)
	}
	if version == 0 {
		version = f.newestFirst()[0]
	}
	v, ok := f.versions[version]
	if !ok {
		return 0, artifactVersion{}, fmt.Errorf("version %d of file %q: %w", version, name, ErrNotFound)
	}
	return version, v, nil
}

// newestFirst lists the versions; a file has at least one.
func (f *file) newestFirst() []int64 {
	return slices.SortedFunc(maps.Keys(f.versions), func(a, b int64) int { return cmp.Compare(b, a) })
}
