// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// workDir is the path of a directory below root, which dir cannot leave.
func workDir(root, dir string) (string, error) {
	if root == "" {
		root = "."
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find the root directory: %w", err)
	}
	if dir == "" {
		dir = "."
	}
	if !filepath.IsLocal(dir) {
		return "", fmt.Errorf("working directory %q is outside the root %q: it has to be a path below it", dir, root)
	}
	// The path is cleaned first, so that the checked path is the used one.
	dir = filepath.Clean(dir)
	r, err := os.OpenRoot(root)
	if err != nil {
		return "", fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	info, err := r.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("working directory %q below the root %q: %w", dir, root, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("working directory %q below the root %q is not a directory", dir, root)
	}
	return filepath.Join(root, dir), nil
}

// checkPaths returns an error unless each path that a value has chosen, relative to the working directory dir, names
// a file or a folder that exists inside root. A program can follow a link that is put in place afterwards.
func (p *process) checkPaths(root, dir string) error {
	if len(p.Files)+len(p.Folders) == 0 && !p.DirChosen {
		return nil
	}
	r, err := os.OpenRoot(cmp.Or(root, "."))
	if err != nil {
		return fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	for _, path := range p.Files {
		info, err := r.Stat(filepath.Join(p.Dir, path))
		switch {
		case err != nil:
			return fmt.Errorf("file %q must exist inside the root %q: %w", path, root, err)
		case info.IsDir():
			return fmt.Errorf("%q is a folder: declare the value with type: folder", path)
		case !info.Mode().IsRegular():
			return fmt.Errorf("%q is not a regular file", path)
		}
	}
	for _, path := range p.Folders {
		if info, err := r.Stat(filepath.Join(p.Dir, path)); err != nil || !info.IsDir() {
			return fmt.Errorf("folder %q must exist inside the root %q: %w", path, root, cmp.Or(err, error(syscall.ENOTDIR)))
		}
		if err := ownRepository(root, filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	if p.DirChosen {
		return ownRepository(root, dir)
	}
	return nil
}

// ownRepository returns an error if a folder is in a repository of its own below root, because the settings of a
// repository name programs that git and hg run, and whoever made the folder has written them.
func ownRepository(root, dir string) error {
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	for ; dir != root && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return fmt.Errorf("folder %q is in a repository of its own, whose settings can name programs to run: use a folder "+
				"of the root's repository, or say unsafe: true if you trust who made it", dir)
		}
	}
	return nil
}

// isRepository reports whether a folder is a repository of git or hg: it has its data, is its data, or is a bare one.
func isRepository(dir string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	for _, name := range []string{".git", ".hg"} {
		if has(name) || strings.EqualFold(filepath.Base(dir), name) {
			return true
		}
	}
	return has("HEAD") && has("objects")
}
