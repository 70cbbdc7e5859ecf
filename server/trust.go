// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/child"
	"github.com/refrain-dev/refrain/internal/credential"
	"github.com/refrain-dev/refrain/program"
)

// env is what the server decides about the agents of its runs.
func (s *Server) env() program.Env {
	return program.Env{
		Code: s.cfg.Code, Getenv: s.cfg.Getenv,
		Report:    func(err error) { s.cfg.Log.Warn("a run reports", "error", masked(err.Error())) },
		Transport: s.outgoing, StateLimit: max(0, s.cfg.StateLimit),
		Check: func(p *program.Program, def *definition.Definition) error {
			if !p.Untrusted {
				return nil
			}
			return s.trusts(p, def, nil)
		},
	}
}

// trusts refuses what a definition that came from a client may not do: start programs, read a script
// from outside the folder, use any secret of the server, and bring keys with it, which the log would then have.
func (s *Server) trusts(p *program.Program, def *definition.Definition, text []byte) error {
	if !s.cfg.AllowCommands {
		for a := range def.Root.All {
			if field, what := s.starts(a); field != "" {
				p := fault(http.StatusForbidden, "commands", "This server starts no programs for its clients",
					"agent %q has %s; put the definition into the server's folder by hand, or start the server with "+
						"--allow-commands", a.Name, what)
				p.agent, p.field = a.Name, field
				return p
			}
		}
	}
	for a := range def.Root.All {
		if field, name := s.secretOf(a); name != "" {
			return fault(http.StatusForbidden, "secret-env", "This server does not give that variable to definitions of its clients",
				"agent %q has %s: %s; put the definition into the server's folder by hand, or start the server "+
					"with --allow-secret-env %s", a.Name, field, name, name)
		}
	}
	if credential.Token(string(text)) {
		return fault(http.StatusUnprocessableEntity, "secret", "The definition contains a key",
			"set it in the environment of the server: the log of a run keeps its definition, and shows it to others")
	}
	for a := range def.Root.All {
		file := filepath.ToSlash(a.Position().File)
		file = strings.TrimPrefix(file, filepath.ToSlash(s.cfg.Dir)+"/")
		if err := s.scriptIsHere(a.Model, path.Dir(file)); err != nil {
			return err
		}
	}
	return s.scriptIsHere(p.Model, ".")
}

// secretOf returns a variable that an agent uses and may not, and the field that names it: one that signs a webhook,
// or one of Refrain's own that a program is to inherit. Both are empty if there is none.
func (s *Server) secretOf(a *definition.Agent) (field, name string) {
	refused := func(name string) bool { return !slices.Contains(s.cfg.AllowSecretEnv, name) }
	inherits := func(names []string) string {
		i := slices.IndexFunc(names, func(name string) bool { return refused(name) && (child.Inheritance{}).Withholds(name) })
		if i < 0 {
			return ""
		}
		return names[i]
	}
	for _, callbacks := range a.Callbacks {
		for _, cb := range callbacks {
			if cb.SecretEnv != "" && refused(cb.SecretEnv) {
				return "a webhook with secret_env", cb.SecretEnv
			}
			if name := inherits(cb.Inherit); name != "" {
				return "a callback with inherit", name
			}
		}
	}
	if a.Command != nil {
		if name := inherits(a.Command.Inherit); name != "" {
			return "inherit", name
		}
	}
	if a.LLM != nil {
		for _, t := range a.LLM.Tools {
			if t.MCP == nil {
				continue
			}
			if name := inherits(t.MCP.PassEnv); name != "" {
				return "an MCP server with env", name
			}
		}
	}
	return "", ""
}

// scriptIsHere refuses a scripted model whose script is not a file of the folder.
func (s *Server) scriptIsHere(model, dir string) error {
	script, ok := strings.CutPrefix(model, "scripted/")
	if !ok {
		return nil
	}
	script = filepath.ToSlash(script)
	if at := filepath.ToSlash(s.cfg.Dir) + "/"; strings.HasPrefix(script, at) {
		script = strings.TrimPrefix(script, at)
	} else {
		script = path.Join(dir, script)
	}
	f, err := parts{s.folder.root.FS()}.Open(script)
	if err != nil {
		return fault(http.StatusForbidden, "script", "The script is not one of the server's folder", "%q", script)
	}
	return f.Close()
}

// starts returns the field of an agent that would start a program, here or elsewhere, or run Go code, and what that is;
// both are empty if nothing does.
func (s *Server) starts(a *definition.Agent) (field, what string) {
	if field, what = a.Starts(); field == "" {
		field, what = s.cfg.Code.Uses(a)
	}
	if field == "" && a.TaskQueue != "" { // what its workers may reach, this server does not know
		return "task_queue", "a task_queue"
	}
	return field, what
}

// refuses returns why a text that a client writes would not be taken as the definition in a file; nil if it would. The
// text that the file has already is taken: whoever put it there may do so.
func (s *Server) refuses(file string, text []byte) *problem {
	p, def, err := load(parts{s.folder.root.FS()}, file, text)
	if err != nil {
		return nil // the problems of the text say so
	}
	if err = s.trusts(p, def, text); err == nil {
		return nil
	}
	if old, err := s.folder.readFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return problemOf(err)
}
