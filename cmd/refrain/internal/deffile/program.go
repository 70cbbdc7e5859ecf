// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/pipe"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Program is what a run keeps of how it was started: all that is needed to build
// its agents again, in whatever process it goes on. Keys of models are not in it.
type Program struct {
	// File is how the command line called the definition, and Files has it, and
	// what it refers to, by their paths. Path is the definition's own.
	File  string            `json:"file"`
	Path  string            `json:"path"`
	Files map[string]string `json:"files"`
	// Dir is where the run was started, and Root the folder of its commands.
	Dir  string `json:"dir"`
	Root string `json:"root"`
	// Model is what --model said, DefaultModel what REFRAIN_MODEL did.
	Model        string `json:"model,omitempty"`
	DefaultModel string `json:"default_model,omitempty"`
	// The limits that flags gave.
	MaxIterations *uint          `json:"max_iterations,omitempty"`
	Timeout       *time.Duration `json:"timeout,omitempty"`
	MaxModelCalls int            `json:"max_model_calls,omitempty"`
	Budget        *budget.Limits `json:"budget,omitempty"`

	note string // of a file of another product
}

// Given is what the flags of refrain run say about a definition.
type Given struct {
	Model, Root string
	Limits      *Limits
}

// NewProgram reads a definition and what flags say about it.
func NewProgram(e *term.Env, file string, g Given) (*Program, *definition.Definition, error) {
	p := &Program{File: file, Model: g.Model, DefaultModel: e.Getenv("REFRAIN_MODEL")}
	def, err := p.Read(file)
	if err != nil {
		return nil, nil, term.UsageError(err)
	}
	if p.note != "" {
		fmt.Fprintln(e.Stderr, p.note)
	}
	if p.Dir, err = os.Getwd(); err == nil {
		p.Root, err = filepath.Abs(g.Root)
	}
	if err != nil {
		return nil, nil, term.Failure(err)
	}
	p.MaxIterations = g.Limits.Iterations()
	if p.Timeout, err = g.Limits.Time(); err != nil {
		return nil, nil, term.UsageError(err)
	}
	if p.Budget, err = g.Limits.Budget(); err != nil {
		return nil, nil, err
	}
	if p.MaxModelCalls, err = g.Limits.MaxModelCalls(def); err != nil {
		return nil, nil, err
	}
	return p, def, nil
}

// Read takes a definition into the program, with the files that it refers to.
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
	p.File, p.Path, p.Files = file, filepath.Base(file), map[string]string{}
	def, err := definition.Parse(file, text, definition.Options{FS: keeping{root.FS(), p.Files}, Path: p.Path})
	if err != nil {
		res, note, err := asDefinition(file, err)
		if err != nil {
			return nil, err
		}
		def, text, p.note = res.Definition, res.YAML, note
		clear(p.Files) // an import has all in one
	}
	p.Files[p.Path] = string(text)
	return def, nil
}

// readSome reads a file up to where it is too large to be a definition.
func readSome(file string) ([]byte, error) {
	f, err := pipe.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 2<<20))
}

// DecodeProgram is the program that a run was started with.
func DecodeProgram(started mark.RunStarted) (*Program, error) {
	p := new(Program)
	if len(started.Program) == 0 {
		return nil, errors.New("its log has no definition, because it was not started by refrain run")
	}
	if err := json.Unmarshal(started.Program, p); err != nil {
		return nil, fmt.Errorf("read what the run was started with: %w", err)
	}
	return p, nil
}

// Definition is what the run's files say, whatever is on the disk now.
func (p *Program) Definition() (*definition.Definition, error) {
	return definition.Parse(p.File, []byte(p.Files[p.Path]), definition.Options{FS: kept(p.Files), Path: p.Path})
}

// Started is the program as a run keeps it.
func (p *Program) Started(def *definition.Definition) (mark.RunStarted, error) {
	text, err := json.Marshal(p)
	return mark.RunStarted{Name: def.Name, Program: text}, err
}

// Build makes the agents.
func (p *Program) Build(ctx context.Context, e *term.Env, def *definition.Definition) (*supervisor.Program, error) {
	cfg, closeTools, err := buildConfig(ctx, e, p, def)
	if err != nil {
		return nil, term.UsageError(err)
	}
	root, err := def.Build(ctx, cfg)
	if err != nil {
		closeTools()
		code := term.ExitUsage
		if _, late := errors.AsType[*definition.InitError](err); late {
			code = term.ExitFailed
		}
		return nil, &term.Exit{Code: code, Err: err}
	}
	return &supervisor.Program{
		Agent: root, Close: closeTools,
		RunConfig: agent.RunConfig{Prices: def.Prices, Budget: p.Budget, MaxLLMCalls: p.MaxModelCalls},
	}, nil
}

// Rebuild makes the agents of runs that are resumed.
func Rebuild(e *term.Env) func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
	return func(ctx context.Context, started mark.RunStarted) (*supervisor.Program, error) {
		p, err := DecodeProgram(started)
		if err != nil {
			return nil, err
		}
		def, err := p.Definition()
		if err != nil {
			return nil, err
		}
		return p.Build(ctx, e, def)
	}
}
