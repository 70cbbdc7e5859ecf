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
	"github.com/refrain-dev/refrain/definition/program"
	"github.com/refrain-dev/refrain/internal/credential"
)

// env is what the server decides about the agents of its runs.
func (s *Server) env() program.Env {
	return program.Env{
		Getenv:    s.cfg.Getenv,
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
// from outside the folder, sign webhooks with any secret of the server, and bring keys with it, which the
// log would then have.
func (s *Server) trusts(p *program.Program, def *definition.Definition, text []byte) error {
	if !s.cfg.AllowCommands {
		for a := range def.Root.All {
			if field, what := starts(a); field != "" {
				p := fault(http.StatusForbidden, "commands", "This server starts no programs for its clients",
					"agent %q has %s; put the definition into the server's folder by hand, or start the server with "+
						"--allow-commands", a.Name, what)
				p.agent, p.field = a.Name, field
				return p
			}
		}
	}
	for a := range def.Root.All {
		if name := s.signs(a); name != "" {
			return fault(http.StatusForbidden, "secret-env", "This server does not sign webhooks of its clients with that variable",
				"agent %q has a webhook with secret_env: %s; put the definition into the server's folder by hand, or start the server "+
					"with --allow-secret-env %s", a.Name, name, name)
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

// signs returns a variable that signs a webhook of an agent and is not allowed to; empty if none does.
func (s *Server) signs(a *definition.Agent) string {
	for _, callbacks := range a.Callbacks {
		for _, cb := range callbacks {
			if cb.SecretEnv != "" && !slices.Contains(s.cfg.AllowSecretEnv, cb.SecretEnv) {
				return cb.SecretEnv
			}
		}
	}
	return ""
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

// starts returns the field of an agent that would start a program, here or elsewhere, and what that is; both are empty
// if nothing does.
func starts(a *definition.Agent) (field, what string) {
	if field, what = a.Starts(); field == "" && a.TaskQueue != "" { // what its workers may reach, this server does not know
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
