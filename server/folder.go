// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
	"github.com/refrain-dev/refrain/program"
)

// folder holds the definitions. Nothing outside it is read or written, whatever names and links say.
type folder struct {
	root *os.Root                  // nil: there are none
	own  map[string]program.Source // of the program, by name: they come before files
	mu   sync.Mutex                // held while a definition is compared and written
}

func openFolder(dir string, code *program.Code) (*folder, error) {
	if dir == "" {
		return new(folder), nil
	}
	own, err := code.Own()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &folder{root: root, own: own}, nil
}

// ownIn returns the definition of the program that is listed as a file.
func (f *folder) ownIn(file string) (src program.Source, own bool) {
	name := nameIn(file)
	if name == "" || file != places(name)[0] {
		return src, false
	}
	src, own = f.own[name]
	return src, own
}

// load reads a definition that is listed as a file and has a text.
func (f *folder) load(file string, text []byte) (def *definition.Definition, err error) {
	if src, own := f.ownIn(file); own {
		return new(program.Program).ReadOwn(file, src)
	}
	_, def, err = load(f.root.FS(), file, text)
	return def, err
}

func (f *folder) close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// nameOf is what a definition can be called: a word, in a path and in a file system.
var nameOf = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

func checkName(name string) error {
	if !nameOf().MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".") {
		return bad("%q cannot be the name of a definition: use up to 63 letters, digits and _ . -", name)
	}
	if before, _, _ := strings.Cut(name, "."); device().MatchString(before) {
		return bad("%q cannot be the name of a definition: on Windows %s is a device", name, strings.ToUpper(before))
	}
	return nil
}

// device is what names a device on Windows, also with an extension. A folder is the same on each system.
var device = lazyregexp.New(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// places are the files that a definition can be in, the first for a new one.
func places(name string) []string {
	return []string{name + ".yaml", name + ".yml", name + "/loop.yaml", name + "/root_agent.yaml"}
}

// nameIn is the name of the definition in a file, and empty if the file holds none.
func nameIn(file string) string {
	dir, base := path.Split(file)
	switch {
	case dir != "" && (base == "loop.yaml" || base == "root_agent.yaml"):
		return strings.TrimSuffix(dir, "/")
	case dir == "" && (strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".yml")):
		return strings.TrimSuffix(base, path.Ext(base))
	}
	return ""
}

// most bounds how many files of a folder are looked at.
const mostFiles = 2000

// list names the definitions, each with its file.
func (f *folder) list() (names []string, files map[string]string, err error) {
	files = make(map[string]string)
	if f.root == nil {
		return nil, files, nil
	}
	for name := range f.own {
		files[name] = places(name)[0]
	}
	look := func(dir string) error {
		entries, err := fs.ReadDir(f.root.FS(), dir)
		if err != nil {
			return err
		}
		for _, e := range entries[:min(len(entries), mostFiles)] {
			file := path.Join(dir, e.Name())
			name := nameIn(file)
			if e.IsDir() || name == "" || checkName(name) != nil || files[name] != "" || len(files) >= mostFiles {
				continue
			}
			files[name] = file
		}
		return nil
	}
	if err := look("."); err != nil {
		return nil, nil, err
	}
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries[:min(len(entries), mostFiles)] {
		if e.IsDir() && checkName(e.Name()) == nil {
			_ = look(e.Name()) // one that cannot be read has no definitions
		}
	}
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, files, nil
}

// mostText is the largest definition in bytes.
const mostText = 2 << 20

// read finds a definition, and the file that it is in.
func (f *folder) read(name string) (file string, text []byte, err error) {
	if err := checkName(name); err != nil {
		return "", nil, err
	}
	for _, file := range places(name) {
		text, err := f.readFile(file)
		if err == nil {
			return file, text, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // loop.yaml/loop.yaml, if loop.yaml is a file
			return "", nil, fault(422, "unreadable", "The definition cannot be read", "%s: %v", file, err)
		}
	}
	return "", nil, fault(404, "definition_not_found", "There is no such definition", "%s", f.missing(name))
}

// missing quotes a name that no definition has, and says which one may be meant.
func (f *folder) missing(name string) string {
	names, _, _ := f.list() // without them there is no hint
	if own := nameIn(name); own != "" && slices.Contains(names, own) {
		return fmt.Sprintf("%q: a name has no ending, write %q", name, own)
	}
	if near := expr.Nearest(name, names); near != "" {
		return fmt.Sprintf("%q: did you mean %q?", name, near)
	}
	return fmt.Sprintf("%q", name)
}

// readFile reads a file that is one: opening a pipe would wait for a writer.
func (f *folder) readFile(file string) ([]byte, error) {
	if f.root == nil {
		return nil, fs.ErrNotExist
	}
	if src, own := f.ownIn(file); own {
		return fs.ReadFile(src.FS, src.Path)
	}
	info, err := f.root.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > mostText {
		return nil, fmt.Errorf("it has more than %d bytes", mostText)
	}
	in, err := f.root.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, mostText))
}

// write puts a text into a file, at once: nobody reads half of it.
func (f *folder) write(file string, text []byte) error {
	temp := path.Join(path.Dir(file), ".refrain-"+rand.Text()[:8])
	out, err := f.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = f.root.Rename(temp, file)
	}
	if err != nil {
		return errors.Join(err, f.root.Remove(temp))
	}
	return nil
}

// tagOf is the ETag of a text.
func tagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// parts shows to a definition that came from a client what it may refer to: files of YAML that are
// not hidden. Another file's lines would be in the problems.
type parts struct{ fs.FS }

func (p parts) Open(name string) (fs.File, error) {
	hidden := slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return strings.HasPrefix(s, ".") && s != "." })
	if ext := path.Ext(name); hidden || ext != ".yaml" && ext != ".yml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return p.FS.Open(name)
}
