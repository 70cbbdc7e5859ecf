// SPDX-License-Identifier: Apache-2.0

// Package program keeps how a run was started, so that its agents can be made again, in whatever
// process the run continues: the files of its definition and its limits. Keys of models are not in
// it.
//
//	p := &program.Program{Dir: dir, Root: dir}
//	def, err := p.Read("loop.yaml")
//	if err != nil {
//		return err
//	}
//	started, err := p.Started(def)
//	if err != nil {
//		return err
//	}
//	run, err := sup.Start(ctx, supervisor.Request{Message: msg, State: state, Started: started})
//
// A supervisor makes the agents with [Rebuild].
package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/process/pipe"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Program records how a run was started.
type Program struct {
	// Program is the name of the program that started the run; empty means refrain.
	Program string `json:"program,omitempty"`
	// File is the name with which the definition was started. Files has the definition and the
	// files that it refers to, by their paths. Path is the definition's own path.
	File  string            `json:"file"`
	Path  string            `json:"path"`
	Files map[string]string `json:"files"`
	// Dir is the folder in which the run was started, and Root the folder of its commands.
	Dir  string `json:"dir"`
	Root string `json:"root"`
	// Model is the model of all agents, DefaultModel the model of agents that name none.
	Model        string `json:"model,omitempty"`
	DefaultModel string `json:"default_model,omitempty"`
	// Permissions are those of all coding agents in place of the definition's.
	Permissions string `json:"permissions,omitempty"`
	// Replace has the outcomes of steps that do not do their work; see definition.BuildConfig.
	Replace map[string]any `json:"replace,omitempty"`
	// Limits replace those of the definition.
	definition.Limits
	// Served says that a server started the run, so that it continues the run after a restart.
	// Untrusted says that the definition came from a client of a server.
	Served    bool `json:"served,omitempty"`
	Untrusted bool `json:"untrusted,omitempty"`
	// Console says that a console started the run, so that the program's next console continues it. Streams
	// says that answers of models arrive in pieces.
	Console bool `json:"console,omitempty"`
	Streams bool `json:"streams,omitempty"`
	// Request is a hash of the request to a server, if its client may repeat the request.
	Request string `json:"request,omitempty"`
	// Message is the A2A message that started the run; nil if it was started otherwise.
	Message *Message `json:"message,omitempty"`

	// TextAnswers says that answers with an output_schema are texts in the state, because an older version started the
	// run; see definition.BuildConfig.
	TextAnswers bool `json:"-"`
	// Note says that the definition was a file of another product; empty if it was not.
	Note string `json:"-"`
}

// Message is the message of a client of the Agent2Agent protocol.
type Message struct {
	// ID is the client's ID of the message.
	ID string `json:"id"`
	// Context is the conversation to which the client assigns the message; empty if it names
	// none.
	Context string `json:"context,omitempty"`
}

// Read reads a definition into the program, with the files to which it refers. A file of another product becomes a
// definition, with a Note. The error is definition.Problems, or the error of the translation.
func (p *Program) Read(file string) (*definition.Definition, error) {
	text, err := readSome(file)
	if err != nil {
		return definition.Load(file) // which says it better
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return p.ReadIn(root.FS(), file, filepath.Base(file), text)
}

// maxText is more than a definition can have, in bytes.
const maxText = 2 << 20

// readSome reads a file up to where it is too large to be a definition.
func readSome(file string) ([]byte, error) {
	f, err := pipe.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxText))
}

// ReadIn reads a text as Read does. The text is, or would be, at a path in a file system. name is its name in
// problems.
func (p *Program) ReadIn(fsys fs.FS, name, at string, text []byte) (*definition.Definition, error) {
	p.File, p.Path, p.Files = name, at, map[string]string{}
	def, err := definition.Parse(name, text, definition.Options{FS: keeping{fsys, p.Files}, Path: at})
	if err != nil {
		res, other := dialect.Import(name, text, dialect.Options{FS: fsys, Path: at})
		res, note, err := translate(name, res, other, err)
		if err != nil {
			return nil, err
		}
		def, text, p.Note = res.Definition, res.YAML, note
		clear(p.Files) // an import has all in one
	}
	p.Files[at] = string(text)
	return def, nil
}

// Translate makes a definition of a file of another product. err says why the file is not a definition. The note
// reports the translation.
func Translate(file string, err error) (res *dialect.Result, note string, _ error) {
	res, other := dialect.Load(file, dialect.Options{})
	return translate(file, res, other, err)
}

func translate(name string, res *dialect.Result, other, err error) (*dialect.Result, string, error) {
	if other != nil {
		return nil, "", err
	}
	r := res.Report
	note := fmt.Sprintf("%s: note: this is %s: %d changed, %d left out; refrain import says what",
		name, r.Dialect.Title(), r.Count(dialect.Changed), r.Count(dialect.Dropped))
	if err := res.Err(); err != nil {
		if res.YAML == nil {
			note = "" // the error says that, and more
		}
		return nil, note, err
	}
	return res, note, nil
}

// record is the form in which a run keeps its program. The records of older versions have no AnswerValues.
type record struct {
	*Program
	AnswerValues bool `json:"answer_values,omitempty"`
}

// Decode returns the program that a run was started with.
func Decode(started mark.RunStarted) (*Program, error) {
	p := record{Program: new(Program)}
	if len(started.Program) == 0 {
		return nil, errors.New("its log has no definition, because it was not started by refrain run")
	}
	if err := json.Unmarshal(started.Program, &p); err != nil {
		return nil, fmt.Errorf("read what the run was started with: %w", err)
	}
	p.TextAnswers = !p.AnswerValues
	return p.Program, nil
}

// Definition returns the definition in the run's files, not the current one on the disk.
func (p *Program) Definition() (*definition.Definition, error) {
	return definition.Parse(p.File, []byte(p.Files[p.Path]), definition.Options{FS: fileSystem(p.Files), Path: p.Path})
}

// HasLoop reports whether the definition of a run has a loop, because only an iteration gets a text of [supervisor.Supervisor.Tell]. It is
// true for a definition that cannot be read, which a resume reports.
func HasLoop(view session.Session) bool {
	p, err := Of(view)
	if err != nil {
		return true
	}
	d, err := p.Definition()
	if err != nil {
		return true
	}
	for a := range d.Root.All {
		if a.Type == definition.TypeLoop {
			return true
		}
	}
	return false
}

// DefinitionFor returns the definition as Definition does, for a program with the code. If another program started
// the run, the error names it.
func (p *Program) DefinitionFor(code *Code) (*definition.Definition, error) {
	def, err := p.Definition()
	return def, p.Otherwise(code, err)
}

// Started returns the program in the form that a run keeps.
func (p *Program) Started(def *definition.Definition) (mark.RunStarted, error) {
	text, err := json.Marshal(record{p, !p.TextAnswers})
	return mark.RunStarted{Name: def.Name, Program: text}, err
}

// Build makes the agents. Errors are a [*ModelError] and those of definition.Definition.Build.
func (p *Program) Build(ctx context.Context, env Env, def *definition.Definition) (*supervisor.Program, error) {
	if env.Check != nil {
		if err := env.Check(p, def); err != nil {
			return nil, err
		}
	}
	cfg, closeTools, err := p.config(ctx, env, def)
	if err != nil {
		return nil, err
	}
	root, err := def.Build(ctx, cfg)
	if err != nil {
		closeTools()
		return nil, p.Otherwise(&env.Code, err)
	}
	runs := def.RunConfig(p.Limits)
	if runs.StateLimit = env.StateLimit; p.Untrusted {
		runs.LogLimit, runs.LogLimitName = env.LogLimit, env.LogLimitName
	}
	if p.Streams {
		runs.StreamingMode = agent.StreamingModeSSE
	}
	return &supervisor.Program{Agent: root, Close: closeTools, RunConfig: runs}, nil
}

// Rebuild returns the function with which a supervisor makes the agents of a run. It makes none of a run that needs the
// Go code of another program: see [Program.Others].
func Rebuild(env Env) func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
	return func(ctx context.Context, started mark.RunStarted) (*supervisor.Program, error) {
		p, err := Decode(started)
		if err != nil {
			return nil, err
		}
		def, err := p.DefinitionFor(&env.Code)
		if err == nil {
			err = p.Others(&env.Code, def)
		}
		if err != nil {
			return nil, err
		}
		return p.Build(ctx, env, def)
	}
}
