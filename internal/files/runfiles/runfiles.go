// SPDX-License-Identifier: Apache-2.0

// Package runfiles makes the files of a run a part of its state. Each command works in a copy of the files, and what it
// changes becomes a new value of the state key [Key], so that a rollback, a fork and a branch have files as they have any other
// value. Package workspace keeps the files; definition reads the field workspace, and connects the agents:
//
//	files := runfiles.New(runfiles.Config{Protect: []string{"**/*_test.go"}}, runfiles.Place{Root: root})
//	defer files.Close()
//	fix, err := taskagent.NewCommand(taskagent.CommandConfig{Args: []string{"make", "fix"}, Around: files.Around(nil)})
package runfiles

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// Config describes the files that the commands of a run work on.
type Config struct {
	// From is a git repository or a folder inside the run's root, from which the files are copied; empty means the
	// root.
	From string
	// Base says which files the copy begins with; empty is workspace.Dirty.
	Base workspace.Base
	// Copy names ignored files to copy too. Setup is a command that prepares a new copy.
	Copy, Setup []string
	// Filters names the filters in git's configuration, such as lfs, that may run for the branch of the result. No other runs.
	Filters []string
	// Notes names a file, relative to From, in which agents leave notes for later steps. It is no part of the state, so that a rollback
	// leaves it as it is, and the result does not have it. From must not have it. Empty means none.
	Notes string
	// Protect has patterns of files that commands may not change; see workspace.Match. OnProtected says what happens
	// if a command changes one: Restore (the default) or Fail.
	Protect     []string
	OnProtected string
	Limits      workspace.Limits
	Result      Result
}

// The reactions to a command that has changed a protected file.
const (
	Restore = "restore" // the file is put back, and {{workspace.protected}} names it
	Fail    = "fail"    // the step fails
)

// Result says where the files of the result go at the end of a run. At most one field is set;
// without any, they stay in the store. {{run}} stands for the ID of the run; see [Result.Named].
type Result struct {
	Branch string // a new branch in the repository
	Patch  string // a file inside the run's root
	Apply  bool   // the files of From themselves
}

// Key is the state key of the files. Its value is a map: tree is the
// hash of the files; base is the hash of the files that protect and limits compare with, if it is not the
// start; lines is how many lines differ from that; protected names the files that the step protected_by was
// not allowed to change; left_out names git repositories inside the files, which
// are not stored; edits has what persons have edited while the run was paused; commit is the last commit of [Work].Commit; run is the run that the tree belongs to; result says where
// the files of the result went; kept is the branch whose files the last parallel agent with keep_best has kept.
const Key = "workspace"

// KeyOf returns the state key of the files of a branch: those on which a sub-agent of a parallel
// agent works. Its value is as that of [Key].
func KeyOf(branch string) string { return Key + "_" + branch }

// IsKey reports whether a state key can be one of files: [Key], or [KeyOf] a branch.
func IsKey(key string) bool { return key == Key || strings.HasPrefix(key, KeyOf("")) }

// Store returns the folder below the root of a run that keeps the files of workspaces.
func Store(root string) string { return filepath.Join(cmp.Or(root, "."), ".refrain", "files") }

// Owner returns the name of a store of runs for [workspace.Config].Owner. The store is "sqlite:" with an absolute path, which
// becomes relative to the files, so that both can move together; another name, which stays; or empty if it is unknown.
func Owner(root, store string) string {
	path, ok := strings.CutPrefix(store, sqlite)
	if !ok {
		return store
	}
	files, err := filepath.Abs(Store(root))
	if err != nil {
		return store
	}
	rel, err := filepath.Rel(realPath(files), realPath(path))
	if err != nil {
		return store
	}
	return sqlite + filepath.ToSlash(rel)
}

// sqlite begins the name of a database in a file.
const sqlite = "sqlite:"

// realPath resolves the links in a path, as far as it exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir := filepath.Dir(path); dir != path {
		return filepath.Join(realPath(dir), filepath.Base(path))
	}
	return path
}

// OwnerGone reports whether an owner, of [Owner], is a database in a file that does not exist any more.
func OwnerGone(root, owner string) bool {
	path, ok := strings.CutPrefix(owner, sqlite)
	if !ok {
		return false
	}
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(realPath(Store(root)), path)
	}
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// Work says how a command uses the workspace.
type Work struct {
	// In is Clean for a fresh checkout of the files, in which protected files are those of the base, and
	// whose changes are dropped. Empty is the tree of the run.
	In string
	// Overlay is a folder inside the run's root that is copied over the checkout. The tree of the run never contains
	// it.
	Overlay string
	// Changes is Required if the step fails when it does not change the files.
	Changes string
	// Commit is the state key of a text, or KEY.FIELD of a map. If the key has a value, the files as they are after the step
	// become a commit with this text as its message, unless they are those of the last commit.
	Commit string
	// Restore is the state key of a text, or KEY.FIELD of a map. If the key has a value, the hash of earlier files of the run or
	// StartFiles, the step begins with those files, and not with those of the state. If a space and the edits of the state of that
	// time follow, what persons have edited since then stays: a file that they have edited is as they left it.
	Restore string
}

// The values of the fields of [Work].
const (
	Clean    = "clean"
	Required = "required"
)

// StartFiles stands for the files with which a run has begun, in the value of [Work].Restore.
const StartFiles = "start"

// Named returns the name of a branch or file for a run.
func (r *Result) Named(text, run string) string {
	return strings.ReplaceAll(text, "{{run}}", run)
}

// Ways returns the number of destinations that are set.
func (r *Result) Ways() (n int) {
	for _, given := range []bool{r.Branch != "", r.Patch != "", r.Apply} {
		if given {
			n++
		}
	}
	return n
}

// ProtectedError reports the protected files that a command has changed. The changes are undone.
type ProtectedError struct{ Paths []string }

func (e *ProtectedError) Error() string {
	return "the command changed protected files: " + strings.Join(e.Paths, ", ")
}

// UnchangedError reports that a command has not changed the files of the workspace, although changes are required.
type UnchangedError struct{ Protected string }

func (e *UnchangedError) Error() string {
	if e.Protected != "" {
		return "the command changed protected files only, which were put back: " + e.Protected
	}
	return "the command changed no file of the workspace"
}
