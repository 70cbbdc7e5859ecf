// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/expr"
)

// besideRef are the fields that can stand beside a ref. They are about the place of the agent, so that one file can be
// used in several places.
var besideRef = []string{"name", "output_key", "can_exit_loop", "on_error", "delay_before", "delay_after"}

// BesideRef reports whether the field can stand beside a ref.
func (f Field) BesideRef() bool { return slices.Contains(besideRef, f.Name) }

// use is a place where a file describes an agent.
type use struct {
	at     source.Span
	file   string // as the ref names it
	fields []beside
}

// beside is a field beside a ref, with the reader of its file.
type beside struct {
	pair
	reader *reader
}

// field finds a field beside the ref; nil if it is not there.
func (u *use) field(name string) *beside {
	if u == nil {
		return nil
	}
	if i := slices.IndexFunc(u.fields, func(b beside) bool { return b.key == name }); i >= 0 {
		return &u.fields[i]
	}
	return nil
}

// sourceOf is the file that gives a field.
func (a *Agent) sourceOf(field string) *source.Source {
	if b := a.use.field(strings.TrimPrefix(field, "key of ")); b != nil {
		return b.reader.src
	}
	return a.src
}

// fromFile is the nearest agent that a file describes, from the agent itself on outwards; nil if none is.
func (a *Agent) fromFile() *Agent {
	for ; a != nil; a = a.parent {
		if a.use != nil {
			return a
		}
	}
	return nil
}

// ref reads the agent in the file that a ref names. ps are the fields of the ref's map. A file may be nothing but a ref:
// what stands beside the ref to it, outer, counts first.
func (r *reader) ref(parent *Agent, ps []pair, outer *use) *Agent {
	var n *source.Node
	own := &use{}
	if outer != nil {
		own.fields = slices.Clone(outer.fields)
	}
	for _, p := range ps {
		switch {
		case p.key == "ref":
			n = p.value
		case !slices.Contains(besideRef, p.key):
			r.report(r.src.Of(p.at), CodeConflict, "%q is not allowed beside ref", p.key).
				Hint = "move it to the file that ref names; beside ref can stand " + strings.Join(besideRef, ", ")
		case outer.field(p.key) == nil:
			own.fields = append(own.fields, beside{p, r})
		}
	}
	name, ok := r.text(n, "ref")
	if !ok {
		return nil
	}
	at := r.src.Of(n)
	target := path.Join(path.Dir(r.src.Path), name)
	switch {
	case strings.Contains(name, "://"):
		r.report(at, CodeRef, "ref %q is an address; it must be a file in the folder of the definition", name).
			Hint = "save it there, and name the file"
		return nil
	case path.IsAbs(name) || filepath.IsAbs(name) || strings.Contains(name, `\`):
		r.report(at, CodeRef, "ref must be a path with slashes, relative to this file, got %q", name)
		return nil
	case !filepath.IsLocal(target):
		r.report(at, CodeRef, "ref %q leads out of the folder of the definition", name)
		return nil
	case r.fsys == nil:
		r.report(at, CodeRef, "ref %q cannot be followed: the definition was not read from a folder", name)
		return nil
	}
	for _, around := range r.reading {
		if around.Path == target {
			r.report(at, CodeRef, "ref %q leads in a circle", name)
			return nil
		}
	}
	if r.uses++; r.uses > maxFiles {
		r.report(at, CodeFile, "the definition has more than %d refs", maxFiles)
		return nil
	}
	own.at, own.file = at, name
	return r.follow(parent, target, own)
}

// openRegular opens a file that is one: opening a named pipe would wait for
// somebody to write to it.
func openRegular(fsys fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return nil, err
	}
	return fsys.Open(name)
}

// fileNear suggests a file with a similar name for one that does not exist.
func (r *reader) fileNear(target, from string) string {
	entries, err := fs.ReadDir(r.fsys, path.Dir(target))
	if err != nil || len(entries) > maxNames {
		return ""
	}
	var names []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".yaml" || ext == ".yml" || ext == ".json" {
			names = append(names, e.Name())
		}
	}
	near := expr.Nearest(path.Base(target), names)
	if near == "" {
		return ""
	}
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(path.Join(path.Dir(target), near)))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", filepath.ToSlash(rel))
}

// opened is a file that was read.
type opened struct {
	src  *source.Source
	node *source.Node // nil if it could not be read as YAML
}

const linkHint = "a link in the folder of the definition must not lead out of it"

// leadsOut reports whether an [os.Root] has refused a path because a link in it leads out.
func leadsOut(err error) bool { return strings.Contains(err.Error(), "escapes") }

// open reads the file that a ref names, once; nil if it cannot be read.
func (r *reader) open(at source.Span, name, target string) *opened {
	if file, ok := r.opened[target]; ok {
		return file
	}
	f, err := openRegular(r.fsys, target)
	if err == nil {
		defer f.Close()
	}
	if err != nil {
		p := r.report(at, CodeRef, "ref %q cannot be read: %v", name, source.Cause(err))
		p.err = err
		if errors.Is(err, fs.ErrNotExist) {
			p.Hint = r.fileNear(target, path.Dir(r.src.Path))
		}
		if leadsOut(err) {
			p.Hint = linkHint
		}
		return nil
	}
	src, n := r.read(f, r.folder+target, target)
	r.opened[target] = &opened{src, n}
	return r.opened[target]
}

func isRef(ps []pair) bool {
	return slices.ContainsFunc(ps, func(p pair) bool { return p.key == "ref" })
}

// follow reads the agent that a file describes.
func (r *reader) follow(parent *Agent, target string, use *use) *Agent {
	file := r.open(use.at, use.file, target)
	if file == nil || file.node == nil {
		return nil
	}
	r.reading = append(r.reading, file.src)
	defer func() { r.reading = r.reading[:len(r.reading)-1] }()
	inner := reader{loader: r.loader, src: file.src, def: r.def}
	ps, ok := inner.pairs(file.node, "an agent")
	if !ok {
		return nil
	}
	if isRef(ps) {
		return inner.ref(parent, ps, use)
	}
	return inner.described(file.node, ps, parent, use)
}
