// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// workDir is the directory of a command: its path, and the folder that was there when it was checked.
type workDir struct {
	path   string
	folder *os.Root
}

// openWorkDir opens a directory below root, which dir cannot leave.
func openWorkDir(root, dir string) (w workDir, err error) {
	if root == "" {
		root = "."
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return w, fmt.Errorf("find the root directory: %w", err)
	}
	if dir == "" {
		dir = "."
	}
	if !filepath.IsLocal(dir) {
		return w, fmt.Errorf("working directory %q is outside the root %q: it has to be a path below it", dir, root)
	}
	// The path is cleaned first, so that the checked path is the used one.
	dir = filepath.Clean(dir)
	r, err := os.OpenRoot(root)
	if err != nil {
		return w, fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	info, err := r.Stat(dir)
	if err == nil && !info.IsDir() {
		return w, fmt.Errorf("working directory %q below the root %q is not a directory", dir, root)
	}
	if err == nil {
		w.folder, err = r.OpenRoot(dir)
	}
	if err != nil {
		return w, fmt.Errorf("working directory %q below the root %q: %w", dir, root, err)
	}
	w.path = filepath.Join(root, dir)
	return w, nil
}

// start starts a command in the folder, also if a program has put a link in place of its path.
func (w workDir) start(cmd *exec.Cmd) error {
	folder, err := w.folder.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	cmd.Dir = opened(folder, w.path)
	return cmd.Start()
}

// checkPaths returns an error unless each path that a value has chosen, relative to the working directory dir, names
// a file or a folder that exists inside root. A program can follow a link that is put in place afterwards.
func (p *process) checkPaths(root string, dir workDir) error {
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
		if err := ownRepository(root, filepath.Join(dir.path, path)); err != nil {
			return err
		}
	}
	if !p.DirChosen {
		return nil
	}
	was, err := dir.folder.Stat(".")
	if err != nil {
		return err
	}
	if is, err := os.Stat(dir.path); err != nil || !os.SameFile(was, is) {
		return fmt.Errorf("another program replaces the folder %q: %w", p.Dir, cmp.Or(err, error(syscall.ENOTDIR)))
	}
	return ownRepository(root, dir.path)
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

// opened returns a path of an open folder that no program can replace, for the time until a command has started. Where the
// system has no such paths, as outside Linux, it returns path.
func opened(folder *os.File, path string) string {
	name := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	if _, err := os.Stat(name); err != nil {
		return path
	}
	return name
}
