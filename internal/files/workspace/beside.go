// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Beside returns another tree of the run, in which programs can work at the same time as in t. It has the start of t,
// its limits and its store. A new tree begins with a copy of the current files of t, including ignored ones; an
// existing tree has the files that the last process has left.
//
// The error wraps [ErrLocked] or a [*LimitError].
func (t *Tree) Beside(ctx context.Context, name string) (*Tree, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	part := filepath.Join("beside", refName(name))
	s := &Tree{
		cfg: t.cfg, origin: t.origin, base: t.base, start: t.start,
		storage:  storage{name: t.name + "/" + filepath.ToSlash(part), room: filepath.Join(t.room, part), place: filepath.Join(t.place, part), store: t.store},
		contents: contents{ignored: ignoredFiles{tree: t.ignored.tree, files: t.ignored.files}},
	}
	s.objects = ""
	if err := os.MkdirAll(s.place, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the workspace: %w", err)
	}
	lock, err := lockRoom(ctx, s.room)
	if err != nil {
		return nil, err
	}
	s.lock = lock
	s.tidy()
	s.removeLocks()
	g := *t.git
	g.dir, g.lock = s.Dir(), lock
	g.env = []string{"GIT_DIR=" + s.store, "GIT_WORK_TREE=" + s.Dir(), "GIT_INDEX_FILE=" + s.index}
	s.git = &g
	err = os.Mkdir(s.Dir(), 0o700)
	if s.empty = err == nil; errors.Is(err, fs.ErrExist) {
		err = nil
	}
	start := ""
	if err == nil {
		start, err = s.git.object(ctx, s.ref("start"))
	}
	if err == nil && start == "" {
		err = s.copyOf(ctx, t)
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("open the tree %q beside that of run %q: %w", name, t.cfg.Run, err)
	}
	return s, nil
}

// copyOf copies the files of another tree, and marks the tree as complete.
func (t *Tree) copyOf(ctx context.Context, of *Tree) error {
	if err := removeAll(t.Dir()); err != nil {
		return fmt.Errorf("delete an incomplete tree: %w", err)
	}
	if err := t.copyNotes(of.room, "from", folderNote, "head", "dirty", commitNote, "exclude"); err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	if err := os.Mkdir(t.Dir(), 0o700); err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	size, err := sizeOf(of.Dir())
	if err != nil {
		return err
	}
	if left := free(t.place); left >= 0 && left < size+spare {
		return &LimitError{"disk", t.place, size + spare, left}
	}
	if err := noMount(of.Dir()); err != nil {
		return err
	}
	if err := of.copyTo(ctx, t.Dir()); err != nil {
		return err
	}
	return t.pin(ctx, "start", t.start)
}

// copyTo copies all files but the tree's own repository.
func (t *Tree) copyTo(ctx context.Context, folder string) error {
	source, err := os.OpenRoot(t.Dir())
	if err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	defer source.Close()
	target, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	defer target.Close()
	err = fs.WalkDir(source.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || name == ".":
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case name == ".git" && d.IsDir():
			return fs.SkipDir
		case name == ".git":
			return nil
		case d.IsDir():
			info, err := d.Info()
			if err == nil {
				err = target.Mkdir(name, info.Mode().Perm()|0o700)
			}
			return err
		}
		_, err = copyEntry(source, target, name, name, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	return nil
}

// Merge returns a tree with the changes that several trees have made to base; the keys are the names of the trees in
// an error. It changes no files. Changes that do not fit together are a [*ConflictError]: two trees have changed a
// file differently, or one has a file where another has a folder. Merge never merges the contents of a file.
func (t *Tree) Merge(ctx context.Context, base Hash, trees map[string]Hash) (Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.merge(ctx, base, trees)
	if err != nil {
		return "", fmt.Errorf("merge trees: %w", err)
	}
	return h, nil
}

func (t *Tree) merge(ctx context.Context, base Hash, trees map[string]Hash) (Hash, error) {
	type owned struct {
		Change
		by string
	}
	all := make(map[string]owned)
	conflict, between := &ConflictError{}, make(map[string]bool)
	clash := func(path, a, b string) {
		between[a], between[b] = true, true
		if !slices.Contains(conflict.Paths, path) {
			conflict.Paths = append(conflict.Paths, path)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		changes, err := t.git.compare(ctx, base, trees[name])
		if err != nil {
			return "", err
		}
		for _, c := range changes {
			other, taken := all[c.Path]
			if taken && (other.Mode != c.Mode || other.blob != c.blob) {
				clash(c.Path, other.by, name)
			} else if !taken {
				all[c.Path] = owned{c, name}
			}
		}
	}
	var edits []edit
	for _, path := range slices.Sorted(maps.Keys(all)) {
		c := all[path]
		edits = append(edits, edit{path, c.Mode, c.blob})
		for dir := path; c.Mode != "000000"; {
			i := strings.LastIndexByte(dir, '/')
			if i < 0 {
				break
			}
			dir = dir[:i]
			if file, ok := all[dir]; ok && file.Mode != "000000" && file.by != c.by {
				clash(dir, file.by, c.by)
			}
		}
	}
	if len(conflict.Paths) > 0 {
		slices.Sort(conflict.Paths)
		conflict.Branches = slices.Sorted(maps.Keys(between))
		return "", conflict
	}
	h, err := t.edited(ctx, t.git, string(base), edits)
	if err == nil {
		err = t.pin(ctx, string(h), h)
	}
	return h, err
}

// tidy sets the index of this process, and deletes files that killed processes have left.
func (t *Tree) tidy() {
	t.index = filepath.Join(t.room, "index-"+rand.Text())
	for _, pattern := range []string{"index-*", "scratch-*", "clean-*"} {
		old, _ := filepath.Glob(filepath.Join(t.room, pattern))
		placed, _ := filepath.Glob(filepath.Join(t.place, pattern))
		for _, name := range append(old, placed...) {
			_ = removeAll(name)
		}
	}
}
