// SPDX-License-Identifier: Apache-2.0

// Package adkmove moves the module of an ADK program to Refrain: it changes the import prefix, and says by position
// what will not compile and what behaves otherwise.
//
//	p, err := adkmove.Read("program")
//	for _, f := range p.Findings {
//		fmt.Println(f)
//	}
//	err = p.Write() // or p.Diff(os.Stdout)
//
// It reads syntax, not types, because a program can be moved where no module can be downloaded. So it goes by names: a
// local variable that is called like an imported package is taken for the package.
package adkmove

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Module is the path of the module that programs move to.
const Module = "github.com/refrain-dev/refrain"

const (
	adk   = "google.golang.org/adk"
	goMod = "go.mod"
)

// A Finding is a place in a program that a person must check.
type Finding struct {
	File         string // with the path that Read was given
	Line, Column int    // from 1; the column counts bytes
	// Breaks says that the program will not compile, otherwise it behaves differently.
	Breaks bool
	Text   string
}

// String returns "file:line:column: error: text", with note in place of error for a finding that does not break the build.
func (f Finding) String() string {
	kind := "note"
	if f.Breaks {
		kind = "error"
	}
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, kind, f.Text)
}

// A Plan holds the changes of one module.
type Plan struct {
	// Findings are the findings about the files on the disk, by file and position.
	Findings []*Finding
	// Removed are the lines that the move removes from go.mod.
	Removed []*Finding
	// Others are the modules below the folder, which must be moved separately.
	Others []string
	// Vendored says that the module has a folder vendor.
	Vendored bool

	dir     string
	changed []change
}

// A change is the new text of a file.
type change struct{ name, before, after string }

// Read plans the move of the module whose go.mod is in the folder. It fails if a file cannot be read.
func Read(dir string) (*Plan, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := root.ReadFile(goMod)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no go.mod; give the folder of a Go module", dir)
	}
	if err != nil {
		return nil, err
	}
	p := &Plan{dir: dir}
	uses := false // the module uses ADK or Refrain
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return p.enter(root, name)
		}
		if !d.Type().IsRegular() || path.Ext(name) != ".go" {
			return nil
		}
		text, err := root.ReadFile(name)
		if err != nil || !bytes.Contains(text, []byte(adk)) && !bytes.Contains(text, []byte(Module)) {
			return err
		}
		s := read(text)
		if s.uses {
			uses = true
			p.add(name, s.text, s.moved())
			p.Findings = append(p.Findings, p.located(name, s.findings)...)
		}
		return nil
	})
	if err == nil {
		moved, found := moveGoMod(string(text), uses, ownVersion())
		p.add(goMod, string(text), moved)
		p.Removed = p.located(goMod, found)
	}
	return p, err
}

// enter returns fs.SkipDir for a folder in which the go command looks for no packages of this module.
func (p *Plan) enter(root *os.Root, name string) error {
	base := path.Base(name)
	if name == "." {
		return nil
	}
	if name == "vendor" {
		p.Vendored = true
	}
	if base == "vendor" || base == "testdata" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := root.Lstat(path.Join(name, goMod)); err == nil {
		p.Others = append(p.Others, p.path(name))
		return fs.SkipDir
	}
	return nil
}

func (p *Plan) path(name string) string { return path.Join(filepath.ToSlash(p.dir), name) }

func (p *Plan) add(name, before, after string) {
	if before != after {
		p.changed = append(p.changed, change{name, before, after})
	}
}

func (p *Plan) located(name string, found []*Finding) []*Finding {
	for _, f := range found {
		f.File = p.path(name)
	}
	return found
}

// Files returns the names of the files that change.
func (p *Plan) Files() []string {
	names := make([]string, len(p.changed))
	for i, c := range p.changed {
		names[i] = p.path(c.name)
	}
	return names
}

// Write writes the changed files, each as a whole, go.mod last. If Write fails, a second move makes the remaining changes.
func (p *Plan) Write() error {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, c := range p.changed {
		if err := c.write(root); err != nil {
			return err
		}
	}
	return nil
}

// write replaces the file in one step. It does not overwrite a file that has changed since it was read.
func (c change) write(root *os.Root) error {
	info, err := root.Stat(c.name)
	if err != nil {
		return err
	}
	if is, err := root.ReadFile(c.name); err != nil || string(is) != c.before {
		return cmp.Or(err, fmt.Errorf("%s has changed since it was read; move it again", c.name))
	}
	temp := c.name + "." + rand.Text()[:8] + ".tmp"
	err = root.WriteFile(temp, []byte(c.after), info.Mode().Perm())
	if err == nil {
		err = root.Rename(temp, c.name)
	}
	if err != nil {
		_ = root.Remove(temp) // the temporary file may not exist
	}
	return err
}
