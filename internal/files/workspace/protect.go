// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// CheckPattern returns an error for a pattern that [Match] cannot use.
func CheckPattern(pattern string) error {
	if pattern == "" || strings.HasPrefix(pattern, "/") || strings.Contains(pattern, `\`) {
		return fmt.Errorf("pattern %q: it must be a path in the tree with slashes, such as **/*_test.go", pattern)
	}
	for part := range strings.SplitSeq(pattern, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("pattern %q: it has the part %q", pattern, part)
		}
		if _, err := path.Match(part, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// Literal returns a pattern that matches a path and everything in it.
func Literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Match reports whether a path matches a pattern. In a pattern * and ? match characters within one part of the path,
// [a-z] matches one character of a set, and ** matches any number of parts. A pattern that matches a folder matches
// everything in it.
func Match(pattern, name string) bool {
	return match(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

func match(pattern, name []string) bool {
	for ; len(pattern) > 0; pattern, name = pattern[1:], name[1:] {
		if pattern[0] == "**" {
			for i := range len(name) + 1 {
				if match(pattern[1:], name[i:]) {
					return len(pattern) > 1 || len(name) > 0
				}
			}
			return false
		}
		if len(name) == 0 {
			return false
		}
		if ok, err := path.Match(pattern[0], name[0]); err != nil || !ok {
			return false
		}
	}
	return true // a folder above the file, or the file itself, matches
}

// PutBack undoes changes in the tree now, such as those that [Tree.Protected] lists. It makes the files equal to now
// without these changes, and returns the hash of the files.
func (t *Tree) PutBack(ctx context.Context, now Hash, touched []Change) (Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, err := t.edited(ctx, t.git, string(now), undone(touched))
	if err == nil {
		err = t.pin(ctx, string(h), h)
	}
	if err == nil {
		_, err = t.restore(ctx, h)
	}
	if err != nil {
		return "", fmt.Errorf("put files back: %w", err)
	}
	return h, nil
}

// Redo returns the tree h with each file that differs between two other trees as it is in the second of them. It changes no files.
func (t *Tree) Redo(ctx context.Context, h, from, to Hash) (Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes, err := t.git.compare(ctx, from, to)
	var edits []edit
	for _, c := range changes {
		edits = append(edits, edit{c.Path, c.Mode, c.blob})
	}
	if err == nil {
		h, err = t.edited(ctx, t.git, string(h), edits)
	}
	if err == nil {
		err = t.pin(ctx, string(h), h)
	}
	if err != nil {
		return "", fmt.Errorf("redo changes of files: %w", err)
	}
	return h, nil
}

// Protected lists the files that match one of the patterns, relative to [Config].From, and differ between two trees. See
// [Tree.PutBackIgnored] for files that git ignores.
func (t *Tree) Protected(ctx context.Context, base, now Hash, patterns []string) (touched []Change, err error) {
	changes, err := t.Files(ctx, base, now)
	if err != nil {
		return nil, err
	}
	patterns = t.anchored(patterns)
	for _, c := range changes {
		if was, ok := t.ignored.files[c.Path]; ok && c.Status == "A" && was == (ignoredEntry{c.Mode, c.blob}) {
			continue // it has not changed, but git ignores it no longer
		}
		for _, p := range patterns {
			if Match(p, c.Path) {
				touched = append(touched, c)
				break
			}
		}
	}
	return touched, nil
}

// undone returns the edits that undo changes.
func undone(changes []Change) []edit {
	edits := make([]edit, 0, len(changes))
	for _, c := range changes {
		edits = append(edits, edit{c.Path, c.WasMode, c.wasBlob})
	}
	return edits
}

// edit sets a file of a tree; the mode 000000 removes it.
type edit struct{ path, mode, blob string }

// edited returns a copy of a tree with edits applied; the git g reads and stores the objects.
func (t *Tree) edited(ctx context.Context, g *git, tree string, edits []edit) (Hash, error) {
	index := filepath.Join(t.room, "scratch-"+rand.Text())
	defer os.Remove(index)
	g = g.with("GIT_INDEX_FILE=" + index)
	if tree != "" {
		if _, err := g.run(ctx, "read-tree", tree); err != nil {
			return "", err
		}
	}
	var in bytes.Buffer
	for _, gone := range []bool{true, false} { // delete first, because a folder may become a file
		for _, e := range edits {
			if (e.mode == "000000") == gone {
				fmt.Fprintf(&in, "%s %s\t%s\x00", e.mode, e.blob, e.path)
			}
		}
	}
	if _, err := g.feed(ctx, in.Bytes(), "update-index", "-z", "--replace", "--index-info"); err != nil {
		return "", err
	}
	return g.write(ctx)
}
