// SPDX-License-Identifier: Apache-2.0

// Package workspace keeps the files of a run as a state that can be named, compared and restored.
//
// A [Tree] is a copy of a git repository, or of a plain folder, in which programs work. [Tree.Snapshot]
// stores its files and returns their [Hash]; [Tree.Restore] makes the files equal to a hash again:
// contents, links, executable bits, and which files there are. The result goes back with [Tree.Branch],
// [Tree.Patch] or [Tree.Apply], which alone write to the folder that the tree was copied from.
//
//	t, err := workspace.Open(ctx, workspace.Config{From: ".", Store: ".refrain/files", Run: "r_12"})
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	good, err := t.Snapshot(ctx)
//	if err != nil {
//		return err
//	}
//	// A program changes files in t.Dir().
//	salvaged, err := t.Restore(ctx, good)
//
// The package runs the git binary, version 2.36 or newer, with a store of its own: a bare repository
// that gets the files of the last commit when the tree is made, and needs no object of the user's repository from then on, so that git
// gc may run there. It writes no objects there until the result goes back. Git runs with a fixed
// configuration and fixed attributes: no hooks, filters, line end conversion or file system monitor, so
// that a program that edits .gitattributes or a git configuration in the tree has no code run here. In the
// user's repository git starts no program that its configuration names, except the filters of [Config].Filters.
//
// The tree contains a git repository for the programs that work in it. It is not part of the state.
// [Tree.Environ] keeps git from looking for a repository above the tree. A tree is no sandbox, because a
// program that names a path outside the tree can write there.
//
// [Config].Protect keeps files as they were when the tree was new, also if git ignores them.
//
// Not part of the state are ignored files, empty folders, sockets and pipes, and permissions other
// than the executable bit.
package workspace
