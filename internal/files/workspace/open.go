// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Open returns the tree of a run. If the run has no tree yet, Open copies the files of From and runs the setup.
// Otherwise Open keeps the files that the last process left, and does not read From.
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
	case strings.HasPrefix(string(cfg.Base), "-"):
		return nil, fmt.Errorf("workspace: base is %q; it must be %s, %s or the name of a branch or commit", cfg.Base, Dirty, Head)
	}
	store, err := realPath(cfg.Store)
	if err != nil {
		return nil, err
	}
	t := &Tree{cfg: cfg, storage: storage{name: refName(cfg.Run)}}
	t.room = filepath.Join(store, "runs", t.name)
	if t.lock, err = lockRoom(ctx, t.room); err != nil {
		return nil, err
	}
	if err = t.open(ctx, bin, store); err != nil {
		t.lock.Close()
		return nil, fmt.Errorf("open the workspace of run %q: %w", cfg.Run, err)
	}
	return t, nil
}

// lockRoom creates the folder of a tree if it is missing, and locks it.
func lockRoom(ctx context.Context, room string) (*os.File, error) {
	if err := os.MkdirAll(room, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the workspace: %w", err)
	}
	return lockFile(ctx, filepath.Join(room, "lock"))
}

// realPath returns the absolute path of a folder with all links resolved. It creates the folder if it is missing.
func realPath(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the workspaces: %w", err)
	}
	return resolvePath(folder)
}

func resolvePath(folder string) (string, error) {
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
	if err := t.findOrigin(ctx, bin); err != nil {
		return err
	}
	format := "sha1"
	if t.repo {
		var err error
		if t.modules, err = modulesIn(ctx, t.user); err != nil {
			return err
		}
		if format, err = t.user.word(ctx, "rev-parse", "--show-object-format"); err != nil {
			return err
		}
	}
	t.store = filepath.Join(store, storeNames[format])
	if err := t.findPlace(); err != nil {
		return err
	}
	t.anchor()
	t.tidy()
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
	base, err := t.git.object(ctx, t.ref("base"))
	if err != nil {
		return err
	}
	start, err := t.git.object(ctx, t.ref("start"))
	if err != nil {
		return err
	}
	if base != "" && start != "" {
		t.base, t.start = Hash(base), Hash(start)
		if err := t.keepOldHead(ctx); err != nil {
			return err
		}
		if err := t.keepIgnored(ctx, t.start, false); err != nil || !t.empty {
			return err
		}
		return t.setUpAgain(ctx)
	}
	return t.create(ctx)
}

// removeLocks deletes the locks of refs that a killed process left. The lock of the tree keeps other processes away from the refs.
func (t *Tree) removeLocks() {
	locks, _ := filepath.Glob(filepath.Join(t.store, "refs", "refrain", t.name, "*.lock"))
	for _, name := range append(locks, filepath.Join(t.store, filepath.FromSlash(headRef(t.name))+".lock")) {
		os.Remove(name)
	}
}

// object returns the object that a revision names, or "" if there is no such revision.
func (g *git) object(ctx context.Context, revision string) (string, error) {
	out, err := g.word(ctx, "rev-parse", "--verify", "--quiet", revision)
	if code(err) == 1 {
		return "", nil
	}
	return out, err
}

// err0 returns the text of an error.
func err0(_ []byte, err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// prepareStore creates the store if it is missing. A store reads no objects of other repositories.
func (t *Tree) prepareStore(ctx context.Context, format string) error {
	lock, err := lockFile(ctx, filepath.Join(filepath.Dir(t.store), "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	made, seal, err := t.git.blank(ctx, t.store, format) // also restores the config of an existing store
	if err != nil {
		return err
	}
	defer removeAll(made)
	t.git.seal = seal
	if _, err := os.Stat(t.store); err != nil {
		if err := os.Rename(made, t.store); err != nil {
			return fmt.Errorf("prepare the store: %w", err)
		}
	}
	return t.dissociate(ctx)
}

// writeFile writes a complete file or leaves the old one.
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

// setUpAgain prepares a tree whose folder was deleted, as a new one is prepared. The files of the state are restored later.
func (t *Tree) setUpAgain(ctx context.Context) error {
	if _, err := t.restore(ctx, t.start); err != nil {
		return err
	}
	if err := t.copyIgnored(ctx, t.Dir()); err != nil {
		return err
	}
	if err := t.begin(); err != nil {
		return err
	}
	return t.setUp(ctx, t.Dir(), t.Environ())
}

// setUp runs the setup in the folder of a tree.
func (t *Tree) setUp(ctx context.Context, tree string, env []string) error {
	work, err := t.makeWork(tree)
	if err == nil && t.cfg.Setup != nil {
		err = t.cfg.Setup(ctx, work, env)
	}
	if err != nil {
		return fmt.Errorf("setup of the workspace: %w", err)
	}
	return nil
}

// create copies the files, sets the tree up, and marks it as complete.
func (t *Tree) create(ctx context.Context) error {
	if err := removeAll(t.Dir()); err != nil {
		return fmt.Errorf("delete an incomplete tree: %w", err)
	}
	if t.prefix == "" { // a tree of an older version, of which this is a fork, has no folder
		if err := writeFile(filepath.Join(t.room, folderNote), []byte(t.folder)); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(t.room, "from"), []byte(t.from)); err != nil {
		return err
	}
	if err := t.noteOwner(); err != nil {
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
		if err := t.keepHead(ctx); err != nil {
			return err
		}
	}
	fill := t.copyDirty
	if t.cfg.Base.isCommit() {
		fill = t.checkOutHead
	}
	if err := fill(ctx); err != nil {
		return err
	}
	base, err := t.git.write(ctx)
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
		if err := t.setUp(ctx, t.Dir(), t.Environ()); err != nil {
			return err
		}
		if t.start, err = t.snapshot(ctx, anySize); err != nil {
			return err
		}
	}
	if err := t.keepIgnored(ctx, t.start, true); err != nil {
		return err
	}
	if t.cfg.ForkOf != "" {
		return t.fork(ctx)
	}
	return t.pin(ctx, "start", t.start)
}

// noteOwner keeps the owner of a new tree.
func (t *Tree) noteOwner() error {
	if t.cfg.Owner == "" {
		return nil
	}
	return writeFile(filepath.Join(t.room, "owner"), []byte(t.cfg.Owner))
}

// fork copies the start and the base from the run that this run is a fork of.
func (t *Tree) fork(ctx context.Context) error {
	of := refName(t.cfg.ForkOf)
	lock, err := lockPruning(ctx, filepath.Dir(t.store), false)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := os.Remove(filepath.Join(t.room, commitNote)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("fork the workspace: %w", err)
	}
	if err := t.copyNotes(filepath.Join(filepath.Dir(t.room), of), "head", "dirty", commitNote); err != nil {
		return fmt.Errorf("fork the workspace: %w", err)
	}
	head, err := t.git.object(ctx, headRef(of))
	if err == nil && head != "" {
		_, err = t.git.run(ctx, "update-ref", headRef(t.name), head)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{"base", "start"} { // start marks the tree as complete
		h, err := t.git.object(ctx, "refs/refrain/"+of+"/"+name)
		if err == nil && h == "" {
			err = fmt.Errorf("the files of run %q, of which this is a fork, were removed", t.cfg.ForkOf)
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

// copyNotes copies files about another tree, as far as they exist, from its folder.
func (t *Tree) copyNotes(room string, names ...string) error {
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(room, name))
		if err == nil {
			err = writeFile(filepath.Join(t.room, name), text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// makeOwnRepository creates the git repository of a folder in which programs work, unless it exists. Its history ends
// with the user's last commit, or in a plain folder with a commit of the start.
func (t *Tree) makeOwnRepository(ctx context.Context, work string) error {
	dir := filepath.Join(work, ".git")
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		return t.cutHistory(ctx, work)
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
	objects, alternates := filepath.Join(t.store, "objects")+"\n", filepath.Join(dir, "objects", "info", "alternates")
	if err := writeFile(alternates, []byte(objects)); err != nil {
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
		text, err := t.commit()
		if err == nil && text != nil {
			_, err = g.feed1(ctx, text, "hash-object", "-t", "commit", "-w", "--stdin")
		}
		if err == nil {
			err = t.cutHistory(ctx, work)
		}
		if err != nil {
			return err
		}
	}
	if t.repo { // for the history; git would store no commit that it finds there
		users, err := t.userPath(ctx, "objects")
		if err == nil {
			err = writeFile(alternates, []byte(objects+users+"\n"))
		}
		if err != nil {
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
