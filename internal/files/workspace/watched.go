// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Look is what a repository looked like at one moment: its refs, its configuration, its hooks, and its files that are not committed. It is
// cheap: no file is read, so a file that was written with the same size and time is not noticed.
type Look struct {
	top  string
	seen map[string]string
}

// LookAt looks at the repository of a folder. It is nil for a folder without one. It takes no lock and writes nothing.
func LookAt(ctx context.Context, folder string) (*Look, error) {
	bin, err := findGit(ctx)
	if err != nil {
		return nil, err
	}
	g := ofUser(bin, folder, nil, nil)
	top, err := g.word(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		if ctx.Err() != nil || code(err) != 128 {
			return nil, err
		}
		return nil, nil
	}
	g = ofUser(bin, top, nil, nil)
	l := &Look{top: top, seen: make(map[string]string)}
	refs, err := g.run(ctx, "for-each-ref", "--format=%(refname) %(objectname)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(refs)) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		l.seen[name] = hash
	}
	if head, err := g.word(ctx, "rev-parse", "--symbolic-full-name", "HEAD"); err == nil {
		l.seen["HEAD"] = head
	}
	status, err := g.run(ctx, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")
	if err != nil {
		return nil, err
	}
	for _, entry := range list(status) {
		if name := entry[min(3, len(entry)):]; name != ".refrain" && !strings.Contains("/"+name, "/.refrain/") {
			l.note(name, filepath.Join(top, filepath.FromSlash(name)), entry[:min(2, len(entry))])
		}
	}
	common, err := g.word(ctx, "rev-parse", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(top, common)
	}
	l.note(".git/config", filepath.Join(common, "config"), "")
	hooks, _ := os.ReadDir(filepath.Join(common, "hooks"))
	for _, h := range hooks {
		l.note(".git/hooks/"+h.Name(), filepath.Join(common, "hooks", h.Name()), "")
	}
	return l, nil
}

// note takes down the size, the mode and the time of a file.
func (l *Look) note(name, path, status string) {
	info, err := os.Lstat(path)
	if err != nil {
		l.seen[name] = status + " gone"
		return
	}
	l.seen[name] = fmt.Sprint(status, " ", info.Size(), info.Mode()&(fs.ModeType|fs.ModePerm), info.ModTime().UnixNano())
}

// Changed lists what differs from an earlier look: files, and refs such as refs/heads/main. It leaves out the refs of except.
func (l *Look) Changed(since *Look, except func(ref string) bool) (names []string) {
	if l == nil || since == nil {
		return nil
	}
	all := maps.Clone(since.seen)
	maps.Copy(all, l.seen)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, before := since.seen[name]
		is, now := l.seen[name]
		if (was != is || before != now) && !(strings.HasPrefix(name, "refs/") && except != nil && except(name)) {
			names = append(names, name)
		}
	}
	return names
}
