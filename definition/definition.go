// SPDX-License-Identifier: Apache-2.0

// Package definition reads loop files: YAML that says what a loop is.
//
//	name: compress
//	inputs:
//	  file: {type: file, default: README.md}
//	state: {level: 1}
//	max_iterations: 9
//	score: {key: ratio, min_delta_percent: 1}
//	sub_agents:
//	  - name: measure
//	    command: [./ratio, "{{level}}", "{{file}}"]
//	    output_key: ratio
//	  - name: next
//	    set: {level: state.level + 1}
//	  - name: say
//	    text: "Use level {{level}}."
//	    output_key: loop_output
//
// [Load] reads a file and the files that it refers to, and reports all mistakes at once: invalid
// YAML, unknown fields, values of the wrong type, expressions that do not compile, keys that are
// read and never written, loops that can never stop. Each [Problem] has its position, a code and
// often a hint. [Definition.InitialState] makes the state with which a run begins, and
// [Definition.Build] the agents:
//
//	d, err := definition.Load("compress.yaml")
//	if err != nil {
//		return err // definition.Problems
//	}
//	state, err := d.InitialState(map[string]string{"file": "main.go"})
//	if err != nil {
//		return err
//	}
//	root, err := d.Build(ctx, definition.BuildConfig{})
//
// A runner runs them with the configuration that [Definition.RunConfig] returns. [Limits] are given
// to both to replace those of the file.
//
// Before a run, [Definition.Worst] computes the most model calls, tokens, cost and time that it can
// take; [Agent.Stops] says how a loop can end; [Definition.Notes] lists warnings that are not
// mistakes. [Schema] is the JSON Schema of a definition, for editors.
//
// Package edit changes values, lists, order and names in the text of a file and keeps the rest,
// comments included. [Fields], [Parts] and [TypeOf] list the fields and their types, for forms.
//
// [Fields] lists the fields of a file, [Codes] the kinds of problems. Reading an untrusted file is
// safe: the work is limited, refs do not leave its folder, and nothing in it is run. Running a file
// runs its commands; the values of placeholders are never run as code.
package definition

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/process/pipe"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Definition is the content of a file after its checks. Do not change it.
type Definition struct {
	// Name and Description are those of the root agent.
	Name        string
	Description string
	// Goal and Instructions are those of the root loop; they are empty if the root is not a loop.
	Goal         string
	Instructions string
	// Inputs are the inputs of a run, in the order of the file.
	Inputs []Input
	// Query is the default of the user's request, and Session that of the session ID. They are empty
	// if the file does not set them.
	Query, Session string
	// Prices are the prices of models for a million tokens, by the models' names; nil if the file
	// does not set them. [Definition.RunConfig] passes them to the runner.
	Prices budget.Prices
	// MaxModelCalls is the largest number of model calls of a run: 0 means agent.DefaultMaxLLMCalls,
	// and a negative number means no limit. If the file does not set it, a larger budget of calls at
	// the root does. [Definition.RunConfig] passes it to the runner.
	MaxModelCalls int
	// InitTimeout limits the time to open a model or a tool server; 0 means [DefaultInitTimeout].
	InitTimeout time.Duration
	// State is the initial state that the file gives; [Definition.InitialState] adds the inputs.
	State map[string]any
	// Shapes say which values of the state a command accepts, by the names of their placeholders.
	// The map has what the file declares in shapes, without inputs and schemas.
	Shapes map[string]taskagent.Shape
	// Workspace describes the files that the commands work on; nil if they work in the run's root.
	Workspace *runfiles.Config
	// Notify says who is notified of the events of a run; nil if nobody is.
	Notify Notify
	// Root is the root agent, with the agents below it.
	Root *Agent

	request  string // why a run needs a request; empty if it needs none
	warnings Problems
	notes    Problems
	kept     map[*Agent]bool                            // loops whose earlier states are read
	subjects map[*Agent]string                          // the key that a loop's finalizer works on, if it is one
	paths    map[*jsonschema.Schema]taskagent.ShapeType // those of the types file and folder
	shapes   map[string]taskagent.Shape                 // all that are declared
}

// Warnings returns the problems with which the definition can still run; nil if it has none.
func (d *Definition) Warnings() Problems { return d.warnings }

// Notes returns remarks that are not mistakes; nil if there are none. [WorstCase.Notes] adds those
// about missing limits.
func (d *Definition) Notes() Problems { return d.notes }

// title copies the name, the description and the goal of the root.
func (d *Definition) title() {
	d.Name, d.Description = d.Root.Name, d.Root.Description
	if l := d.Root.Loop; l != nil {
		d.Goal, d.Instructions = l.Goal, l.Instructions
		d.raiseModelCalls(l.Budget)
	}
}

var rootRows = []row[Definition]{
	special("inputs", "inputs of a run: name: {type, default, description, choices, pattern}, or name: default", func() shape { return schema.MapOf(inputShape()) }, takesInputs),
	special("state", "initial state of a run", func() shape { return &jsonschema.Schema{Type: "object", Title: "map"} }, takesState),
	field("shapes", "what values of the state must be to stand in an argument or a variable of a command: key: {type, choices, pattern}", named(shapeParts.inPlace()), func(d *Definition) *map[string]taskagent.Shape { return &d.Shapes }),
	field("query", "user's request if the run gives none: {{user_input}}", aText, func(d *Definition) *string { return &d.Query }),
	field("session", "session ID if the run gives none; with a fixed ID all runs are one conversation", aText, func(d *Definition) *string { return &d.Session }),
	field("prices", "price of a million tokens: provider/name: {input, output, cached_input, cache_write, cache_write_1h}", as(named(priceParts.inPlace()), asPrices), func(d *Definition) *budget.Prices { return &d.Prices }),
	field("max_model_calls", "fail after this many model calls (a number or none; default 500); a larger budget of calls at the root raises it", plain(callsOrNone, (*reader).maxModelCalls), func(d *Definition) *int { return &d.MaxModelCalls }).shown(agent.DefaultMaxLLMCalls),
	field("workspace", "files that the commands work on, as part of the state: {from, base, copy, setup, filters, notes, protect, on_protected, limits, result}",
		workspaceParts.value(), func(d *Definition) **runfiles.Config { return &d.Workspace }),
	special("notify", "who is notified of the run: VARIABLE: [events]; the environment variable has the address, and the events are ended, stopped_by_limit, failed, asks, limited, new_best, paused", notifyShape, takesNotify),
	field("init_timeout", "time limit to open a model or a tool server; 30s if left out", aSpan, func(d *Definition) *time.Duration { return &d.InitTimeout }).shown("30s"),
}

// Options are the options of [Parse].
type Options struct {
	// FS has the files that refs name; a ref never leaves it. Nil refuses refs. For a folder, use
	// os.Root.FS, because os.DirFS follows links out of the folder.
	FS fs.FS
	// Path is the path of the definition itself in FS. The default is the last element of its name.
	Path string
}

// Load reads and checks a definition. It looks for the files that the definition refers to in the
// folder of the file and below.
//
// The error is [Problems], with all mistakes; errors.Is finds causes such as fs.ErrNotExist.
// Warnings alone are not an error; see [Definition.Warnings].
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

// Parse reads and checks a definition from data, as [Load] does from a file. name is the file's name in problems.
func Parse(name string, data []byte, opts Options) (*Definition, error) {
	l := newLoader()
	l.fsys = opts.FS
	opts.Path = cmp.Or(opts.Path, path.Base(filepath.ToSlash(name)))
	if folder, ok := strings.CutSuffix(filepath.ToSlash(name), opts.Path); ok {
		l.folder = folder
	}
	src, n := l.read(bytes.NewReader(data), name, path.Clean(opts.Path))
	return l.definition(src, n)
}

func newLoader() *loader { return &loader{opened: make(map[string]*textFile)} }

func (l *loader) unreadable(name string, err error) error {
	l.report(source.Span{Src: source.New(name, name, 0, "")}, CodeFile, "the file cannot be read: %v", source.Cause(err)).err = err
	return l.problems
}

// definition makes a definition from the value of the root file.
func (l *loader) definition(src *source.Source, n *source.Node) (*Definition, error) {
	d := &Definition{}
	if n != nil {
		l.reading = append(l.reading, src)
		r := reader{loader: l, src: src, def: d}
		if d.Root = r.agent(n, nil); d.Root != nil {
			d.title()
			d.declare()
			l.expand(l.check(d))
		}
	}
	l.problems = l.problems.sort().first(maxProblems)
	for _, p := range l.problems {
		if p.hint != nil {
			p.suggest(p.hint())
		}
	}
	if l.problems.count(SeverityError) > 0 {
		return nil, l.problems
	}
	d.warnings, d.notes = l.problems, l.notes.sort().first(maxProblems)
	return d, nil
}

// Limits of a definition. They are far above what a person writes.
const (
	maxFiles    = 100
	maxPrograms = 1000   // expressions, which take most of the time
	maxBraces   = 20_000 // that texts are searched for placeholders
	maxHinted   = 200    // bytes of a name in a hint
	maxProblems = 200    // what is shown; there may be more
	maxCopies   = 5000   // agents that are read again, for loops that run side by side
	maxFound    = 20_000 // what is found after that is not counted
)

// loader reads the files of one definition and collects the problems.
type loader struct {
	fsys     fs.FS  // nil: refs are refused
	folder   string // how the names of files begin, for people
	sources  []*source.Source
	problems Problems
	notes    Problems
	nodes    int                  // seen so far
	reading  []*source.Source     // files around the current place
	uses     int                  // refs that were followed
	copies   int                  // agents that were read again
	change   *change              // of the agents that are read; nil if they are as the file describes them
	opened   map[string]*textFile // files that were read, by path
}

// report adds an error and returns it, so that the caller can set a hint.
func (l *loader) report(at source.Span, code, format string, args ...any) *Problem {
	p := &Problem{
		File: at.Src.Name, file: at.Src.Index, Line: at.Line, Column: at.Column, Length: at.Length,
		Severity: SeverityError, Code: code, Message: credential.Mask(fmt.Sprintf(format, args...), at.Src.Secrets),
		Excerpt: at.Src.Excerpt(at.Line),
	}
	if len(l.problems) < maxFound {
		l.problems = append(l.problems, p)
	}
	return p
}

func (l *loader) warn(at source.Span, code, format string, args ...any) *Problem {
	p := l.report(at, code, format, args...)
	p.Severity = SeverityWarning
	return p
}

// note adds a remark that is not a mistake.
func (l *loader) note(at source.Span, code, format string, args ...any) *Problem {
	kept := l.problems
	l.problems = nil
	p := l.report(at, code, format, args...)
	p.Severity = SeverityNote
	l.problems = kept
	if len(l.notes) < maxFound {
		l.notes = append(l.notes, p)
	}
	return p
}

// full reports whether the loader has found maxFound problems, after which it stops reading.
func (l *loader) full() bool { return len(l.problems) >= maxFound }

// read reads a file and returns its one value; nil if it reports a problem.
func (l *loader) read(r io.Reader, name, path string) (*source.Source, *source.Node) {
	src := source.New(name, path, len(l.sources), "")
	l.sources = append(l.sources, src)
	n, faults := source.Read(r, src, &l.nodes)
	l.blame(faults)
	return src, n
}

// parse returns the one value of the text of src; nil if it reports a problem.
func (l *loader) parse(src *source.Source, text string) *source.Node {
	n, faults := source.Parse(src, text, &l.nodes)
	l.blame(faults)
	return n
}

// blame reports why a text cannot be read.
func (l *loader) blame(faults []*source.Fault) {
	for _, f := range faults {
		code := CodeSyntax
		if f.OfFile {
			code = CodeFile
		}
		p := l.report(f.At, code, "%s", f.Message)
		switch p.Hint, p.err = f.Hint, f.Err; {
		case f.Empty:
			p.Hint = "a loop begins with its name: and its sub_agents:"
		case f.Second:
			p.Hint = "put it in a file of its own and use ref"
		}
	}
}

// besideRef lists the fields that can stand beside a ref. They concern the agent's place, so that one file can be
// used in several places.
var besideRef = []string{"name", "output_key", "can_exit_loop", "on_error", "delay_before", "delay_after"}

// BesideRef reports whether the field can stand beside a ref.
func (f Field) BesideRef() bool { return slices.Contains(besideRef, f.Name) }

// use is a place where a file describes an agent.
type use struct {
	at     source.Span
	file   string // as the ref names it
	fields []beside
}

// beside is a field beside a ref, with the reader of its file.
type beside struct {
	pair
	reader *reader
}

// field finds a field beside the ref; nil if it is not there.
func (u *use) field(name string) *beside {
	if u == nil {
		return nil
	}
	if i := slices.IndexFunc(u.fields, func(b beside) bool { return b.key == name }); i >= 0 {
		return &u.fields[i]
	}
	return nil
}

// sourceOf returns the file that sets a field.
func (a *Agent) sourceOf(field string) *source.Source {
	if b := a.use.field(strings.TrimPrefix(field, "key of ")); b != nil {
		return b.reader.src
	}
	return a.src
}

// fromFile returns the agent itself or the nearest enclosing agent that has a file of its own; nil if none has.
func (a *Agent) fromFile() *Agent {
	for ; a != nil; a = a.parent {
		if a.use != nil {
			return a
		}
	}
	return nil
}

// ref reads the agent in the file that a ref names. ps are the fields of the ref's map. If the file has only another
// ref, the fields beside the outer ref win.
func (r *reader) ref(parent *Agent, ps []pair, outer *use) *Agent {
	var n *source.Node
	own := &use{}
	if outer != nil {
		own.fields = slices.Clone(outer.fields)
	}
	for _, p := range ps {
		switch {
		case p.key == "ref":
			n = p.value
		case !slices.Contains(besideRef, p.key):
			r.report(p.at, CodeConflict, "%q is not allowed beside ref", p.key).
				Hint = "move it to the file that ref names; beside ref can stand " + strings.Join(besideRef, ", ")
		case outer.field(p.key) == nil:
			own.fields = append(own.fields, beside{p, r})
		}
	}
	name, ok := r.text(n, "ref")
	if !ok {
		return nil
	}
	target := path.Join(path.Dir(r.src.Path), name)
	switch {
	case strings.Contains(name, "://"):
		r.report(n, CodeRef, "ref %q is an address; it must be a file in the folder of the definition", name).
			Hint = "save it there, and name the file"
		return nil
	case path.IsAbs(name) || filepath.IsAbs(name) || strings.Contains(name, `\`):
		r.report(n, CodeRef, "ref must be a path with slashes, relative to this file, got %q", name)
		return nil
	case !filepath.IsLocal(target):
		r.report(n, CodeRef, "ref %q leads out of the folder of the definition", name)
		return nil
	case r.fsys == nil:
		r.report(n, CodeRef, "ref %q cannot be followed: the definition was not read from a folder", name)
		return nil
	case slices.ContainsFunc(r.reading, func(around *source.Source) bool { return around.Path == target }):
		r.report(n, CodeRef, "ref %q leads in a circle", name)
		return nil
	}
	if r.uses++; r.uses > maxFiles {
		r.report(n, CodeFile, "the definition has more than %d refs", maxFiles)
		return nil
	}
	own.at, own.file = r.src.Of(n), name
	return r.follow(parent, target, own)
}

// fileNear suggests a file with a similar name for one that does not exist.
func (r *reader) fileNear(target, from string) (hint, suggestion string) {
	entries, err := fs.ReadDir(r.fsys, path.Dir(target))
	if err != nil || len(entries) > meant.MaxNames {
		return "", ""
	}
	var names []string
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext == ".yaml" || ext == ".yml" || ext == ".json" {
			names = append(names, e.Name())
		}
	}
	near := suggest.Nearest(path.Base(target), names)
	if near == "" {
		return "", ""
	}
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(path.Join(path.Dir(target), near)))
	if err != nil {
		return "", ""
	}
	return meant.Name(filepath.ToSlash(rel))
}

// textFile is a file that was read.
type textFile struct {
	src  *source.Source
	node *source.Node // nil if it could not be read as YAML
}

const linkHint = "a link in the folder of the definition must not lead out of it"

// leadsOut reports whether an [os.Root] has refused a path because a link in it leads out.
func leadsOut(err error) bool { return errEscapes() != nil && errors.Is(err, errEscapes()) }

// errEscapes returns the error with which [os.Root] refuses a path. Package os does not export it.
var errEscapes = sync.OnceValue(func() error {
	_, err := os.OpenInRoot(os.TempDir(), "..")
	return errors.Unwrap(err)
})

// open reads the file that a ref names, once; nil if it cannot be read.
func (r *reader) open(at source.Span, name, target string) *textFile {
	if file, ok := r.opened[target]; ok {
		return file
	}
	f, err := source.Open(r.fsys, target)
	if err == nil {
		defer f.Close()
	}
	if err != nil {
		p := r.loader.report(at, CodeRef, "ref %q cannot be read: %v", name, source.Cause(err))
		p.err = err
		if errors.Is(err, fs.ErrNotExist) {
			p.suggest(r.fileNear(target, path.Dir(r.src.Path)))
		}
		if leadsOut(err) {
			p.Hint = linkHint
		}
		return nil
	}
	src, n := r.read(f, r.folder+target, target)
	r.opened[target] = &textFile{src, n}
	return r.opened[target]
}

func isRef(ps []pair) bool {
	return slices.ContainsFunc(ps, func(p pair) bool { return p.key == "ref" })
}

// follow reads the agent that a file describes.
func (r *reader) follow(parent *Agent, target string, use *use) *Agent {
	file := r.open(use.at, use.file, target)
	if file == nil || file.node == nil {
		return nil
	}
	r.reading = append(r.reading, file.src)
	defer func() { r.reading = r.reading[:len(r.reading)-1] }()
	inner := reader{loader: r.loader, src: file.src, def: r.def}
	ps, ok := inner.pairs(file.node, "an agent")
	if !ok {
		return nil
	}
	if isRef(ps) {
		return inner.ref(parent, ps, use)
	}
	return inner.described(file.node, ps, parent, use)
}
