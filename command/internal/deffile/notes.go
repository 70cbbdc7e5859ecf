// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// CheckCode returns an error about the Go agents, functions and callbacks that a definition names and a program with code of its
// own lacks, with the definition's warnings. For refrain it returns nil; see [NoteFunctions].
func CheckCode(e *term.Env, def *definition.Definition, from Origin) error {
	if e.Code.Name == "" {
		return nil
	}
	var cfg definition.BuildConfig
	e.Code.Into(&cfg)
	lacks, err := def.Lacks(cfg)
	if err == nil && len(lacks) > 0 {
		err = from.Problems(append(lacks, def.Warnings()...))
	}
	return err
}

// NoteFunctions prints which Go agents and functions of a definition refrain lacks. They are not problems of the definition,
// because it is for a program that has them.
func NoteFunctions(e *term.Env, def *definition.Definition, from Origin) {
	note := func(a *definition.Agent, has, what string) {
		fmt.Fprintf(e.Stderr, "%s: note: %q %s, which only a Go program that adds it can run; refrain run does not have it\n",
			from.At(a.Position()).String(), a.Name, fmt.Sprintf(has, what))
	}
	for a := range def.Root.All {
		if a.Func != "" && e.Code.Agents[a.Func] == nil {
			note(a, "is the Go agent %q", a.Func)
		}
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func != "" && !e.Code.HasTool(t.Func) {
				note(a, "has the Go function %q", t.Func)
			}
		}
	}
}

// SchemaLine begins the comment in a definition that names the schema for editors.
const SchemaLine = "# yaml-language-server: $schema="

// namedSchema matches the name of the schema in one of the first lines of a file.
var namedSchema = lazyregexp.New(`^#\s*yaml-language-server:\s*\$schema=(\S+)`)

// NoteSchema prints a note if the copy of the schema that a definition names is missing or has another version, because an
// editor would then report other problems than refrain. Schemas on the web are not checked.
func NoteSchema(w io.Writer, file string) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return // a pipe can be read only once
	}
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, 4<<10))
	for n := 1; lines.Scan() && strings.HasPrefix(lines.Text(), "#"); n++ {
		m := namedSchema().FindStringSubmatch(lines.Text())
		if m == nil || strings.Contains(m[1], "://") || !filepath.IsLocal(m[1]) {
			continue
		}
		at := fmt.Sprintf("%s:%d:1: note: ", file, n)
		made := "write it with: refrain schema >" + filepath.Join(filepath.Dir(file), m[1])
		switch ours, err := SameSchema(filepath.Dir(file), m[1]); {
		case err != nil:
			fmt.Fprintf(w, "%sthe schema %s cannot be read, so an editor cannot check this file; %s\n", at, m[1], made)
		case !ours:
			fmt.Fprintf(w, "%sthe schema %s is of another version, so an editor may report other problems than "+
				"refrain; %s\n", at, m[1], made)
		}
		return
	}
}

// SameSchema reports whether a file in a folder is this version's schema.
func SameSchema(dir, name string) (bool, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would wait for a writer
		return false, errors.New("not a regular file")
	}
	if info.Size() != int64(len(definition.Schema())) {
		return false, nil
	}
	data, err := root.ReadFile(name)
	return bytes.Equal(data, definition.Schema()), err
}
