// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/pipe"
)

// Options are the choices of [Parse].
type Options struct {
	// FS is where refs lead; they never leave it. Nil refuses refs. For a
	// folder, use os.Root.FS: os.DirFS follows links that lead out.
	FS fs.FS
	// Path is where the definition itself is in FS. The default is the last
	// element of its name.
	Path string
}

// Load reads and checks a definition. Files that it refers to are looked for in
// the folder of the file and below, and nowhere else.
//
// The error is [Problems]: everything that is wrong, with errors.Is finding
// fs.ErrNotExist and the like. Warnings alone are no error; see
// [Definition.Warnings].
func Load(name string) (*Definition, error) {
	l := newLoader()
	f, err := pipe.Open(name)
	if err != nil {
		return nil, l.unreadable(name, err)
	}
	defer f.Close()
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, l.unreadable(name, err)
	}
	defer root.Close()
	l.fsys = root.FS()
	l.folder = strings.TrimSuffix(name, filepath.Base(name))
	src, n := l.read(f, name, filepath.Base(name))
	return l.definition(src, n)
}

// Parse is [Load] of data. The name is what problems call the file.
func Parse(name string, data []byte, opts Options) (*Definition, error) {
	l := newLoader()
	l.fsys = opts.FS
	if opts.Path == "" {
		opts.Path = path.Base(filepath.ToSlash(name))
	}
	if folder, ok := strings.CutSuffix(filepath.ToSlash(name), opts.Path); ok {
		l.folder = folder
	}
	src, n := l.read(bytes.NewReader(data), name, path.Clean(opts.Path))
	return l.definition(src, n)
}

func newLoader() *loader { return &loader{used: make(map[string]source.Span)} }

func (l *loader) unreadable(name string, err error) error {
	l.report(source.Span{Src: source.New(name, name, 0, "")}, CodeFile, "the file cannot be read: %v", source.Cause(err)).err = err
	return l.problems
}

// definition makes a definition of the root file's value.
func (l *loader) definition(src *source.Source, n *yaml.Node) (*Definition, error) {
	d := &Definition{}
	if n != nil {
		l.used[src.Path] = source.Span{Src: src, Line: 1, Column: 1, Length: 1}
		l.reading = append(l.reading, src)
		r := reader{loader: l, src: src, def: d}
		if d.Root = r.agent(n, nil); d.Root != nil {
			d.title()
			l.check(d)
		}
	}
	l.problems = l.problems.sort().first(maxProblems)
	if l.problems.count(SeverityError) > 0 {
		return nil, l.problems
	}
	d.warnings, d.notes = l.problems, l.notes.sort().first(maxProblems)
	return d, nil
}

// ref reads the agent in the file that a ref names.
func (r *reader) ref(parent *Agent, n *yaml.Node) *Agent {
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
	if first, ok := r.used[target]; ok {
		r.report(at, CodeRef, "ref %q is used twice, first at %s", name, positionOf(first)).
			Hint = "agents have one place in the tree; make a second file with another name in it"
		return nil
	}
	if len(r.sources) >= maxFiles {
		r.report(at, CodeFile, "the definition has more than %d files", maxFiles)
		return nil
	}
	r.used[target] = at
	return r.follow(parent, at, name, target)
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

// fileNear is the hint for a file that there is not: one like it.
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

func (r *reader) follow(parent *Agent, at source.Span, name, target string) *Agent {
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
		if strings.Contains(fmt.Sprint(err), "escapes") {
			p.Hint = "a link in the folder of the definition must not lead out of it"
		}
		return nil
	}
	src, n := r.read(f, r.folder+target, target)
	if n == nil {
		return nil
	}
	r.reading = append(r.reading, src)
	defer func() { r.reading = r.reading[:len(r.reading)-1] }()
	inner := reader{loader: r.loader, src: src, def: r.def}
	return inner.agent(n, parent)
}
