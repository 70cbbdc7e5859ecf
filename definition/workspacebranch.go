// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/workspace"
)

// workspaceKey is the state key of the files that the agent works on: [WorkspaceKey], or in a branch of a
// parallel agent that of [WorkspaceKeyOf] the branch.
func (a *Agent) workspaceKey() string {
	for ; a.parent != nil; a = a.parent {
		if a.parent.Type == TypeParallel {
			return WorkspaceKeyOf(a.Name)
		}
	}
	return WorkspaceKey
}

// WorkspaceKeyOf returns the state key of the files of a branch: those on which a sub-agent of a parallel
// agent works. Its value is as that of [WorkspaceKey].
func WorkspaceKeyOf(branch string) string { return WorkspaceKey + "_" + branch }

// workspaceKeys checks what names the files in branches.
func (c *checker) workspaceKeys() {
	for a := range c.def.Root.All {
		for _, sub := range a.branches() {
			c.keys[sub.workspaceKey()] = "workspace"
		}
		key := a.workspaceKey()
		if a.Loop == nil || a.Loop.NoProgress == nil || key == WorkspaceKey {
			continue
		}
		if i := slices.Index(a.Loop.NoProgress.Keys, WorkspaceKey); i >= 0 {
			c.report(a.at(index("no_progress.keys", i)), CodeWorkspace, "%q works in a branch, whose files have another key", a.Name).
				Hint = "write " + key
		}
	}
}

// hasWorkspaceKey reports whether the workspace of the definition has a key.
func (d *Definition) hasWorkspaceKey(key string) bool {
	if d.Workspace == nil || !strings.HasPrefix(key, WorkspaceKey) {
		return false
	}
	for a := range d.Root.All {
		for _, sub := range a.branches() {
			if sub.workspaceKey() == key {
				return true
			}
		}
	}
	return key == WorkspaceKey
}

// branches are the sub-agents of a parallel agent that work on files; none for another agent.
func (a *Agent) branches() (subs []*Agent) {
	if a.Type != TypeParallel {
		return nil
	}
	for _, sub := range a.SubAgents {
		if sub.hasCommand() {
			subs = append(subs, sub)
		}
	}
	return subs
}

// aroundBranches makes each branch of a parallel agent begin with the files of the agent, and merges the
// changes of all branches after it.
func (ds *desks) aroundBranches(a *Agent, cb around) around {
	cb.before = append([]agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		return nil, ds.fork(ctx, a)
	}}, cb.before...)
	cb.after = append([]agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		return nil, ds.join(ctx, a)
	}}, cb.after...)
	return cb
}

// read returns the value of a key, with the files that a tree begins with if there is none yet.
func (ds *desks) read(ctx agent.Context, key string) (tree, error) {
	v, err := ctx.State().Get(key)
	if err != nil {
		v = nil
	}
	now := treeOf(v)
	if now.hash != "" {
		return now, nil
	}
	d, err := ds.desk(ctx, ctx.SessionID(), "", now)
	if err != nil {
		return now, err
	}
	defer d.mu.Unlock()
	now.hash, now.run = d.tree.Start(), ctx.SessionID()
	return now, nil
}

// keepBest checks which score decides for which branch.
func (c *checker) keepBest(a *Agent) {
	if a.Parallel == nil || len(a.Parallel.KeepBest) == 0 {
		return
	}
	subs, seen := a.branches(), make(map[string]bool)
	if c.def.Workspace == nil || len(subs) == 0 {
		c.report(a.at("keep_best"), CodeWorkspace, "keep_best of %q needs a workspace in which its branches work", a.Name)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.Parallel.KeepBest)) {
		field, key := "keep_best."+name, a.Parallel.KeepBest[name]
		if !slices.ContainsFunc(subs, func(sub *Agent) bool { return sub.Name == name }) {
			c.report(a.at("key of "+field), CodeWorkspace, "%q is no branch of %q that works in the workspace", name, a.Name)
		}
		if seen[key] {
			c.report(a.at(field), CodeWorkspace, "two branches of %q have the score %q", a.Name, key)
		}
		seen[key] = true
		c.reads = append(c.reads, read{agent: a, field: field, name: key, bare: true, line: 1, column: 1})
	}
	for _, sub := range subs {
		if _, ok := a.Parallel.KeepBest[sub.Name]; !ok {
			c.report(a.at("keep_best"), CodeWorkspace, "keep_best names no score of the branch %q", sub.Name)
		}
	}
}

// NoScoreError says that no branch of a parallel agent has a score, so that none is the best.
type NoScoreError struct {
	Agent  string
	Keys   []string // in which the scores would be
	Copies error    // why no copy of a step with best_of has one; nil for branches with keep_best
}

func (e *NoScoreError) Error() string {
	if e.Copies != nil {
		return fmt.Sprintf("no copy of %q has a score, so none can be kept: %s", e.Agent, strings.ReplaceAll(e.Copies.Error(), "\n", "; "))
	}
	return fmt.Sprintf("no branch of %q has a score, so none can be kept: there is no number in %s", e.Agent, strings.Join(e.Keys, ", "))
}

// best returns the branch with the highest score, the first of several.
func (a *Agent) best(ctx agent.Context) (name string, err error) {
	if c := a.Parallel.copies; c != nil {
		i, err := c.best(ctx)
		return c.branches[max(0, i)], err
	}
	var most float64
	for _, sub := range a.branches() {
		v, err := ctx.State().Get(a.Parallel.KeepBest[sub.Name])
		if err != nil {
			continue
		}
		score, ok := scoreOf(v)
		if ok && (name == "" || score > most) {
			name, most = sub.Name, score
		}
	}
	if name == "" {
		return "", &NoScoreError{Agent: a.Name, Keys: slices.Sorted(maps.Values(a.Parallel.KeepBest))}
	}
	return name, nil
}

// scoreOf reads a score: a number, or the first one in a text.
func scoreOf(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	case string:
		f, err := expr.Number(x)
		return f, err == nil
	}
	return 0, false
}

func (ds *desks) fork(ctx agent.Context, a *Agent) error {
	if drive.At(ctx).Replays() {
		return nil
	}
	now, err := ds.read(ctx, a.workspaceKey())
	if err != nil {
		return err
	}
	for _, sub := range a.branches() {
		key := sub.workspaceKey()
		own := tree{hash: now.hash, base: now.base, run: now.run, lines: now.lines}
		if v, err := ctx.State().Get(key); err == nil { // what its steps were told
			own.protected, own.by = treeOf(v).protected, treeOf(v).by
		}
		if err := ctx.State().Set(key, own.value()); err != nil {
			return err
		}
	}
	for _, key := range a.Parallel.KeepBest { // a score belongs to the files that it was given for
		if _, err := ctx.State().Get(key); err != nil {
			continue
		}
		if err := ctx.State().Set(key, nil); err != nil {
			return err
		}
	}
	return nil
}

func (ds *desks) join(ctx agent.Context, a *Agent) error {
	if drive.At(ctx).Replays() {
		return nil
	}
	was, err := ds.read(ctx, a.workspaceKey())
	if err != nil {
		return err
	}
	only := ""
	if len(a.Parallel.KeepBest) > 0 || a.Parallel.copies != nil {
		if only, err = a.best(ctx); err != nil {
			return err
		}
	}
	trees := make(map[string]workspace.Hash)
	for _, sub := range a.branches() {
		v, err := ctx.State().Get(sub.workspaceKey())
		if err != nil {
			return err
		}
		if h := treeOf(v).hash; h != was.hash && (only == "" || only == sub.Name) {
			trees[sub.Name] = h
		}
	}
	if len(trees) == 0 && only == was.kept {
		return nil
	}
	d, err := ds.desk(ctx, ctx.SessionID(), "", was)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	now := was
	now.run, now.kept = ctx.SessionID(), only
	if now.hash, err = d.tree.Merge(ctx, was.hash, trees); err != nil {
		return fmt.Errorf("join the branches of %q: %w", a.Name, err)
	}
	if err := ds.measure(ctx, d.tree, &now); err != nil {
		return err
	}
	return ctx.State().Set(a.workspaceKey(), now.value())
}

// beside opens the tree of a branch.
func (ds *desks) beside(ctx agent.InvocationContext, key string, was tree) (*desk, error) {
	branch := strings.TrimPrefix(strings.TrimPrefix(key, WorkspaceKey), "_")
	return ds.desk(ctx, ctx.Session().ID(), branch, was)
}

// keyOf returns the state key of the files that an agent works on.
func (ds *desks) keyOf(ctx agent.InvocationContext) string {
	return cmp.Or(ds.keys[ctx.Agent().Name()], WorkspaceKey)
}
