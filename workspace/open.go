// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Open returns the tree of a run. If the run has none yet, Open copies the files of From and runs the
// setup. Otherwise the tree is as the last process has left it, and From is not read.
//
// The error wraps [ErrNoGit], [ErrLocked], a [*RefusedError] or a [*LimitError].
func Open(ctx context.Context, cfg Config) (*Tree, error) {
	bin, err := findGit(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Base = cmp.Or(cfg.Base, Dirty)
	cfg.Limits.FileSize = cmp.Or(cfg.Limits.FileSize, defaultFileSize)
	cfg.Limits.Store = cmp.Or(cfg.Limits.Store, defaultStore)
	switch {
	case cfg.Store == "" || cfg.Run == "":
		return nil, errors.New("workspace: Store and Run are required")
	case cfg.Base != Dirty && cfg.Base != Head:
		return nil, fmt.Errorf("workspace: base is %q; it must be %s or %s", cfg.Base, Dirty, Head)
	}
	store, err := realPath(cfg.Store)
	if err != nil {
		return nil, err
	}
	t := &Tree{cfg: cfg, name: refName(cfg.Run)}
	t.room = filepath.Join(store, "runs", t.name)
	if err := os.MkdirAll(t.room, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the workspace: %w", err)
	}
	if t.lock, err = lockFile(ctx, filepath.Join(t.room, "lock")); err != nil {
		return nil, err
	}
	if err = t.open(ctx, bin, store); err != nil {
		t.lock.Close()
		return nil, fmt.Errorf("open the workspace of run %q: %w", cfg.Run, err)
	}
	return t, nil
}

// realPath returns an absolute path without links, of a folder that it makes if it is missing.
func realPath(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the workspaces: %w", err)
	}
	return resolved(folder)
}

func resolved(folder string) (string, error) {
	path, err := filepath.Abs(cmp.Or(folder, "."))
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("find the folder %q: %w", folder, err)
	}
	return path, nil
}

func (t *Tree) open(ctx context.Context, bin, store string) error {
	t.index = filepath.Join(t.room, "index-"+rand.Text())
	for _, pattern := range []string{"index-*", "scratch-*", "clean-*"} { // of processes that were killed
		old, _ := filepath.Glob(filepath.Join(t.room, pattern))
		for _, name := range old {
			_ = removeAll(name)
		}
	}
	if err := t.findOrigin(ctx, bin); err != nil {
		return err
	}
	format := "sha1"
	if t.repo {
		var err error
		if format, err = t.user.word(ctx, "rev-parse", "--show-object-format"); err != nil {
			return err
		}
	}
	t.store = filepath.Join(store, "store")
	if format != "sha1" {
		t.store += "-" + format
	}
	t.git = &git{
		bin: bin, dir: t.Dir(), lock: t.lock,
		config: append(slices.Clone(pinned), "core.excludesFile="+filepath.Join(t.room, "exclude")),
		env:    []string{"GIT_DIR=" + t.store, "GIT_WORK_TREE=" + t.Dir(), "GIT_INDEX_FILE=" + t.index},
	}
	if err := t.prepareStore(ctx, format); err != nil {
		return err
	}
	switch err := os.Mkdir(t.Dir(), 0o700); {
	case err == nil:
		t.empty = true
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("make the tree: %w", err)
	}
	t.removeLocks()
	base, err := t.resolve(ctx, "base")
	if err != nil {
		return err
	}
	start, err := t.resolve(ctx, "start")
	if err != nil {
		return err
	}
	if base != "" && start != "" {
		t.base, t.start = base, start
		return nil
	}
	return t.create(ctx)
}

// removeLocks deletes the locks of refs that a process has left that was killed. The lock of the tree
// keeps others away from them.
func (t *Tree) removeLocks() {
	locks, _ := filepath.Glob(filepath.Join(t.store, "refs", "refrain", t.name, "*.lock"))
	for _, name := range locks {
		os.Remove(name)
	}
}

// resolve returns the tree that a ref of the run names, empty if there is no such ref.
func (t *Tree) resolve(ctx context.Context, name string) (Hash, error) {
	out, err := t.git.word(ctx, "rev-parse", "--verify", "--quiet", t.ref(name))
	if code(err) == 1 {
		return "", nil
	}
	return Hash(out), err
}

// findOrigin finds the folder that the tree is, or will be, a copy of.
func (t *Tree) findOrigin(ctx context.Context, bin string) error {
	note := filepath.Join(t.room, "from")
	if known, err := os.ReadFile(note); err == nil {
		t.from = string(known)
	} else if t.from, err = resolved(t.cfg.From); err != nil {
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
	t.user = ofUser(bin, t.from)
	inside, err := t.user.word(ctx, "rev-parse", "--is-inside-work-tree")
	switch {
	case err == nil && inside == "true":
		t.repo = true
		t.prefix, err = t.user.word(ctx, "rev-parse", "--show-prefix")
		return err
	case err == nil:
		return &RefusedError{t.from, "it is a bare repository or the inside of one: name a folder with files"}
	case code(err) != 128:
		return err
	}
	if _, err := os.Lstat(filepath.Join(t.from, ".git")); err == nil {
		return &RefusedError{t.from, "git cannot read its repository: " + err0(t.user.run(ctx, "rev-parse", "--git-dir"))}
	}
	if t.cfg.Base == Head {
		return &RefusedError{t.from, "it is no git repository, so it has no last commit: use the base dirty"}
	}
	return nil
}

// err0 returns the text of an error.
func err0(_ []byte, err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// attributes turn off every conversion and filter, whatever .gitattributes in the tree says.
const attributes = "* -text -crlf -ident -filter !eol !working-tree-encoding !diff !merge !whitespace\n"

// prepareStore makes the store if there is none, and lets it read the objects of the origin.
func (t *Tree) prepareStore(ctx context.Context, format string) error {
	lock, err := lockFile(ctx, filepath.Join(filepath.Dir(t.store), "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if _, err := os.Stat(t.store); err != nil {
		made := t.store + "-" + rand.Text()
		defer removeAll(made)
		g := *t.git
		g.env, g.dir = nil, t.room
		if _, err := g.run(ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+format, made); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(made, "info"), 0o700); err != nil {
			return fmt.Errorf("prepare the store: %w", err)
		}
		if err := os.WriteFile(filepath.Join(made, "info", "attributes"), []byte(attributes), 0o600); err != nil {
			return fmt.Errorf("prepare the store: %w", err)
		}
		if err := os.Rename(made, t.store); err != nil {
			return fmt.Errorf("prepare the store: %w", err)
		}
	}
	if !t.repo {
		return nil
	}
	objects, err := t.userPath(ctx, "objects")
	if err != nil {
		return err
	}
	name := filepath.Join(t.store, "objects", "info", "alternates")
	known, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("prepare the store: %w", err)
	}
	if slices.Contains(strings.Split(string(known), "\n"), objects) {
		return nil
	}
	return writeFile(name, append(known, objects+"\n"...))
}

// userPath returns the absolute path of a part of the user's repository.
func (t *Tree) userPath(ctx context.Context, part string) (string, error) {
	path, err := t.user.word(ctx, "rev-parse", "--git-path", part)
	if err == nil && !filepath.IsAbs(path) {
		path = filepath.Join(t.from, path)
	}
	return path, err
}

// writeFile writes a file as a whole.
func writeFile(name string, data []byte) error {
	made := name + "." + rand.Text()
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = writeSynced(made, data)
	}
	if err == nil {
		err = os.Rename(made, name)
	}
	if err != nil {
		os.Remove(made)
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// writeSynced writes a file, and waits until it is on the disk.
func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// create copies the files, sets the tree up, and marks it as complete.
func (t *Tree) create(ctx context.Context) error {
	if err := removeAll(t.Dir()); err != nil {
		return fmt.Errorf("delete an incomplete tree: %w", err)
	}
	if err := writeFile(filepath.Join(t.room, "from"), []byte(t.from)); err != nil {
		return err
	}
	if err := os.MkdirAll(t.Dir(), 0o700); err != nil {
		return fmt.Errorf("make the tree: %w", err)
	}
	if err := t.copyExcludes(ctx); err != nil {
		return err
	}
	if t.repo {
		if err := t.noteHead(ctx); err != nil {
			return err
		}
	}
	fill := t.copyDirty
	if t.cfg.Base == Head {
		fill = t.checkOutHead
	}
	if err := fill(ctx); err != nil {
		return err
	}
	base, err := t.write(ctx)
	if err != nil {
		return err
	}
	if err := t.copyIgnored(ctx, t.Dir()); err != nil {
		return err
	}
	if err := t.pin(ctx, "base", base); err != nil {
		return err
	}
	t.base, t.start, t.last = base, base, base
	if err := t.makeOwnRepository(ctx, t.Dir()); err != nil {
		return err
	}
	if t.cfg.Setup != nil {
		if err := t.cfg.Setup(ctx, t.Dir(), t.Environ()); err != nil {
			return fmt.Errorf("setup of the workspace: %w", err)
		}
		if t.start, err = t.snapshot(ctx, anySize); err != nil {
			return err
		}
	}
	if t.cfg.ForkOf != "" {
		return t.fork(ctx)
	}
	return t.pin(ctx, "start", t.start)
}

// fork takes the start and the base over from the run that this one is a fork of.
func (t *Tree) fork(ctx context.Context) error {
	of := refName(t.cfg.ForkOf)
	for _, note := range []string{"head", "dirty"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(t.room), of, note))
		if err == nil {
			err = writeFile(filepath.Join(t.room, note), text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("fork the workspace: %w", err)
		}
	}
	for _, name := range []string{"base", "start"} {
		h, err := t.git.word(ctx, "rev-parse", "--verify", "--quiet", "refs/refrain/"+of+"/"+name)
		if code(err) == 1 {
			return fmt.Errorf("the files of run %q, of which this is a fork, were removed", t.cfg.ForkOf)
		}
		if err != nil {
			return err
		}
		if err := t.pin(ctx, name, Hash(h)); err != nil {
			return err
		}
		if name == "base" {
			t.base = Hash(h)
		} else {
			t.start = Hash(h)
		}
	}
	return nil
}

// copyExcludes writes the patterns of ignored files that are not in the tree itself.
func (t *Tree) copyExcludes(ctx context.Context) error {
	text := []byte("/.refrain/\n")
	for _, name := range t.cfg.Exclude {
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
		}
		for _, name := range append(names, all) {
			if more, err := os.ReadFile(name); err == nil {
				text = append(append(text, more...), '\n')
			}
		}
	}
	return writeFile(filepath.Join(t.room, "exclude"), text)
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

// copyDirty copies the files of the origin as they are.
func (t *Tree) copyDirty(ctx context.Context) error {
	out, err := t.listing().run(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	names := list(out)
	slices.Sort(names)
	names = slices.Compact(names)
	names = slices.DeleteFunc(names, t.stays)
	if err := t.weigh(names); err != nil {
		return err
	}
	copied := make([]string, 0, len(names))
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		ok, err := t.copyFile(name, t.Dir())
		if err != nil {
			return err
		}
		if ok {
			copied = append(copied, name)
		}
	}
	_, err = t.git.feed(ctx, lines(copied), "update-index", "-z", "--add", "--stdin")
	return err
}

// stays reports whether a file of the origin is not copied: it is excluded, or belongs to a store.
func (t *Tree) stays(name string) bool {
	for _, out := range t.cfg.Exclude {
		if name == out || strings.HasPrefix(name, out+"/") {
			return true
		}
	}
	path := filepath.Join(t.from, filepath.FromSlash(name))
	return name == ".refrain" || strings.HasPrefix(name, ".refrain/") || within(path, filepath.Dir(t.store))
}

// weigh checks the files of the origin against the limits and the space on the disk.
func (t *Tree) weigh(names []string) error {
	var total int64
	for _, name := range names {
		path := filepath.Join(t.from, filepath.FromSlash(name))
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("read the files of the workspace: %w", err)
		case info.IsDir():
			if inside, err := os.ReadDir(path); err != nil || len(inside) > 0 {
				return &RefusedError{path, "it is a git repository inside the folder, whose files would not be saved: " +
					"ignore it in .gitignore, or for a submodule, git submodule deinit it"}
			}
		case info.Size() > t.cfg.Limits.FileSize:
			return &LimitError{"file_size", name, info.Size(), t.cfg.Limits.FileSize}
		default:
			total += info.Size()
		}
	}
	if left := free(t.room); left >= 0 && left < 2*total+spare {
		return &LimitError{"disk", t.room, 2*total + spare, left}
	}
	return nil
}

// copyFile copies a file or a link into a folder. It reports false if there is no file to copy.
func (t *Tree) copyFile(name, into string) (bool, error) {
	from, to := filepath.Join(t.from, filepath.FromSlash(name)), filepath.Join(into, filepath.FromSlash(name))
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 {
		return false, nil
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil && info.Mode().IsRegular() {
		err = copyContent(from, to, info)
	} else if err == nil {
		var target string
		if target, err = os.Readlink(from); err == nil {
			err = os.Symlink(target, to)
		}
	}
	if err != nil {
		return false, fmt.Errorf("copy %s into the workspace: %w", name, err)
	}
	return true, nil
}

// copyContent copies a file with its mode and time.
func copyContent(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Chmod(info.Mode().Perm() | 0o200); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// noteHead keeps the last commit and the names of the files that are not committed, for the result.
func (t *Tree) noteHead(ctx context.Context) error {
	head, err := t.user.word(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil && code(err) != 1 {
		return err
	}
	if err := writeFile(filepath.Join(t.room, "head"), []byte(head)); err != nil {
		return err
	}
	if t.cfg.Base == Head {
		return nil
	}
	out, err := t.user.run(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return err
	}
	var names []string
	for _, entry := range list(out) {
		if name, ok := strings.CutPrefix(entry[min(3, len(entry)):], t.prefix); ok && !t.stays(name) {
			names = append(names, name)
		}
	}
	return writeFile(filepath.Join(t.room, "dirty"), lines(names))
}

// checkOutHead writes the files of the last commit.
func (t *Tree) checkOutHead(ctx context.Context) error {
	head, err := t.user.word(ctx, "rev-parse", "--verify", "HEAD:"+strings.TrimSuffix(t.prefix, "/"))
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
	if more, err := os.ReadFile(filepath.Join(t.from, ".worktreeinclude")); err == nil {
		patterns += string(more)
	}
	if strings.TrimSpace(patterns) == "" {
		return nil
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
	names := slices.DeleteFunc(list(out), func(name string) bool {
		_, err := os.Lstat(filepath.Join(into, filepath.FromSlash(name)))
		return err == nil || t.stays(name) || strings.HasSuffix(name, "/")
	})
	if err := t.weigh(names); err != nil {
		return err
	}
	for _, name := range names {
		if _, err := t.copyFile(name, into); err != nil {
			return err
		}
	}
	return nil
}

// makeOwnRepository makes the git repository of a folder in which programs work, unless it is there. Its
// history ends with the user's last commit; in a plain folder, with a commit of the start.
func (t *Tree) makeOwnRepository(ctx context.Context, work string) error {
	dir := filepath.Join(work, ".git")
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		return nil
	} else if err == nil {
		if err := os.Remove(dir); err != nil { // a link, perhaps to another repository
			return fmt.Errorf("make the repository of the tree: %w", err)
		}
	}
	g := *t.git
	g.dir, g.env = work, []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(work)}
	format, err := t.git.word(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	if _, err := g.run(ctx, "init", "--quiet", "--template=", "--initial-branch=work", "--object-format="+format, "."); err != nil {
		return err
	}
	objects := filepath.Join(t.store, "objects") + "\n"
	if err := writeFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(objects)); err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(t.room, "exclude")); err == nil {
		if err := writeFile(filepath.Join(dir, "info", "exclude"), text); err != nil {
			return err
		}
	}
	g.config = append(slices.Clone(pinned), "user.name=refrain", "user.email=refrain@localhost")
	commit := ""
	if t.repo && t.prefix == "" {
		if commit, err = t.head(); err != nil {
			return err
		}
	}
	if commit == "" {
		if commit, err = g.word(ctx, "commit-tree", "-m", "The start of the run", string(t.start)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"update-ref", "refs/heads/work", commit}, {"read-tree", commit}, {"config", "user.name", "refrain"},
		{"config", "user.email", "refrain@localhost"},
	} {
		if _, err := g.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
