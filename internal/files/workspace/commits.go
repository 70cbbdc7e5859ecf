// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Commit stores a commit of a tree in the store, and returns its hash. The commit follows the commit before, or is the first
// one if before is empty. [Delivery.Commits] takes the chain of commits into the user's repository.
func (t *Tree) Commit(ctx context.Context, h, before Hash, message string) (Hash, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	args := []string{"commit-tree", "-F", "-"}
	if before != "" {
		args = append(args, "-p", string(before))
	}
	g := t.git.with(nobody...)
	commit, err := g.feed1(ctx, []byte(message), append(args, string(h))...)
	if err == nil {
		err = t.pin(ctx, commit, Hash(commit))
	}
	if err != nil {
		return "", fmt.Errorf("store a commit of the workspace: %w", err)
	}
	return Hash(commit), nil
}

// TreeOf returns the tree of a commit of [Tree.Commit]; it is empty if the store does not have the commit.
func (t *Tree) TreeOf(ctx context.Context, commit Hash) (Hash, error) {
	if commit == "" {
		return "", nil
	}
	h, err := t.git.object(ctx, string(commit)+"^{tree}")
	return Hash(h), err
}

// nobody is the author of commits whose user has no name in the configuration of git.
var nobody = []string{"GIT_AUTHOR_NAME=refrain", "GIT_AUTHOR_EMAIL=refrain@localhost", "GIT_COMMITTER_NAME=refrain",
	"GIT_COMMITTER_EMAIL=refrain@localhost"}

// link is one commit of a chain.
type link struct {
	tree    Hash
	message string
	date    string // in the form of git
}

// chain lists the commits up to a commit of the store, the oldest first. A chain of which the store has lost a part is empty.
func (t *Tree) chain(ctx context.Context, commit Hash) (all []link, err error) {
	if commit == "" {
		return nil, nil
	}
	out, err := t.git.run(ctx, "log", "-z", "--reverse", "--format=%T %at %B", string(commit), "--")
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, nil
	}
	for _, entry := range list(out) {
		part := strings.SplitN(entry, " ", 3)
		if len(part) == 3 && Hash(part[0]).Valid() {
			all = append(all, link{Hash(part[0]), part[2], part[1] + " +0000"})
		}
	}
	return all, nil
}

// Delivery describes the branch of a result.
type Delivery struct {
	Tree    Hash   // the files of the last commit
	Commits Hash   // the last of the commits that [Tree.Commit] has stored; empty for one commit
	Branch  string // its name
	Message string // of a commit for the files that are in none of Commits
	Number  bool   // number the name, as in NAME-2, if a branch of this name exists
}

// Delivered is a branch with a result.
type Delivered struct {
	Branch, Commit string
	Commits        int    // how many commits the branch has for the result
	Unsigned       string // why the commits have no signature, although the user's configuration wants one; empty otherwise
}

// Deliver does what [Tree.Branch] does, with the commits of a delivery.
func (t *Tree) Deliver(ctx context.Context, r Delivery) (d Delivered, err error) {
	if !t.repo {
		return d, noRepository(t.from)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if d, err = t.branch(ctx, r); err != nil {
		return d, fmt.Errorf("make the branch %q: %w", cmp.Or(d.Branch, r.Branch), err)
	}
	return d, nil
}

// identity lists the variables of the environment that name the author and the committer of commits.
var identity = []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"}

// author returns a git that commits as the user, or as refrain if neither the environment nor the configuration names one.
func author(ctx context.Context, g *git) *git {
	var given []string
	for _, name := range identity {
		if v := os.Getenv(name); v != "" {
			given = append(given, name+"="+v)
		}
	}
	if len(given) == len(identity) {
		return g.with(given...)
	}
	for _, key := range []string{"user.name", "user.email"} {
		if name, err := g.word(ctx, "config", "--get", key); err != nil || name == "" {
			return g.with(nobody...)
		}
	}
	return g
}

// committer stores commits in the user's repository.
type committer struct {
	g        *git
	signs    bool
	unsigned string
	date     string // of commits without one; if it is not empty, committers have these dates too, so that a commit made again has the same hash
}

// committing returns a committer that signs if the configuration of the user says so. It does not sign with a program that only the
// repository itself names, because a stranger may have written that configuration.
func committing(ctx context.Context, g *git) *committer {
	c := &committer{g: author(ctx, g)}
	wants, err := g.word(ctx, "config", "--type=bool", "--get", "commit.gpgSign")
	if c.signs = err == nil && wants == "true"; !c.signs {
		return c
	}
	out, err := g.run(ctx, "config", "-z", "--show-scope", "--get-regexp", `^gpg\.`)
	if err != nil && code(err) != 1 {
		c.signs, c.unsigned = false, err.Error()
	}
	for scope := range slices.Chunk(list(out), 2) {
		if scope[0] == "local" || scope[0] == "worktree" {
			c.signs, c.unsigned = false, "the repository itself names the program that signs"
		}
	}
	return c
}

// commit stores a commit; an empty date is that of the committer.
func (c *committer) commit(ctx context.Context, tree Hash, parent, message, date string) (string, error) {
	g := c.g
	if date = cmp.Or(date, c.date); date != "" {
		g = g.with("GIT_AUTHOR_DATE=" + date)
	}
	if c.date != "" {
		g = g.with("GIT_COMMITTER_DATE=" + date)
	}
	if c.signs {
		signing, cancel := context.WithTimeout(ctx, 30*time.Second) // for a key that asks for a passphrase
		commit, err := commitTree(signing, g, tree, parent, message, "-S")
		cancel()
		if err == nil || ctx.Err() != nil {
			return commit, err
		}
		c.signs, c.unsigned = false, strings.Join(strings.Fields(err.Error()), " ")
	}
	return commitTree(ctx, g, tree, parent, message, "--no-gpg-sign")
}

// branchesMade is the file with the branches that the run has made: in each line the commit and the name.
const branchesMade = "branches"

// noteBranch records that the run makes a branch of a commit, so that a later result may replace it.
func (t *Tree) noteBranch(branch, commit string) error {
	name := filepath.Join(t.room, branchesMade)
	known, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return writeFile(name, append(known, commit+" "+branch+"\n"...))
}

// replaceable returns [ErrBranchExists] if a branch is checked out, or if its last commit is not a result of this run.
func (t *Tree) replaceable(ctx context.Context, g *git, branch, message string) error {
	is, err := g.word(ctx, "for-each-ref", "--format=%(worktreepath) %(objectname)", "refs/heads/"+branch)
	if err != nil {
		return err
	}
	at, commit, _ := strings.Cut(is, " ")
	known, err := os.ReadFile(filepath.Join(t.room, branchesMade))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if at == "" && commit != "" && slices.Contains(strings.Split(string(known), "\n"), commit+" "+branch) {
		return nil
	}
	return madeHere(ctx, g, branch, message) // of a version that did not record its branches
}
