// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync/atomic"
)

// WithCompletePreloadSource reads all skills of a source into memory. It returns a source with these skills, and a
// function that reads them again. A reload that fails leaves the skills as they were. WithCompletePreloadSource fails
// with [ErrDuplicateSkill] if two skills have the same name, with the errors of source, and if a file is larger than
// 10 MiB.
func WithCompletePreloadSource(ctx context.Context, source Source) (Source, func(context.Context) error, error) {
	p := &preload{from: source}
	if err := p.reload(ctx); err != nil {
		return nil, nil, err
	}
	return p, p.reload, nil
}

type preload struct {
	from   Source
	skills atomic.Pointer[map[string]*memorySkill]
}

// memorySkill is a skill in memory.
type memorySkill struct {
	front        *Frontmatter
	instructions string
	resources    map[string][]byte
}

func (p *preload) reload(ctx context.Context) error {
	all, err := p.from.ListFrontmatters(ctx)
	if err != nil {
		return err
	}
	skills := make(map[string]*memorySkill, len(all))
	for _, front := range all {
		if skills[front.Name] != nil {
			return fmt.Errorf("skill %q: %w", front.Name, ErrDuplicateSkill)
		}
		if skills[front.Name], err = load(ctx, p.from, front); err != nil {
			return err
		}
	}
	p.skills.Store(&skills)
	return nil
}

func load(ctx context.Context, from Source, front *Frontmatter) (*memorySkill, error) {
	instructions, err := from.LoadInstructions(ctx, front.Name)
	if err != nil {
		return nil, err
	}
	paths, err := from.ListResources(ctx, front.Name, ".")
	if err != nil {
		return nil, err
	}
	l := &memorySkill{front: front, instructions: instructions, resources: make(map[string][]byte, len(paths))}
	for _, file := range paths {
		r, err := from.LoadResource(ctx, front.Name, file)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("skill %q: read %q: %w", front.Name, file, err)
		}
		if len(data) > maxFile {
			return nil, fmt.Errorf("skill %q: %q has more than %d bytes", front.Name, file, maxFile)
		}
		l.resources[path.Clean(file)] = data
	}
	return l, nil
}

func (p *preload) find(name string) (*memorySkill, error) {
	if l := (*p.skills.Load())[name]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("skill %q: %w", name, ErrSkillNotFound)
}

func (p *preload) ListFrontmatters(context.Context) (all []*Frontmatter, err error) {
	skills := *p.skills.Load()
	for _, name := range slices.Sorted(maps.Keys(skills)) {
		all = append(all, skills[name].front)
	}
	return all, nil
}

func (p *preload) LoadFrontmatter(_ context.Context, name string) (*Frontmatter, error) {
	l, err := p.find(name)
	if err != nil {
		return nil, err
	}
	return l.front, nil
}

func (p *preload) LoadInstructions(_ context.Context, name string) (string, error) {
	l, err := p.find(name)
	if err != nil {
		return "", err
	}
	return l.instructions, nil
}

func (p *preload) LoadResource(_ context.Context, name, resourcePath string) (io.ReadCloser, error) {
	l, err := p.find(name)
	if err != nil {
		return nil, err
	}
	data, ok := l.resources[path.Clean(resourcePath)]
	if !ok {
		return nil, fmt.Errorf("skill %q: %q: %w", name, resourcePath, ErrResourceNotFound)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (p *preload) ListResources(_ context.Context, name, subpath string) ([]string, error) {
	l, err := p.find(name)
	if err != nil {
		return nil, err
	}
	below, all := path.Clean(subpath), slices.Sorted(maps.Keys(l.resources))
	if below == "." {
		return all, nil
	}
	return slices.DeleteFunc(all, func(file string) bool { return file != below && !strings.HasPrefix(file, below+"/") }), nil
}
