// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// Clean writes the files of a tree, with the changes undone, into a new folder, and copies the files of the folder
// overlay over them, if it is not empty. It prepares the folder as Open prepares a new tree, with the ignored files
// to copy, a repository and the setup, calls use with the folder of [Tree.Work] there and with additional environment variables, and
// deletes the folder. Changes in the folder affect nothing else.
//
// The error wraps [ErrUnknownTree] if the store does not have the hash; otherwise it may be that of use.
func (t *Tree) Clean(ctx context.Context, h Hash, undo []Change, overlay string, use func(dir string, env []string) error) error {
	room := filepath.Join(t.place, "clean-"+rand.Text())
	dir := filepath.Join(room, "tree")
	defer func() { _ = removeAll(room) }()
	if err := t.checkOut(ctx, h, undo, overlay, dir); err != nil {
		return fmt.Errorf("check out the workspace: %w", err)
	}
	work, err := t.makeWork(dir)
	if err != nil {
		return err
	}
	env := []string{"REFRAIN_WORKSPACE=" + work, "GIT_CEILING_DIRECTORIES=" + room}
	if err := t.setUp(ctx, dir, env); err != nil {
		return err
	}
	return use(work, env)
}

func (t *Tree) checkOut(ctx context.Context, h Hash, undo []Change, overlay, dir string) error {
	if err := t.git.known(ctx, h); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if len(undo) > 0 {
		var err error
		if h, err = t.edited(ctx, t.git, string(h), undone(undo)); err != nil {
			return err
		}
	}
	index := filepath.Join(t.room, "scratch-"+rand.Text())
	defer os.Remove(index)
	g := t.git.with("GIT_WORK_TREE="+dir, "GIT_INDEX_FILE="+index)
	g.dir = dir
	if _, err := g.run(ctx, "read-tree", string(h)); err != nil {
		return err
	}
	if _, err := g.run(ctx, "checkout-index", "--all", "--quiet"); err != nil {
		return err
	}
	ignored := filepath.Join(filepath.Dir(dir), "ignored") // and not into folders that may be links
	if err := os.Mkdir(ignored, 0o700); err != nil {
		return err
	}
	if err := t.copyIgnored(ctx, ignored); err != nil {
		return err
	}
	if err := lay(ctx, ignored, dir); err != nil {
		return err
	}
	if err := t.makeOwnRepository(ctx, dir); err != nil {
		return err
	}
	if overlay == "" {
		return nil
	}
	work, err := t.makeWork(dir)
	if err != nil {
		return err
	}
	if err := lay(ctx, overlay, work); err != nil {
		return fmt.Errorf("lay %q over the files: %w", overlay, err)
	}
	return nil
}

// lay copies the files and links of a folder over those of another one. It replaces a link or a file in the way, so
// that it writes nothing outside.
func lay(ctx context.Context, from, to string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer target.Close()
	return fs.WalkDir(source.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case path.Base(name) == ".git" && d.IsDir():
			return fs.SkipDir
		case path.Base(name) == ".git":
			return nil
		case d.IsDir():
			if info, err := target.Lstat(name); err == nil && !info.IsDir() {
				if err := target.Remove(name); err != nil {
					return err
				}
			}
			return target.MkdirAll(name, 0o755)
		}
		if err := target.RemoveAll(name); err != nil {
			return err
		}
		if _, err := copyEntry(source, target, name, name, 0); err != nil || !d.Type().IsRegular() {
			return err
		}
		now := time.Now() // newer than what was built from the file that it replaces
		return target.Chtimes(name, now, now)
	})
}

// InIndex lists the files of a folder, with the files of folders in it, that git tracks. The list is empty in a folder without a
// repository.
func InIndex(ctx context.Context, folder string) ([]string, error) {
	bin, err := exec.LookPath("git") // of any version
	if err != nil {
		return nil, ErrNoGit
	}
	out, err := ofUser(bin, folder, nil, nil).run(ctx, "ls-files", "-z", ".")
	if code(err) == 128 {
		return nil, nil
	}
	return list(out), err
}

// Tracked reports whether git has, or has had in the history of the last commit, files of a folder in the
// repository of the folder from, where programs that work in a tree of it can read them.
func Tracked(ctx context.Context, from, folder string) (bool, error) {
	bin, err := findGit(ctx)
	if err != nil {
		return false, err
	}
	g, own := ofUser(bin, folder, nil, nil), ofUser(bin, from, nil, nil)
	top, err := g.word(ctx, "rev-parse", "--show-toplevel")
	if code(err) == 128 { // no repository
		return false, nil
	} else if err != nil {
		return false, err
	}
	if of, err := own.word(ctx, "rev-parse", "--show-toplevel"); code(err) == 128 || err == nil && of != top {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if out, err := g.run(ctx, "ls-files", "-z", "."); err != nil || len(out) > 0 {
		return len(out) > 0, err
	}
	out, err := g.run(ctx, "rev-list", "-n", "1", "HEAD", "--", ".")
	if code(err) == 128 { // no commit yet
		return false, nil
	}
	return len(out) > 0, err
}
