// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Stored reads the trees of a run from the store. It needs no [Tree], so it may read while another
// process works on the files.
type Stored struct {
	git  *git
	name string
	room string // folder with what the run needs besides its trees
}

// OpenStored opens the trees of a run in the folder [Config].Store. The error wraps fs.ErrNotExist if
// the folder has no files of the run, or [ErrNoGit].
func OpenStored(ctx context.Context, folder, run string) (*Stored, error) {
	bin, err := findGit(ctx)
	if err != nil {
		return nil, err
	}
	s := &Stored{name: refName(run), room: filepath.Join(folder, "runs", refName(run))}
	missing := error(fs.ErrNotExist)
	for g, err := range repositories(ctx, bin, folder) {
		if err != nil {
			return nil, fmt.Errorf("open the files of run %q: %w", run, err)
		}
		s.git = g
		if _, missing = s.Start(ctx); missing == nil {
			return s, nil
		}
	}
	if errors.Is(missing, fs.ErrNotExist) {
		missing = fmt.Errorf("%w: they were removed, or are on another machine; refrain rm removes the rest of a run", missing)
	}
	return nil, fmt.Errorf("open the files of run %q: %w", run, missing)
}

// Branch returns the last branch that was made of the files of the run, and its commit then; "" if there is none. Somebody may have deleted it.
func (s *Stored) Branch() (name, commit string) {
	text, err := os.ReadFile(filepath.Join(s.room, branchesMade))
	if err != nil {
		return "", ""
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	commit, name, _ = strings.Cut(lines[len(lines)-1], " ")
	return name, commit
}

// storeNames has the names of the repositories in a store, by hash format.
var storeNames = map[string]string{"sha1": "store", "sha256": "store-sha256"}

// repositories yields the repositories of a store, each with its seal. If there is an error, it is the last pair.
func repositories(ctx context.Context, bin, store string) iter.Seq2[*git, error] {
	return func(yield func(*git, error) bool) {
		for format, name := range storeNames {
			repo := filepath.Join(store, name)
			switch _, err := os.Stat(repo); {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			if g, err := openSealed(ctx, bin, repo, format); !yield(g, err) || err != nil {
				return
			}
		}
	}
}

// Start returns the hash of the files with which the run began.
func (s *Stored) Start(ctx context.Context) (Hash, error) { return s.ref(ctx, "start") }

// Base returns the hash of the files before the setup. The patch of a result starts from this hash.
func (s *Stored) Base(ctx context.Context) (Hash, error) { return s.ref(ctx, "base") }

func (s *Stored) ref(ctx context.Context, name string) (Hash, error) {
	h, err := s.git.object(ctx, "refs/refrain/"+s.name+"/"+name)
	if err == nil && h == "" {
		err = fmt.Errorf("the store has no files of the run: %w", os.ErrNotExist)
	}
	return Hash(h), err
}

// Files lists the files that differ between two trees, by path. The error wraps [ErrUnknownTree] if the store lacks
// one of the trees.
func (s *Stored) Files(ctx context.Context, a, b Hash) ([]Change, error) {
	return s.git.compare(ctx, a, b)
}

// Diff writes the difference between two trees as a patch that git apply accepts, with binary files.
func (s *Stored) Diff(ctx context.Context, a, b Hash, w io.Writer) error {
	return s.git.diff(ctx, a, b, w)
}

// File does what [Stored.Files] and [Stored.Diff] do, for one file. The error wraps fs.ErrNotExist if the file does
// not differ between the trees, or is in neither of them. File writes nothing for a binary file.
func (s *Stored) File(ctx context.Context, a, b Hash, name string, w io.Writer) (Change, error) {
	not := fmt.Errorf("the file %q has not changed: %w", name, os.ErrNotExist)
	if !filepath.IsLocal(name) || strings.ContainsRune(name, 0) {
		return Change{}, not
	}
	changes, err := s.git.compare(ctx, a, b, name)
	if err != nil {
		return Change{}, err
	}
	for _, c := range changes { // if name is a folder, git also lists the files in it
		if c.Path != name {
			continue
		}
		if c.Binary {
			return c, nil
		}
		return c, s.git.diff(ctx, a, b, w, name)
	}
	return Change{}, not
}
