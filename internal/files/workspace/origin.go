// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// findOrigin finds the folder that the tree is copied from.
func (t *Tree) findOrigin(ctx context.Context, bin string) error {
	note := filepath.Join(t.room, "from")
	if known, err := os.ReadFile(note); err == nil {
		t.from = string(known)
	} else if t.from, err = resolvePath(t.cfg.From); err != nil {
		return err
	}
	if info, err := os.Stat(t.from); err != nil || !info.IsDir() {
		return &RefusedError{t.from, "there is no such folder"}
	}
	home, _ := os.UserHomeDir()
	if home != "" {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
		if within(home, t.from) {
			return &RefusedError{t.from, "it contains the home directory: name the folder of the project"}
		}
	}
	if filepath.Dir(t.from) == t.from {
		return &RefusedError{t.from, "it is the root of the file system: name the folder of the project"}
	}
	t.user = ofUser(bin, t.from, t.cfg.Environ, t.cfg.Filters)
	inside, err := t.user.word(ctx, "rev-parse", "--is-inside-work-tree")
	switch {
	case err == nil && inside == "true":
		t.repo = true
		prefix, err := t.user.word(ctx, "rev-parse", "--show-prefix")
		if err != nil {
			return err
		}
		return t.findFolder(prefix, home)
	case err == nil:
		return &RefusedError{t.from, "it is a bare repository or the inside of one: name a folder with files"}
	case code(err) != 128:
		return err
	}
	if _, err := os.Lstat(filepath.Join(t.from, ".git")); err == nil {
		return &RefusedError{t.from, "git cannot read its repository: " + err0(t.user.run(ctx, "rev-parse", "--git-dir"))}
	}
	if t.cfg.Base.isCommit() {
		return &RefusedError{t.from, "it is no git repository, so it has no last commit: use the base dirty"}
	}
	return nil
}

// userPath returns the absolute path of a part of the user's repository.
func (t *Tree) userPath(ctx context.Context, part string) (string, error) {
	path, err := t.user.word(ctx, "rev-parse", "--git-path", part)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(t.from, path)
	}
	return path, err
}

// copyExcludes writes the patterns of ignored files that are not in the tree itself.
func (t *Tree) copyExcludes(ctx context.Context) error {
	text := []byte("/.refrain/\n")
	if t.folder != "" {
		text = append(text, "/"+Literal(t.folder)+"/.refrain/\n"...)
	}
	for _, name := range slices.Concat(t.cfg.Exclude, t.modules) {
		text = append(text, "/"+Literal(name)+"\n"...)
	}
	if t.repo {
		own, err := t.userPath(ctx, "info/exclude")
		if err != nil {
			return err
		}
		names := []string{own}
		all, err := t.user.word(ctx, "config", "--path", "core.excludesFile")
		if err != nil && code(err) != 1 {
			return err
		}
		if all == "" {
			if folder, err := os.UserConfigDir(); err == nil {
				all = filepath.Join(folder, "git", "ignore")
			}
		} else if !filepath.IsAbs(all) { // git reads it from the top of the repository
			all = filepath.Join(t.from, strings.Repeat("../", strings.Count(t.prefix, "/")), all)
		}
		for _, name := range append(names, all) {
			if more, ok := patternsOf(name); ok {
				text = append(append(text, more...), '\n')
			}
		}
	}
	return writeFile(filepath.Join(t.room, "exclude"), text)
}

// patternsOf reads a file of patterns. It reads only regular files of limited size, because a stranger may have made the file a
// link to a pipe, or to a file without an end.
func patternsOf(name string) ([]byte, bool) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxNote {
		return nil, false
	}
	text, err := os.ReadFile(name)
	return text, err == nil
}

// listing returns a git that lists the files of the origin.
func (t *Tree) listing() *git {
	if t.repo {
		return t.user
	}
	g := *t.git
	g.dir = t.from
	g.env = []string{"GIT_DIR=" + t.store, "GIT_WORK_TREE=" + t.from, "GIT_INDEX_FILE=" + filepath.Join(t.room, "scratch-none")}
	return &g
}

// copyDirty copies the files of the origin as they are. Outside of the folder of [Config].From it copies only those that git tracks,
// because the others there may be secrets, or too large.
func (t *Tree) copyDirty(ctx context.Context) error {
	g := t.listing()
	tracked, err := g.run(ctx, "ls-files", "-z", "--cached")
	if err != nil {
		return err
	}
	args := []string{"ls-files", "-z", "--others", "--exclude-standard"}
	if t.folder != "" {
		args = append(args, "--", t.folder)
	}
	others, err := g.run(ctx, args...)
	if err != nil {
		return err
	}
	names := append(list(tracked), list(others)...)
	slices.Sort(names)
	names = slices.Compact(names)
	names = slices.DeleteFunc(names, t.stays)
	copied, err := t.copyFiles(ctx, names, t.Dir())
	if err != nil {
		return err
	}
	_, err = t.git.feed(ctx, lines(copied), "update-index", "-z", "--add", "--stdin")
	return err
}

// stays reports whether a file of the origin is not copied because it is excluded or belongs to a store.
func (t *Tree) stays(name string) bool {
	for _, out := range slices.Concat(t.cfg.Exclude, t.modules) {
		if name == out || strings.HasPrefix(name, out+"/") {
			return true
		}
	}
	file := filepath.Join(t.from, filepath.FromSlash(name))
	own := path.Join(t.folder, ".refrain")
	return name == ".refrain" || strings.HasPrefix(name, ".refrain/") || name == own || strings.HasPrefix(name, own+"/") ||
		within(file, filepath.Dir(t.store))
}

// weigh checks the files of the origin against the limits and the free space on the disk.
func (t *Tree) weigh(names []string) error {
	var total int64
	files, err := openFolder(t.from)
	if err != nil {
		return err
	}
	defer files.Close()
	for _, name := range names {
		info, err := files.lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("read the files of the workspace: %w", err)
		case info.IsDir():
			path := filepath.Join(t.from, filepath.FromSlash(name))
			if inside, err := os.ReadDir(path); err != nil || len(inside) > 0 {
				return &RefusedError{path, "it is a git repository inside the folder, whose files would not be saved: " +
					"ignore it in .gitignore"}
			}
		case info.Size() > t.cfg.Limits.FileSize:
			return &LimitError{"file_size", name, info.Size(), t.cfg.Limits.FileSize}
		default:
			total += info.Size()
		}
	}
	if left := free(t.place); left >= 0 && left < 2*total+spare {
		return &LimitError{"disk", t.place, 2*total + spare, left}
	}
	return nil
}

// copyFiles copies files and links of the origin into a folder. It returns the names of those that it has copied: a file may
// be deleted, or another kind of file.
func (t *Tree) copyFiles(ctx context.Context, names []string, into string) (copied []string, err error) {
	if err := t.weigh(names); err != nil {
		return nil, err
	}
	files, err := openFolder(t.from)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	target, err := os.OpenRoot(into)
	if err != nil {
		return nil, fmt.Errorf("copy files into the workspace: %w", err)
	}
	defer target.Close()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		switch ok, err := files.copy(name, target, t.cfg.Limits.FileSize); {
		case err != nil:
			return nil, fmt.Errorf("copy %s into the workspace: %w", name, err)
		case ok:
			copied = append(copied, name)
		}
	}
	return copied, nil
}

// noteHead stores the last commit and the names of the uncommitted files, which the result needs.
func (t *Tree) noteHead(ctx context.Context) error {
	head, err := t.user.object(ctx, t.cfg.Base.revision()+"^{commit}")
	if err == nil && head == "" && t.cfg.Base.revision() != "HEAD" {
		err = &RefusedError{t.from, fmt.Sprintf("its repository has no branch or commit %q, which the workspace begins with", t.cfg.Base)}
	}
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(t.room, "head"), []byte(head)); err != nil {
		return err
	}
	if t.cfg.Base.isCommit() {
		return nil
	}
	out, err := t.user.run(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range list(out) {
		name, ok := strings.CutPrefix(entry[min(3, len(entry)):], t.prefix)
		if strings.HasPrefix(entry, "??") && t.folder != "" && !within(name, t.folder) {
			continue // it is not copied
		}
		if ok && !t.stays(name) {
			names = append(names, name)
		}
	}
	// Without its filter a file seems to differ from the commit even if it does not.
	filtered, err := t.user.filtered(ctx, names)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return filtered[name] != "" })
	return writeFile(filepath.Join(t.room, "dirty"), lines(names))
}

const missingFolder = "the commit with which the base begins does not have this folder: commit it, or use the base dirty"

// checkOutHead writes the files of the last commit.
func (t *Tree) checkOutHead(ctx context.Context) error {
	commit, err := t.head()
	if err == nil && commit == "" {
		return &RefusedError{t.from, "its repository has no commit yet, which the base head begins with: commit the files, or use the base dirty"}
	}
	head := ""
	if err == nil {
		head, err = t.user.object(ctx, commit+":"+strings.TrimSuffix(t.prefix, "/"))
	}
	if err == nil && head == "" {
		err = &RefusedError{t.from, missingFolder}
	}
	if err == nil && t.folder != "" {
		var has string
		if has, err = t.user.object(ctx, commit+":"+t.folder); err == nil && has == "" {
			err = &RefusedError{t.from, missingFolder}
		}
	}
	if err != nil {
		return err
	}
	if _, err := t.git.run(ctx, "read-tree", head); err != nil {
		return err
	}
	out, err := t.git.run(ctx, "ls-files", "-z", "--stage")
	if err != nil {
		return err
	}
	var links []string
	for _, entry := range list(out) {
		if meta, name, _ := strings.Cut(entry, "\t"); strings.HasPrefix(meta, modeNested) || t.stays(name) {
			links = append(links, name)
		}
	}
	if len(links) > 0 {
		if _, err := t.git.feed(ctx, lines(links), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return err
		}
	}
	_, err = t.git.run(ctx, "checkout-index", "--all", "--quiet", "-u")
	return err
}

// copyIgnored copies the ignored files that a tree needs into its folder.
func (t *Tree) copyIgnored(ctx context.Context, into string) error {
	patterns := strings.Join(t.cfg.Copy, "\n") + "\n"
	if more, ok := patternsOf(filepath.Join(t.from, ".worktreeinclude")); ok {
		patterns += string(more) + "\n"
	}
	if more, ok := patternsOf(filepath.Join(t.from, filepath.FromSlash(t.folder), ".worktreeinclude")); ok && t.folder != "" {
		patterns += strings.Join(t.ignoreLines(strings.Split(string(more), "\n")), "\n")
	}
	if strings.TrimSpace(patterns) == "" {
		return t.copyModules(ctx, into)
	}
	file := filepath.Join(t.room, "scratch-"+rand.Text())
	if err := writeFile(file, []byte(patterns)); err != nil {
		return err
	}
	defer os.Remove(file)
	out, err := t.listing().run(ctx, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+file)
	if err != nil {
		return err
	}
	var untracked []string // sorted
	if t.folder != "" {
		others, err := t.listing().run(ctx, "ls-files", "-z", "--others", "--exclude-standard")
		if err != nil {
			return err
		}
		untracked = list(others)
	}
	names := slices.DeleteFunc(list(out), func(name string) bool {
		if _, found := slices.BinarySearch(untracked, name); found && !within(name, t.folder) {
			return true // it is not ignored, so the result would have it
		}
		_, err := os.Lstat(filepath.Join(into, filepath.FromSlash(name)))
		return err == nil || t.stays(name) || strings.HasSuffix(name, "/")
	})
	if _, err = t.copyFiles(ctx, names, into); err != nil {
		return err
	}
	return t.copyModules(ctx, into)
}

// Fork returns the commit at which a branch of the repository of a folder has left the branch that is checked out, or, if it is that one, the
// branch origin/HEAD, main or master. A branch without commits of its own is an error.
func Fork(ctx context.Context, folder, branch string) (string, error) {
	bin, err := findGit(ctx)
	if err != nil {
		return "", err
	}
	g := ofUser(bin, folder, nil, nil)
	tip, err := g.object(ctx, "refs/heads/"+branch+"^{commit}")
	if err == nil && tip == "" {
		err = fmt.Errorf("the repository of %s has no branch %q", folder, branch)
	}
	if err != nil {
		return "", err
	}
	for _, other := range []string{"HEAD", "refs/remotes/origin/HEAD", "refs/heads/main", "refs/heads/master"} {
		if at, err := g.object(ctx, other+"^{commit}"); err != nil {
			return "", err
		} else if at == "" {
			continue
		}
		if fork, err := g.word(ctx, "merge-base", other, tip); err == nil && fork != tip {
			return fork, nil
		} else if err != nil && code(err) != 1 {
			return "", err
		}
	}
	return "", fmt.Errorf("the branch %q has no commit that the branch before it lacks, so there is nothing to review", branch)
}
