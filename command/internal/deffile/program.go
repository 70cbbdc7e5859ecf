// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/supervisor"
)

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

// Build makes the agents of a program.
func Build(ctx context.Context, e *term.Env, p *program.Program,
	def *definition.Definition) (*supervisor.Program, error) {
	made, err := p.Build(ctx, EnvOf(e), def)
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
func EnvOf(e *term.Env) program.Env {
	return program.Env{Code: e.Code, Getenv: e.Getenv, Report: func(err error) { term.PrintError(e.Stderr, err) }, Check: findPrograms}
}

// findPrograms returns an error if a coding agent that this machine asks is not installed.
func findPrograms(_ *program.Program, def *definition.Definition) error {
	for a := range def.Root.All {
		if a.Type != definition.TypeCLI || a.TaskQueue != "" {
			continue
		}
		asked := slices.Concat(a.Command.CLI.ACP, []string{a.Command.CLI.Program})
		if err := taskagent.FindCLI(asked[0]); err != nil {
			return fmt.Errorf("%s: %q: %w", a.Position(), a.Name, err)
		}
	}
	return nil
}
