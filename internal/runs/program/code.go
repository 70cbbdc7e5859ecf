// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/tool"
)

// Code holds the additions of your own program: Go code that definitions can name, and definitions.
type Code struct {
	// Name is the name of the program; empty means refrain.
	Name string
	// Refrain is that of definition.BuildConfig.
	Refrain string
	// Tools, Toolsets, Agents and Callbacks have the same meaning as in definition.BuildConfig.
	Tools     []tool.Tool
	Toolsets  []tool.Toolset
	Agents    map[string]definition.NewAgent
	Callbacks map[string]hook.Func
	// Descriptions are those of Agents, for the definitions that run them; an agent may have none.
	Descriptions map[string]string
	// Sources are the definitions of the program.
	Sources []Source
}

// Source is a definition in a file system, which also has the files that the definition refers to.
type Source struct {
	FS   fs.FS
	Path string
}

// Text returns a definition that refers to no files.
func Text(text string) Source {
	const file = "definition.yaml"
	return Source{fileSystem(map[string]string{file: text}), file}
}

// Into adds the Go code to a build config.
func (c *Code) Into(cfg *definition.BuildConfig) {
	cfg.Refrain, cfg.Tools, cfg.Toolsets, cfg.Agents, cfg.Callbacks = c.Refrain, c.Tools, c.Toolsets, c.Agents, c.Callbacks
}

// Describe sets the description of an agent.
func (c *Code) Describe(name, description string) {
	if c.Descriptions == nil {
		c.Descriptions = make(map[string]string)
	}
	c.Descriptions[name] = description
}

// Uses returns the field of an agent that names Go code of the program, and a description of that code; both are
// empty if the agent names none.
func (c *Code) Uses(a *definition.Agent) (field, what string) {
	if c.Agents[a.Func] != nil {
		return "func", fmt.Sprintf("the Go agent %q", a.Func)
	}
	for _, all := range a.Callbacks {
		for _, cb := range all {
			if c.Callbacks[cb.Func] != nil {
				return "callbacks", fmt.Sprintf("the Go function %q as a callback", cb.Func)
			}
		}
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if c.HasTool(t.Func) {
				return "tools", fmt.Sprintf("the Go function %q", t.Func)
			}
		}
	}
	return "", ""
}

// HasTool reports whether a tool or a set of tools has the name.
func (c *Code) HasTool(name string) bool {
	return slices.ContainsFunc(c.Tools, func(t tool.Tool) bool { return t.Name() == name }) ||
		slices.ContainsFunc(c.Toolsets, func(s tool.Toolset) bool { return s.Name() == name })
}

// Own returns the definitions of the program by their names: the Sources, and for each Go agent a definition that
// runs it. The error is definition.Problems, or says that two definitions have one name.
func (c *Code) Own() (map[string]Source, error) {
	own := make(map[string]Source)
	for name := range c.Agents {
		text := fmt.Sprintf("name: %[1]q\ntype: func\nfunc: %[1]q\n", name)
		if about := c.Descriptions[name]; about != "" {
			text += fmt.Sprintf("description: %q\n", about)
		}
		own[name] = Text(text)
	}
	for _, src := range c.Sources {
		def, err := new(Program).ReadOwn(src.Path, src)
		if err != nil {
			return nil, err
		}
		if _, twice := own[def.Name]; twice {
			return nil, fmt.Errorf("the program has two definitions, or a definition and an agent, with the name %q: rename one", def.Name)
		}
		own[def.Name] = src
	}
	return own, nil
}

// ReadOwn is Read for a definition of the program itself. name is its name in problems.
func (p *Program) ReadOwn(name string, src Source) (*definition.Definition, error) {
	text, err := fs.ReadFile(src.FS, src.Path)
	if err != nil {
		return nil, fmt.Errorf("read the definition of the program: %w", err)
	}
	return p.ReadIn(src.FS, name, src.Path, text)
}

// OtherProgramError reports that the agents of a run cannot be built, because they belong to another program.
type OtherProgramError struct {
	// Program is the name of the program that started the run.
	Program string
	Err     error
}

// Error returns the reason and the program that can resume the run.
func (e *OtherProgramError) Error() string { return e.Err.Error() + "; " + e.Hint() }

// Hint says which program can resume the run.
func (e *OtherProgramError) Hint() string {
	return fmt.Sprintf("the program %s started the run and has its Go code; resume the run with: %[1]s resume", e.Program)
}

// Unwrap returns the reason.
func (e *OtherProgramError) Unwrap() error { return e.Err }

// Others returns an [*OtherProgramError] if a definition names Go code and another program started the run, because
// that program may have other code by the same name.
func (p *Program) Others(code *Code, def *definition.Definition) error {
	if p.Program == "" || p.Program == code.Name {
		return nil
	}
	for a := range def.Root.All {
		if _, what := code.Uses(a); what != "" {
			return &OtherProgramError{p.Program, fmt.Errorf("agent %q has %s of another program", a.Name, what)}
		}
	}
	return nil
}

// Otherwise adds to an error about agents that cannot be built the name of the program that has them, if it is
// another one.
func (p *Program) Otherwise(code *Code, err error) error {
	if _, is := errors.AsType[definition.Problems](err); is && p.Program != "" && p.Program != code.Name {
		return &OtherProgramError{p.Program, err}
	}
	return err
}
