// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Git stores no file below a folder that it could take for a repository. So the ignored files below such a folder are stored under an
// alias: each part of the path that git refuses, or that could be an alias, begins with %2E or the like in place of its first character.

// refuses reports whether git refuses a part of a path, because it is .git in some file system. On Windows git~1 is the same, and dots,
// blanks and a stream do not count at its end.
func refuses(part string) bool {
	part = strings.ToLower(part)
	rest, ok := strings.CutPrefix(part, ".git")
	if !ok {
		rest, ok = strings.CutPrefix(part, "git~1")
	}
	rest = strings.TrimLeft(rest, " .")
	return ok && (rest == "" || rest[0] == ':' || rest[0] == '\\')
}

// aliasOf returns the name under which a file is stored. It is the name itself unless git refuses that.
func aliasOf(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if refuses(part) || strings.HasPrefix(part, "%") {
			parts[i] = fmt.Sprintf("%%%02X%s", part[0], part[1:])
		}
	}
	return strings.Join(parts, "/")
}

// unalias returns the name of a file that is stored under an alias.
func unalias(alias string) string {
	parts := strings.Split(alias, "/")
	for i, part := range parts {
		if len(part) < 3 || part[0] != '%' {
			continue
		}
		first, err := strconv.ParseUint(part[1:3], 16, 8)
		if own := string(rune(first)) + part[3:]; err == nil && (first == '%' || refuses(own)) {
			parts[i] = own
		}
	}
	return strings.Join(parts, "/")
}

// addHidden adds files to an index under their aliases.
func (t *Tree) addHidden(ctx context.Context, g *git, names []string) error {
	if len(names) == 0 {
		return nil
	}
	root, err := os.OpenRoot(t.Dir())
	if err != nil {
		return err
	}
	defer root.Close()
	var index strings.Builder
	for _, name := range names {
		file := filepath.FromSlash(name)
		info, err := root.Lstat(file)
		if err != nil {
			return err
		}
		mode, text := "100644", []byte(nil)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			var target string
			target, err = root.Readlink(file)
			mode, text = "120000", []byte(target)
		case info.Mode().Perm()&0o100 != 0:
			mode = "100755"
			fallthrough
		default:
			text, err = root.ReadFile(file)
		}
		if err != nil {
			return err
		}
		blob, err := g.feed1(ctx, text, "hash-object", "-w", "--stdin")
		if err != nil {
			return err
		}
		fmt.Fprintf(&index, "%s %s\t%s\x00", mode, blob, aliasOf(name))
	}
	_, err = g.feed(ctx, []byte(index.String()), "update-index", "-z", "--index-info")
	return err
}

// putBackHidden writes a file that has an alias as it was when the tree was new.
func (t *Tree) putBackHidden(ctx context.Context, root *os.Root, name string) error {
	e := t.ignored.files[name]
	text, err := t.git.run(ctx, "cat-file", "blob", e.blob)
	if err != nil {
		return err
	}
	file := filepath.FromSlash(name)
	if err := root.RemoveAll(file); err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if e.mode == "120000" {
		return root.Symlink(string(text), file)
	}
	mode := fs.FileMode(0o644)
	if e.mode == "100755" {
		mode = 0o755
	}
	return root.WriteFile(file, text, mode)
}

// knownBelow reports whether a folder had files when the tree was new.
func (t *Tree) knownBelow(folder string) bool {
	for name := range t.ignored.files {
		if name == folder || strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}

// perRepository returns changes with one for all files below a folder that git refuses, because a repository has many.
func (t *Tree) perRepository(changes []Change) (all []Change) {
	seen := make(map[string]bool)
	for _, c := range changes {
		if inner := innerGit(c.Path); inner != "" {
			if seen[inner] {
				continue
			}
			seen[inner] = true
			if c.Path = inner; t.knownBelow(inner) {
				c.Status = "M"
			}
		}
		all = append(all, c)
	}
	return all
}
