// SPDX-License-Identifier: Apache-2.0

package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/refrain-dev/refrain/definition"
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

// HashCommands returns a hash of a text and of the files that commands name which start in the folder root, as [Program.Hash] does, and
// these files as [Scripts] returns them. A command is a list of words, each of which may be a script of a shell.
func HashCommands(text, root string, commands [][]string) (hash string, files []string) {
	f := newFinder(root)
	for _, words := range commands {
		f.command("", words)
	}
	files = f.sorted()
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
