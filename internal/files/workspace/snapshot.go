// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const modeNested = "160000" // of a git repository in a tree

// anySize turns off the limits on the difference from the start.
const anySize = true

// Snapshot stores the current files and returns their hash. When it returns, the contents are on the disk under a ref
// of the run. It leaves git repositories inside the tree out, and stores the other files: see [Tree.LeftOut]. It fails with a
// [*LimitError], and with a [*GitError] if git cannot read a file. It never returns the hash of an older state.
func (t *Tree) Snapshot(ctx context.Context) (Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.snapshot(ctx, false)
	if err != nil {
		return "", fmt.Errorf("snapshot of the workspace: %w", err)
	}
	return h, nil
}

// isFolder returns an error unless the files are in a folder, and not behind a link to a folder elsewhere or a mount point.
func (t *Tree) isFolder() error {
	info, err := os.Lstat(t.Dir())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.Mkdir(t.Dir(), 0o700)
	case err == nil && !info.IsDir():
		err = fmt.Errorf("%s is no folder any more: a program has replaced it", t.Dir())
	case err == nil:
		err = noMount(t.Dir())
	}
	return err
}

func (t *Tree) snapshot(ctx context.Context, any bool) (Hash, error) {
	t.current = false
	if err := t.isFolder(); err != nil {
		return "", err
	}
	if err := t.readIndex(ctx, t.start); err != nil {
		return "", err
	}
	if err := t.fits(ctx); err != nil {
		return "", err
	}
	if err := t.addAll(ctx); err != nil {
		return "", err
	}
	h, err := t.git.write(ctx)
	if err != nil {
		return "", err
	}
	if h == t.last {
		return h, t.settle(h)
	}
	if err := t.checkNew(ctx, h, any); err != nil {
		// The index and t.last must always agree.
		t.last = ""
		return "", err
	}
	if err := t.pin(ctx, string(h), h); err != nil {
		return "", err
	}
	t.last = h
	return h, t.settle(h)
}

// settle records that the files are those of a snapshot.
func (t *Tree) settle(h Hash) error {
	t.current = true
	return writeFile(filepath.Join(t.room, "state"), []byte(h))
}

// readIndex fills a new index of this process with the files of a tree. These files stay in the state even if they are ignored.
func (t *Tree) readIndex(ctx context.Context, h Hash) error {
	if t.last != "" {
		return nil
	}
	if err := t.unlockIndex(); err != nil {
		return err
	}
	if _, err := t.git.run(ctx, "read-tree", string(h)); err != nil {
		return err
	}
	t.last = h
	return nil
}

// unlockIndex deletes the lock that a killed git command left. No other command of this tree runs meanwhile.
func (t *Tree) unlockIndex() error {
	if err := os.Remove(t.index + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("unlock the index: %w", err)
	}
	return nil
}

// fits checks the changed files against the limits before they are stored.
func (t *Tree) fits(ctx context.Context) error {
	if t.size == 0 || t.size > t.cfg.Limits.Store {
		size, err := sizeOf(t.store)
		if err != nil {
			return err
		}
		if t.size = size; size > t.cfg.Limits.Store {
			return &LimitError{"store", "", size, t.cfg.Limits.Store}
		}
	}
	out, err := t.git.run(ctx, "ls-files", "-z", "--modified", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	t.omitted = nil
	for _, name := range list(out) {
		if before, ok := strings.CutSuffix(name, "/"); ok {
			t.omitted = append(t.omitted, before)
			continue
		}
		if inner := innerGit(name); inner != "" {
			t.omitted = append(t.omitted, inner)
			continue
		}
		info, err := os.Lstat(filepath.Join(t.Dir(), filepath.FromSlash(name)))
		if err != nil || !info.Mode().IsRegular() {
			continue // deleted, or a link
		}
		if info.Size() > t.cfg.Limits.FileSize {
			return &LimitError{"file_size", name, info.Size(), t.cfg.Limits.FileSize}
		}
		t.size += info.Size()
	}
	return nil
}

// innerGit returns the part of a name up to the first folder or file that git takes for a repository in some file systems,
// such as a/.GIT of a/.GIT/config; "" without one.
func innerGit(name string) string {
	for i, part := range strings.Split(name, "/") {
		if refuses(part) {
			return strings.Join(strings.Split(name, "/")[:i+1], "/")
		}
	}
	return ""
}

// mostLeftOut is how many repositories inside the tree a snapshot leaves out.
const mostLeftOut = 1000

// addAll puts the current files into the index, without the repositories inside the tree.
func (t *Tree) addAll(ctx context.Context) error {
	for {
		slices.Sort(t.omitted)
		t.omitted = slices.Compact(t.omitted)
		if err := t.unlockIndex(); err != nil {
			return err
		}
		args, g := []string{"add", "--all", "."}, t.git
		if len(t.omitted) > 0 {
			g = g.with("GIT_LITERAL_PATHSPECS=0")
			args[2] = ":/"
			for _, name := range t.omitted {
				args = append(args, ":(exclude,literal)"+name)
			}
		}
		_, err := g.run(ctx, args...)
		if err == nil {
			return nil
		}
		nested, ok := errors.AsType[*NestedError](t.whyNot(ctx, err))
		if !ok || slices.Contains(t.omitted, nested.Path) || len(t.omitted) >= mostLeftOut {
			return t.whyNot(ctx, err)
		}
		t.omitted = append(t.omitted, nested.Path)
	}
}

// LeftOut lists what the last snapshot could not store: git repositories inside the tree, and folders that git would take
// for one, such as .GIT.
func (t *Tree) LeftOut() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.omitted)
}

// sizeOf returns the size of a store in bytes.
func sizeOf(store string) (size int64, err error) {
	err = filepath.WalkDir(store, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // a file that git has just renamed
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the store: %w", err)
	}
	return max(1, size), nil
}

// whyNot returns a [*NestedError] in place of err if git refused a folder because it is a repository.
func (t *Tree) whyNot(ctx context.Context, err error) error {
	e, ok := errors.AsType[*GitError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	if _, rest, ok := strings.Cut(e.Stderr, "error: '"); ok {
		if name, _, ok := strings.Cut(rest, "/' does not have a commit checked out"); ok {
			return &NestedError{name}
		}
	}
	return err
}

// write stores the tree of the index.
func (g *git) write(ctx context.Context) (Hash, error) {
	out, err := g.word(ctx, "write-tree")
	if err == nil && !Hash(out).Valid() {
		err = fmt.Errorf("git write-tree returned %q, which is no hash", out)
	}
	return Hash(out), err
}

// checkNew checks the changes of a new tree.
func (t *Tree) checkNew(ctx context.Context, h Hash, any bool) error {
	out, err := t.git.run(ctx, "diff-tree", "-r", "-z", "--no-renames", string(t.last), string(h))
	if err != nil {
		return err
	}
	for meta, name := range entries(out) {
		if strings.Fields(meta)[1] == modeNested {
			return &NestedError{name}
		}
	}
	if l := t.cfg.Limits; !any && (l.Files > 0 || l.Lines > 0) {
		return t.checkSize(ctx, h, l)
	}
	return nil
}

// checkSize compares a tree with the start, or with the tree that [Tree.CountFrom] has set, and checks the limits.
func (t *Tree) checkSize(ctx context.Context, h Hash, l Limits) error {
	changes, err := t.git.files(ctx, cmp.Or(t.against, t.start), h)
	if err != nil {
		return err
	}
	if n := int64(len(changes)); l.Files > 0 && n > l.Files {
		return &LimitError{"files", "", n, l.Files}
	}
	if n := Lines(changes); l.Lines > 0 && n > l.Lines {
		return &LimitError{"lines", "", n, l.Lines}
	}
	return nil
}

// Lines returns the number of lines that the changes have added and removed.
func Lines(changes []Change) (n int64) {
	for _, c := range changes {
		n += c.Added + c.Removed
	}
	return n
}

// pin points a ref of the run at a tree, so that git keeps the tree.
func (t *Tree) pin(ctx context.Context, name string, h Hash) error {
	_, err := t.git.run(ctx, "update-ref", t.ref(name), string(h))
	return err
}
