// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ignoredFiles has the protected files that are not part of the state, because git ignores them, as they were when the tree was new. Without
// it a program could add a protected file unseen, by ignoring it.
type ignoredFiles struct {
	tree  Hash                    // of these files
	files map[string]ignoredEntry // by path
	sure  bool                    // the files are these: no program may have changed them since
}

// ignoredEntry is the mode and the content of a file.
type ignoredEntry struct{ mode, blob string }

// keepIgnored records the ignored files that match Config.Protect, unless they are known. stored has the files of the state.
func (t *Tree) keepIgnored(ctx context.Context, stored Hash, fresh bool) error {
	if len(t.cfg.Protect) == 0 {
		return nil
	}
	sum := sha256.Sum256([]byte(strings.Join(t.cfg.Protect, "\n"))) // other patterns have other files
	ref := protectedRefs(t.name) + hex.EncodeToString(sum[:8])
	known, err := "", error(nil)
	if !fresh {
		known, err = t.git.object(ctx, ref)
	}
	if err == nil && known == "" {
		var now Hash
		if now, err = t.ignoredNow(ctx, stored); err == nil {
			known = string(now)
			_, err = t.git.run(ctx, "update-ref", ref, known)
		}
	}
	if err != nil {
		return fmt.Errorf("record the protected files that git ignores: %w", err)
	}
	t.ignored.tree, t.ignored.files = Hash(known), make(map[string]ignoredEntry)
	out, err := t.git.run(ctx, "ls-tree", "-r", "-z", "--full-tree", known)
	for _, entry := range list(out) {
		meta, name, _ := strings.Cut(entry, "\t")
		f := strings.Fields(meta)
		t.ignored.files[unalias(name)] = ignoredEntry{f[0], f[2]}
	}
	return err
}

// protectedRefs begins the refs to the ignored files of a run. They are not exported with the run.
func protectedRefs(name string) string { return "refs/protected/" + name + "/" }

// PutBackIgnored puts back the files that match [Config].Protect and that git ignores, so that they are as when the tree was new, and
// lists those that were not. stored has the files of the state. It removes, and does not list, what programs leave behind: new files in a
// protected folder of the state that git has always ignored, such as tests/__pycache__ under tests/**.
func (t *Tree) PutBackIgnored(ctx context.Context, stored Hash) ([]Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes, err := t.putBackIgnored(ctx, stored)
	if err != nil {
		return nil, fmt.Errorf("put back protected files that git ignores: %w", err)
	}
	return changes, nil
}

func (t *Tree) putBackIgnored(ctx context.Context, stored Hash) (all []Change, err error) {
	if t.ignored.files == nil || t.ignored.sure {
		return nil, nil
	}
	if err := t.isFolder(); err != nil {
		return nil, err
	}
	for range 2 {
		now, err := t.ignoredNow(ctx, stored)
		if err != nil {
			return nil, err
		}
		if now == t.ignored.tree {
			t.ignored.sure = true
			return all, nil
		}
		changes, err := t.git.files(ctx, t.ignored.tree, now)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			changes[i].Path = unalias(changes[i].Path)
		}
		changed, err := t.leftBehind(ctx, changes)
		if err != nil {
			return nil, err
		}
		all = append(all, t.perRepository(changed)...)
		if err := t.undoIgnored(ctx, changes); err != nil {
			return nil, err
		}
	}
	now, err := t.ignoredNow(ctx, stored)
	if err == nil && now != t.ignored.tree {
		err = errors.New("another program is changing them")
	}
	t.ignored.sure = err == nil
	return all, err
}

// leftBehind returns the changes without those that programs leave behind.
func (t *Tree) leftBehind(ctx context.Context, changes []Change) (changed []Change, err error) {
	var rules map[string]bool
	for _, c := range changes {
		folder, ok := t.protectedFolder(c.Path)
		if c.Status != "A" || !ok {
			changed = append(changed, c)
			continue
		}
		out, err := t.git.run(ctx, "ls-tree", "-z", "--name-only", "--full-tree", string(t.start), folder)
		if err != nil {
			return nil, err
		}
		if rules == nil {
			if rules, err = t.newRules(ctx, changes); err != nil {
				return nil, err
			}
		}
		hidden := len(out) == 0 // the whole folder is ignored, so the pattern is about ignored files
		for dir := c.Path; dir != "."; {
			dir = path.Dir(dir)
			hidden = hidden || rules[dir]
		}
		if hidden {
			changed = append(changed, c)
		}
	}
	return changed, nil
}

// protectedFolder returns the folder because of which a file is protected. ok is false if a pattern matches the file by its name.
func (t *Tree) protectedFolder(name string) (folder string, ok bool) {
	parts := strings.Split(name, "/")
	for _, p := range t.cfg.Protect {
		pattern := strings.Split(strings.TrimSuffix(p, "/**"), "/")
		for i := 1; i <= len(parts); i++ {
			if !match(pattern, parts[:i]) {
				continue
			}
			if i == len(parts) {
				return "", false
			}
			folder = strings.Join(parts[:i], "/")
			break
		}
	}
	return folder, folder != ""
}

// newRules returns the folders above the changed files whose .gitignore is not that of the start.
func (t *Tree) newRules(ctx context.Context, changes []Change) (map[string]bool, error) {
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	rules := make(map[string]bool)
	for _, c := range changes {
		for dir := c.Path; dir != "."; {
			dir = path.Dir(dir)
			if _, known := rules[dir]; known {
				continue
			}
			name := path.Join(dir, ".gitignore")
			was, err := t.git.object(ctx, string(t.start)+":"+name)
			if err != nil {
				return nil, err
			}
			now := ""
			if info, err := root.Lstat(filepath.FromSlash(name)); err == nil && info.Mode().IsRegular() && info.Size() <= maxNote {
				text, err := root.ReadFile(filepath.FromSlash(name))
				if err == nil {
					now, err = t.git.feed1(ctx, text, "hash-object", "--stdin")
				}
				if err != nil {
					return nil, err
				}
			}
			rules[dir] = was != now
		}
	}
	return rules, nil
}

// undoIgnored undoes changes of ignored files.
func (t *Tree) undoIgnored(ctx context.Context, changes []Change) error {
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	for _, c := range changes {
		inner := innerGit(c.Path)
		switch {
		case inner != "" && !t.knownBelow(inner):
			err = root.RemoveAll(filepath.FromSlash(inner))
		case c.Status == "A":
			err = root.Remove(filepath.FromSlash(c.Path))
		case aliasOf(c.Path) != c.Path:
			err = t.putBackHidden(ctx, root, c.Path)
		default:
			names = append(names, c.Path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(names) == 0 {
		return nil
	}
	g := t.ignoredGit()
	if _, err := g.run(ctx, "read-tree", string(t.ignored.tree)); err != nil {
		return err
	}
	_, err = g.feed(ctx, lines(names), "checkout-index", "-z", "--force", "--stdin")
	return err
}

// ignoredGit returns a git with an index of the ignored files, which remembers their contents.
func (t *Tree) ignoredGit() *git {
	index := filepath.Join(t.room, "ignored")
	os.Remove(index + ".lock") // of a killed command
	return t.git.with("GIT_INDEX_FILE=" + index)
}

// ignoredNow stores the protected files that are not in the state, and those that were not when the tree was new.
func (t *Tree) ignoredNow(ctx context.Context, stored Hash) (Hash, error) {
	found, err := t.matching()
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		out, err := t.git.run(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", string(stored))
		if err != nil {
			return "", err
		}
		state := make(map[string]bool)
		for _, name := range list(out) {
			state[name] = true
		}
		found = slices.DeleteFunc(found, func(name string) bool {
			_, known := t.ignored.files[name]
			return state[name] && !known
		})
	}
	if len(found) == 0 && t.ignored.files != nil && len(t.ignored.files) == 0 {
		return t.ignored.tree, nil
	}
	g := t.ignoredGit()
	out, err := g.run(ctx, "ls-files", "-z")
	if err != nil {
		return "", err
	}
	gone := slices.DeleteFunc(list(out), func(name string) bool {
		_, is := slices.BinarySearch(found, unalias(name))
		return is
	})
	hidden := slices.DeleteFunc(slices.Clone(found), func(name string) bool { return aliasOf(name) == name })
	found = slices.DeleteFunc(found, func(name string) bool { return aliasOf(name) != name })
	if len(gone) > 0 {
		if _, err := g.feed(ctx, lines(gone), "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return "", err
		}
	}
	if len(found) > 0 {
		if _, err := g.feed(ctx, lines(found), "update-index", "-z", "--add", "--replace", "--stdin"); err != nil {
			return "", err
		}
	}
	if err := t.addHidden(ctx, g, hidden); err != nil {
		return "", err
	}
	return g.write(ctx)
}

// matching lists the files and links of the tree that match Config.Protect, in order. It follows no links.
func (t *Tree) matching() (names []string, err error) {
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	patterns := make([][]string, len(t.cfg.Protect))
	for i, p := range t.cfg.Protect {
		patterns[i] = strings.Split(p, "/")
	}
	var walk func(dir string) error
	walk = func(dir string) error {
		entries, err := fs.ReadDir(root.FS(), dir)
		if errors.Is(err, fs.ErrPermission) && root.Chmod(dir, 0o700) == nil {
			entries, err = fs.ReadDir(root.FS(), dir)
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			parts := strings.Split(name, "/")
			switch {
			case name == ".git": // of the tree itself: see makeOwnRepository
			case e.IsDir():
				if slices.ContainsFunc(patterns, func(p []string) bool { return reaches(p, parts) }) {
					if err := walk(name); err != nil {
						return err
					}
				}
			case !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0:
			case slices.ContainsFunc(patterns, func(p []string) bool { return match(p, parts) }):
				info, err := e.Info()
				if err != nil {
					return err
				}
				if info.Mode().IsRegular() && info.Size() > t.cfg.Limits.FileSize {
					return &LimitError{"file_size", name, info.Size(), t.cfg.Limits.FileSize}
				}
				names = append(names, name)
			}
		}
		return nil
	}
	err = walk(".")
	slices.Sort(names)
	return names, err
}

// reaches reports whether a pattern can match a file in a folder.
func reaches(pattern, folder []string) bool {
	for i, part := range folder {
		if i == len(pattern) || pattern[i] == "**" {
			return true
		}
		if ok, err := path.Match(pattern[i], part); err != nil || !ok {
			return false
		}
	}
	return true
}
