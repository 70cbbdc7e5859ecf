// SPDX-License-Identifier: Apache-2.0

// Package deffile makes programs from the definitions that the command line names.
package deffile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/supervisor"
)

// Load reads a definition. For a file of another product it prints a note.
func Load(e *term.Env, file string) (*definition.Definition, error) {
	def, _, err := LoadWithOrigin(e, file)
	return def, err
}

// LoadWithOrigin reads a definition as [Load] does. The origin maps places in the definition to places in the file of another
// product.
func LoadWithOrigin(e *term.Env, file string) (*definition.Definition, Origin, error) {
	release, err := term.EndsReading(e)
	defer release()
	if err != nil {
		return nil, Origin{}, &term.Exit{Code: term.ExitInterrupted, Err: err}
	}
	if src, own, err := ownDefinition(e, file); own || err != nil {
		if err != nil {
			return nil, Origin{}, err
		}
		def, err := new(program.Program).ReadOwn(file, src)
		return def, Origin{}, err
	}
	def, err := definition.Load(file)
	if err == nil {
		return def, Origin{}, nil
	}
	res, note, err := program.Translate(file, err)
	if note != "" {
		fmt.Fprintln(e.Stderr, note)
	}
	if err != nil {
		return nil, Origin{}, err
	}
	return res.Definition, Origin{res}, nil
}

// Read reads a definition into a program: the program's own definition with this name, or else the file.
func Read(e *term.Env, p *program.Program, name string) (*definition.Definition, error) {
	src, own, err := ownDefinition(e, name)
	switch {
	case err != nil:
		return nil, err
	case own:
		return p.ReadOwn(name, src)
	}
	return p.Read(name)
}

// ownDefinition returns the program's own definition with a name. It fails if neither a definition nor a file has the name.
func ownDefinition(e *term.Env, name string) (src program.Source, own bool, err error) {
	all, err := e.Code.Own()
	if err != nil || len(all) == 0 {
		return src, false, err
	}
	if src, own = all[name]; own {
		return src, true, nil
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		names := slices.Sorted(maps.Keys(all))
		return src, false, fmt.Errorf("the program has no definition %q (%s), and there is no file of this name", name, term.Meant(name, names))
	}
	return src, false, nil
}

// WithOnly adds the name of the program's only definition to the arguments of refrain run, if they name no definition: there
// are no arguments, or the only argument is a request of several words and not a file.
func WithOnly(e *term.Env, args []string) []string {
	if len(args) > 1 || len(args) == 1 && !strings.ContainsFunc(args[0], unicode.IsSpace) {
		return args
	}
	all, err := e.Code.Own()
	if err != nil || len(all) != 1 {
		return args
	}
	if len(args) == 1 {
		if _, err := os.Stat(args[0]); err == nil {
			return args
		}
	}
	return append(slices.Collect(maps.Keys(all)), args...)
}

// Origin maps places in a definition to places in the file that people edit. The zero value is the origin of a definition that
// people edit directly.
type Origin struct {
	of *dialect.Result
}

// At returns the place in the file that people edit.
func (o Origin) At(p definition.Position) definition.Position {
	if o.of == nil {
		return p
	}
	return o.of.Origin(p)
}

// Problems returns the problems of a definition with their places and lines in the file from which it was converted.
func (o Origin) Problems(all definition.Problems) definition.Problems {
	out := make(definition.Problems, len(all))
	for i, p := range all {
		was := definition.Position{File: p.File, Line: p.Line, Column: p.Column}
		at := o.At(was)
		if out[i] = p; at == was {
			continue
		}
		own := *p
		own.File, own.Line, own.Column, own.Length, own.Excerpt = at.File, at.Line, at.Column, 1, o.of.Excerpt(at)
		if own.Hint != "" && own.Suggestion == "" {
			own.Hint = "in what refrain import writes: " + own.Hint
		}
		out[i] = &own
	}
	return out
}

// NewProgram reads a definition and applies the flags --model, --root and those of the limits.
func NewProgram(e *term.Env, file, model, root string, limits *Limits) (*program.Program, *definition.Definition, error) {
	p := &program.Program{Program: e.Code.Name, Model: model, DefaultModel: e.Getenv("REFRAIN_MODEL")}
	def, err := Read(e, p, file)
	if err != nil {
		return nil, nil, term.UsageError(err)
	}
	if p.Note != "" {
		fmt.Fprintln(e.Stderr, p.Note)
	}
	if p.Dir, err = os.Getwd(); err == nil {
		p.Root, err = filepath.Abs(root)
	}
	if err != nil {
		return nil, nil, term.Failure(err)
	}
	if info, err := os.Stat(p.Root); err != nil || !info.IsDir() {
		return nil, nil, term.UsageError(fmt.Errorf("--root %s: there is no such folder", root))
	}
	p.Limits, err = limits.Given()
	return p, def, err
}

// Build makes the agents of a program whose runs have their logs in a store, as program.Env names it.
func Build(ctx context.Context, e *term.Env, store string, p *program.Program,
	def *definition.Definition) (*supervisor.Program, error) {
	made, err := p.Build(ctx, EnvOf(e, store), def)
	if err != nil {
		code := term.ExitUsage
		if _, late := errors.AsType[*definition.InitError](err); late {
			code = term.ExitFailed
		}
		return nil, &term.Exit{Code: code, Err: err}
	}
	return made, nil
}

// EnvOf returns the part of the agents' environment that the command decides.
func EnvOf(e *term.Env, store string) program.Env {
	return program.Env{Code: e.Code, Getenv: e.Getenv, Store: store, Copies: trust.Copies(e.Getenv),
		Report: func(err error) { term.PrintError(e.Stderr, err) }, Check: findPrograms}
}

// findPrograms returns an error if a coding agent that this machine asks is not installed.
func findPrograms(_ *program.Program, def *definition.Definition) error {
	for a := range def.Root.All {
		if a.Type != definition.TypeCLI || a.TaskQueue != "" {
			continue
		}
		if err := taskagent.FindCLI(a.Command.CLI.Command()[0]); err != nil {
			return fmt.Errorf("%s: %q: %w", a.Position(), a.Name, err)
		}
	}
	return nil
}
