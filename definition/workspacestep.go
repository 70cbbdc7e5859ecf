// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/workspace"
)

// Work is how a command uses the workspace.
type Work struct {
	// In is InClean for a fresh checkout of the files, in which protected files are those of the base, and
	// whose changes are dropped. Empty is the tree of the run.
	In string
	// Overlay is a folder inside the run's root that is laid over the checkout. The tree of the run never
	// contains it.
	Overlay string
	// Changes is ChangesRequired if the step fails when it leaves the files as they were.
	Changes string
}

// The values of the fields of [Work].
const (
	InClean         = "clean"
	ChangesRequired = "required"
)

var workRows = []row[Work]{
	field("in", "clean runs the step in a fresh checkout of the workspace's files, with protected files as they were at the start; what it changes there is dropped", oneWord(InClean), func(w *Work) *string { return &w.In }),
	field("overlay", "folder inside the run's root that is laid over the clean checkout, such as tests that the agent never sees", aText, func(w *Work) *string { return &w.Overlay }),
	field("changes", "required fails the step if it leaves the files of the workspace as they were", oneWord(ChangesRequired), func(w *Work) *string { return &w.Changes }),
}

// UnchangedError says that a command has left the files of the workspace as they were, where changes are
// required.
type UnchangedError struct{ Protected string }

func (e *UnchangedError) Error() string {
	if e.Protected != "" {
		return "the command changed protected files only, which were put back: " + e.Protected
	}
	return "the command changed no file of the workspace"
}

// work checks how an agent uses the workspace.
func (c *checker) work(a *Agent) {
	w := a.Work
	if w == nil {
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
	if w.In == InClean && w.Changes != "" {
		c.report(a.at("changes"), CodeWorkspace, "%q works in a clean checkout, whose changes are dropped, so none can be required", a.Name).
			Hint = "remove changes or in"
	}
	if w.Overlay == "" {
		return
	}
	if w.In != InClean {
		c.report(a.at("overlay"), CodeWorkspace, "%q has an overlay, which is for steps in a clean checkout", a.Name).Hint = "add in: clean"
	}
	folder := filepath.FromSlash(w.Overlay)
	if !filepath.IsLocal(folder) {
		c.report(a.at("overlay"), CodeOutside, "%s %q leads out of the root of the run", "overlay", w.Overlay).
			Hint = "name a folder below the root"
		return
	}
	switch in, over := c.def.Workspace.placeOf(w.Overlay); {
	case over:
		c.report(a.at("overlay"), CodeWorkspace, "overlay %q contains the files that the workspace is copied from", w.Overlay).
			Hint = "name a folder of its own"
	case in != "":
		c.note(a.at("overlay"), CodeWorkspace, "%q is not copied into the workspace", w.Overlay).
			Hint = "steps without in: clean do not see it"
	}
}

// placeOf returns where an overlay is in the folder that the files are copied from; empty if it is not there. over
// reports whether the folder is in the overlay instead.
func (w *Workspace) placeOf(overlay string) (in string, over bool) {
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

// readOverlays finds the overlays of the steps, and reports those that the agent could read.
func (ds *desks) readOverlays(ctx context.Context, l *loader, d *Definition) {
	ds.protected = slices.Clone(ds.def.Protect)
	root, err := os.OpenRoot(ds.root)
	if err != nil {
		l.report(d.Root.at("workspace"), CodeWorkspace, "%v", err).err = err
		return
	}
	defer root.Close()
	for a := range d.Root.All {
		if a.Work == nil || a.Work.Overlay == "" {
			continue
		}
		folder := filepath.Join(ds.root, filepath.FromSlash(a.Work.Overlay))
		if info, err := root.Lstat(filepath.FromSlash(a.Work.Overlay)); err != nil || !info.IsDir() {
			l.report(a.at("overlay"), CodeWorkspace, "there is no folder %q", a.Work.Overlay)
			continue
		}
		tracked, err := workspace.Tracked(ctx, filepath.Join(ds.root, filepath.FromSlash(ds.def.From)), folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.report(a.at("overlay"), CodeWorkspace, "%v", err).err = err
			continue
		}
		if tracked {
			l.report(a.at("overlay"), CodeWorkspace, "%q is in the history of the repository, which the steps can read", a.Work.Overlay).
				Hint = "keep it in a folder that git has never had: outside of the repository, or in .gitignore"
		}
		if in, _ := ds.def.placeOf(a.Work.Overlay); in != "" && !slices.Contains(ds.overlays, in) {
			ds.overlays = append(ds.overlays, in)
			ds.protected = append(ds.protected, workspace.Literal(in))
		}
	}
}

// clean runs a command in a clean checkout of the files of the state.
func (ds *desks) clean(ctx agent.InvocationContext, w *Work, run func(root string, env []string) error) error {
	key := ds.keyOf(ctx)
	v, _ := drive.At(ctx).Lookup(key)
	now := treeOf(v)
	d, err := ds.beside(ctx, key, now)
	if err != nil {
		return err
	}
	defer d.mu.Unlock()
	if now.hash == "" {
		now.hash = d.tree.Start()
	}
	undo, err := ds.touched(ctx, d.tree, &now)
	if err != nil {
		return err
	}
	overlay := ""
	if w.Overlay != "" {
		if overlay, err = filepath.Abs(filepath.Join(ds.root, filepath.FromSlash(w.Overlay))); err != nil {
			return fmt.Errorf("find the overlay: %w", err)
		}
	}
	return d.tree.Clean(ctx, now.hash, undo, overlay, run)
}
