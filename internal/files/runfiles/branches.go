// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"fmt"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/files/workspace"
)

// Branches are the branches of a parallel agent that work on files.
type Branches struct {
	Agent string   // that they are branches of
	Key   string   // of the files that the branches begin with, and that the changes become part of
	Names []string // each has its files under [KeyOf] its name
	// Best returns the branch whose changes are kept; nil merges the changes of all. Scores are the keys that Best
	// reads. Fork removes their values, because a score belongs to the files that it was given for.
	Best   func(agent.Context) (string, error)
	Scores []string
}

// read returns the value of a key, with the files that a tree begins with if there is none yet.
func (rs *Runs) read(ctx agent.Context, key string) (state, error) {
	v, err := ctx.State().Get(key)
	if err != nil {
		v = nil
	}
	now := stateOf(v)
	if now.hash != "" {
		return now, nil
	}
	d, err := rs.tree(ctx, ctx.SessionID(), "", now)
	if err != nil {
		return now, err
	}
	defer d.mu.Unlock()
	now.hash, now.run = d.tree.Start(), ctx.SessionID()
	return now, nil
}

// Fork gives each branch the files of the parallel agent.
func (rs *Runs) Fork(ctx agent.Context, b Branches) error {
	if drive.At(ctx).IsReplay() {
		return nil
	}
	now, err := rs.read(ctx, b.Key)
	if err != nil {
		return err
	}
	for _, name := range b.Names {
		key := KeyOf(name)
		own := state{hash: now.hash, base: now.base, run: now.run, lines: now.lines}
		if v, err := ctx.State().Get(key); err == nil { // what its steps were told
			own.protected, own.by = stateOf(v).protected, stateOf(v).by
		}
		if err := ctx.State().Set(key, own.value()); err != nil {
			return err
		}
	}
	for _, key := range b.Scores {
		if _, err := ctx.State().Get(key); err != nil {
			continue
		}
		if err := ctx.State().Set(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// Join merges the changes of the branches, after all have ended.
func (rs *Runs) Join(ctx agent.Context, b Branches) error {
	if drive.At(ctx).IsReplay() {
		return nil
	}
	was, err := rs.read(ctx, b.Key)
	if err != nil {
		return err
	}
	only := ""
	if b.Best != nil {
		if only, err = b.Best(ctx); err != nil {
			return err
		}
	}
	trees := make(map[string]workspace.Hash)
	for _, name := range b.Names {
		v, err := ctx.State().Get(KeyOf(name))
		if err != nil {
			return err
		}
		if h := stateOf(v).hash; h != was.hash && (only == "" || only == name) {
			trees[name] = h
		}
	}
	if len(trees) == 0 && only == was.kept {
		return nil
	}
	d, err := rs.tree(ctx, ctx.SessionID(), "", was)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	now := was
	now.run, now.kept = ctx.SessionID(), only
	if now.hash, err = d.tree.Merge(ctx, was.hash, trees); err != nil {
		return fmt.Errorf("join the branches of %q: %w", b.Agent, err)
	}
	if err := rs.measure(ctx, d.tree, &now); err != nil {
		return err
	}
	return ctx.State().Set(b.Key, now.value())
}
