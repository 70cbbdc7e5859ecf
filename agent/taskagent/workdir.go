// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// workDir is the working directory of a command: its path, and the open folder that was at that path during the check.
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
	// Clean the path first, so that the path that is checked is the path that is used.
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

// start starts a command in the open folder, even if another program has replaced the folder's path by a link.
func (w workDir) start(cmd *exec.Cmd) error {
	folder, err := w.folder.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	cmd.Dir = openedPath(folder, w.path)
	return cmd.Start()
}

// openPath is the path of a file or folder that a command inherits open.
type openPath struct {
	Path   string `json:"path"`
	Folder bool   `json:"folder,omitempty"`
}

// opens adds a path to p.Open, which [process.checkPaths] opens, and returns the name of the open file, which replaces the path
// in the command.
func (p *process) opens(path string, folder bool) string {
	p.Open = append(p.Open, openPath{path, folder})
	return "/dev/fd/" + strconv.Itoa(2+len(p.Open)) // 0 to 2 are the standard streams
}

// checkPaths returns an error unless each path that comes from a placeholder names a file or a folder that exists inside
// root. Such paths are relative to the working directory dir. checkPaths opens the files of p.Open; the caller closes them.
func (p *process) checkPaths(root string, dir workDir) (open []*os.File, err error) {
	if len(p.Files)+len(p.Folders)+len(p.Open) == 0 && !p.DirChosen {
		return nil, nil
	}
	r, err := os.OpenRoot(cmp.Or(root, "."))
	if err != nil {
		return nil, fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	defer func() {
		if err != nil {
			closeAll(open)
		}
	}()
	for _, path := range p.Files {
		info, err := r.Stat(filepath.Join(p.Dir, path))
		if err := isFile(path, root, info, err); err != nil {
			return open, err
		}
	}
	for _, path := range p.Folders {
		info, err := r.Stat(filepath.Join(p.Dir, path))
		if err := isFolder(path, root, info, err); err != nil {
			return open, err
		}
		if err := ownRepository(root, filepath.Join(dir.path, path)); err != nil {
			return open, err
		}
	}
	for _, path := range p.Open {
		f, err := p.open(r, path, root)
		if err != nil {
			return open, err
		}
		open = append(open, f)
	}
	if !p.DirChosen {
		return open, nil
	}
	was, err := dir.folder.Stat(".")
	if err != nil {
		return open, err
	}
	if is, err := os.Stat(dir.path); err != nil || !os.SameFile(was, is) {
		return open, fmt.Errorf("another program replaces the folder %q: %w", p.Dir, cmp.Or(err, error(syscall.ENOTDIR)))
	}
	return open, ownRepository(root, dir.path)
}

// open opens a path inside the root r, and checks that the result is a regular file or a folder, as path says.
func (p *process) open(r *os.Root, path openPath, root string) (f *os.File, err error) {
	if path.Folder && runtime.GOOS != "linux" || runtime.GOOS == "windows" {
		return nil, fmt.Errorf("open %q for the command: this system hands on no such open file; remove it from open", path.Path)
	}
	f, err = r.OpenFile(filepath.Join(p.Dir, path.Path), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place would block
	var info os.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	check := isFile
	if path.Folder {
		check = isFolder
	}
	if err = check(path.Path, root, info, err); err == nil && path.Folder {
		var at string
		if at, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil {
			err = ownRepository(root, at)
		}
	}
	if err != nil && f != nil {
		f.Close()
	}
	return f, err
}

// isFile returns an error unless info and err, the results of Stat on path, show a regular file.
func isFile(path, root string, info os.FileInfo, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("file %q must exist inside the root %q: %w", path, root, err)
	case info.IsDir():
		return fmt.Errorf("%q is a folder: declare the value with type: folder", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", path)
	}
	return nil
}

// isFolder returns an error unless info and err, the results of Stat on path, show a folder.
func isFolder(path, root string, info os.FileInfo, err error) error {
	if err == nil && info.IsDir() {
		return nil
	}
	return fmt.Errorf("folder %q must exist inside the root %q: %w", path, root, cmp.Or(err, error(syscall.ENOTDIR)))
}

// checkReplaced returns an error if a path in the command's arguments now leads out of the root. Another program has then
// replaced it, and the command may have read a file outside the root. A path that no longer exists is no error.
func (p *process) checkReplaced(root string) error {
	if len(p.Files)+len(p.Folders) == 0 {
		return nil
	}
	r, err := os.OpenRoot(cmp.Or(root, "."))
	if err != nil {
		return fmt.Errorf("open the root directory: %w", err)
	}
	defer r.Close()
	for _, path := range slices.Concat(p.Files, p.Folders) {
		if _, err := r.Stat(filepath.Join(p.Dir, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("a program has replaced %q while the command ran, and its output is not used: %w; "+
				"with open: [NAME] the command gets the file that was checked", path, err)
		}
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// ownRepository returns an error if a folder is in a repository of its own below root, because the settings of a
// repository name programs that git and hg run. Another program, or a person who is not trusted, may have written them.
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

// isRepository reports whether a folder is a repository of git or hg, the .git or .hg folder of one, or a bare repository.
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

// openedPath returns a path of an open folder that no program can replace. It is valid until the folder is closed. On a system
// without such paths, such as macOS, opened returns path.
func openedPath(folder *os.File, path string) string {
	name := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	if _, err := os.Stat(name); err != nil {
		return path
	}
	return name
}
