// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/refrain-dev/refrain/artifact"
)

// Delete removes a file, or one version of it. The empty folder of a version stays while the file
// has other versions, so that its number is not used again.
func (s *Service) Delete(ctx context.Context, req *artifact.DeleteRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	dir := folder(req.AppName, req.UserID, req.SessionID, req.FileName)
	if err := s.delete(dir, req.Version); err != nil {
		return fmt.Errorf("delete file %q: %w", req.FileName, err)
	}
	return nil
}

func (s *Service) delete(dir string, version int64) error {
	begun, err := s.numbers(dir)
	if err != nil {
		return err
	}
	live := false
	for _, n := range begun {
		if version == 0 || version == n {
			if err := s.deleteVersion(versionDir(dir, n)); err != nil {
				return err
			}
			continue
		}
		_, err := s.meta(versionDir(dir, n))
		live = live || !errors.Is(err, fs.ErrNotExist)
	}
	if live {
		return nil
	}
	for _, n := range begun {
		if err := s.removeEmpty(versionDir(dir, n)); err != nil {
			return err
		}
	}
	if err := s.removeEmpty(dir); err != nil {
		return err
	}
	return s.removeNote(path.Dir(dir))
}

// removeNote removes the note of a session without files, and the folder of the session with it.
func (s *Service) removeNote(dir string) error {
	if _, err := s.root.Lstat(path.Join(dir, storeFile)); err != nil {
		return nil // there is none
	}
	if left, err := s.folders(dir); err != nil || len(left) > 0 {
		return err
	}
	if err := s.remove(path.Join(dir, storeFile)); err != nil {
		return err
	}
	return s.removeEmpty(dir)
}

// deleteVersion removes the files in a version's folder, the meta first, because without a meta the
// version does not exist. It keeps the files of a save that is under way.
func (s *Service) deleteVersion(dir string) error {
	m, err := s.meta(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.remove(path.Join(dir, metaFile)); err != nil {
		return err
	}
	if err := s.remove(path.Join(dir, m.Content)); err != nil {
		return err
	}
	if err := s.sync(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeEmpty removes a folder unless a save is about to fill it.
func (s *Service) removeEmpty(dir string) error {
	err := s.remove(dir)
	if errors.Is(err, fs.ErrExist) { // it is not empty
		return nil
	}
	return err
}
