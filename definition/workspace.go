// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/child"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
	"github.com/refrain-dev/refrain/internal/procgroup"
	"github.com/refrain-dev/refrain/workspace"
)

// Workspace describes the files that the commands of a run work on. Each command runs in a copy of
// the files, whose contents are a value of the state under [WorkspaceKey].
type Workspace struct {
	// From is a git repository or a folder inside the run's root, to copy the files from; empty is the
	// root.
	From string
	// Base says which files the copy begins with; empty is workspace.Dirty.
	Base workspace.Base
	// Copy names ignored files to copy too. Setup is a command that prepares a new copy.
	Copy, Setup []string
	// Protect are patterns of files that commands may not change; see workspace.Match. OnProtected says
	// what happens if one does: RestoreProtected (the default) or FailProtected.
	Protect     []string
	OnProtected string
	Limits      workspace.Limits
	Result      WorkspaceResult
}

// What happens after a command has changed a protected file.
const (
	RestoreProtected = "restore" // the file is put back, and {{workspace.protected}} names it
	FailProtected    = "fail"    // the step fails
)

// WorkspaceResult says where the files of the result go at the end of a run. At most one field is set;
// without any, they stay in the store. {{run}} stands for the ID of the run.
type WorkspaceResult struct {
	Branch string // a new branch in the repository
	Patch  string // a file inside the run's root
	Apply  bool   // the files of From themselves
}

// WorkspaceKey is the state key of a definition with a workspace. Its value is a map: tree is the
// hash of the files; base is the hash of the files that protect and limits compare with, if it is not the
// start; lines is how many lines differ from that; protected names the files that the step protected_by was
// not allowed to change; run is the run that the tree belongs to; result says where the files of the result
// went; kept is the branch whose files the last parallel agent with keep_best has kept.
const WorkspaceKey = "workspace"

// WorkspaceStore returns the folder below the root of a run that keeps the files of workspaces.
func WorkspaceStore(root string) string { return filepath.Join(cmp.Or(root, "."), ".refrain", "files") }

var workspaceParts = parts[Workspace]{rows: []row[Workspace]{
	field("from", "git repository or folder to copy the files from, inside the run's root; the root if left out", aText, func(w *Workspace) *string { return &w.From }),
	field("base", "files that the copy begins with: dirty, as they are on the disk (default), or head, as in the last commit", oneWord(workspace.Dirty, workspace.Head), func(w *Workspace) *workspace.Base { return &w.Base }).shown("dirty"),
	field("copy", "ignored files to copy too, as in .gitignore; those in .worktreeinclude are copied anyway", each(aText, listing{empty: "leave it out for none"}), func(w *Workspace) *[]string { return &w.Copy }),
	field("setup", "program and arguments that prepare a new copy; no shell reads them", each(aWords, listing{empty: "leave it out for none"}), func(w *Workspace) *[]string { return &w.Setup }),
	field("protect", "files that commands may not change, such as **/*_test.go", each(aText, listing{empty: "leave it out for none"}), func(w *Workspace) *[]string { return &w.Protect }),
	field("on_protected", "after a command has changed a protected file: restore (default) puts it back, fail fails the step", oneWord(RestoreProtected, FailProtected), func(w *Workspace) *string { return &w.OnProtected }).shown(RestoreProtected),
	field("limits", "largest difference from the start, file and store: {files, lines, file_size, store}", workspaceLimits.inPlace(), func(w *Workspace) *workspace.Limits { return &w.Limits }),
	field("result", "where the files of the result go: {branch}, {patch} or {apply}; they stay in the store if left out", workspaceResult.inPlace(), func(w *Workspace) *WorkspaceResult { return &w.Result }),
}, instead: "write {} for a copy of the folder where the run starts"}

var workspaceLimits = parts[workspace.Limits]{rows: []row[workspace.Limits]{
	field("files", "most files that differ from the start", wholeFrom[int64](1, ""), func(l *workspace.Limits) *int64 { return &l.Files }),
	field("lines", "most lines added and removed since the start", wholeFrom[int64](1, ""), func(l *workspace.Limits) *int64 { return &l.Lines }),
	field("file_size", "largest file, such as 5MB", aSize, func(l *workspace.Limits) *int64 { return &l.FileSize }).shown("100MiB"),
	field("store", "most bytes in the store of all runs, such as 2GB", aSize, func(l *workspace.Limits) *int64 { return &l.Store }).shown("10GiB"),
}, some: "give files, lines, file_size or store"}

var workspaceResult = parts[WorkspaceResult]{rows: []row[WorkspaceResult]{
	field("branch", "new branch in the repository, such as refrain/{{run}}", aText, func(r *WorkspaceResult) *string { return &r.Branch }),
	field("patch", "file for the changes, inside the run's root", aText, func(r *WorkspaceResult) *string { return &r.Patch }),
	field("apply", "true writes the changes into the files themselves", aBool, func(r *WorkspaceResult) *bool { return &r.Apply }),
}, instead: "write {branch: NAME}, {patch: FILE} or {apply: true}"}

// workspace checks the workspace of a definition.
func (c *checker) workspace() {
	w, root := c.def.Workspace, c.def.Root
	for a := range root.All {
		c.keepBest(a)
	}
	if w == nil {
		for a := range root.All {
			c.work(a)
		}
		return
	}
	c.keys[WorkspaceKey] = "workspace"
	c.workspaceKeys()
	report := func(field, format string, args ...any) *Problem {
		return c.report(root.at(field), CodeWorkspace, format, args...)
	}
	for _, f := range []struct{ field, path, hint string }{
		{"from", w.From, "name a folder below the root; refrain run --root FOLDER makes another folder the root"},
		{"result.patch", w.Result.Patch, "name a file below the root, such as result.patch"},
	} {
		if f.path != "" && !filepath.IsLocal(filepath.FromSlash(f.path)) {
			c.report(root.at("workspace."+f.field), CodeOutside, "%s %q leads out of the root of the run", f.field, f.path).Hint = f.hint
		}
	}
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Clean(w.Result.Patch)), "/") {
		if strings.EqualFold(part, ".git") || part == ".refrain" {
			report("workspace.result.patch", "result.patch %q is inside %s, which is no place for a patch", w.Result.Patch, part)
		}
	}
	for i, p := range w.Protect {
		if err := workspace.CheckPattern(p); err != nil {
			report(index("workspace.protect", i), "%v", err)
		}
	}
	if w.Result.ways() > 1 {
		report("workspace.result", "result has several of branch, patch and apply").Hint = "keep one"
	}
	for _, f := range []struct{ name, text string }{{"branch", w.Result.Branch}, {"patch", w.Result.Patch}} {
		if rest := strings.ReplaceAll(f.text, "{{run}}", ""); strings.ContainsAny(rest, "{}") {
			report("workspace.result."+f.name, "%s can have no placeholder but {{run}}", f.name)
		}
	}
	if b := w.Result.Branch; notABranch().MatchString(w.Result.named(b, "r_1")) {
		report("workspace.result.branch", "git takes no branch of the name %q", b).Hint = "use letters, digits, - and /, such as fix-tests"
	}
	commands := 0
	for a := range root.All {
		c.work(a)
		if !a.works() {
			continue
		}
		commands++
		switch {
		case a.TaskQueue != "":
			c.report(a.at("task_queue"), CodeWorkspace, "%q runs on another machine, where the files of the workspace are not", a.Name).
				Hint = "remove task_queue"
		case a.under(func(p *Agent) bool { return p.tool }):
			c.report(a.at("name"), CodeWorkspace, "%q works in a tool, and tools cannot work in a workspace", a.Name).
				Hint = "make it a step"
		}
	}
	if commands == 0 {
		c.warn(root.at("workspace"), CodeWorkspace, "no step works in the workspace").
			Hint = "only steps with command or cli do"
	}
	c.note(root.at("workspace"), CodeWorkspace, "ignored files are not part of the workspace's state: a rollback leaves them as they are").
		Hint = "remove from .gitignore what an iteration must not leave behind"
}

// under reports whether something holds for the agent or for one around it, also beyond the nearest loop.
func (a *Agent) under(holds func(*Agent) bool) bool {
	for ; a != nil; a = a.parent {
		if holds(a) {
			return true
		}
	}
	return false
}

// notABranch matches the names that git check-ref-format refuses.
var notABranch = lazyregexp.New(`^[-/.]|^(@|HEAD)$|[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|/\.|@\{|\.lock(/|$)|[/.]$`)

// named is the name of a branch or file for a run.
func (r *WorkspaceResult) named(text, run string) string {
	return strings.ReplaceAll(text, "{{run}}", run)
}

// ways counts where the result goes.
func (r *WorkspaceResult) ways() (n int) {
	for _, given := range []bool{r.Branch != "", r.Patch != "", r.Apply} {
		if given {
			n++
		}
	}
	return n
}

// CheckMovable returns [Problems] if a run of the definition cannot move between the workers of a cluster.
func (d *Definition) CheckMovable() error {
	if d.Workspace == nil {
		return nil
	}
	l := newLoader()
	l.stays(d)
	return Problems(l.problems)
}

// stays reports that a run with a workspace cannot move.
func (l *loader) stays(d *Definition) {
	l.report(d.Root.at("workspace"), CodeWorkspace, "a run with a workspace cannot move between workers, because its files cannot").
		Hint = "use refrain run or refrain serve, without --temporal"
}

// resolveWorkspace reports why a workspace cannot be made here.
func (b *builder) resolveWorkspace(ctx context.Context, l *loader, d *Definition) {
	if d.Workspace == nil || b.cfg.StandIns.Agent != nil {
		return
	}
	if b.cfg.Elsewhere != nil {
		l.stays(d)
		return
	}
	if err := workspace.CheckGit(ctx); err != nil {
		l.report(d.Root.at("workspace"), CodeWorkspace, "%v", err).err = err
		return
	}
	b.desks = &desks{def: d.Workspace, root: cmp.Or(b.cfg.Root, "."), withhold: b.cfg.withhold, open: make(map[treePlace]*desk), keys: make(map[string]string)}
	for a := range d.Root.All {
		b.desks.keys[a.Name] = a.workspaceKey()
	}
	b.desks.readOverlays(ctx, l, d)
	if b.cfg.Cleanup != nil {
		b.cfg.Cleanup(b.desks.close)
	}
}

// desks are the trees of the runs of one build.
type desks struct {
	def      *Workspace
	root     string
	withhold []string

	keys      map[string]string // of the files that an agent works on, by its name
	overlays  []string          // folders in from that the tree never has, relative to it with slashes
	protected []string          // patterns: those of the definition, and the overlays

	mu   sync.Mutex
	open map[treePlace]*desk
}

// treePlace is a run, and a branch of a parallel agent in it; empty outside them.
type treePlace struct{ run, branch string }

// desk is the tree of one run or branch, at which one command works at a time.
type desk struct {
	mu   sync.Mutex
	tree *workspace.Tree // nil until a command needs it
}

func (ds *desks) close() error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	var errs []error
	for id, d := range ds.open {
		if d.tree != nil {
			errs = append(errs, d.tree.Close())
		}
		delete(ds.open, id)
	}
	return errors.Join(errs...)
}

// desk returns the tree of a run or of a branch, locked. was is the value of its state key.
func (ds *desks) desk(ctx context.Context, id, branch string, was tree) (*desk, error) {
	ds.mu.Lock()
	at := treePlace{id, branch}
	d := ds.open[at]
	if d == nil {
		d = new(desk)
		ds.open[at] = d
	}
	ds.mu.Unlock()
	d.mu.Lock()
	if d.tree != nil {
		return d, nil
	}
	if branch != "" {
		run, err := ds.desk(ctx, id, "", was)
		if err == nil {
			d.tree, err = run.tree.Beside(ctx, branch)
			run.mu.Unlock()
		}
		if err != nil {
			d.mu.Unlock()
			return nil, err
		}
		return d, nil
	}
	w := ds.def
	cfg := workspace.Config{From: filepath.Join(ds.root, filepath.FromSlash(w.From)), Store: WorkspaceStore(ds.root), Run: id,
		Base: w.Base, Copy: w.Copy, Exclude: ds.overlays, Limits: w.Limits,
		Environ: child.Inheritance{Withhold: ds.withhold}.Environ()}
	if was.run != id {
		cfg.ForkOf = was.run
	}
	if len(w.Setup) > 0 {
		cfg.Setup = ds.setUp
	}
	err := ds.checkResult(ctx, cfg)
	if err == nil {
		d.tree, err = workspace.Open(ctx, cfg)
	}
	if err != nil {
		d.mu.Unlock()
		return nil, err
	}
	return d, nil
}

// checkResult reports a branch or patch that could not be made at the end, before anything is paid for. A run that goes
// on may have made it; a fork has not made that of the run that it is a fork of.
func (ds *desks) checkResult(ctx context.Context, cfg workspace.Config) error {
	branch := ds.def.Result.Branch
	if ds.def.Result.Patch != "" {
		return ds.checkPatch(cfg.Run)
	}
	if branch == "" {
		return nil
	}
	err := workspace.CheckBranch(ctx, cfg, ds.def.Result.named(branch, cfg.Run), resultOf(cfg.Run))
	if errors.Is(err, workspace.ErrBranchExists) {
		err = fmt.Errorf("%w; with {{run}} in its name, such as %s-{{run}}, each run and fork has its own", err, branch)
		return &branchError{err}
	}
	return err
}

// branchError is that of a branch that exists, which another attempt of the step meets again.
type branchError struct{ error }

func (e *branchError) Unwrap() error   { return e.error }
func (e *branchError) Permanent() bool { return true }

// setUp prepares a new tree.
func (ds *desks) setUp(ctx context.Context, dir string, env []string) error {
	args := ds.def.Setup
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(child.Inheritance{Withhold: ds.withhold}.Environ(), env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
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
		text := strings.TrimSpace(said.String())
		return fmt.Errorf("run %s: %w: %s", args[0], err, strings.ToValidUTF8(text[max(0, len(text)-2000):], ""))
	}
	return nil
}

// tree is the value of [WorkspaceKey].
type tree struct {
	hash, base    workspace.Hash
	run           string
	protected, by string
	result, kept  string
	lines         int64
	known         bool // the state has one
}

func treeOf(v any) (t tree) {
	m, ok := v.(map[string]any)
	text := func(key string) string { s, _ := m[key].(string); return s }
	t = tree{hash: workspace.Hash(text("tree")), base: workspace.Hash(text("base")), run: text("run"), protected: text("protected"), by: text("protected_by"),
		result: text("result"), kept: text("kept"), known: ok}
	if lines, ok := scoreOf(m["lines"]); ok {
		t.lines = int64(lines)
	}
	return t
}

func (t tree) value() map[string]any {
	m := map[string]any{"tree": string(t.hash), "run": t.run}
	for key, v := range map[string]string{"base": string(t.base), "protected": t.protected, "protected_by": t.by, "result": t.result, "kept": t.kept} {
		if v != "" {
			m[key] = v
		}
	}
	if t.lines > 0 {
		m["lines"] = t.lines
	}
	return m
}

// ProtectedError says which protected files a command has changed. Its changes are undone.
type ProtectedError struct{ Paths []string }

func (e *ProtectedError) Error() string {
	return "the command changed protected files: " + strings.Join(e.Paths, ", ")
}

// around returns what runs a command by its work.
func (ds *desks) around(work *Work) func(agent.InvocationContext, func(string, []string) error) (map[string]any, error) {
	w := new(Work)
	if work != nil {
		w = work
	}
	return func(ctx agent.InvocationContext, run func(root string, env []string) error) (map[string]any, error) {
		if w.In == InClean {
			return nil, ds.clean(ctx, w, run)
		}
		return ds.work(ctx, w, run)
	}
}

// work runs a command in the tree of its run. The files are made equal to the state before it, and
// what it changes becomes part of the state. The changes of a command that fails are not: the next
// one begins with the files of the state.
func (ds *desks) work(ctx agent.InvocationContext, w *Work, run func(root string, env []string) error) (sets map[string]any, err error) {
	key := ds.keyOf(ctx)
	v, _ := drive.At(ctx).Lookup(key)
	was := treeOf(v)
	id := ctx.Session().ID()
	d, err := ds.beside(ctx, key, was)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	now := was
	now.hash, now.run = cmp.Or(was.hash, d.tree.Start()), id
	if err := startFrom(ctx, d.tree, &now); err != nil {
		return nil, err
	}
	begun := now
	defer func() {
		if err != nil && sets == nil && begun.hash != cmp.Or(was.hash, d.tree.Start()) { // a person has decided that
			sets = map[string]any{key: begun.value()}
		}
	}()
	if err := run(d.tree.Dir(), d.tree.Environ()); err != nil {
		return nil, err
	}
	if now.hash, err = d.tree.Snapshot(ctx); err != nil {
		return nil, err
	}
	if err := ds.protect(ctx, d.tree, &now); err != nil {
		if _, ok := errors.AsType[*ProtectedError](err); ok {
			begun.protected, begun.by = now.protected, now.by
			return map[string]any{key: begun.value()}, err
		}
		return nil, err
	}
	if now.hash != begun.hash || now.base != was.base {
		if err := ds.measure(ctx, d.tree, &now); err != nil {
			return nil, err
		}
	}
	if w.Changes == ChangesRequired && now.hash == begun.hash {
		return map[string]any{key: now.value()}, &UnchangedError{now.protected}
	}
	again := now.by == ctx.Agent().Name() // also the same files as the last time are news
	if !again && (now == was || !was.known && now.hash == d.tree.Start() && now.protected == "") {
		return nil, nil
	}
	return map[string]any{key: now.value()}, nil
}

// protect puts back the protected files that a command has changed.
func (ds *desks) protect(ctx agent.InvocationContext, t *workspace.Tree, now *tree) error {
	me := ctx.Agent().Name()
	if now.by == me {
		now.protected, now.by = "", ""
	}
	touched, err := ds.touched(ctx, t, now)
	if err != nil || len(touched) == 0 {
		return err
	}
	var paths []string
	for _, c := range touched {
		paths = append(paths, c.Path)
	}
	now.protected, now.by = strings.Join(paths, ", "), me
	if ds.def.OnProtected == FailProtected {
		return &ProtectedError{paths}
	}
	h, err := t.PutBack(ctx, now.hash, touched)
	if err != nil {
		return err
	}
	now.hash = h
	return nil
}

// measure counts the lines that differ from the base.
func (ds *desks) measure(ctx context.Context, t *workspace.Tree, now *tree) error {
	changes, err := t.Files(ctx, cmp.Or(now.base, t.Start()), now.hash)
	now.lines = workspace.Lines(changes)
	return err
}

// touched lists the protected files that differ from the base.
func (ds *desks) touched(ctx context.Context, t *workspace.Tree, now *tree) ([]workspace.Change, error) {
	if len(ds.protected) == 0 {
		return nil, nil
	}
	return t.Protected(ctx, cmp.Or(now.base, t.Start()), now.hash, ds.protected)
}

// resultOf is the message of a result's commit. It begins a patch, too, so that no other file is taken for one.
func resultOf(run string) string { return "Result of run " + run }

// handOver gives the files of the result to the user, after the root agent has ended.
func (ds *desks) handOver(ctx agent.CallbackContext) (*genai.Content, error) {
	if drive.At(ctx).Replays() || ds.def.Result.ways() == 0 {
		return nil, nil
	}
	v, err := ctx.State().Get(WorkspaceKey)
	if err != nil { // no command has changed a file
		return nil, nil
	}
	was := treeOf(v)
	d, err := ds.desk(ctx, ctx.SessionID(), "", was)
	if err != nil {
		return nil, err
	}
	defer d.mu.Unlock()
	if ds.def.Result.Branch != "" && was.hash == d.tree.Start() { // it would have an empty commit
		return nil, nil
	}
	now := was
	if now.result, err = ds.give(ctx, d.tree, ctx.SessionID(), was.hash); err != nil {
		return nil, fmt.Errorf("hand over the files of the result (they are kept as tree %s): %w", was.hash, err)
	}
	return nil, ctx.State().Set(WorkspaceKey, now.value())
}

// give hands a tree over and says where it went.
func (ds *desks) give(ctx context.Context, t *workspace.Tree, id string, h workspace.Hash) (string, error) {
	r := &ds.def.Result
	name := func(text string) string { return r.named(text, id) }
	switch {
	case r.Branch != "":
		commit, err := t.Branch(ctx, h, name(r.Branch), resultOf(id))
		if err != nil {
			return "", err
		}
		way, err := t.Taking(ctx, h)
		return fmt.Sprintf("branch %s, commit %s%s%s", name(r.Branch), commit, taken, ds.def.taking(way, name(r.Branch))), err
	case r.Apply:
		return "applied to " + cmp.Or(ds.def.From, "the files"), t.Apply(ctx, h)
	}
	return ds.givePatch(ctx, t, id, h)
}

// works reports whether the agent runs a program, which works in the workspace.
func (a *Agent) works() bool { return a.Type == TypeCommand || a.Type == TypeCLI }

// hasCommand reports whether the agent, or one in it, runs a program.
func (a *Agent) hasCommand() bool {
	for sub := range a.All {
		if sub.works() {
			return true
		}
	}
	return false
}
