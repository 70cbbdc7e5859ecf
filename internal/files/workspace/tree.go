// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Hash names the contents of a tree: the object name of a git tree, 40 or 64 hexadecimal digits. Two
// trees with the same files have the same hash.
type Hash string

var hashWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`) })

// Valid reports whether h has the form of a hash.
func (h Hash) Valid() bool { return hashWord().MatchString(string(h)) }

// Base selects the files that a tree begins with: [Dirty], [Head], or those of a branch or commit of the user's repository, by its name.
// The branch of a result then starts at this commit.
type Base string

// isCommit reports whether a copy begins with a commit, in place of the files as they are.
func (b Base) isCommit() bool { return b != "" && b != Dirty }

// revision returns the commit of a base as git names it.
func (b Base) revision() string {
	if !b.isCommit() || b == Head {
		return "HEAD"
	}
	return string(b)
}

// The files that a tree begins with.
const (
	// Dirty selects the files on the disk, with uncommitted and untracked files, and without ignored files. Contents
	// are copied byte for byte; no filter and no line end conversion changes them. Dirty is the default.
	Dirty Base = "dirty"
	// Head selects the files of the last commit as git has stored them.
	Head Base = "head"
)

// Config says what a tree is copied from and where it is kept.
type Config struct {
	// From is a folder in a git repository, or a plain folder. Only the methods that deliver a result write to it.
	// The default is the current directory. The tree is a copy of the whole repository, because a folder in it may need others, unless
	// the repository contains the home directory; see [Tree.Work]. Outside of From it has only files that git tracks, and ignored ones
	// that Copy names.
	From string
	// Store is the folder for the stored files and the trees of all runs. Required.
	Store string
	// Copies is the folder in which new trees are made, outside of From, so that the tools of the project do not find them; empty for
	// Store. The tree of a run that exists is found where it is.
	Copies string
	// Run is the name of the run. Each run has a tree of its own. Required.
	Run string
	// Owner names what the run belongs to, such as the database with its log, because another database may have a run of the
	// same name. A new tree keeps it for [Owner]. Empty for unknown.
	Owner string
	// ForkOf names the run that this run is a fork of; the fork continues its tree and result. A new tree then has
	// the start of that run, which must still be in the store. Empty for a run that is not a fork.
	ForkOf string
	// Base selects the files that the tree begins with; the default is [Dirty].
	Base Base
	// Copy has patterns, as in .gitignore, of ignored files that the tree also needs, such as .env. The patterns in
	// the file .worktreeinclude of From are added. The copies are not part of the state.
	Copy []string
	// Exclude lists folders or files, relative to From with slashes, that the tree never contains. They are neither
	// copied nor stored. Programs in the tree can still read older versions of them from the git history.
	Exclude []string
	// Protect has patterns, as for [Match], of files that stay as they were when the tree was new even if git ignores them, so that
	// they are not part of the state: see [Tree.PutBackIgnored]. For the files of the state see [Tree.Protected].
	Protect []string
	// Setup prepares a new tree, for example by installing packages, in the folder dir with the additional
	// environment variables env. The changes of the setup are part of the start, not of the result. If a setup is
	// interrupted, the next one begins with a fresh copy. Nil does nothing.
	Setup func(ctx context.Context, dir string, env []string) error
	// Filters names the filters of git's configuration, such as lfs, that [Tree.Branch] may run. All other programs that a
	// configuration names are off: filters, hooks, monitors, remotes. A tree never runs a filter; its files are those on the
	// disk, or as git has stored them.
	Filters []string
	// Environ lists the variables, as NAME=value, for the user's own git and for these filters. Nil means the variables of
	// this process.
	Environ []string
	// Limits restricts what a snapshot can hold.
	Limits Limits
}

// Limits restricts what a snapshot can hold; a snapshot that exceeds a limit fails with a [*LimitError].
type Limits struct {
	// Files limits how many files may differ from the start of the run, and Lines limits how many lines may be added
	// and removed in those files. 0 means no limit.
	Files, Lines int64
	// FileSize limits the size of each file in bytes; 0 means 100 MiB. It also applies to the files of From.
	FileSize int64
	// Store limits the size in bytes of the store, which all runs share; 0 means 10 GiB.
	Store int64
}

const (
	defaultFileSize = 100 << 20
	defaultStore    = 10 << 30
	spare           = 64 << 20 // bytes that a new tree leaves on the disk
)

// Tree has the files of one run, which programs may change. Several goroutines may call its methods; the calls take
// effect one after another. All programs that change the files must have ended before a call.
type Tree struct {
	cfg Config
	origin
	storage
	base    Hash     // before the setup
	start   Hash     // after it
	against Hash     // the tree that Limits are compared with; empty for the start
	omitted []string // what the last snapshot has left out: see [Tree.LeftOut]
	history string   // what [Tree.cutHistory] has seen last

	mu sync.Mutex
	contents
}

// origin is the folder of which the tree is a copy.
type origin struct {
	from    string   // absolute: the top of the repository, or From
	folder  string   // of From in the tree, with slashes; empty if it is the tree
	prefix  string   // of from in its repository, with a slash; empty at its top
	repo    bool     // From is in a git repository
	modules []string // submodules that have files
	user    *git     // works in the user's repository
	objects string   // of the user's repository; empty until they are needed
}

// storage is where the tree and its snapshots are.
type storage struct {
	name  string // of the run, in refs
	room  string // the folder of the run
	lock  *os.File
	place string // the folder of its tree: room, or one outside of the store
	store string // the bare repository
	index string // of this process
	git   *git   // works in the bare repository
}

// contents is what is known about the files of the tree, guarded by mu.
type contents struct {
	ignored ignoredFiles
	last    Hash  // what the index contains; empty if there is none yet
	current bool  // the files are those of last: no program may have changed them since
	empty   bool  // the folder was deleted from outside
	size    int64 // upper bound for the size of the store; 0 if it was not measured
}

// Dir returns the folder with the files.
func (t *Tree) Dir() string { return filepath.Join(t.place, "tree") }

// Start returns the hash of the files with which the run began, after its setup.
func (t *Tree) Start() Hash { return t.start }

// CountFrom makes [Limits] compare with h instead of the start; the empty hash selects the start again.
func (t *Tree) CountFrom(h Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.against = h
}

// Environ returns variables for programs that run in the tree: REFRAIN_WORKSPACE names the
// folder of [Tree.Work], REFRAIN_START is the hash of the files with which the run began, and GIT_CEILING_DIRECTORIES keeps git from
// finding a repository above the tree.
func (t *Tree) Environ() []string {
	return []string{"REFRAIN_WORKSPACE=" + t.Work(), "REFRAIN_START=" + string(t.start), "GIT_CEILING_DIRECTORIES=" + t.place}
}

// Access returns what a program may do that works in work, which is [Tree.Work] or the folder of a clean checkout: the folder that it may
// change, those that it may read so that git works, and one for its temporary files and caches, which is removed with the tree.
func (t *Tree) Access(ctx context.Context, work string) (write string, read []string, private string, err error) {
	write = work
	if t.folder != "" {
		write = strings.TrimSuffix(work, string(filepath.Separator)+filepath.FromSlash(t.folder))
	}
	read = []string{filepath.Join(t.store, "objects")}
	if t.repo { // for the history
		users, err := t.userPath(ctx, "objects")
		if err != nil {
			return "", nil, "", err
		}
		read = append(read, users)
	}
	return write, read, filepath.Join(t.place, "private"), nil
}

// Close releases the tree. Its files stay on the disk, and a later Open finds them.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	os.Remove(t.index)
	return t.lock.Close()
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// refName returns the name of a run in the form used in paths and refs.
func refName(run string) string {
	if plainName().MatchString(run) {
		return run
	}
	sum := sha256.Sum256([]byte(run))
	return "x" + hex.EncodeToString(sum[:16]) + "-"
}

// ref returns the name of a ref of the run.
func (t *Tree) ref(name string) string { return "refs/refrain/" + t.name + "/" + name }

// Remove deletes the tree of a run, and the stored contents that no other run uses. It returns no error if the run
// has no tree. Contents that were stored in the last hour stay until a later Remove, because another run may be
// storing the same contents now.
func Remove(ctx context.Context, store, run string) error {
	store, err := filepath.Abs(store)
	if err != nil {
		return fmt.Errorf("find the folder %q: %w", store, err)
	}
	room := filepath.Join(store, "runs", refName(run))
	if _, err := os.Stat(room); err != nil {
		return nil
	}
	bin, err := findGit(ctx)
	if err != nil {
		return err
	}
	lock, err := lockFile(ctx, filepath.Join(room, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	place := cmp.Or(placeOf(room), room)
	for _, folder := range []string{room, place} {
		if err := noMount(folder); err != nil {
			return err
		}
	}
	pruning, err := lockPruning(ctx, store, true)
	if err != nil {
		return err
	}
	defer pruning.Close()
	for g, err := range repositories(ctx, bin, store) {
		if err != nil {
			return fmt.Errorf("remove the files of run %q: %w", run, err)
		}
		name := refName(run)
		refs, err := g.run(ctx, "for-each-ref", "--format=delete %(refname)", "refs/refrain/"+name+"/", protectedRefs(name), headRef(name))
		if err != nil {
			return fmt.Errorf("remove the files of run %q: %w", run, err)
		}
		if len(refs) == 0 {
			continue
		}
		if _, err := g.feed(ctx, refs, "update-ref", "--stdin"); err != nil {
			return fmt.Errorf("remove the files of run %q: %w", run, err)
		}
		if _, err := g.run(ctx, "prune", "--expire=1.hour.ago"); err != nil {
			return fmt.Errorf("remove the files of run %q: %w", run, err)
		}
		if err := g.repack(ctx); err != nil {
			return fmt.Errorf("remove the files of run %q: %w", run, err)
		}
	}
	if err := removeAll(place); err != nil {
		return err
	}
	if place != room {
		_ = os.Remove(filepath.Dir(place)) // if it has no other copy
	}
	return removeAll(room)
}

// Owner returns the [Config].Owner of the tree of a run. It is empty if the tree was made without one, and if there is none.
func Owner(store, run string) (string, error) {
	owner, err := os.ReadFile(filepath.Join(store, "runs", refName(run), "owner"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find out to whom the files of run %q belong: %w", run, err)
	}
	return string(owner), nil
}

// Has reports whether the files that a store keeps under the name of a run are those of a run with the given trees.
// They may belong to a different run if a log from another machine has the same run name. Has returns true if the
// store keeps nothing under this name.
func Has(ctx context.Context, store, run string, trees []Hash) (bool, error) {
	bin, err := findGit(ctx)
	if err != nil {
		return false, err
	}
	kept := false
	for g, err := range repositories(ctx, bin, store) {
		if err != nil {
			return false, fmt.Errorf("find the files of run %q: %w", run, err)
		}
		refs, err := g.run(ctx, "for-each-ref", "--format=%(objectname)", "refs/refrain/"+refName(run)+"/")
		if err != nil {
			return false, fmt.Errorf("find the files of run %q: %w", run, err)
		}
		for hash := range strings.FieldsSeq(string(refs)) {
			if slices.Contains(trees, Hash(hash)) {
				return true, nil
			}
			kept = true
		}
	}
	return !kept, nil
}

// removeAll deletes a folder, including folders in it that have no write permission. It fails with a [*MountError] for one with a
// mount point.
func removeAll(folder string) error {
	err := noMount(folder)
	if err != nil {
		return err
	}
	if err = os.RemoveAll(folder); err == nil {
		return nil
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(folder)
}

// within reports whether a path is a folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}
