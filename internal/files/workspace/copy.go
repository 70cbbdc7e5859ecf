// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// folder reads files below a folder, and follows no link on the way to a file or at its end. A program that puts a link in
// place meanwhile leads to no other file.
type folder struct {
	top    *os.Root
	dir    string   // of parent, relative to top
	parent *os.Root // of the file before, because files come in order; nil for none
}

func openFolder(path string) (*folder, error) {
	top, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the workspace: %w", err)
	}
	return &folder{top: top}, nil
}

// Close closes the folder.
func (f *folder) Close() {
	if f.parent != nil {
		f.parent.Close()
	}
	f.top.Close()
}

// at returns the folder of a file, and its name there. The error wraps fs.ErrNotExist if a link or a file is in place of a folder.
func (f *folder) at(name string) (*os.Root, string, error) {
	dir, base := filepath.Split(filepath.Clean(filepath.FromSlash(name))) // git ends the name of a repository with a slash
	if dir == "" {
		return f.top, base, nil
	}
	if f.parent != nil && f.dir == dir {
		return f.parent, base, nil
	}
	if f.parent != nil {
		f.parent.Close()
		f.parent = nil
	}
	at := f.top
	for part := range strings.SplitSeq(filepath.Clean(dir), string(filepath.Separator)) {
		next, err := openPart(at, part)
		if at != f.top {
			at.Close()
		}
		if err != nil {
			return nil, "", err
		}
		at = next
	}
	f.dir, f.parent = dir, at
	return at, base, nil
}

// openPart opens a folder that is no link.
func openPart(in *os.Root, name string) (*os.Root, error) {
	info, err := in.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return nil, err
	}
	next, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(info, opened) {
		next.Close()
		return nil, errors.Join(err, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	}
	return next, nil
}

// lstat describes a file.
func (f *folder) lstat(name string) (fs.FileInfo, error) {
	at, base, err := f.at(name)
	if err != nil {
		return nil, err
	}
	return at.Lstat(base)
}

// copy copies a file or a link. It returns false if there is none.
func (f *folder) copy(name string, target *os.Root, most int64) (bool, error) {
	at, base, err := f.at(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := at.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return false, nil
	}
	to := filepath.FromSlash(name)
	if err == nil {
		err = target.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		return false, err
	}
	return copyEntry(at, target, base, to, most)
}

// tries is how often a file is opened that another program replaces at the same time.
const tries = 100

// copyEntry copies a file with its mode and time, or a link. It returns false if there is none, or another kind of file. A file
// of more than most bytes is a [*LimitError]; 0 means no limit.
func copyEntry(source, target *os.Root, name, to string, most int64) (bool, error) {
	for range tries {
		info, err := source.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case info.Mode()&fs.ModeSymlink != 0:
			link, err := source.Readlink(name)
			if errors.Is(err, syscall.EINVAL) {
				continue // it is a file now
			}
			if err == nil {
				err = target.Symlink(link, to)
			}
			return err == nil, err
		case !info.Mode().IsRegular():
			return false, nil
		}
		in, err := source.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place would block
		if err != nil {
			if is, lerr := source.Lstat(name); lerr != nil || os.SameFile(is, info) {
				return false, err
			}
			continue // a link out of the folder, perhaps
		}
		if opened, err := in.Stat(); err != nil || !os.SameFile(opened, info) {
			in.Close()
			continue
		}
		err = copyContent(in, target, to, info, most)
		in.Close()
		return err == nil, err
	}
	return false, errors.New("another program replaces it all the time")
}

// copyContent copies an open file with its mode and time.
func copyContent(in io.Reader, target *os.Root, to string, info fs.FileInfo, most int64) error {
	out, err := target.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if most > 0 { // it may have grown since it was measured
		in = io.LimitReader(in, most+1)
	}
	n, err := io.Copy(out, in)
	if err == nil && most > 0 && n > most {
		err = &LimitError{"file_size", to, n, most}
	}
	if err == nil {
		err = out.Chmod(info.Mode().Perm() | 0o200)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return err
	}
	return target.Chtimes(to, info.ModTime(), info.ModTime())
}
