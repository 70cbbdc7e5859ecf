// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/loop"
)

var workspaceParts = parts[runfiles.Config]{rows: []row[runfiles.Config]{
	field("from", "git repository or folder to copy the files from, inside the run's root; the root if left out", aText, func(w *runfiles.Config) *string { return &w.From }),
	field("base", "files that the copy begins with: dirty, as they are on the disk (default), head, as in the last commit, or those of a branch or commit, by its name",
		as(aWord, func(s string) workspace.Base { return workspace.Base(s) }), func(w *runfiles.Config) *workspace.Base { return &w.Base }).shown("dirty"),
	field("copy", "ignored files to copy too, as in .gitignore; those in .worktreeinclude are copied anyway", each(aText, listing{empty: "leave it out for none"}), func(w *runfiles.Config) *[]string { return &w.Copy }),
	field("setup", "program and arguments that prepare a new copy; no shell reads them", each(aWords, listing{empty: "leave it out for none"}), func(w *runfiles.Config) *[]string { return &w.Setup }),
	field("filters", "filters in git's configuration, such as lfs, that may run for the branch of the result", each(aText, listing{empty: "leave it out for none"}), func(w *runfiles.Config) *[]string { return &w.Filters }),
	field("notes", "file for notes of agents to later steps, such as NOTES.md; a rollback leaves it as it is, and the result does not have it", aText, func(w *runfiles.Config) *string { return &w.Notes }),
	field("protect", "files that commands may not change, such as **/*_test.go", each(aText, listing{empty: "leave it out for none"}), func(w *runfiles.Config) *[]string { return &w.Protect }),
	field("on_protected", "after a command has changed a protected file: restore (default) puts it back, fail fails the step", oneWord(runfiles.Restore, runfiles.Fail), func(w *runfiles.Config) *string { return &w.OnProtected }).shown(runfiles.Restore),
	field("limits", "largest difference from the start, file and store: {files, lines, file_size, store}", workspaceLimits.inPlace(), func(w *runfiles.Config) *workspace.Limits { return &w.Limits }),
	field("result", "where the files of the result go: {branch}, {patch} or {apply}; they stay in the store if left out", workspaceResult.inPlace(), func(w *runfiles.Config) *runfiles.Result { return &w.Result }),
}, instead: "write {} for a copy of the folder where the run starts"}

var workspaceLimits = parts[workspace.Limits]{rows: []row[workspace.Limits]{
	field("files", "most files that differ from the start", wholeFrom[int64](1, ""), func(l *workspace.Limits) *int64 { return &l.Files }),
	field("lines", "most lines added and removed since the start", wholeFrom[int64](1, ""), func(l *workspace.Limits) *int64 { return &l.Lines }),
	field("file_size", "largest file, such as 5MB", aSize, func(l *workspace.Limits) *int64 { return &l.FileSize }).shown("100MiB"),
	field("store", "most bytes in the store of all runs, such as 2GB", aSize, func(l *workspace.Limits) *int64 { return &l.Store }).shown("10GiB"),
}, some: "give files, lines, file_size or store"}

var workspaceResult = parts[runfiles.Result]{rows: []row[runfiles.Result]{
	field("branch", "new branch in the repository, such as refrain/{{run}}", aText, func(r *runfiles.Result) *string { return &r.Branch }),
	field("patch", "file for the changes, inside the run's root", aText, func(r *runfiles.Result) *string { return &r.Patch }),
	field("apply", "true writes the changes into the files themselves", aBool, func(r *runfiles.Result) *bool { return &r.Apply }),
}, instead: "write {branch: NAME}, {patch: FILE} or {apply: true}"}

// workspace checks the workspace of a definition.
func (c *checker) workspace() {
	w, root := c.def.Workspace, c.def.Root
	for a := range root.All {
		c.keepBest(a)
		c.work(a)
	}
	if w == nil {
		return
	}
	for _, key := range c.def.fileKeys() {
		c.keys[key] = "workspace"
	}
	report := func(field, format string, args ...any) *Problem {
		return c.report(root.at(field), CodeWorkspace, format, args...)
	}
	c.base(string(w.Base))
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
	if n := w.Notes; n != "" && (!filepath.IsLocal(filepath.FromSlash(n)) || path.Clean(n) == ".") {
		c.report(root.at("workspace.notes"), CodeOutside, "notes %q is no file of the workspace", n).Hint = "name a file such as NOTES.md"
	}
	for i, p := range w.Protect {
		if err := workspace.CheckPattern(p); err != nil {
			report(index("workspace.protect", i), "%v", err)
		}
	}
	if w.Result.Ways() > 1 {
		report("workspace.result", "result has several of branch, patch and apply").Hint = "keep one"
	}
	for _, f := range []struct{ name, text string }{{"branch", w.Result.Branch}, {"patch", w.Result.Patch}} {
		if rest := strings.ReplaceAll(f.text, "{{run}}", ""); strings.ContainsAny(rest, "{}") {
			report("workspace.result."+f.name, "%s can have no placeholder but {{run}}", f.name)
		}
	}
	if b := w.Result.Branch; notABranch().MatchString(w.Result.Named(b, "r_1")) {
		report("workspace.result.branch", "git takes no branch of the name %q", b).Hint = "use letters, digits, - and /, such as fix-tests"
	}
	commands := 0
	for a := range root.All {
		c.progressKeys(a)
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
	undoes := func(a *Agent) bool { return a.Loop != nil && a.Loop.rejects() }
	if !root.contains(undoes) || len(w.Copy) > 0 { // who copies ignored files knows of them
		return
	}
	c.note(root.at("workspace"), CodeWorkspace, "ignored files are not part of the workspace's state: a rollback leaves them as they are").
		Hint = "remove from .gitignore what an iteration must not leave behind"
}

// under reports whether the condition holds for the agent or for an enclosing one, even beyond the nearest loop.
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

// base notes a base that looks like a mistyped word. It stays a note, because the repository may have a branch of this name.
func (c *checker) base(name string) {
	words := []string{string(workspace.Dirty), string(workspace.Head)}
	other := func(r rune) bool { return r < 'A' || r > 'Z' && r < 'a' || r > 'z' }
	if name == "HEAD" || slices.Contains(words, name) || strings.ContainsFunc(name, other) {
		return
	}
	if near := suggest.Nearest(name, words); near != "" {
		c.note(c.def.Root.at("workspace.base"), CodeWorkspace, "base %q is the name of a branch or commit", name).
			suggest("did you mean "+near+"?", near)
	}
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
	root := cmp.Or(b.cfg.Root, ".")
	keys := make(map[string]string)
	for a := range d.Root.All {
		keys[a.Name] = a.workspaceKey()
	}
	b.files = runfiles.New(*d.Workspace, runfiles.Place{
		Root: root, Store: b.cfg.Store, Copies: b.cfg.Copies, Withhold: b.cfg.withhold, Keys: keys, Overlays: l.overlays(ctx, d, root)})
	if b.cfg.Cleanup != nil {
		b.cfg.Cleanup(b.files.Close)
	}
}

// withFiles adds callbacks that manage the files: a parallel agent gives each branch its own files, and the root
// hands over the result.
func (b *builder) withFiles(a *Agent, cb around) around {
	if a.parent == nil {
		cb.after = append([]agent.AfterAgentCallback{b.files.HandOver}, cb.after...)
	}
	if len(a.branches()) == 0 {
		return cb
	}
	all := runfiles.Branches{Agent: a.Name, Key: a.workspaceKey(), Scores: slices.Collect(maps.Values(a.Parallel.KeepBest))}
	for _, sub := range a.branches() {
		all.Names = append(all.Names, sub.Name)
	}
	if len(all.Scores) > 0 || a.Parallel.copies != nil || a.races() {
		all.Best = a.best
	}
	cb.before = append([]agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		return nil, b.files.Fork(ctx, all)
	}}, cb.before...)
	cb.after = append([]agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		return nil, b.files.Join(ctx, all)
	}}, cb.after...)
	return cb
}

// works reports whether the agent runs a program, which works in the workspace.
func (a *Agent) works() bool { return a.Type == TypeCommand || a.Type == TypeCLI }

// hasCommand reports whether the agent, or an agent inside it, runs a program.
func (a *Agent) hasCommand() bool { return a.contains((*Agent).works) }

// workspaceKey is the state key of the files that the agent works on: [runfiles.Key], or in a branch of a
// parallel agent that of [runfiles.KeyOf] the branch.
func (a *Agent) workspaceKey() string {
	for ; a.parent != nil; a = a.parent {
		if a.parent.Type == TypeParallel {
			return runfiles.KeyOf(a.Name)
		}
	}
	return runfiles.Key
}

// progressKeys checks that a loop in a branch names the files of its branch.
func (c *checker) progressKeys(a *Agent) {
	key := a.workspaceKey()
	if a.Loop == nil || a.Loop.NoProgress == nil || key == runfiles.Key {
		return
	}
	if i := slices.Index(a.Loop.NoProgress.Keys, runfiles.Key); i >= 0 {
		c.report(a.at(index("no_progress.keys", i)), CodeWorkspace, "%q works in a branch, whose files have another key", a.Name).
			Hint = "write " + key
	}
}

// fileKeys returns the state keys of the files of the run and of its branches; nil without a workspace.
func (d *Definition) fileKeys() []string {
	if d.Workspace == nil {
		return nil
	}
	keys := []string{runfiles.Key}
	for a := range d.Root.All {
		for _, sub := range a.branches() {
			keys = append(keys, sub.workspaceKey())
		}
	}
	return keys
}

// branches returns the sub-agents of a parallel agent that work on files; none for another agent.
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

var workRows = []row[runfiles.Work]{
	field("in", "clean runs the step in a fresh checkout of the workspace's files, with protected files as they were at the start; what it changes there is dropped", oneWord(runfiles.Clean), func(w *runfiles.Work) *string { return &w.In }),
	field("overlay", "folder inside the run's root that is laid over the clean checkout, such as tests that the agent never sees", aText, func(w *runfiles.Work) *string { return &w.Overlay }),
	field("changes", "required fails the step if it leaves the files of the workspace as they were", oneWord(runfiles.Required), func(w *runfiles.Work) *string { return &w.Changes }),
	field("commit", "state key, or KEY.FIELD, of the message for a commit of the files after the step; no commit while the key has no value", aText, func(w *runfiles.Work) *string { return &w.Commit }),
	field("restore",
		"state key, or KEY.FIELD, of the files with which the step begins: the value that workspace.tree had earlier, or the word start; without a value the step begins with the present files",
		aText, func(w *runfiles.Work) *string { return &w.Restore }),
}

// mistaken reports whether the definition has a workspace that cannot be read, which is already reported.
func (c *checker) mistaken() bool {
	n := c.def.Root.nodes["workspace"]
	return c.def.Workspace == nil && n != nil && !source.IsNull(n)
}

// work checks how an agent uses the workspace.
func (c *checker) work(a *Agent) {
	w := a.Work
	if w == nil || c.mistaken() {
		return
	}
	if c.def.Workspace == nil {
		for _, field := range rowNames(workRows) {
			if a.nodes[field] != nil {
				c.report(a.at(field), CodeWorkspace, "%s is for steps that work in a workspace, and the definition has none", field).
					Hint = "give the root a workspace"
			}
		}
		return
	}
	if w.In == runfiles.Clean && w.Changes != "" {
		c.report(a.at("changes"), CodeWorkspace, "%q works in a clean checkout, whose changes are dropped, so none can be required", a.Name).
			Hint = "remove changes or in"
	}
	if w.In == runfiles.Clean && w.Commit != "" {
		c.report(a.at("commit"), CodeWorkspace, "%q works in a clean checkout, whose changes are dropped, so there is nothing to commit", a.Name).
			Hint = "remove commit or in"
	}
	if w.In == runfiles.Clean && w.Restore != "" {
		c.report(a.at("restore"), CodeWorkspace, "%q works in a clean checkout, whose changes are dropped, so there is nothing to restore", a.Name).
			Hint = "remove restore or in"
	}
	if w.Overlay == "" {
		return
	}
	if w.In != runfiles.Clean {
		c.report(a.at("overlay"), CodeWorkspace, "%q has an overlay, which is for steps in a clean checkout", a.Name).Hint = "add in: clean"
	}
	folder := filepath.FromSlash(w.Overlay)
	if !filepath.IsLocal(folder) {
		c.report(a.at("overlay"), CodeOutside, "%s %q leads out of the root of the run", "overlay", w.Overlay).
			Hint = "name a folder below the root"
		return
	}
	switch in, over := placeOf(c.def.Workspace, w.Overlay); {
	case over:
		c.report(a.at("overlay"), CodeWorkspace, "overlay %q contains the files that the workspace is copied from", w.Overlay).
			Hint = "name a folder of its own"
	case in != "":
		c.note(a.at("overlay"), CodeWorkspace, "%q is not copied into the workspace", w.Overlay).
			Hint = "steps without in: clean do not see it"
	}
}

// placeOf returns the path of an overlay within the folder that the files are copied from; empty if the overlay is
// outside. over reports whether the overlay contains that folder.
func placeOf(w *runfiles.Config, overlay string) (in string, over bool) {
	from, overlay := path.Clean(filepath.ToSlash(w.From)), path.Clean(filepath.ToSlash(overlay))
	switch rest, below := strings.CutPrefix(overlay, from+"/"); {
	case overlay == "." || overlay == from || strings.HasPrefix(from, overlay+"/"):
		return "", true
	case from == ".":
		return overlay, false
	case below:
		return rest, false
	}
	return "", false
}

// overlays returns the overlays of the steps that are inside the folder that the files are copied from, relative to
// it, and reports those that the steps could read.
func (l *loader) overlays(ctx context.Context, d *Definition, place string) (inside []string) {
	root, err := os.OpenRoot(place)
	if err != nil {
		l.report(d.Root.at("workspace"), CodeWorkspace, "%v", err).err = err
		return nil
	}
	defer root.Close()
	for a := range d.Root.All {
		if a.Work == nil || a.Work.Overlay == "" {
			continue
		}
		folder := filepath.Join(place, filepath.FromSlash(a.Work.Overlay))
		if info, err := root.Lstat(filepath.FromSlash(a.Work.Overlay)); err != nil || !info.IsDir() {
			l.report(a.at("overlay"), CodeWorkspace, "there is no folder %q", a.Work.Overlay)
			continue
		}
		tracked, err := workspace.Tracked(ctx, filepath.Join(place, filepath.FromSlash(d.Workspace.From)), folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.report(a.at("overlay"), CodeWorkspace, "%v", err).err = err
			continue
		}
		if tracked {
			l.report(a.at("overlay"), CodeWorkspace, "%q is in the history of the repository, which the steps can read", a.Work.Overlay).
				Hint = "keep it in a folder that git has never had: outside of the repository, or in .gitignore"
		}
		if in, _ := placeOf(d.Workspace, a.Work.Overlay); in != "" && !slices.Contains(inside, in) {
			inside = append(inside, in)
		}
	}
	return inside
}

// watch returns the tests and files that show whether the score of a loop is honest: tests that its steps count, and
// files that they change. It is nil if they do neither.
func (a *Agent) watch() *loop.Watch {
	w := new(loop.Watch)
	add := func(to *[]string, key string) {
		if !slices.Contains(*to, key) {
			*to = append(*to, key)
		}
	}
	for sub := range a.All {
		if sub.works() && a.def != nil && a.def.Workspace != nil {
			add(&w.Files, a.workspaceKey()) // the loop's own is the first
			add(&w.Files, sub.workspaceKey())
		}
		if sub.Command != nil && sub.Command.Tests != "" && sub.OutputKey != "" && sub.OutputKey != LoopOutput && !sub.tool {
			add(&w.Tests, sub.OutputKey)
		}
	}
	if w.Files == nil && w.Tests == nil {
		return nil
	}
	return w
}

// keepBest checks the keys of keep_best, each of which has the score of one branch.
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
		c.keyRead(a, field, key)
	}
	for _, sub := range subs {
		if _, ok := a.Parallel.KeepBest[sub.Name]; !ok {
			c.report(a.at("keep_best"), CodeWorkspace, "keep_best names no score of the branch %q", sub.Name)
		}
	}
}

// NoScoreError reports that no branch of a parallel agent has a score, so none can be kept.
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

// best returns the branch with the highest score, the first of several equal ones.
func (a *Agent) best(ctx agent.Context) (name string, err error) {
	switch c := a.Parallel.copies; {
	case a.races():
		return a.winner(ctx), nil
	case c != nil:
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
