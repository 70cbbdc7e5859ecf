// SPDX-License-Identifier: Apache-2.0

package program

import (
	"io/fs"
	"path"
	"strings"
	"time"
)

// keeping is a folder that keeps what is read of it.
type keeping struct {
	fs.FS
	files map[string]string
}

// Open reads a file and opens what was read: what a run keeps is what it was built
// of, whatever somebody writes meanwhile.
func (k keeping) Open(name string) (fs.File, error) {
	info, err := fs.Stat(k.FS, name)
	if err != nil || !info.Mode().IsRegular() {
		return k.FS.Open(name)
	}
	text, err := fs.ReadFile(k.FS, name)
	if err != nil {
		return nil, err
	}
	k.files[name] = string(text)
	return kept(k.files).Open(name)
}

// Stat does not read the file.
func (k keeping) Stat(name string) (fs.FileInfo, error) { return fs.Stat(k.FS, name) }

// kept are files by their paths.
type kept map[string]string

// Open opens one of them; there are no folders.
func (k kept) Open(name string) (fs.File, error) {
	text, ok := k[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &keptFile{Reader: strings.NewReader(text), name: path.Base(name), size: int64(len(text))}, nil
}

// keptFile is one of the files, and what there is to know about it.
type keptFile struct {
	*strings.Reader
	name string
	size int64
}

func (f *keptFile) Stat() (fs.FileInfo, error) { return keptInfo{f.name, f.size}, nil }
func (f *keptFile) Close() error               { return nil }

type keptInfo struct {
	name string
	size int64
}

func (i keptInfo) Name() string     { return i.name }
func (i keptInfo) Size() int64      { return i.size }
func (keptInfo) Mode() fs.FileMode  { return 0o400 }
func (keptInfo) ModTime() time.Time { return time.Time{} }
func (keptInfo) IsDir() bool        { return false }
func (keptInfo) Sys() any           { return nil }
