// SPDX-License-Identifier: Apache-2.0

package program

import (
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

// Scripts returns the files that the programs of a definition name: see [Program.Hash]. The paths are relative to root,
// sorted, and may lead out of it. For placeholders it looks at 100,000 entries of folders at most.
func Scripts(def *definition.Definition, root string) []string {
	f := newFinder(root)
	for _, in := range def.Inputs {
		f.choices[in.Name] = in.Choices
	}
	for key, shape := range def.Shapes {
		f.choices[key] = shape.Choices
	}
	if w := def.Workspace; w != nil {
		f.command("", w.Setup)
		f.command("", w.Filters)
	}
	for a := range def.Root.All {
		dir := ""
		if a.Command != nil {
			dir = a.Command.Dir
		}
		for _, prog := range a.Programs() {
			f.command("", prog.Args)
			f.command(dir, prog.Args)
		}
	}
	return f.sorted()
}

// placeholder matches a placeholder of a template.
var placeholder = lazyregexp.New(`\{\{[^{}]*\}\}`)

// Limits of what a definition can make a finder do.
const (
	mostParts   = 3       // parts of a path that the value of a placeholder is tried with
	mostEntries = 100_000 // entries of folders that are looked at
	mostValues  = 1000    // combinations of choices that a word is tried with
	mostDirs    = 64      // folders that the words of a command are tried in
)

// finder finds the files that words of commands can name.
type finder struct {
	root    string
	choices map[string][]string // by the names of placeholders
	left    int                 // how many more entries of folders are looked at
	tried   map[[2]string]bool  // folders of commands with words
	files   map[string]bool
}

func newFinder(root string) *finder {
	return &finder{root: root, choices: make(map[string][]string), left: mostEntries, tried: make(map[[2]string]bool),
		files: make(map[string]bool)}
}

// sorted returns the paths of the files, relative to the root.
func (f *finder) sorted() []string { return slices.Sorted(maps.Keys(f.files)) }

// command adds the files that the words of a command can name, which starts in a folder of the root. Each word can name one in this
// folder, and in each folder to which the command changes, whatever the order: see [folders].
func (f *finder) command(dir string, args []string) {
	dirs := []string{dir}
	for _, to := range folders(args) {
		for _, from := range dirs[:len(dirs):len(dirs)] {
			if at := f.below(from, to); len(dirs) < mostDirs && !slices.Contains(dirs, at) {
				dirs = append(dirs, at)
			}
		}
	}
	for _, dir := range dirs {
		for _, arg := range args {
			for _, word := range append(words(arg), arg) {
				f.word(filepath.FromSlash(dir), filepath.FromSlash(word))
			}
		}
	}
}

// below returns the folder that a command in a folder of the root changes to, relative to the root.
func (f *finder) below(dir, to string) string {
	if !filepath.IsAbs(to) {
		return path.Join(filepath.ToSlash(dir), filepath.ToSlash(to))
	}
	rel, err := filepath.Rel(f.root, to)
	if err != nil || !filepath.IsLocal(rel) { // of the machine
		return dir
	}
	return filepath.ToSlash(rel)
}

func (f *finder) file(dir, word string) {
	if file := fileIn(f.root, dir, word); file != "" {
		f.files[file] = true
	}
}

// word adds the files that a word can name: one at most, unless the folder or the word has placeholders. A placeholder has its
// choices, and any value of a few parts, because it can belong to something else with the same name. A word that is nothing but
// placeholders names no file of the definition without choices.
func (f *finder) word(dir, word string) {
	at := [2]string{dir, word}
	if f.tried[at] {
		return
	}
	f.tried[at] = true
	names := placeholder().FindAllString(dir+word, -1)
	if len(names) == 0 {
		f.file(dir, word)
		return
	}
	f.chosen(dir, word, names)
	if strings.Trim(filepath.ToSlash(placeholder().ReplaceAllString(word, "")), "./") == "" {
		return
	}
	if filepath.IsAbs(word) { // what is outside of the root belongs to the machine
		rel, err := filepath.Rel(f.root, word)
		if err != nil || !filepath.IsLocal(rel) {
			return
		}
		word = rel
	} else {
		word = filepath.Join(dir, word)
	}
	f.walk(placeholder().Split(filepath.ToSlash(word), -1))
}

// chosen adds the files that a word names with the choices of its placeholders, if all of them have some.
func (f *finder) chosen(dir, word string, names []string) {
	slices.Sort(names)
	values := [][]string{nil} // old and new texts for a replacer
	for _, name := range slices.Compact(names) {
		choices := f.choices[strings.TrimSpace(strings.Trim(name, "{}"))]
		if len(values)*len(choices) > mostValues {
			return
		}
		var more [][]string
		for _, v := range values {
			for _, c := range choices {
				more = append(more, append(slices.Clone(v), name, filepath.FromSlash(c)))
			}
		}
		values = more
	}
	for _, v := range values {
		r := strings.NewReplacer(v...)
		f.file(r.Replace(dir), r.Replace(word))
	}
}

// walk adds the files whose paths, relative to the root, have literals in this order, with anything between them. A folder with several
// links to it is entered by one of them, so that the walk ends. Folders near the root come first.
func (f *finder) walk(literals []string) {
	start := path.Dir(literals[0] + "x")
	depth := (mostParts - 1) * (len(literals) - 1)
	for i, literal := range literals {
		if depth += strings.Count(literal, "/"); i == 0 && start != "." {
			depth -= strings.Count(start, "/") + 1
		}
	}
	entered := make(map[string]bool) // targets of links
	for folders := []string{start}; len(folders) > 0 && depth >= 0; depth-- {
		var next []string
		for _, dir := range folders {
			if info, err := os.Stat(filepath.Join(f.root, dir)); err != nil || !info.IsDir() { // a pipe cannot be read
				continue
			}
			entries, _ := os.ReadDir(filepath.Join(f.root, dir))
			for _, e := range entries {
				if f.left--; f.left < 0 {
					return
				}
				name := path.Join(dir, e.Name())
				if !strings.HasPrefix(name, literals[0]) {
					continue
				}
				if fits(name, literals) {
					f.file("", name)
				}
				if f.enters(name, e, entered) {
					next = append(next, name)
				}
			}
		}
		folders = next
	}
}

// enters reports whether the walk goes on in an entry: a folder, or a link whose target no other link has led to.
func (f *finder) enters(name string, e fs.DirEntry, entered map[string]bool) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	target, err := filepath.EvalSymlinks(filepath.Join(f.root, name))
	if err != nil || entered[target] {
		return false
	}
	entered[target] = true
	return true
}

// fits reports whether a path has literals in this order, with anything between them.
func fits(name string, literals []string) bool {
	name, found := strings.CutPrefix(name, literals[0])
	rest := literals[1:]
	for ; found && len(rest) > 1; rest = rest[1:] {
		_, name, found = strings.Cut(name, rest[0])
	}
	return found && (len(rest) == 0 && name == "" || len(rest) == 1 && strings.HasSuffix(name, rest[0]))
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
