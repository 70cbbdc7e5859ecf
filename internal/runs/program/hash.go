// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
)

// Hash returns a hash of the definition with all files that it refers to, and of the files that its programs name: each
// word of a command, of a script in it, too, that is the path of a file when the command starts in the folder root. It does
// not depend on the folder, so that it is the same for whoever reads the files. Files that a program reads without being told
// (a Makefile, a package, a test), and programs of the machine, are not part of it.
func (p *Program) Hash(def *definition.Definition, root string) string {
	h := sha256.New()
	dir := filepath.FromSlash(path.Dir(filepath.ToSlash(p.Path)))
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		seen, err := filepath.Rel(dir, filepath.FromSlash(name))
		if err != nil {
			seen = name
		}
		fmt.Fprintf(h, "%q %q\n", filepath.ToSlash(seen), p.Files[name])
	}
	for _, file := range Scripts(def, root) {
		fmt.Fprintf(h, "%q %s\n", file, contentOf(filepath.Join(root, file)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Scripts returns the files that the programs of a definition name: see [Program.Hash]. The paths are relative to root,
// sorted, and may lead out of it.
func Scripts(def *definition.Definition, root string) []string {
	files := make(map[string]bool)
	add := func(dir string, args []string) {
		for _, arg := range args {
			for _, word := range append(words(arg), arg) {
				if file := fileIn(root, dir, word); file != "" {
					files[file] = true
				}
			}
		}
	}
	if w := def.Workspace; w != nil {
		add("", w.Setup)
		add("", w.Filters)
	}
	for a := range def.Root.All {
		dir := ""
		if a.Command != nil {
			dir = a.Command.Dir
		}
		for _, prog := range a.Programs() {
			add("", prog.Args)
			add(dir, prog.Args)
		}
	}
	return slices.Sorted(maps.Keys(files))
}

// words splits what may be code for a shell.
func words(code string) []string {
	return strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&()<>{}'\"`$=,:", r) })
}

// fileIn returns the path of a file relative to root, if a word of a command that starts in a folder of root names one; else "".
func fileIn(root, dir, word string) string {
	file := word
	if !filepath.IsAbs(word) {
		file = filepath.Join(root, dir, word)
	}
	rel, err := filepath.Rel(root, file)
	if err != nil || filepath.IsAbs(word) && !filepath.IsLocal(rel) { // a program of the machine
		return ""
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return filepath.ToSlash(rel)
}

// scriptMost is the largest file whose content is hashed, in bytes. Of a larger one, which is hardly a script, the size and the time
// are.
const scriptMost = 16 << 20

// contentOf returns a hash of the content of a file.
func contentOf(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return err.Error()
	}
	if info.Size() > scriptMost {
		return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
