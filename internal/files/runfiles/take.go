// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// ErrUnchanged means that the files of a run are those with which it began.
var ErrUnchanged = errors.New("the files are as they were when the run started")

// Take makes a branch of the files of a run that does not run now, and says where they went. value is that of [Key]; reason, if it is
// not empty, says in the branch why the files are not a verified result. An empty name is that of the result, or refrain/RUN, with a
// number if such a branch exists.
func (w *Config) Take(ctx context.Context, place Place, id string, value any, name, reason string) (line string, err error) {
	err = w.whenChanged(ctx, place, id, value, func(t *workspace.Tree, was state) error {
		line, err = w.branch(ctx, t, was, workspace.Delivery{Branch: w.nameOf(name, id), Message: messageOf(id, reason), Number: name == ""})
		return err
	})
	return line, err
}

// Split makes several branches of the files of a run that does not run now, whose names begin with s.Name, as Take chooses it. It
// sets the other fields of s that say what is split.
func (w *Config) Split(ctx context.Context, place Place, id string, value any, s workspace.Split, reason string) (parts []workspace.Part, err error) {
	err = w.whenChanged(ctx, place, id, value, func(t *workspace.Tree, was state) error {
		s.Tree, s.Commits, s.Name, s.Message = was.hash, was.commit, w.nameOf(s.Name, id), messageOf(id, reason)
		parts, err = t.Split(ctx, s)
		return err
	})
	return parts, err
}

// nameOf returns the name of a branch to take, without a number.
func (w *Config) nameOf(name, id string) string {
	return cmp.Or(name, w.Result.Named(cmp.Or(w.Result.Branch, "refrain/{{run}}"), id))
}

// messageOf returns the message of a result that is not verified for a reason; an empty reason means that it is.
func messageOf(id, reason string) string {
	if reason == "" {
		return resultOf(id)
	}
	return resultOf(id) + fmt.Sprintf("\n\nNot verified, because %s.", reason)
}

// whenChanged calls deliver with the tree of a run that does not run now, if its files have changed.
func (w *Config) whenChanged(ctx context.Context, place Place, id string, value any, deliver func(*workspace.Tree, state) error) error {
	was := stateOf(value)
	if was.hash == "" {
		return ErrUnchanged
	}
	stored, err := workspace.OpenStored(ctx, Store(place.Root), id)
	if errors.Is(err, fs.ErrNotExist) && was.run != "" { // a fork that has not begun
		stored, err = workspace.OpenStored(ctx, Store(place.Root), was.run)
	}
	if err != nil {
		return err
	}
	if start, err := stored.Start(ctx); err != nil {
		return err
	} else if was.hash == start {
		return ErrUnchanged
	}
	rs, d, err := w.standing(ctx, place, id, was)
	if err != nil {
		return err
	}
	defer rs.Close()
	defer d.mu.Unlock()
	return deliver(d.tree, was)
}

// Editable returns the folder in which a person can edit the files of a run that does not run now, as its next step finds them. value
// is that of [Key].
func (w *Config) Editable(ctx context.Context, place Place, id string, value any) (string, error) {
	was := stateOf(value)
	rs, d, err := w.standing(ctx, place, id, was)
	if err != nil {
		return "", err
	}
	defer rs.Close()
	defer d.mu.Unlock()
	if err := d.tree.Settle(ctx, cmp.Or(was.hash, d.tree.Start())); err != nil {
		return "", err
	}
	return d.tree.MakeWork()
}

// standing returns the tree of a run that does not run now, locked. It does not check the place of the result, where a branch may exist.
func (w *Config) standing(ctx context.Context, place Place, id string, was state) (*Runs, *lockedTree, error) {
	quiet := *w
	quiet.Result = Result{}
	rs := New(quiet, place)
	d, err := rs.tree(ctx, id, "", was)
	if err != nil {
		return nil, nil, errors.Join(err, rs.Close())
	}
	return rs, d, nil
}
