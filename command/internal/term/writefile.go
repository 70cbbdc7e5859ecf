// SPDX-License-Identifier: Apache-2.0

package term

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes a file that appears under its name only when it is complete and on the disk. Until then it is beside,
// under another name. Without replace, WriteFile fails with [fs.ErrExist] if there is a file of this name, before it calls
// write; such a file stays as it was. A name that is no regular file, such as /dev/stdout or a pipe, is written directly.
func WriteFile(name string, replace bool, write func(io.Writer) error) (err error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && !replace:
		return fmt.Errorf("write %s: %w", name, fs.ErrExist)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	case err == nil: // of a link, the file that it names is replaced
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err = errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if info != nil {
		_ = os.Chmod(f.Name(), info.Mode().Perm()) // as it was
	}
	if replace {
		err = os.Rename(f.Name(), name)
	} else if err = os.Link(f.Name(), name); err == nil { // unlike a rename, it does not replace a file that came meanwhile
		_ = os.Remove(f.Name())
	} else if !errors.Is(err, fs.ErrExist) { // a file system without links
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return err
	}
	syncDir(filepath.Dir(name))
	return nil
}

// syncDir writes the names in a folder to the disk, where the system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
