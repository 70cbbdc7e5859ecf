// SPDX-License-Identifier: Apache-2.0

package runfiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/procgroup"
	"github.com/refrain-dev/refrain/internal/values/limited"
)

// Runs has the files of the runs of one tree of agents. It makes a tree when a command first needs it.
type Runs struct {
	cfg       Config
	place     Place
	protected []string // patterns: those of the config, and the overlays

	mu   sync.Mutex
	open map[branch]*lockedTree
}

// Place says which run's files these are, and where they are.
type Place struct {
	Root     string            // of the run
	Store    string            // of the run's log, as for [Owner]; empty if it is unknown
	Copies   string            // the folder of new trees, outside of Root; empty for one in Root
	Withhold []string          // variables that setup does not inherit
	Keys     map[string]string // the state key of the files that an agent works on, by the agent's name; [Key] for others
	Overlays []string          // folders in From that the trees never have, relative to it with slashes
}

// New returns the files of runs. Close it after the last run.
func New(cfg Config, place Place) *Runs {
	protected := slices.Clone(cfg.Protect)
	for _, overlay := range place.Overlays {
		protected = append(protected, workspace.Literal(overlay))
	}
	return &Runs{cfg: cfg, place: place, protected: protected, open: make(map[branch]*lockedTree)}
}

// branch is a run, and a branch of a parallel agent in it; empty outside them.
type branch struct{ run, name string }

// lockedTree is the tree of one run or branch, at which one command works at a time.
type lockedTree struct {
	mu   sync.Mutex
	tree *workspace.Tree // nil until a command needs it
}

// Close closes the trees. Their files stay in the store.
func (rs *Runs) Close() error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var errs []error
	for id, d := range rs.open {
		if d.tree != nil {
			errs = append(errs, d.tree.Close())
		}
		delete(rs.open, id)
	}
	return errors.Join(errs...)
}

// tree returns the tree of a run or of a branch, locked. was is the value of its state key.
func (rs *Runs) tree(ctx context.Context, id, name string, was state) (*lockedTree, error) {
	rs.mu.Lock()
	at := branch{id, name}
	d := rs.open[at]
	if d == nil {
		d = new(lockedTree)
		rs.open[at] = d
	}
	rs.mu.Unlock()
	d.mu.Lock()
	if d.tree != nil {
		return d, nil
	}
	if name != "" {
		run, err := rs.tree(ctx, id, "", was)
		if err == nil {
			d.tree, err = run.tree.Beside(ctx, name)
			run.mu.Unlock()
		}
		if err != nil {
			d.mu.Unlock()
			return nil, err
		}
		return d, nil
	}
	w := &rs.cfg
	cfg := workspace.Config{From: filepath.Join(rs.place.Root, filepath.FromSlash(w.From)), Store: Store(rs.place.Root), Run: id,
		Owner: Owner(rs.place.Root, rs.place.Store), Copies: rs.place.Copies,
		Base: w.Base, Copy: w.Copy, Filters: w.Filters, Protect: rs.protected, Exclude: w.excluded(rs.place.Overlays), Limits: w.Limits,
		Environ: child.Inheritance{Withhold: rs.place.Withhold}.Environ()}
	if was.run != id {
		cfg.ForkOf = was.run
	}
	cfg.Setup = Setup(w.Setup, rs.place.Withhold)
	err := rs.checkResult(ctx, cfg)
	if err == nil {
		d.tree, err = workspace.Open(ctx, cfg)
	}
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return d, nil
}

// excluded returns what the trees never have as part of the state: the overlays and the notes.
func (w *Config) excluded(overlays []string) []string {
	if w.Notes == "" {
		return overlays
	}
	return append(slices.Clone(overlays), path.Clean(w.Notes))
}

// checkResult reports a branch or patch that could not be made at the end, before anything is paid for. A run that goes
// on may have made it, and so may the run that a fork continues.
func (rs *Runs) checkResult(ctx context.Context, cfg workspace.Config) error {
	branch := rs.cfg.Result.Branch
	if rs.cfg.Result.Patch != "" {
		return rs.checkPatch(cfg.Run)
	}
	if branch == "" {
		return nil
	}
	err := workspace.CheckBranch(ctx, cfg, rs.cfg.Result.Named(branch, cfg.Run), resultOf(cfg.Run))
	if errors.Is(err, workspace.ErrBranchExists) {
		if _, stored := workspace.OpenStored(ctx, cfg.Store, cfg.Run); stored == nil || cfg.ForkOf != "" {
			return nil // what the run has done was paid for: its branch gets another name
		}
		err = fmt.Errorf("%w; with {{run}} in its name, such as %s-{{run}}, each run has its own", err, branch)
		return &branchError{err}
	}
	return err
}

// branchError is that of a branch that exists, which another attempt of the step meets again.
type branchError struct{ error }

func (e *branchError) Unwrap() error   { return e.error }
func (e *branchError) Permanent() bool { return true }

// Setup returns a function that prepares a new tree with a command; nil without one. The command does not inherit the variables of
// withhold.
func Setup(args, withhold []string) func(context.Context, string, []string) error {
	if len(args) == 0 {
		return nil
	}
	return func(ctx context.Context, dir string, env []string) error { return setUp(ctx, args, withhold, dir, env) }
}

func setUp(ctx context.Context, args, withhold []string, dir string, env []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(child.Inheritance{Withhold: withhold}.Environ(), env...)
	said := &limited.Tail{Most: 2000}
	cmd.Stdout, cmd.Stderr = said, said
	procgroup.Lead(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", args[0], err)
	}
	err := cmd.Wait()
	procgroup.Kill(cmd.Process)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("run %s: %w: %s", args[0], err, strings.TrimSpace(strings.ToValidUTF8(said.String(), "\uFFFD")))
	}
	return nil
}

// own returns the tree on which an agent works, and locks it. It also returns the state key of the files, and its value.
func (rs *Runs) own(ctx agent.InvocationContext) (d *lockedTree, key string, was state, err error) {
	key = cmp.Or(rs.place.Keys[ctx.Agent().Name()], Key)
	v, _ := drive.At(ctx).Lookup(key)
	was = stateOf(v)
	branch := strings.TrimPrefix(strings.TrimPrefix(key, Key), "_")
	d, err = rs.tree(ctx, ctx.Session().ID(), branch, was)
	return d, key, was, err
}
