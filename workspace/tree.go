// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Base says which files a tree begins with.
type Base string

// The files that a tree begins with.
const (
	// Dirty is the files as they are on the disk, with what is not committed and what git does not
	// track, without ignored files. Contents are taken byte for byte: no filter and no line end
	// conversion changes them. It is the default.
	Dirty Base = "dirty"
	// Head is the files of the last commit as git has stored them.
	Head Base = "head"
)

// Config says what a tree is copied from and where it is kept.
type Config struct {
	// From is a folder in a git repository, or a plain folder. It is only read, except by the
	// methods that hand over a result. The default is the current directory.
	From string
	// Store is a folder for the stored files and the trees of all runs. Required.
	Store string
	// Run is the name of the run. Each run has a tree of its own. Required.
	Run string
	// ForkOf is the run whose tree and result the run continues, as a fork of it. A new tree then has
	// the start of that run, which must still be in the store. Empty for a run that begins by itself.
	ForkOf string
	// Base says which files the tree begins with; the default is [Dirty].
	Base Base
	// Copy are patterns, as in .gitignore, of ignored files that the tree needs too, such as .env. The
	// patterns in the file .worktreeinclude of From are added. The copies are not part of the state.
	Copy []string
	// Exclude are folders or files, relative to From with slashes, that the tree never contains: they are
	// not copied, and not stored. What git has of them in its history can be read in the tree.
	Exclude []string
	// Setup prepares a new tree, such as by installing packages, in the folder dir with the additional
	// environment variables env. What it changes is part of the start, not of the result. A tree whose
	// setup was interrupted begins again with a fresh copy. Nil does nothing.
	Setup func(ctx context.Context, dir string, env []string) error
	// Environ are the variables, as NAME=value, that the user's own git gets, and with it the filters that the user has
	// configured. Nil means those of this process.
	Environ []string
	// Limits limit what a snapshot can hold.
	Limits Limits
}

// Limits limit what a snapshot can hold; beyond them it fails with a [*LimitError].
type Limits struct {
	// Files is how many files may differ from the start of the run, and Lines how many lines may be
	// added and removed in them. 0 means no limit.
	Files, Lines int64
	// FileSize limits each file, in bytes; 0 means 100 MiB. It holds for the files of From too.
	FileSize int64
	// Store limits the bytes of the store, which all runs share; 0 means 10 GiB.
	Store int64
}

const (
	defaultFileSize = 100 << 20
	defaultStore    = 10 << 30
	spare           = 64 << 20 // bytes that a new tree leaves on the disk
)

// Tree is the files of one run, which programs may change. Its methods may be called from several
// goroutines; they take effect one after another. The programs that change the files must have ended.
type Tree struct {
	cfg    Config
	from   string // absolute
	prefix string // of From in its repository, with a slash; empty at its top
	repo   bool   // From is in a git repository
	room   string // the folder of the run
	store  string // the bare repository
	index  string // of this process
	name   string // of the run, in refs
	git    *git
	user   *git
	lock   *os.File
	base   Hash // before the setup
	start  Hash

	against Hash // what Limits are counted from; the start if empty

	mu    sync.Mutex
	last  Hash  // what the index contains; empty if there is none yet
	sure  bool  // the files are those of last: no program may have changed them since
	empty bool  // somebody has deleted the folder
	size  int64 // of the store, at most; 0 if it was not measured
}

// Dir is the folder with the files.
func (t *Tree) Dir() string { return filepath.Join(t.room, "tree") }

// Start is the hash of the files with which the run began, after its setup.
func (t *Tree) Start() Hash { return t.start }

// CountFrom makes h what [Limits] are counted from, in place of the start; the empty hash is the start.
func (t *Tree) CountFrom(h Hash) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.against = h
}

// Environ returns variables for programs that run in the tree: REFRAIN_WORKSPACE names its folder, and
// GIT_CEILING_DIRECTORIES keeps git from finding a repository above it.
func (t *Tree) Environ() []string {
	return []string{"REFRAIN_WORKSPACE=" + t.Dir(), "GIT_CEILING_DIRECTORIES=" + t.room}
}

// Close releases the tree. Its files stay, so that a later Open finds them.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	os.Remove(t.index)
	return t.lock.Close()
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// refName returns the name of a run as a part of a path and of a ref.
func refName(run string) string {
	if plainName().MatchString(run) {
		return run
	}
	sum := sha256.Sum256([]byte(run))
	return "x" + hex.EncodeToString(sum[:16]) + "-"
}

// ref returns the name of a ref of the run.
func (t *Tree) ref(name string) string { return "refs/refrain/" + t.name + "/" + name }

// Remove deletes the tree of a run and what only this run has stored. It is no error if there is none.
// Contents that were stored in the last hour stay until a later Remove, because another run may be
// storing them.
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
	for g, err := range repositories(ctx, bin, store) {
		if err != nil {
			return fmt.Errorf("remove the files of run %q: %w", run, err)
		}
		refs, err := g.run(ctx, "for-each-ref", "--format=delete %(refname)", "refs/refrain/"+refName(run)+"/")
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
	}
	return removeAll(room)
}

// Has reports whether the files that a store keeps under the name of a run are those of a run with the given trees: a log from
// elsewhere may have the name of another run. It reports true if nothing is kept.
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

// removeAll deletes a folder, also one with folders that may not be written.
func removeAll(folder string) error {
	err := os.RemoveAll(folder)
	if err == nil {
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
