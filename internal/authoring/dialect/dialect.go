// SPDX-License-Identifier: Apache-2.0

// Package dialect converts between definitions and the formats of other products: it reads ADK's
// Agent Config, Evo AI's JSON and Robomotion's nodes, and writes ADK's.
//
//	got, err := dialect.Load("root_agent.yaml", dialect.Options{})
//	if err != nil {
//		return err // it cannot be read
//	}
//	got.Report.Format(os.Stderr)
//	if err := got.Err(); err != nil {
//		return err
//	}
//	os.Stdout.Write(got.YAML) // a definition
//
// Problems of the definition have their positions in the original file; see [Result.Origin].
//
// The [Report] has an [Item] for every field of the file, which is carried over, changed, or left out with a reason
// and advice. An unknown field is an error with a suggestion, even if the product itself ignores it, because a
// misspelled max_iteration, for example, makes an endless loop there.
//
// [Export] writes ADK's strict form, and reports what ADK cannot express.
//
// Reading an untrusted file is safe, because its size is limited, no file outside its folder is opened, no code is
// run, and keys and passwords are not copied.
package dialect

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Dialect is the format of another product.
type Dialect string

// The dialects.
const (
	// ADK is Agent Config, the YAML of Google's Agent Development Kit.
	ADK Dialect = "adk"
	// Evo is the JSON of Evo AI's agents, as documented and as exported.
	Evo Dialect = "evo"
	// Robomotion is the format of nodes of Robomotion's agents package, as JSON or YAML or in the SDK's main.ts.
	Robomotion Dialect = "robomotion"
)

// All lists the dialects.
func All() []Dialect { return []Dialect{ADK, Evo, Robomotion} }

// Title returns the name of the product.
func (d Dialect) Title() string {
	return cmp.Or(map[Dialect]string{ADK: "ADK Agent Config", Evo: "Evo AI", Robomotion: "Robomotion"}[d], string(d))
}

// Options has the options of Load and Import.
type Options struct {
	// Dialect is the dialect of the file; if it is empty, [Detect] finds it.
	Dialect Dialect
	// Agent names the root agent in a file with several agents. The default is the only agent that no other agent contains.
	Agent string
	// FS is the file system for config_path. Paths cannot leave it. With nil, references to files are errors. Load
	// sets FS. For a folder, use os.Root.FS, because os.DirFS follows links out of the folder.
	FS fs.FS
	// Path is the path of the file itself in FS. The default is the last element of its name.
	Path string
}

// Result is the result of an import.
type Result struct {
	// YAML is the definition; nil if the report has errors.
	YAML []byte
	// Definition is the definition of YAML, loaded; nil if it has problems.
	Definition *definition.Definition
	// Report has an item for each field: carried over, changed or left out.
	Report *Report

	name  string
	spots spots
	shown func(place) string
}

// Origin returns the position in the imported file for a position in the definition, because people
// edit the imported file. Problems already have such positions. The Position of an agent of the
// Definition is in the YAML.
func (r *Result) Origin(p definition.Position) definition.Position {
	if p.File != r.name || len(r.spots) == 0 {
		return p
	}
	return r.spots.at(p.Line, p.Column).at
}

// Excerpt returns the line at a position in the file, without the secrets in it.
func (r *Result) Excerpt(p definition.Position) string {
	if r.shown == nil {
		return ""
	}
	return r.shown(p)
}

// Err returns nil if the import is a definition that can run. Otherwise it returns the
// [definition.Problems] of the definition, or an [*Error].
func (r *Result) Err() error {
	switch n := r.Report.Count(Failed); {
	case n == 0:
		return nil
	case r.YAML != nil:
		return r.Report.Problems
	}
	return &Error{r.Report}
}

// Error reports that a file cannot be converted.
type Error struct {
	Report *Report
}

// Error returns a line with the number of errors, and then the errors of the report.
func (e *Error) Error() string {
	var b strings.Builder
	r := e.Report
	fmt.Fprintf(&b, "%s: %s cannot be carried over as it is (%s):", r.File, r.Dialect.Title(),
		brief.Count(r.Count(Failed), "error"))
	for n := range r.Items {
		if r.Items[n].Kind == Failed {
			b.WriteString("\n" + strings.TrimSuffix(r.Items[n].format(), "\n"))
		}
	}
	for _, p := range r.Problems {
		b.WriteString("\n" + strings.TrimSuffix(p.Format(), "\n"))
	}
	return b.String()
}

// Problems returns the errors of the report, with their positions, as problems of a definition.
func (e *Error) Problems() definition.Problems {
	var all definition.Problems
	for i := range e.Report.Items {
		it := &e.Report.Items[i]
		if it.Kind != Failed {
			continue
		}
		text := it.Message
		if it.Field != "" && !strings.Contains(text, it.Field) {
			text = it.Field + ": " + text
		}
		if it.Agent != "" {
			text = it.Agent + ": " + text
		}
		all = append(all, &definition.Problem{File: it.File, Line: it.Line, Column: it.Column, Severity: definition.SeverityError,
			Code: definition.CodeValue, Message: text, Hint: it.Advice})
	}
	return append(all, e.Report.Problems...)
}

// ErrUnknown means that a file has none of these formats.
var ErrUnknown = errors.New("this is neither ADK Agent Config nor Evo AI's JSON nor Robomotion's nodes")

// Load imports a file, and the files in its folder that it refers to; see [Import]. It returns an error
// if the file cannot be read.
func Load(name string, opts Options) (*Result, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	opts.FS, opts.Path = root.FS(), filepath.Base(name)
	data, err := source.ReadFile(os.DirFS(filepath.Dir(name)), opts.Path) // the file itself may be a link
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, source.Cause(err))
	}
	return Import(name, data, opts)
}

// Import converts a text in a dialect to a definition. The report refers to the file by name. The error is
// [ErrUnknown], or an error in the options. Mistakes in the text are in the report; see [Result.Err].
func Import(name string, data []byte, opts Options) (*Result, error) {
	if opts.Dialect == "" {
		opts.Dialect = Detect(name, data)
	}
	if opts.Path == "" {
		opts.Path = path.Base(filepath.ToSlash(name))
	}
	i := &importer{
		opts: opts, folder: name[:len(name)-len(filepath.Base(name))],
		report: &Report{Dialect: opts.Dialect, File: name}, texts: make(map[string]*source.Source),
		reads: &reads{make(map[*yaml.Node]map[string]bool), make(map[*yaml.Node]bool), make(map[*yaml.Node]string), nil},
	}
	var root *agent
	switch opts.Dialect {
	case ADK:
		root = (&adkReader{importer: i}).root(name, data)
	case Evo:
		root = (&evoReader{importer: i}).root(name, data)
	case Robomotion:
		root = (&robomotionReader{importer: i}).root(name, data)
	case "":
		return nil, fmt.Errorf("%s: %w", name, ErrUnknown)
	default:
		return nil, fmt.Errorf("there is no dialect %q: want one of %q", opts.Dialect, All())
	}
	return i.finish(name, root), nil
}

// importer has the state that the readers of all dialects share.
type importer struct {
	opts   Options
	folder string // prefix of the names of files, for people
	report *Report
	reads  *reads
	agents int // number of agents read so far
	nodes  int

	texts map[string]*source.Source // the texts of the files by name, and of the definition
	files []string                  // in the order of reading
	spots spots                     // the nodes of the definition
	// secretTexts are secrets in the files, which no output may contain.
	secretTexts []string
	size        int // of all files, in bytes
	failed      int // number of errors so far
}

// Limits of the input. They are far above what a person writes.
const (
	maxFiles  = 8 << 20 // bytes of all files
	maxAgents = 500
	maxReads  = 200 // keys that no agent writes
)

// tooMany counts an agent, and reports an error if there are too many, for example because files refer to each other.
func (i *importer) tooMany(at place) bool {
	if i.agents++; i.agents == maxAgents+1 {
		i.fail(at, "", "", "there are more than %d agents", maxAgents)
	}
	return i.agents > maxAgents
}

// finish creates the definition and checks whether it can run.
func (i *importer) finish(name string, root *agent) *Result {
	res := &Result{Report: i.report, shown: i.shownLine}
	if root == nil {
		if i.report.Count(Failed) == 0 {
			i.fail(place{File: name}, "", "", "the file has no agent")
		}
		return res
	}
	before, broken := len(i.report.Items), i.report.Count(Failed) > 0
	root.walk(func(a *agent) {
		if broken && a.typ == "" { // the reason was already reported
			a.typ = definition.TypeSequential
		}
	})
	i.unread()
	doc, from := i.settle(root)
	if broken { // omissions and changes in a part that was not read mean nothing
		i.report.Items = append(i.report.Items[:before], slices.DeleteFunc(i.report.Items[before:],
			func(it Item) bool { return it.Kind != Failed })...)
	}
	text, read, err := write(doc, "Imported from "+i.opts.Dialect.Title()+" by refrain import.")
	if err != nil {
		i.fail(place{File: name}, "", "", "the definition cannot be written: %v", err)
		return res
	}
	res.YAML, i.report.Name = text, root.name
	root.walk(func(*agent) { i.report.Agents++ })
	i.texts[importName(name)] = source.New(importName(name), "", 0, string(text))
	i.spots = from.spots(doc, read, origin{at: root.at}, nil)
	res.name, res.spots = importName(name), i.spots
	def, err := definition.Parse(importName(name), text, definition.Options{})
	problems, bad := errors.AsType[definition.Problems](err)
	if i.report.Count(Failed) > 0 {
		res.YAML, i.report.Name, i.report.Agents = nil, "", 0
		i.report.Problems = i.besides(problems)
		return res
	}
	if !bad {
		res.Definition, problems = def, def.Warnings()
	}
	i.trace(problems)
	if res.Definition != nil {
		i.trace(res.Definition.Notes())
	}
	i.report.Problems = problems
	return res
}

// besides returns the problems of a definition that has other errors, and so is not returned. It keeps only problems
// of fields that are in the file, and drops those that exist only because something could not be read.
func (i *importer) besides(problems definition.Problems) definition.Problems {
	problems = slices.DeleteFunc(problems, func(p *definition.Problem) bool {
		return p.Severity != definition.SeverityError || !slices.Contains([]string{
			definition.CodeTemplate, definition.CodeExpr, definition.CodeModel, definition.CodeValue,
			definition.CodeName,
		}, p.Code)
	})
	i.trace(problems)
	return problems
}

// importName returns the name under which a definition is loaded. The name stays in the same folder, because the
// scripts of models are relative to it.
func importName(name string) string { return name + " (imported)" }

// Parse returns the dialect of a name. Its error lists all dialects.
func Parse(name string) (Dialect, error) {
	if d := Dialect(name); slices.Contains(All(), d) {
		return d, nil
	}
	return "", fmt.Errorf("there is no dialect %q: want adk, evo or robomotion", name)
}
