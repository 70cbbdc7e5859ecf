// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Restore makes the files equal to those of a hash, and deletes files that the hash does not have. It stores the
// current files first and returns their hash as salvaged, so that no work is lost. It moves what no snapshot can
// hold, such as a git repository in the tree, to the folder salvage next to the tree. Ignored files stay as they are,
// unless the hash has a file at the same path. Restore verifies the files afterwards. A Restore that was interrupted
// can be repeated.
//
// The error wraps [ErrUnknownTree] if the store does not have the hash; in this case Restore has changed nothing.
func (t *Tree) Restore(ctx context.Context, h Hash) (salvaged Hash, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.restore(ctx, h)
}

// Ensure makes the files equal to those of a hash before programs work on them. If the last snapshot was taken by
// this process and has the hash, Ensure does nothing. Otherwise it compares all files. If they differ, Ensure stores
// the current files and returns their hash as salvaged; salvaged is empty if nothing had to be restored.
//
// Ensure returns a [*StrangerError] if files have changed since the last snapshot without an Ensure in between,
// unless the files are those of the hash. Ensure restores a tree whose folder was deleted. It puts back ignored files as
// [Tree.PutBackIgnored] does.
func (t *Tree) Ensure(ctx context.Context, h Hash) (salvaged Hash, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current && t.last == h {
		if _, err := t.putBackIgnored(ctx, h); err != nil {
			return "", err
		}
		if err := t.begin(); err != nil {
			return "", err
		}
		return "", t.makeOwnRepository(ctx, t.Dir())
	}
	if err := t.noStranger(ctx, h); err != nil {
		return "", err
	}
	was, err := t.restore(ctx, h)
	if err == nil {
		_, err = t.putBackIgnored(ctx, h)
	}
	if err == nil {
		err = t.begin()
	}
	if err != nil || was == h {
		return "", err
	}
	return was, nil
}

// Settle makes the files those of a hash if a program was cut off while it worked on them. Otherwise they stay as they are, also if a
// person has edited them. A person can then edit them, and the next [Tree.Ensure] finds that out.
func (t *Tree) Settle(ctx context.Context, h Hash) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	note, err := os.ReadFile(filepath.Join(t.room, "state"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || Hash(note).Valid() && !t.empty {
		return err
	}
	_, err = t.restore(ctx, h)
	return err
}

// working is the content of the file state while programs may be changing the files.
const working = "working"

// begin records that programs may change the files from now on.
func (t *Tree) begin() error {
	t.current, t.ignored.sure = false, false
	return writeFile(filepath.Join(t.room, "state"), []byte(working))
}

// noStranger returns an error if files have changed since the last snapshot of an earlier process and are not those of h.
func (t *Tree) noStranger(ctx context.Context, h Hash) error {
	if t.current || t.last != "" || t.empty {
		return nil
	}
	note, err := os.ReadFile(filepath.Join(t.room, "state"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	left := Hash(note)
	if err != nil || !left.Valid() || t.git.known(ctx, left) != nil {
		return err
	}
	if err := t.readIndex(ctx, left); err != nil {
		return err
	}
	now, err := t.salvage(ctx)
	if err == nil && now != left && now != h {
		t.last, t.current = "", false
		var changes []Change
		if changes, err = t.git.files(ctx, left, now); err == nil {
			stranger := &StrangerError{Dir: t.Dir(), Tree: now}
			for _, c := range changes {
				stranger.Paths = append(stranger.Paths, c.Path)
			}
			return errors.Join(writeFile(filepath.Join(t.room, "state"), note), stranger)
		}
	}
	return err
}

// restore takes a snapshot, restores the files and takes another one, until the files are those of h.
func (t *Tree) restore(ctx context.Context, h Hash) (salvaged Hash, err error) {
	if err := t.git.known(ctx, h); err != nil {
		return "", fmt.Errorf("restore the workspace: %w", err)
	}
	if info, err := os.Lstat(t.Dir()); err == nil && !info.IsDir() {
		if err := os.Remove(t.Dir()); err != nil { // a link or a file where the folder should be
			return "", fmt.Errorf("restore the workspace: %w", err)
		}
	}
	if err := t.isFolder(); err != nil {
		return "", fmt.Errorf("restore the workspace: %w", err)
	}
	fail := func(err error) (Hash, error) {
		t.last = ""
		return salvaged, fmt.Errorf("restore the workspace to %s: %w", h, err)
	}
	if err := t.readIndex(ctx, h); err != nil {
		return fail(err)
	}
	var now Hash
	for i := range 4 {
		if now, err = t.salvage(ctx); err != nil {
			return fail(err)
		}
		if i == 0 {
			salvaged = now
		}
		if now == h {
			if err := t.pin(ctx, string(h), h); err != nil {
				return fail(err)
			}
			return salvaged, t.makeOwnRepository(ctx, t.Dir())
		}
		if err := t.unlockIndex(); err != nil {
			return fail(err)
		}
		if err := t.begin(); err != nil { // if this process is killed during the restore, the changes are not a stranger's
			return fail(err)
		}
		if _, err := t.git.run(ctx, "read-tree", "--reset", "-u", string(h)); err != nil {
			return fail(err)
		}
		t.last = h
		if err := t.removeNested(ctx); err != nil {
			return fail(err)
		}
	}
	return fail(fmt.Errorf("the files are those of %s afterwards: another program is changing them", now))
}

// known returns an error unless the store has a tree with this hash.
func (g *git) known(ctx context.Context, h Hash) error {
	if !h.Valid() {
		return fmt.Errorf("%q: %w", h, ErrUnknownTree)
	}
	kind, err := g.word(ctx, "cat-file", "-t", string(h))
	switch {
	case err == nil && kind == "tree":
		return nil
	case err != nil && ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%s: %w", h, ErrUnknownTree)
}

// salvage takes a snapshot, and moves files away that a snapshot cannot store.
func (t *Tree) salvage(ctx context.Context) (Hash, error) {
	for range 1000 {
		h, err := t.snapshot(ctx, anySize)
		if err == nil && len(t.omitted) == 0 {
			return h, nil
		}
		if err == nil {
			for _, name := range t.omitted {
				if err := t.moveAway(name); err != nil {
					return "", err
				}
			}
			continue
		}
		var path string
		if e, ok := errors.AsType[*NestedError](err); ok {
			path = e.Path
		} else if e, ok := errors.AsType[*LimitError](err); ok && e.Limit == "file_size" {
			path = e.Path
		} else {
			return "", err
		}
		if err := t.moveAway(path); err != nil {
			return "", err
		}
	}
	return "", errors.New("too many files cannot be stored")
}

// moveAway moves a file or folder out of the tree.
func (t *Tree) moveAway(name string) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("move %q out of the tree: it is not in the tree", name)
	}
	to := filepath.Join(t.place, "salvage", rand.Text(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("move %q out of the tree: %w", name, err)
	}
	if err := os.Rename(filepath.Join(t.Dir(), filepath.FromSlash(name)), to); err != nil {
		return fmt.Errorf("move %q out of the tree: %w", name, err)
	}
	return nil
}

// removeNested moves away the git repositories that were made in folders whose files are stored.
func (t *Tree) removeNested(ctx context.Context) error {
	out, err := t.git.run(ctx, "ls-files", "-z")
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	for _, name := range list(out) {
		for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name, '/') {
			if name = name[:i]; seen[name] {
				break
			}
			seen[name] = true
			inner := name + "/.git"
			switch _, err := os.Lstat(filepath.Join(t.Dir(), filepath.FromSlash(inner))); {
			case err == nil:
				if err := t.moveAway(inner); err != nil {
					return err
				}
			case !errors.Is(err, fs.ErrNotExist):
				return fmt.Errorf("look for repositories in the tree: %w", err)
			}
		}
	}
	return nil
}
