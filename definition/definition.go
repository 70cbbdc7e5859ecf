// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/internal/pipe"
)

// Definition is the content of a file after its checks. Do not change it.
type Definition struct {
	// Name and Description are the root agent's.
	Name        string
	Description string
	// Goal and Instructions are the root loop's; empty if the root is no loop.
	Goal         string
	Instructions string
	// Inputs are the inputs of a run, in the order of the file.
	Inputs []Input
	// Query is the user's request if a run gives none, and Session the session ID if a run gives
	// none; they are empty if the file does not set them.
	Query, Session string
	// Prices are the prices of models for a million tokens, by the models' names; nil if the file
	// does not set them. They are for agent.RunConfig.
	Prices budget.Prices
	// MaxModelCalls is the largest number of model calls of a run, for agent.RunConfig.MaxLLMCalls:
	// 0 is agent.DefaultMaxLLMCalls, and a negative number means no limit. If the file does not set
	// it, a larger budget of calls at the root does.
	MaxModelCalls int
	// InitTimeout limits the time to open a model or a tool server; 0 is [DefaultInitTimeout].
	InitTimeout time.Duration
	// State is the initial state that the file gives; [Definition.InitialState] adds the inputs.
	State map[string]any
	// Shapes are what values of the state must be to stand in a command, by the names of their
	// placeholders, as far as the file declares them apart from inputs and schemas.
	Shapes map[string]taskagent.Shape
	// Root is the root agent, with the agents below it.
	Root *Agent

	request  string // why a run needs a request; empty if it needs none
	warnings Problems
	notes    Problems
	kept     map[*Agent]bool             // loops whose earlier states are read
	files    map[*jsonschema.Schema]bool // those of the type file
	shapes   map[string]taskagent.Shape  // all that are declared
}

// Warnings are the problems that do not keep the definition from running; nil if
// there are none.
func (d *Definition) Warnings() Problems { return d.warnings }

// Notes are warnings that are not mistakes; nil if there is nothing. [WorstCase.Notes] has what
// bounds nothing.
func (d *Definition) Notes() Problems { return d.notes }

// title copies what is said about the root.
func (d *Definition) title() {
	d.Name, d.Description = d.Root.Name, d.Root.Description
	if l := d.Root.Loop; l != nil {
		d.Goal, d.Instructions = l.Goal, l.Instructions
		d.raiseModelCalls(l.Budget)
	}
}

var rootRows = []row[Definition]{
	special("inputs", "inputs of a run: name: {type, default, description, choices, pattern}, or name: default", func() shape { return mapOf(inputShape()) }, takesInputs),
	special("state", "initial state of a run", func() shape { return &jsonschema.Schema{Type: "object", Title: "map"} }, takesState),
	field("shapes", "what values of the state must be to stand in an argument or a variable of a command: key: {type, choices, pattern}", named(shapeParts.inPlace()), func(d *Definition) *map[string]taskagent.Shape { return &d.Shapes }),
	field("query", "user's request if the run gives none: {{user_input}}", aText, func(d *Definition) *string { return &d.Query }),
	field("session", "session ID if the run gives none; with a fixed ID all runs are one conversation", aText, func(d *Definition) *string { return &d.Session }),
	field("prices", "price of a million tokens: provider/name: {input, output, cached_input}", as(named(priceParts.inPlace()), asPrices), func(d *Definition) *budget.Prices { return &d.Prices }),
	field("max_model_calls", "fail after this many model calls (a number or none; default 500); a larger budget of calls at the root raises it", plain(callsOrNone, (*reader).maxModelCalls), func(d *Definition) *int { return &d.MaxModelCalls }).shown(agent.DefaultMaxLLMCalls),
	field("init_timeout", "time limit to open a model or a tool server; 30s if left out", aSpan, func(d *Definition) *time.Duration { return &d.InitTimeout }).shown("30s"),
}

// Options are the choices of [Parse].
type Options struct {
	// FS is where refs lead; they never leave it. Nil refuses refs. For a
	// folder, use os.Root.FS: os.DirFS follows links that lead out.
	FS fs.FS
	// Path is where the definition itself is in FS. The default is the last
	// element of its name.
	Path string
}

// Load reads and checks a definition. Files that it refers to are looked for in
// the folder of the file and below, and nowhere else.
//
// The error is [Problems]: everything that is wrong, with errors.Is finding
// fs.ErrNotExist and the like. Warnings alone are no error; see
// [Definition.Warnings].
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

// Parse is [Load] of data. The name is what problems call the file.
func Parse(name string, data []byte, opts Options) (*Definition, error) {
	l := newLoader()
	l.fsys = opts.FS
	if opts.Path == "" {
		opts.Path = path.Base(filepath.ToSlash(name))
	}
	if folder, ok := strings.CutSuffix(filepath.ToSlash(name), opts.Path); ok {
		l.folder = folder
	}
	src, n := l.read(bytes.NewReader(data), name, path.Clean(opts.Path))
	return l.definition(src, n)
}

func newLoader() *loader { return &loader{opened: make(map[string]*opened)} }

func (l *loader) unreadable(name string, err error) error {
	l.report(source.Span{Src: source.New(name, name, 0, "")}, CodeFile, "the file cannot be read: %v", source.Cause(err)).err = err
	return l.problems
}

// definition makes a definition of the root file's value.
func (l *loader) definition(src *source.Source, n *source.Node) (*Definition, error) {
	d := &Definition{}
	if n != nil {
		l.reading = append(l.reading, src)
		r := reader{loader: l, src: src, def: d}
		if d.Root = r.agent(n, nil); d.Root != nil {
			d.title()
			d.declare()
			l.check(d)
		}
	}
	l.problems = l.problems.sort().first(maxProblems)
	for _, p := range l.problems {
		if p.hint != nil {
			p.Hint = p.hint()
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
	maxNames    = 2000   // among more, nothing is guessed
	maxHinted   = 200    // bytes of a name in a hint
	maxProblems = 200    // what is shown; there may be more
	maxFound    = 20_000 // what is found after that is not counted
)

// loader reads the files of one definition and collects what is wrong.
type loader struct {
	fsys     fs.FS  // nil: refs are refused
	folder   string // how the names of files begin, for people
	sources  []*source.Source
	problems Problems
	notes    Problems
	nodes    int                // seen so far
	reading  []*source.Source   // files around the current place
	uses     int                // refs that were followed
	opened   map[string]*opened // files that were read, by path
}

// report adds an error. A hint can be set on what is returned.
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

// note adds what is worth knowing.
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

// full reports that there are so many problems that more are of no use.
func (l *loader) full() bool { return len(l.problems) >= maxFound }

// read reads a file and returns its one value, nil if there is a problem.
func (l *loader) read(r io.Reader, name, path string) (*source.Source, *source.Node) {
	src := source.New(name, path, len(l.sources), "")
	l.sources = append(l.sources, src)
	n, faults := source.Read(r, src, &l.nodes)
	l.blame(faults)
	return src, n
}

// parse returns the one value of the text of src, nil if there is a problem.
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
		p.Hint, p.err = f.Hint, f.Err
	}
}
