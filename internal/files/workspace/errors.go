// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Errors that callers tell apart. A tree's methods wrap them.
var (
	// ErrNoGit means that there is no git binary, or that it is too old.
	ErrNoGit = errors.New("a workspace needs git 2.36 or newer: install it with the system's package manager, or from https://git-scm.com")
	// ErrUnknownTree means that the store has no tree of this hash.
	ErrUnknownTree = errors.New("the store has no such tree, perhaps because the run was removed in part: refrain rm removes the rest")
	// ErrLocked means that another process uses the tree of this run.
	ErrLocked = errors.New("another process uses the tree of this run")
)

// RefusedError says why a folder cannot be the origin of a tree.
type RefusedError struct {
	Path   string // the folder, or the file in it that is the reason
	Reason string // includes what to do
}

func (e *RefusedError) Error() string { return fmt.Sprintf("workspace from %q: %s", e.Path, e.Reason) }

// LimitError reports the one of the [Limits] that a snapshot would exceed. The snapshot stored nothing for the tree.
type LimitError struct {
	Limit string // files, lines, file_size, store or disk
	Path  string // of the file, for file_size
	Is    int64  // files, lines or bytes
	Max   int64
}

func (e *LimitError) Error() string {
	switch e.Limit {
	case "file_size":
		return fmt.Sprintf("file %q has %d bytes, more than the limit file_size of %d: delete it, ignore it in .gitignore, or raise the limit",
			e.Path, e.Is, e.Max)
	case "store":
		return fmt.Sprintf("the store of files has %d bytes, more than its limit of %d: delete old runs with refrain rm, or raise the limit",
			e.Is, e.Max)
	case "disk":
		return fmt.Sprintf("the disk has %d bytes left, and a copy of the files needs %d", e.Max, e.Is)
	}
	return fmt.Sprintf("%d %s differ from the start, more than the limit of %d", e.Is, e.Limit, e.Max)
}

// NestedError says that a folder of the tree is a git repository, whose files would not be stored.
type NestedError struct{ Path string }

func (e *NestedError) Error() string {
	return fmt.Sprintf("%q is a git repository inside the tree, so its files would not be stored: delete its .git, or ignore the folder in .gitignore",
		e.Path)
}

// MountError reports a mount point inside the folder of a run. Nothing behind it was read, changed or deleted.
type MountError struct{ Path string }

func (e *MountError) Error() string {
	return fmt.Sprintf("%q is a mount point inside the workspace, so its files belong to another folder: unmount it with umount", e.Path)
}

// StrangerError reports that files of the tree have changed while no program of the run worked there. The changed
// files are stored, and nothing was restored.
type StrangerError struct {
	Dir   string   // the folder with the files
	Paths []string // the files that have changed
	Tree  Hash     // the files as they are now
}

func (e *StrangerError) Error() string {
	return fmt.Sprintf("%s changed in %s while the run did not work there: to go on with the files of the run, delete that folder and resume; "+
		"the changed files are kept as tree %s", e.Some(5), e.Dir, e.Tree)
}

// Some lists the first n of the changed files, and says how many more there are.
func (e *StrangerError) Some(n int) string { return some(e.Paths, n) }

// some lists the first paths.
func some(paths []string, most int) string {
	var names []string
	for _, name := range paths[:min(most, len(paths))] {
		if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
			name = strconv.Quote(name)
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if n := len(paths) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// ConflictError lists files that were changed in two ways, so that the changes do not fit together.
// Nothing was written.
type ConflictError struct {
	Paths []string
	// Branches are the trees that have changed the files, by the names given to [Tree.Merge]. It is empty if the
	// files have changed in the user's folder since the tree was copied from there.
	Branches []string
}

func (e *ConflictError) Error() string {
	if len(e.Branches) > 0 {
		return fmt.Sprintf("%s changed the same files differently: %s", strings.Join(e.Branches, " and "), some(e.Paths, 5))
	}
	return fmt.Sprintf("nothing was written, because files have changed since the run began: %s; hand the result over as a branch or a patch instead",
		some(e.Paths, 5))
}

// GitError reports a git command that failed.
type GitError struct {
	Args   []string
	Stderr string // its end, at most 2 kB
	Err    error
}

func (e *GitError) Error() string {
	text := fmt.Sprintf("git %s: %v", strings.Join(e.Args, " "), e.Err)
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// Unwrap returns the error of the process.
func (e *GitError) Unwrap() error { return e.Err }
