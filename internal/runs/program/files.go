// SPDX-License-Identifier: Apache-2.0

package program

import (
	"io/fs"
	"testing/fstest"
)

// keeping is a file system that keeps the files that are read.
type keeping struct {
	fs.FS
	files map[string]string
}

// Open reads a file and returns the content that it has read, so that the run keeps the files from which it was
// built, even if they change meanwhile.
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
	return fileSystem(map[string]string{name: string(text)}).Open(name)
}

// Stat does not read the file.
func (k keeping) Stat(name string) (fs.FileInfo, error) { return fs.Stat(k.FS, name) }

// fileSystem returns files by their paths as a file system.
func fileSystem(files map[string]string) fs.FS {
	all := make(fstest.MapFS, len(files))
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o400}
	}
	return all
}
