// SPDX-License-Identifier: Apache-2.0

// Package disk keeps artifacts in a folder, as one ordinary file for each version.
//
//	files, err := disk.Open("artifacts")
//	if err != nil {
//		return err
//	}
//	defer files.Close()
//	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: sessions, ArtifactService: files})
//
// Version 2 of report.md in session s1 of user ana is
//
//	artifacts/app/ana/sessions/s1/report.md/2/content-6h2m4kq7.md
//
// next to a meta.json with its name and type. Files that all of a user's sessions share ("user:")
// are in artifacts/app/ana/shared. A name that some file systems do not accept or distinguish, such
// as one with capital letters, becomes a similar folder name with a hash.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/values/caserun"
)

// Service is an artifact service in a folder. It never reads or writes outside the folder, for any
// file names and symbolic links. Several services, in one process or in several, may share a
// folder.
type Service struct {
	root  *os.Root
	path  string // absolute, for URIs
	store string // of [OpenFor]
}

var _ artifact.Service = (*Service)(nil)

// Open returns the service of a folder. It creates a missing folder, readable by its owner only.
// Errors are those of os.MkdirAll and os.OpenRoot.
func Open(dir string) (*Service, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open artifacts in %q: %w", dir, err)
	}
	if err := os.MkdirAll(abs, dirMode); err != nil {
		return nil, fmt.Errorf("open artifacts in %q: %w", dir, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("open artifacts in %q: %w", dir, err)
	}
	return &Service{root: root, path: abs}, nil
}

// OpenFor is [Open] for a store of sessions that shares the folder with other stores: the first file that it saves in a
// session notes its name; see [Service.Store].
func OpenFor(dir, store string) (*Service, error) {
	s, err := Open(dir)
	if err == nil {
		s.store = store
	}
	return s, err
}

// Store returns the name of the store that the files of a session belong to: the one that has saved the first file. It is
// empty if there is no file, or if that store was not opened with [OpenFor].
func (s *Service) Store(appName, userID, sessionID string) (string, error) {
	name, err := s.root.ReadFile(path.Join(sessionDir(appName, userID, sessionID), storeFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read whose the files of session %q are: %w", sessionID, err)
	}
	return string(name), nil
}

// storeFile has the name of a store, in the folder of a session.
const storeFile = "store"

// note writes the name of the store into the folder of a session that has no folder yet.
func (s *Service) note(dir string) error {
	if s.store == "" {
		return nil
	}
	if _, err := s.root.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.mkdirs(dir); err != nil {
		return err
	}
	err := s.create(path.Join(dir, storeFile), []byte(s.store))
	if errors.Is(err, fs.ErrExist) { // another process was first
		return nil
	}
	return err
}

// Close closes the folder. After it every method fails.
func (s *Service) Close() error { return s.root.Close() }

// maxTries limits how often an operation starts again because another one removed or took its
// folder.
const maxTries = 100

// Save stores a part. When it returns, the whole version is on the disk; before, no reader sees any
// of it. A crash leaves at most a gap in the version numbers and a file that is never read.
func (s *Service) Save(ctx context.Context, req *artifact.SaveRequest) (*artifact.SaveResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	m, data := split(req.Part)
	m.Name, m.CreateTime = req.FileName, time.Now()
	dir := folder(req.AppName, req.UserID, req.SessionID, req.FileName)
	for try := 1; ; try++ {
		var version int64
		var err error
		if within := sessionDir(req.AppName, req.UserID, req.SessionID); path.Dir(dir) == within {
			err = s.note(within)
		}
		if err == nil {
			version, err = s.claim(ctx, dir, req.Version)
		}
		if err == nil {
			err = s.write(versionDir(dir, version), m, data)
		}
		switch {
		case err == nil:
			return &artifact.SaveResponse{Version: version}, nil
		case errors.Is(err, fs.ErrNotExist) && try < maxTries: // the file was deleted meanwhile
		default:
			return nil, fmt.Errorf("save file %q: %w", req.FileName, err)
		}
	}
}

// claim makes the folder of a version, the next one for 0. The folder's name is
// the claim: making it succeeds for one caller alone, on every file system.
func (s *Service) claim(ctx context.Context, dir string, version int64) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if version > 0 {
		return version, s.mkdirs(versionDir(dir, version))
	}
	if err := s.mkdirs(dir); err != nil {
		return 0, err
	}
	numbers, err := s.numbers(dir)
	if err != nil {
		return 0, err
	}
	if len(numbers) > 0 {
		version = numbers[0]
	}
	for {
		if version++; version < 0 {
			return 0, fmt.Errorf("%w: there is no number after version %d", artifact.ErrInvalid, numbers[0])
		}
		if err := s.root.Mkdir(versionDir(dir, version), dirMode); !errors.Is(err, fs.ErrExist) {
			return version, errors.Join(err, s.sync(dir))
		}
	}
}

// folder returns the folder of a file.
func folder(app, user, session, name string) string {
	if bare, shared := strings.CutPrefix(name, artifact.KeyPrefixUser); shared && !caserun.Is(session) {
		return path.Join(sharedDir(app, user), safe(bare))
	}
	return path.Join(sessionDir(app, user, session), safe(name))
}

func sharedDir(app, user string) string { return path.Join(safe(app), safe(user), "shared") }

func sessionDir(app, user, session string) string {
	return path.Join(safe(app), safe(user), "sessions", safe(session))
}

func versionDir(dir string, version int64) string {
	return path.Join(dir, strconv.FormatInt(version, 10))
}
