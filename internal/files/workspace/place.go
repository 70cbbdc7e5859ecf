// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The files that connect the room of a run in the store with the place of its tree. Each names the folder of the other, so that a
// folder of a stranger cannot name a place that is not its own.
const (
	placeNote = "place" // in the room
	roomNote  = "of"    // in the place
)

// findPlace finds the folder of the tree. A tree that exists stays where it is: in its room, or in its place outside of the store.
func (t *Tree) findPlace() error {
	if t.place = placeOf(t.room); t.place != "" {
		return nil
	}
	t.place = t.room
	if _, err := os.Lstat(t.Dir()); err == nil || t.cfg.Copies == "" {
		return nil
	}
	copies, err := realPath(t.cfg.Copies)
	if err != nil {
		return err
	}
	if within(copies, t.from) { // the tools of the project would find the copy
		return &RefusedError{copies, "the folder of the copies is inside the folder that is copied: name another one"}
	}
	store := filepath.Dir(t.store)
	sum := sha256.Sum256([]byte(store))
	t.place = filepath.Join(copies, refName(filepath.Base(t.from))+"-"+hex.EncodeToString(sum[:4]), t.name)
	if err := os.MkdirAll(t.place, 0o700); err != nil {
		return fmt.Errorf("make the folder of the copy: %w", err)
	}
	if err := writeFile(filepath.Join(t.place, roomNote), []byte(t.room)); err != nil {
		return err
	}
	return writeFile(filepath.Join(t.room, placeNote), []byte(t.place))
}

// placeOf returns the place outside of the store that a room has, or "".
func placeOf(room string) string {
	place, err := os.ReadFile(filepath.Join(room, placeNote))
	if err != nil || !filepath.IsAbs(string(place)) {
		return ""
	}
	real, err := filepath.EvalSymlinks(room)
	of, ofErr := os.ReadFile(filepath.Join(string(place), roomNote))
	if err != nil || ofErr != nil || string(of) != real {
		return ""
	}
	return string(place)
}

// Placed describes the copy of one run.
type Placed struct {
	Dir  string // the folder of the copy
	Of   string // the folder of the run in its store
	Size int64  // bytes
	Gone bool   // the run was deleted, or has another copy
	Lost bool   // the store cannot be found: it was moved or deleted, or is on a disk that is not mounted
}

// Copies lists the copies in a folder of [Config].Copies, by folder. There are none if the folder does not exist.
func Copies(folder string) (all []Placed, err error) {
	if folder, err = filepath.EvalSymlinks(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list the copies: %w", err)
	}
	notes, err := filepath.Glob(filepath.Join(folder, "*", "*", roomNote))
	if err != nil {
		return nil, err
	}
	slices.Sort(notes)
	for _, note := range notes {
		of, err := os.ReadFile(note)
		if err != nil {
			return nil, fmt.Errorf("list the copies: %w", err)
		}
		p := Placed{Dir: filepath.Dir(note), Of: string(of)}
		p.findRun()
		if p.Size, err = sizeOf(p.Dir); err != nil {
			return nil, fmt.Errorf("list the copies: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// findRun finds out whether the run of a copy exists. The folder may be named in several ways, as links may lead to it.
func (p *Placed) findRun() {
	place, err := os.ReadFile(filepath.Join(p.Of, placeNote))
	if errors.Is(err, fs.ErrNotExist) {
		store := filepath.Dir(filepath.Dir(p.Of))
		if _, err = os.Stat(filepath.Dir(store)); err == nil {
			p.Gone = true
			return
		}
	}
	if p.Lost = err != nil; p.Lost {
		return
	}
	named, err := os.Stat(string(place))
	own, ownErr := os.Stat(p.Dir)
	p.Gone = err != nil || ownErr != nil || !os.SameFile(named, own)
}

// Work returns the folder in which programs work: that of [Config].From in the tree, or the tree itself.
func (t *Tree) Work() string { return filepath.Join(t.Dir(), filepath.FromSlash(t.folder)) }

// MakeWork creates the folder of [Tree.Work] if a program has deleted it, and returns it.
func (t *Tree) MakeWork() (string, error) { return t.makeWork(t.Dir()) }

// makeWork creates the folder in which programs work, because git stores no empty folder.
func (t *Tree) makeWork(tree string) (string, error) {
	if t.folder == "" {
		return tree, nil
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return "", fmt.Errorf("make the folder of the workspace: %w", err)
	}
	defer root.Close()
	folder := filepath.FromSlash(t.folder)
	if err := root.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of the workspace: %w", err)
	}
	return filepath.Join(tree, folder), nil
}

// Up returns the way from the folder of [Config].From to the top of its repository, such as ../..; it is empty if they are the same.
func (t *Tree) Up() string {
	if t.folder == "" {
		return ""
	}
	return strings.TrimSuffix(strings.Repeat("../", 1+strings.Count(t.folder, "/")), "/")
}

// folderNote is the file in the room with the folder of [Config].From in the tree. Trees of older versions do not have it: they are copies
// of the folder alone.
const folderNote = "folder"

// findFolder lets a new tree be a copy of the whole repository, if From is a folder in one.
func (t *Tree) findFolder(prefix, home string) error {
	t.prefix = prefix
	room := t.room
	if t.cfg.ForkOf != "" {
		if of := filepath.Join(filepath.Dir(room), refName(t.cfg.ForkOf)); hasNote(of, "exclude") && !hasNote(room, "exclude") {
			room = of
		}
	}
	note, err := os.ReadFile(filepath.Join(room, folderNote))
	switch {
	case errors.Is(err, fs.ErrNotExist) && hasNote(room, "exclude"):
		return nil // of an older version
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("find the folder of the workspace: %w", err)
	}
	if known, err := os.ReadFile(filepath.Join(t.room, "from")); err == nil && prefix == "" && len(known) > 0 {
		t.folder = string(note) // from is the top already
		return nil
	}
	if prefix == "" {
		return nil
	}
	top := filepath.Join(t.from, strings.Repeat("../", strings.Count(prefix, "/")))
	if top == filepath.Dir(top) || home != "" && within(home, top) {
		return nil // the repository of a home directory: only its folder is copied
	}
	t.from, t.folder, t.prefix = top, strings.TrimSuffix(prefix, "/"), ""
	t.user = ofUser(t.user.bin, t.from, t.cfg.Environ, t.cfg.Filters)
	return nil
}

func hasNote(room, name string) bool {
	_, err := os.Lstat(filepath.Join(room, name))
	return err == nil
}

// anchor makes names and patterns of cfg relative to the tree that are relative to From.
func (t *Tree) anchor() {
	if t.folder == "" {
		return
	}
	t.cfg.Protect = t.anchored(t.cfg.Protect)
	exclude := make([]string, len(t.cfg.Exclude))
	for i, name := range t.cfg.Exclude {
		exclude[i] = t.folder + "/" + name
	}
	t.cfg.Exclude = exclude
	t.cfg.Copy = t.ignoreLines(t.cfg.Copy)
}

// anchored makes patterns for [Match] that are relative to From relative to the tree. Those that begin with ** match everywhere.
func (t *Tree) anchored(patterns []string) []string {
	if t.folder == "" {
		return patterns
	}
	all := make([]string, len(patterns))
	for i, p := range patterns {
		if all[i] = p; !strings.HasPrefix(p, "**/") {
			all[i] = Literal(t.folder) + "/" + p
		}
	}
	return all
}

// ignoreLines does for lines as in .gitignore what anchored does for patterns. A line without a slash matches everywhere.
func (t *Tree) ignoreLines(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		p, not := strings.CutPrefix(line, "!")
		all[i] = line
		if !strings.HasPrefix(p, "#") && !strings.HasPrefix(p, "**/") && strings.Contains(strings.TrimSuffix(strings.TrimSpace(p), "/"), "/") {
			all[i] = "/" + Literal(t.folder) + "/" + strings.TrimPrefix(p, "/")
			if not {
				all[i] = "!" + all[i]
			}
		}
	}
	return all
}

// Seen returns the name of a file of the tree as programs see it that work in [Tree.Work].
func (t *Tree) Seen(name string) string {
	if t.folder == "" {
		return name
	}
	seen, err := filepath.Rel(filepath.FromSlash(t.folder), filepath.FromSlash(name))
	return cmp.Or(map[bool]string{true: filepath.ToSlash(seen)}[err == nil], name)
}
