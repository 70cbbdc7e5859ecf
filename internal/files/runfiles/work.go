// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// Around returns a function that runs a command according to work, for taskagent.CommandConfig; nil means the zero
// Work.
func (rs *Runs) Around(work *Work) func(agent.InvocationContext, func(taskagent.Folder) error) (map[string]any, error) {
	w := new(Work)
	if work != nil {
		w = work
	}
	return func(ctx agent.InvocationContext, run func(taskagent.Folder) error) (map[string]any, error) {
		if w.In == Clean {
			return nil, rs.clean(ctx, w, run)
		}
		return rs.work(ctx, w, run)
	}
}

// work runs a command in the tree of its run. The files are made equal to the state before it, and
// what it changes becomes part of the state. The changes of a command that fails are not: the next
// one begins with the files of the state.
func (rs *Runs) work(ctx agent.InvocationContext, w *Work, run func(taskagent.Folder) error) (sets map[string]any, err error) {
	d, key, was, err := rs.own(ctx)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	now := was
	now.hash, now.run = cmp.Or(was.hash, d.tree.Start()), ctx.Session().ID()
	if err := startFrom(ctx, d.tree, &now); err != nil {
		return nil, err
	}
	begun := now
	defer func() {
		if err != nil && sets == nil && begun.hash != cmp.Or(was.hash, d.tree.Start()) { // a person has decided that
			sets = map[string]any{key: begun.value()}
		}
	}()
	if err := restore(ctx, d.tree, w, now.edits); err != nil {
		return nil, err
	}
	if err := d.run(ctx, run); err != nil {
		return nil, err
	}
	if now.hash, err = d.tree.Snapshot(ctx); err != nil {
		return nil, err
	}
	now.left = d.leftOut()
	if err := rs.protect(ctx, d.tree, &now); err != nil {
		if _, ok := errors.AsType[*ProtectedError](err); ok {
			begun.protected, begun.by = now.protected, now.by
			return map[string]any{key: begun.value()}, err
		}
		return nil, err
	}
	if now.hash != begun.hash || now.base != was.base {
		if err := rs.measure(ctx, d.tree, &now); err != nil {
			return nil, err
		}
	}
	if w.Changes == Required && now.hash == begun.hash {
		return map[string]any{key: now.value()}, &UnchangedError{now.protected}
	}
	if err := rs.commit(ctx, d.tree, w, &now); err != nil {
		return nil, err
	}
	again := now.by == ctx.Agent().Name() // also the same files as the last time are news
	if !again && (now == was || !was.known && now.hash == d.tree.Start() && now.protected == "") {
		return nil, nil
	}
	return map[string]any{key: now.value()}, nil
}

// leftOut names what the last snapshot has left out, as commands see it.
func (d *lockedTree) leftOut() string {
	names := d.tree.LeftOut()
	for i, name := range names {
		names[i] = d.tree.Seen(name)
	}
	return strings.Join(names[:min(mostNames, len(names))], ", ")
}

// run runs a command in the folder of a tree.
func (d *lockedTree) run(ctx context.Context, command func(taskagent.Folder) error) error {
	work, err := d.tree.MakeWork()
	if err != nil {
		return err
	}
	return command(folderOf(ctx, d.tree, work, d.tree.Environ()))
}

// folderOf describes a folder of a tree, or of a clean checkout of it, for a command that works there.
func folderOf(ctx context.Context, t *workspace.Tree, work string, env []string) taskagent.Folder {
	return taskagent.Folder{Path: work, Env: env, Access: func() (write, read []string, private string, err error) {
		top, read, private, err := t.Access(ctx, work)
		return []string{top}, read, private, err
	}}
}

// mostNames is how many protected files the state names.
const mostNames = 100

// protect puts back the protected files that a command has changed.
func (rs *Runs) protect(ctx agent.InvocationContext, t *workspace.Tree, now *state) error {
	me := ctx.Agent().Name()
	if now.by == me {
		now.protected, now.by = "", ""
	}
	touched, err := rs.touched(ctx, t, now)
	if err != nil {
		return err
	}
	var paths []string
	for _, c := range touched {
		paths = append(paths, t.Seen(c.Path))
	}
	if len(touched) > 0 && rs.cfg.OnProtected != Fail {
		if now.hash, err = t.PutBack(ctx, now.hash, touched); err != nil {
			return err
		}
	}
	ignored, err := t.PutBackIgnored(ctx, now.hash)
	if err != nil {
		return err
	}
	for _, c := range ignored {
		paths = append(paths, t.Seen(c.Path))
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	now.protected, now.by = strings.Join(paths[:min(mostNames, len(paths))], ", "), me
	if more := len(paths) - mostNames; more > 0 {
		now.protected += fmt.Sprintf(" and %d more", more)
	}
	if rs.cfg.OnProtected == Fail {
		return &ProtectedError{paths}
	}
	return nil
}

// measure counts the lines that differ from the base.
func (rs *Runs) measure(ctx context.Context, t *workspace.Tree, now *state) error {
	changes, err := t.Files(ctx, cmp.Or(now.base, t.Start()), now.hash)
	now.lines = workspace.Lines(changes)
	return err
}

// touched lists the protected files that differ from the base.
func (rs *Runs) touched(ctx context.Context, t *workspace.Tree, now *state) ([]workspace.Change, error) {
	if len(rs.protected) == 0 {
		return nil, nil
	}
	return t.Protected(ctx, cmp.Or(now.base, t.Start()), now.hash, rs.protected)
}

// clean runs a command in a clean checkout of the files of the state.
func (rs *Runs) clean(ctx agent.InvocationContext, w *Work, run func(taskagent.Folder) error) error {
	d, _, now, err := rs.own(ctx)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	now.hash = cmp.Or(now.hash, d.tree.Start())
	undo, err := rs.touched(ctx, d.tree, &now)
	if err != nil {
		return err
	}
	overlay := ""
	if w.Overlay != "" {
		if overlay, err = filepath.Abs(filepath.Join(rs.place.Root, filepath.FromSlash(w.Overlay))); err != nil {
			return fmt.Errorf("find the overlay: %w", err)
		}
	}
	return d.tree.Clean(ctx, now.hash, undo, overlay, func(dir string, env []string) error {
		return run(folderOf(ctx, d.tree, dir, env))
	})
}
