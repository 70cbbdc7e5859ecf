// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/genai"
)

const (
	dirMode  = 0o700 // what agents write is their owner's business
	fileMode = 0o600
	metaFile = "meta.json"
)

// meta describes a version. A version exists if its meta does, so the meta is written last and
// removed first.
type meta struct {
	// Name is the file's name as it was given.
	Name       string    `json:"name"`
	CreateTime time.Time `json:"create_time"`
	// Content is the name of the file beside this one that has the content.
	Content string `json:"content"`
	// Part is the part without its content.
	Part genai.Part `json:"part"`
}

// split takes a part's content out of it.
func split(p *genai.Part) (meta, []byte) {
	m := meta{Part: *p}
	if p.InlineData == nil {
		m.Part.Text = ""
		return m, []byte(p.Text)
	}
	blob := *p.InlineData
	m.Part.InlineData, blob.Data = &blob, nil
	return m, p.InlineData.Data
}

// join is the reverse of split.
func (m *meta) join(data []byte) *genai.Part {
	p := m.Part
	if p.InlineData == nil {
		p.Text = string(data)
		return &p
	}
	blob := *p.InlineData
	p.InlineData, blob.Data = &blob, data
	return &p
}

// write stores a version in its folder, and replaces an earlier one.
func (s *Service) write(dir string, m meta, data []byte) error {
	id := strings.ToLower(rand.Text())[:12]
	m.Content = "content-" + id + extension(m.Name)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	content, temp := path.Join(dir, m.Content), path.Join(dir, "meta-"+id+".tmp")
	undo := func(err error) error {
		return errors.Join(err, s.remove(temp), s.remove(content))
	}
	if err := s.create(content, data); err != nil {
		return undo(err)
	}
	if err := s.create(temp, text); err != nil {
		return undo(err)
	}
	old, err := s.meta(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return undo(err)
	}
	if err := s.root.Rename(temp, path.Join(dir, metaFile)); err != nil {
		return undo(err)
	}
	if err := s.sync(dir); err != nil {
		return err
	}
	if old != nil {
		return s.remove(path.Join(dir, old.Content))
	}
	return nil
}

// create writes a new file and waits for the disk.
func (s *Service) create(name string, data []byte) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// meta reads the description of the version in a folder. It fails with fs.ErrNotExist if there is
// none.
func (s *Service) meta(dir string) (*meta, error) {
	text, err := s.root.ReadFile(path.Join(dir, metaFile))
	if err != nil {
		return nil, err
	}
	m := new(meta)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s is damaged; remove its folder: %w", path.Join(dir, metaFile), err)
	}
	return m, nil
}

// numbers lists the versions that were ever begun in a file's folder, the
// newest first; none if there is no folder.
func (s *Service) numbers(dir string) ([]int64, error) {
	names, err := s.folders(dir)
	var numbers []int64
	for _, name := range names {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil && n > 0 && strconv.FormatInt(n, 10) == name {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b int64) int { return cmp.Compare(b, a) })
	return numbers, err
}

// folders lists the folders in a folder; none if it does not exist. It ignores other files.
func (s *Service) folders(dir string) ([]string, error) {
	f, err := s.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, errors.Join(err, f.Close())
}

// mkdirs makes a folder and the folders above it, and syncs them.
func (s *Service) mkdirs(dir string) error {
	err := s.root.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrNotExist) && dir != "." {
		if err := s.mkdirs(path.Dir(dir)); err != nil {
			return err
		}
		err = s.root.Mkdir(dir, dirMode)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return s.sync(path.Dir(dir))
}

// remove removes a file or an empty folder that may be gone already.
func (s *Service) remove(name string) error {
	if err := s.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sync waits until the changes of a folder's entries are on the disk. Not every system supports
// this.
func (s *Service) sync(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
