// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// modulesIn lists the submodules of a repository that have files.
func modulesIn(ctx context.Context, g *git) (all []string, err error) {
	out, err := g.run(ctx, "ls-files", "-z", "--stage")
	if err != nil {
		return nil, err
	}
	for _, entry := range list(out) {
		meta, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(meta, modeNested) {
			continue
		}
		path := filepath.Join(g.dir, filepath.FromSlash(name))
		if inside, err := os.ReadDir(path); err == nil && len(inside) > 0 {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// copyModules copies the files of the submodules into a folder. They are not part of the state.
func (t *Tree) copyModules(ctx context.Context, into string) error {
	for _, name := range t.modules {
		names, err := t.moduleFiles(ctx, name)
		if err != nil {
			return err
		}
		if _, err := t.copyFiles(ctx, names, into); err != nil {
			return err
		}
	}
	return nil
}

// moduleFiles lists the files of a submodule and of those in it, relative to the origin.
func (t *Tree) moduleFiles(ctx context.Context, module string) (names []string, err error) {
	g := ofUser(t.user.bin, filepath.Join(t.from, filepath.FromSlash(module)), t.cfg.Environ, nil)
	up, err := g.word(ctx, "rev-parse", "--show-prefix")
	if err != nil || up != "" { // a folder with files in place of the submodule: git finds the repository above it
		return nil, nil
	}
	out, err := g.run(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	inner, err := modulesIn(ctx, g)
	if err != nil {
		return nil, err
	}
	for _, name := range list(out) {
		if !strings.HasSuffix(name, "/") && !slices.Contains(inner, name) {
			names = append(names, module+"/"+name)
		}
	}
	for _, name := range inner {
		more, err := t.moduleFiles(ctx, module+"/"+name)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Modules lists the submodules whose files were copied. What programs change there is not part of the state.
func (t *Tree) Modules() []string { return t.modules }
