// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
)

// StrangerError reports that a store was found that this user's Refrain did not create on this machine.
type StrangerError struct {
	Path, Why string
	// Remedy is what to do before the store can be trusted; empty means refrain trust.
	Remedy string
}

// Error says why, and what to do.
func (e *StrangerError) Error() string {
	return fmt.Sprintf("the store %s is read only, because %s; %s", brief.Clean(e.Path), e.Why, cmp.Or(e.Remedy,
		"if you know its runs, accept it with refrain trust, which first shows what they start; --store sqlite:PATH names another store"))
}

// displayName is the remedy for a store that cannot have a mark.
func displayName(path string) string {
	return "if you know its runs, name the store with --store sqlite:" + path + " or REFRAIN_STORE"
}

// Found decides about a store that nobody has named, and that may exist at a path. It returns nil for a store that this user's
// Refrain has created or accepted, and that only this user can change. It returns fs.ErrNotExist if there is no store yet, or none that
// can be judged before it is opened for writing: [Adopt] decides then. Any other store gets a [*StrangerError].
func Found(ctx context.Context, getenv func(string) string, path string) error {
	if err := place(path); err != nil {
		return err
	}
	if info, err := os.Lstat(path); err != nil || info.Size() == 0 {
		return cmp.Or(err, fs.ErrNotExist)
	}
	s, err := sqlite.Open(ctx, path, sqlite.Config{ReadOnly: true})
	if err != nil {
		return fs.ErrNotExist // another process creates it now, or it has older tables, or is damaged
	}
	defer s.Close()
	switch marked, err := hasMark(ctx, getenv, s); {
	case err != nil:
		return &StrangerError{Path: path, Why: "it cannot be known who made it: " + err.Error(), Remedy: displayName(path)}
	case !marked && empty(ctx, s):
		return fs.ErrNotExist
	case !marked:
		return &StrangerError{Path: path, Why: foreign}
	}
	return checkUntracked(ctx, path)
}

const foreign = "your Refrain did not create it on this machine"

// place returns an error if a store, or its folder, is a link or can be changed by others. Only the folder .refrain belongs to
// Refrain alone.
func place(path string) error {
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	names := []string{dir}
	for _, e := range entries {
		names = append(names, filepath.Join(dir, e.Name()))
	}
	for _, name := range names {
		info, err := os.Lstat(name)
		if err == nil && info.Mode().Type()&(fs.ModeSymlink|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0 {
			return &StrangerError{path, name + " is a link, or no file",
				"remove it, or name a store elsewhere with --store sqlite:PATH"}
		}
	}
	for _, name := range []string{dir, path} {
		if _, err := os.Lstat(name); err != nil {
			continue
		}
		if why := writers(name); why != "" {
			return &StrangerError{Path: path, Why: fmt.Sprintf("of %s: %s", name, why)}
		}
	}
	return nil
}

// checkUntracked returns an error for a store that is in the index of a git repository, because everybody who changes the repository
// changes the store.
func checkUntracked(ctx context.Context, path string) error {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			break
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	files, _ := workspace.InIndex(ctx, dir) // without git there is no index; the mark is right
	if !slices.ContainsFunc(files, func(name string) bool { return strings.HasPrefix(name, filepath.Base(path)) }) {
		return nil
	}
	return &StrangerError{path, "git tracks it, so that everybody who changes the repository changes the store",
		"take it out of git's index with: git rm -r --cached " + filepath.Dir(path)}
}

// The session that has the mark of a store.
const markApp, markUser, markID = "refrain.trust", "user", "store"

// hasMark reports whether a store has the mark of this user.
func hasMark(ctx context.Context, getenv func(string) string, s session.Service) (bool, error) {
	k, err := Open(getenv)
	if err != nil {
		return false, err
	}
	got, err := s.Get(ctx, &session.GetRequest{AppName: markApp, UserID: markUser, SessionID: markID})
	if errors.Is(err, session.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text := func(key string) string {
		v, _ := got.Session.State().Get(key)
		s, _ := v.(string)
		return s
	}
	return k.Sealed(markApp, text("id"), text("mark")), nil
}

// empty reports whether a store has no sessions of Refrain's own.
func empty(ctx context.Context, s session.Service) bool {
	for _, app := range []string{"refrain", "refrain.mail", markApp} {
		all, err := s.List(ctx, &session.ListRequest{AppName: app, Brief: true})
		if err != nil || len(all.Sessions) > 0 {
			return false
		}
	}
	return true
}

// Adopt marks a store that [Found] did not find, after it was opened for writing. It fails with a [*StrangerError] if the store has runs
// and no mark. If there is no state folder, it returns that error with unmarked set: the store works, but the next command does not
// trust it.
func Adopt(ctx context.Context, getenv func(string) string, path string, s session.Service) (unmarked bool, err error) {
	k, err := Open(getenv)
	if err != nil {
		return true, fmt.Errorf("%w; without it the next command does not know who made the store: name the store with --store sqlite:%s", err, path)
	}
	if empty(ctx, s) {
		if err := k.mark(ctx, s); err == nil || !errors.Is(err, session.ErrExists) {
			return false, err
		}
	}
	ours, err := hasMark(ctx, getenv, s) // another process may have marked it
	if err == nil && !ours {
		err = &StrangerError{Path: path, Why: foreign}
	}
	return false, err
}

// mark writes a new ID and its seal into a store.
func (k *Keeper) mark(ctx context.Context, s session.Service) error {
	id := rand.Text()
	_, err := s.Create(ctx, &session.CreateRequest{AppName: markApp, UserID: markUser, SessionID: markID,
		State: map[string]any{"id": id, "mark": k.Seal(markApp, id)}})
	return err
}

// Accept makes a store that was found one of this user: others lose their permissions, and the store gets a new mark. It fails if the
// store cannot be trusted even so.
func Accept(ctx context.Context, getenv func(string) string, path string) error {
	k, err := Open(getenv)
	if err != nil {
		return err
	}
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	if err := errors.Join(place(path), checkUntracked(ctx, path)); err != nil {
		return err
	}
	s, err := sqlite.Open(ctx, path, sqlite.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Delete(ctx, &session.DeleteRequest{AppName: markApp, UserID: markUser, SessionID: markID})
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	return k.mark(ctx, s)
}
