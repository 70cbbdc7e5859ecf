// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// Hash returns a hash of the definition with all files that it refers to, and of the files that its programs name: each
// word of a command, of a script in it, too, that is the path of a file when the command starts in the folder root, or can be
// one with some values of the placeholders in it. It does not depend on the folder, so that it is the same for whoever reads
// the files. Files that a program reads without being told (a Makefile, a package, a test), and programs of the machine, are
// not part of it.
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
	writeFiles(h, root, Scripts(def, root))
	return hex.EncodeToString(h.Sum(nil))
}

// HashLines returns a hash of a text and of the files that command lines name which start in the folder root, as [Program.Hash]
// does, and these files as [Scripts] returns them.
func HashLines(text, root string, lines ...string) (hash string, files []string) {
	named := make(map[string]bool)
	addFiles(named, root, "", lines)
	files = slices.Sorted(maps.Keys(named))
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", text)
	writeFiles(h, root, files)
	return hex.EncodeToString(h.Sum(nil)), files
}

// writeFiles writes the paths of files below root, and hashes of their contents.
func writeFiles(w io.Writer, root string, files []string) {
	for _, file := range files {
		fmt.Fprintf(w, "%q %s\n", file, contentOf(filepath.Join(root, file)))
	}
}

// addFiles adds the files that the words of a command name, which starts in a folder of root.
func addFiles(files map[string]bool, root, dir string, args []string) {
	for _, arg := range args {
		for _, word := range append(words(arg), arg) {
			for _, file := range filesIn(root, dir, word) {
				files[file] = true
			}
		}
	}
}

// Scripts returns the files that the programs of a definition name: see [Program.Hash]. The paths are relative to root,
// sorted, and may lead out of it.
func Scripts(def *definition.Definition, root string) []string {
	files := make(map[string]bool)
	add := func(dir string, args []string) { addFiles(files, root, dir, args) }
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

// words splits what may be code for a shell. A placeholder stays part of its word, and its name is a word, too.
func words(code string) []string {
	const ends = " \t\r\n;|&()<>'\"`$=,:"
	split := func(ends string) []string {
		return strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(ends, r) })
	}
	all := split(ends + "{}")
	if strings.Contains(code, "{{") {
		all = append(all, split(ends)...)
	}
	return all
}

// placeholder matches a placeholder of a template.
var placeholder = lazyregexp.New(`\{\{[^{}]*\}\}`)

// mostParts is how many parts of a path the value of a placeholder is tried with.
const mostParts = 3

// filesIn returns the paths, relative to root, of the files that a word of a command can name, which starts in a folder of root: one at
// most, unless the folder or the word has placeholders. A word that is nothing but a placeholder names no file of the definition.
func filesIn(root, dir, word string) (files []string) {
	word, dir = filepath.FromSlash(word), filepath.FromSlash(dir)
	open := placeholder().MatchString(word) || placeholder().MatchString(dir)
	if !open {
		if file := fileIn(root, dir, word); file != "" {
			files = append(files, file)
		}
		return files
	}
	if placeholder().ReplaceAllString(filepath.Base(word), "") == "" {
		return nil
	}
	if filepath.IsAbs(word) { // fs.Glob knows the files below root
		rel, err := filepath.Rel(root, word)
		if err != nil || !filepath.IsLocal(rel) {
			return nil
		}
		word = rel
	} else {
		word = filepath.Join(dir, word)
	}
	for parts := range mostParts {
		stars := strings.Repeat("*"+string(filepath.Separator), parts) + "*"
		var pattern strings.Builder
		for i, literal := range placeholder().Split(word, -1) {
			if i > 0 {
				pattern.WriteString(stars)
			}
			if filepath.Separator == '/' { // elsewhere a pattern has no escapes
				literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(literal)
			}
			pattern.WriteString(literal)
		}
		names, _ := fs.Glob(os.DirFS(root), filepath.ToSlash(pattern.String()))
		for _, name := range names {
			if file := fileIn(root, "", name); file != "" {
				files = append(files, file)
			}
		}
	}
	return files
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
