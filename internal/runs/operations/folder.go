// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Folder holds the definitions. Its methods read and write nothing outside the folder, even if a
// name or a link points there.
type Folder struct {
	// Changing is held while a definition is compared and written.
	Changing sync.Mutex

	root *os.Root                  // nil: there are no files
	own  map[string]program.Source // of the program, by name: they come before files
}

// OpenFolder opens the folder of a config, of which it uses Dir, Code and OwnOnly.
func OpenFolder(cfg *Config) (*Folder, error) {
	if cfg.Dir == "" {
		return new(Folder), nil
	}
	own, err := cfg.Code.Own()
	if err != nil {
		return nil, err
	}
	if cfg.OwnOnly {
		return &Folder{own: own}, nil
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, err
	}
	return &Folder{root: root, own: own}, nil
}

// Own returns the definition of the program with a name.
func (f *Folder) Own(name string) (src program.Source, own bool) {
	src, own = f.own[name]
	return src, own
}

// ownIn returns the definition of the program that is listed as a file.
func (f *Folder) ownIn(file string) (src program.Source, own bool) {
	name := NameIn(file)
	if name == "" || file != Places(name)[0] {
		return src, false
	}
	return f.Own(name)
}

// Load reads a definition that is listed as a file and has a text.
func (f *Folder) Load(file string, text []byte) (def *definition.Definition, err error) {
	if src, own := f.ownIn(file); own {
		return new(program.Program).ReadOwn(file, src)
	}
	_, def, err = Load(f.FS(), file, text)
	return def, err
}

// CheckSchedule returns the reason why a schedule can start no run; nil if it can start one.
func (f *Folder) CheckSchedule(s *schedule.Schedule) error {
	file, text, err := f.Read(s.Definition)
	if err != nil {
		return err
	}
	def, err := f.Load(file, text)
	if err != nil {
		return err
	}
	return CheckStartOf(s, def)
}

// CheckStartOf returns the reason why a schedule can start no run of its definition; nil if it can start one.
func CheckStartOf(s *schedule.Schedule, def *definition.Definition) error {
	values, err := AsTexts(s.Set)
	if err == nil {
		_, err = def.InitialState(values)
	}
	if why := def.NeedsRequest(); err == nil && why != "" && strings.TrimSpace(s.Request+def.Query) == "" {
		err = errors.New("a run needs a request: " + why)
	}
	return err
}

// Close closes the folder.
func (f *Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// FS returns the files of the folder.
func (f *Folder) FS() fs.FS {
	if f.root == nil {
		return embed.FS{} // which is empty
	}
	return f.root.FS()
}

// errNoFolder refuses to change a missing folder.
var errNoFolder = problem.New(http.StatusForbidden, "no_folder", "This server has no folder of definitions",
	"it serves the agents of its program; refrain serve has a folder")

// Delete removes a file.
func (f *Folder) Delete(file string) error {
	if f.root == nil {
		return errNoFolder
	}
	return f.root.Remove(file)
}

// nameOf matches the names that a definition can have, in a path and in a file system.
var nameOf = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// CheckName returns an error for a name that no definition can have.
func CheckName(name string) error {
	if !nameOf().MatchString(name) || strings.Contains(name, "..") || strings.HasSuffix(name, ".") {
		return problem.Bad("%q cannot be the name of a definition: use up to 63 letters, digits and _ . -", name)
	}
	if strings.EqualFold(name, schedule.File) || strings.EqualFold(name+".yaml", schedule.File) {
		return problem.Bad("%q cannot be the name of a definition: %s is the file of schedules", name, schedule.File)
	}
	if before, _, _ := strings.Cut(name, "."); device().MatchString(before) {
		return problem.Bad("%q cannot be the name of a definition: on Windows %s is a device", name, strings.ToUpper(before))
	}
	return nil
}

// device is what names a device on Windows, also with an extension. A folder is the same on each system.
var device = lazyregexp.New(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])$`)

// Places returns the files that can hold the definition with a name. A new definition is
// written into the first of them.
func Places(name string) []string {
	return []string{name + ".yaml", name + ".yml", name + "/loop.yaml", name + "/root_agent.yaml"}
}

// NameIn returns the name of the definition in a file, or "" if the file holds none.
func NameIn(file string) string {
	dir, base := path.Split(file)
	switch {
	case dir != "" && (base == "loop.yaml" || base == "root_agent.yaml"):
		return strings.TrimSuffix(dir, "/")
	case dir == "" && (strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".yml")):
		return strings.TrimSuffix(base, path.Ext(base))
	}
	return ""
}

// mostFiles is the largest number of files of a folder that List reads.
const mostFiles = 2000

// List names the definitions, each with its file.
func (f *Folder) List() (names []string, files map[string]string, err error) {
	files = make(map[string]string)
	for name := range f.own {
		files[name] = Places(name)[0]
	}
	if f.root == nil {
		return slices.Sorted(maps.Keys(files)), files, nil
	}
	look := func(dir string) (folders []string, err error) {
		entries, err := fs.ReadDir(f.root.FS(), dir)
		for _, e := range entries[:min(len(entries), mostFiles)] {
			file := path.Join(dir, e.Name())
			switch name := NameIn(file); {
			case e.IsDir():
				folders = append(folders, e.Name())
			case name != "" && CheckName(name) == nil && files[name] == "" && len(files) < mostFiles:
				files[name] = file
			}
		}
		return folders, err
	}
	folders, err := look(".")
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range folders {
		if CheckName(dir) == nil {
			_, _ = look(dir) // one that cannot be read has no definitions
		}
	}
	return slices.Sorted(maps.Keys(files)), files, nil
}

// mostText is the largest definition in bytes.
const mostText = 2 << 20

// Read returns the text of a definition, and the file that holds it.
func (f *Folder) Read(name string) (file string, text []byte, err error) {
	if err := CheckName(name); err != nil {
		return "", nil, err
	}
	for _, file := range Places(name) {
		text, err := f.ReadFile(file)
		if err == nil {
			return file, text, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // loop.yaml/loop.yaml, if loop.yaml is a file
			return "", nil, problem.New(422, "unreadable", "The definition cannot be read", "%s: %v", file, err)
		}
	}
	return "", nil, problem.New(404, "definition_not_found", "There is no such definition", "%s", f.missing(name))
}

// missing quotes a name that no definition has, and says which one may be meant.
func (f *Folder) missing(name string) string {
	names, _, _ := f.List() // without them there is no hint
	if own := NameIn(name); own != "" && slices.Contains(names, own) {
		return fmt.Sprintf("%q: a name has no ending, write %q", name, own)
	}
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf("%q: did you mean %q?", name, near)
	}
	return fmt.Sprintf("%q", name)
}

// ReadFile reads a file. It returns an error for anything but a regular file, because opening a
// pipe would wait for a writer.
func (f *Folder) ReadFile(file string) ([]byte, error) {
	if src, own := f.ownIn(file); own {
		return fs.ReadFile(src.FS, src.Path)
	}
	if f.root == nil {
		return nil, fs.ErrNotExist
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
	return io.ReadAll(io.LimitReader(in, mostText)) // the file may have grown
}

// Write writes a text into a file atomically, so that no reader sees half of it. It makes the folder of the file.
func (f *Folder) Write(file string, text []byte) error {
	if f.root == nil {
		return errNoFolder
	}
	if err := f.root.MkdirAll(path.Dir(file), 0o755); err != nil {
		return err
	}
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

// TagOf returns the ETag of a text.
func TagOf(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// Parts returns the files that a client's definition may refer to. These are YAML files that
// are not hidden, because the problems of a definition quote lines of its files.
func (f *Folder) Parts() fs.FS { return parts{f.FS()} }

type parts struct{ fs.FS }

func (p parts) Open(name string) (fs.File, error) {
	hidden := slices.ContainsFunc(strings.Split(name, "/"), func(s string) bool { return strings.HasPrefix(s, ".") && s != "." })
	if ext := path.Ext(name); hidden || ext != ".yaml" && ext != ".yml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return p.FS.Open(name)
}

// Described is the description of a definition that a client gets.
type Described struct {
	Name string `json:"name"`
	File string `json:"file"`
	ETag string `json:"etag"`
	// Title, Description and Type are those of the root agent; they are empty if the definition has
	// errors.
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	Type        definition.Type     `json:"type,omitempty"`
	Valid       bool                `json:"valid"`
	Inputs      []definition.Input  `json:"inputs,omitempty"`
	Problems    definition.Problems `json:"problems,omitempty"`
	Text        string              `json:"text,omitempty"`
}

// Load reads a text as the definition in a file of the folder. files holds the files that the
// definition may refer to.
func Load(files fs.FS, file string, text []byte) (*program.Program, *definition.Definition, error) {
	p := new(program.Program)
	def, err := p.ReadIn(files, file, file, text)
	return p, def, err
}

// Describe returns the description of a definition. For a file without a definition, ok is false.
func (r *Runs) Describe(name, file string, text []byte) (d *Described, ok bool) {
	d = &Described{Name: name, File: file, ETag: TagOf(text)}
	def, err := r.Folder.Load(file, text)
	if err != nil {
		if all, is := errors.AsType[definition.Problems](err); is {
			d.Problems = all
		} else {
			d.Problems = definition.Problems{{File: file, Severity: definition.SeverityError, Code: definition.CodeFile, Message: err.Error()}}
		}
		return d, looksLikeOne(text)
	}
	d.Title, d.Description, d.Type, d.Valid = def.Root.Shown(), def.Description, def.Root.Type, true
	d.Problems, d.Inputs = slices.Concat(def.Warnings(), def.Notes()), def.Inputs
	return d, true
}

// looksLikeOne reports whether a text with mistakes is meant to be a definition.
func looksLikeOne(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		for _, field := range []string{"sub_agents:", "instructions:", "max_iterations:", "agent_class:", "command:", "question:"} {
			if strings.HasPrefix(line, field) {
				return true
			}
		}
	}
	return false
}

// Definitions describes all definitions of the folder.
func (r *Runs) Definitions() ([]*Described, error) {
	names, files, err := r.Folder.List()
	if err != nil {
		return nil, err
	}
	all := []*Described{}
	for _, name := range names {
		text, err := r.Folder.ReadFile(files[name])
		if err != nil {
			continue
		}
		if d, ok := r.Describe(name, files[name], text); ok {
			all = append(all, d)
		}
	}
	return all, nil
}
