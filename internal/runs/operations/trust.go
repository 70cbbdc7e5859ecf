// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// Trusts returns an error if a client's definition does anything that it may not do. It may not start programs,
// read a script from outside the folder, use a secret of the server that the config does not allow, or contain
// keys, because the log would then have them.
func (r *Runs) Trusts(p *program.Program, def *definition.Definition, text []byte) error {
	if !r.AllowCommands {
		if def.Workspace != nil { // its setup is a program, and its result is written into the folder, whatever the steps are
			p := problem.New(http.StatusForbidden, "commands", "This server starts no programs for its clients",
				"the definition has a workspace; put it into the server's folder by hand, or start the server with --allow-commands")
			p.Agent, p.Field = def.Root.Name, "workspace"
			return p
		}
		for a := range def.Root.All {
			if field, what := r.starts(a); field != "" {
				p := problem.New(http.StatusForbidden, "commands", "This server starts no programs for its clients",
					"agent %q has %s; put the definition into the server's folder by hand, or start the server with "+
						"--allow-commands", a.Name, what)
				p.Agent, p.Field = a.Name, field
				return p
			}
		}
	}
	for a := range def.Root.All {
		if field, name := r.secretOf(a); name != "" {
			return problem.New(http.StatusForbidden, "secret-env", "This server does not give that variable to definitions of its clients",
				"agent %q has %s: %s; put the definition into the server's folder by hand, or start the server "+
					"with --allow-secret-env %s", a.Name, field, name, name)
		}
	}
	for name := range def.Notify {
		if !slices.Contains(r.AllowSecretEnv, name) {
			return problem.New(http.StatusForbidden, "secret-env", "This server does not give that variable to definitions of its clients",
				"the definition has notify: %s; put the definition into the server's folder by hand, or start the server with "+
					"--allow-secret-env %s", name, name)
		}
	}
	if credential.Token(string(text)) {
		return problem.New(http.StatusUnprocessableEntity, "secret", "The definition contains a key",
			"set it in the environment of the server: the log of a run keeps its definition, and shows it to others")
	}
	for a := range def.Root.All {
		file := filepath.ToSlash(a.Position().File)
		file = strings.TrimPrefix(file, filepath.ToSlash(r.Dir)+"/")
		models := []string{a.Model}
		if a.Loop != nil {
			for _, leg := range a.Loop.OnPlateau {
				models = append(models, leg.Model)
			}
		}
		for _, model := range models {
			if err := r.scriptIsHere(model, path.Dir(file)); err != nil {
				return err
			}
		}
	}
	return r.scriptIsHere(p.Model, ".")
}

// hashes returns the hashes of the definitions in the folder, and of those of the program.
func (r *Runs) hashes() (map[string]bool, error) {
	names, files, err := r.Folder.List()
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool, len(names))
	for _, name := range names {
		p := new(program.Program)
		var def *definition.Definition
		if src, own := r.Folder.ownIn(files[name]); own {
			def, err = p.ReadOwn(name, src)
		} else if text, unreadable := r.Folder.ReadFile(files[name]); unreadable != nil {
			continue
		} else {
			p, def, err = Load(r.Folder.FS(), files[name], text)
		}
		if err == nil {
			known[p.Hash(def, r.Dir)] = true
		}
	}
	return known, nil
}

// asks reports whether the caller of a context needs a person's consent for definitions that start programs.
func (r *Runs) asks(ctx context.Context) bool {
	c := CallerOf(ctx)
	return r.Accepts != nil && c != nil && c.Agent
}

// accepted returns a [*NotAcceptedError] for a program that starts programs or sends variables to servers, that an agent starts or
// continues, and that is new or has changed, or a file that its programs name has, without a person's consent. view has the log of the
// run that it continues; nil for a new one. The log of a run is no proof, because it may come from another machine. What a client has sent
// as a text is not asked about: see [Runs.Trusts].
func (r *Runs) accepted(ctx context.Context, p *program.Program, def *definition.Definition, view *session.View) error {
	if !r.asks(ctx) || p.Untrusted {
		return nil
	}
	what := ""
	if def.Workspace != nil {
		what = "a workspace"
	}
	for a := range def.Root.All {
		if _, starts := r.starts(a); starts != "" {
			what = starts
		}
		if len(a.ServersWithVariables()) > 0 {
			what = "an MCP server that gets environment variables"
		}
	}
	if len(def.Notify) > 0 {
		what = "notifications to addresses in environment variables"
	}
	if what == "" {
		return nil
	}
	hash, run := p.Hash(def, p.Root), ""
	if view != nil {
		var err error
		if hash, err = r.continuedHash(hash, p, view); err != nil {
			return err
		}
		run = view.ID()
	}
	r.consent.Lock()
	known := r.known[hash]
	r.consent.Unlock()
	if known || r.Accepts(hash) {
		return nil
	}
	file := strings.TrimPrefix(filepath.ToSlash(p.File), filepath.ToSlash(r.Dir)+"/")
	e := &NotAcceptedError{Hash: hash, File: file, Run: run, Starts: program.Commands(def), Scripts: program.Scripts(def, p.Root)}
	remedy := "accept it with: refrain trust " + shellword.Of(filepath.FromSlash(p.File))
	switch _, own := r.Folder.Own(p.File); {
	case run != "":
		verb := cmp.Or(p.Program, "refrain")
		remedy = fmt.Sprintf("continue run %s in the folder %s with: %s resume %[1]s, or %[3]s answer %[1]s", run, p.Dir, verb)
	case own:
		remedy = "start the server again"
	}
	e.problem = problem.New(http.StatusForbidden, "not_accepted", "The definition is new or has changed since this server started",
		"it has %s, and it or a file that its programs name is not what the server found when it started; ask the user to look at it, and to %s",
		what, remedy)
	return e
}

// continuedHash returns the hash of what a run does that goes on. It is hash, that of its definition, unless the log of the run says
// more than a person accepts with the definition: that it was imported, other permissions of coding agents, outcomes in place of
// steps, another model or another folder.
func (r *Runs) continuedHash(hash string, p *program.Program, view *session.View) (string, error) {
	imported := runlog.IsImported(view)
	if !imported && p.Permissions == "" && p.Model == "" && len(p.Replace) == 0 && filepath.Clean(p.Root) == filepath.Clean(r.Dir) {
		return hash, nil
	}
	more, err := json.Marshal([]any{hash, view.ID(), imported, p.Permissions, p.Model, p.Replace, p.Root})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(more)
	return hex.EncodeToString(sum[:]), nil
}

// Accepted returns a [*NotAcceptedError] if the caller is an agent that cannot continue a run as it is without a person's consent.
func (r *Runs) Accepted(ctx context.Context, id string) error {
	if !r.asks(ctx) {
		return nil
	}
	view, err := r.Brief(ctx, id, 0)
	var started mark.RunStarted
	if err == nil {
		started, err = supervisor.StartedWith(view)
	}
	if errors.Is(err, supervisor.ErrNotFound) || err == nil && len(started.Program) == 0 {
		return nil // a Go program has started it
	}
	if err != nil {
		return err
	}
	p, err := program.Decode(started)
	if err != nil {
		return noProgram("The run cannot be continued here", err)
	}
	def, err := p.DefinitionFor(&r.Code)
	if err != nil {
		return err
	}
	return r.accepted(ctx, p, def, view)
}

// NotAcceptedError refuses a definition that a person has to accept first. It is a [*problem.Problem], too.
type NotAcceptedError struct {
	// Hash is that of the definition with its files; see [Runs.Accept].
	Hash string
	// File is the file of the definition, and Run the ID of the run that the agent wants to continue, or answer; empty for a new run.
	File, Run string
	// Starts lists the programs that the definition starts, a line each, and Scripts the files that these programs name.
	Starts, Scripts []string

	problem *problem.Problem
}

func (e *NotAcceptedError) Error() string { return e.problem.Error() }

// Unwrap returns the problem.
func (e *NotAcceptedError) Unwrap() error { return e.problem }

// Accept lets the definition with a hash start programs until the server ends: a person has accepted it.
func (r *Runs) Accept(ctx context.Context, e *NotAcceptedError) error {
	return r.change(ctx, "accept definition", e.File, func() error {
		r.consent.Lock()
		defer r.consent.Unlock()
		r.known[e.Hash] = true
		return nil
	})
}

// secretOf returns a variable that an agent uses and may not, and the field that names it: one that signs a webhook,
// or one of Refrain's own that a program is to inherit. Both are empty if there is none.
func (r *Runs) secretOf(a *definition.Agent) (field, name string) {
	refused := func(name string) bool { return !slices.Contains(r.AllowSecretEnv, name) }
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
			// Whoever writes the url gets the variable, whatever its name.
			if i := slices.IndexFunc(t.MCP.Inherit, refused); i >= 0 {
				return "an MCP server with inherit", t.MCP.Inherit[i]
			}
		}
	}
	return "", ""
}

// scriptIsHere refuses a scripted model whose script is not a file of the folder.
func (r *Runs) scriptIsHere(model, dir string) error {
	script, ok := strings.CutPrefix(model, "scripted/")
	if !ok {
		return nil
	}
	script = filepath.ToSlash(script)
	if at := filepath.ToSlash(r.Dir) + "/"; strings.HasPrefix(script, at) {
		script = strings.TrimPrefix(script, at)
	} else {
		script = path.Join(dir, script)
	}
	f, err := r.Folder.Parts().Open(script)
	if err != nil {
		return problem.New(http.StatusForbidden, "script", "The script is not one of the server's folder", "%q", script)
	}
	return f.Close()
}

// starts returns the field of an agent that would start a program, here or elsewhere, or run Go code, and what that is;
// both are empty if nothing does.
func (r *Runs) starts(a *definition.Agent) (field, what string) {
	if field, what = a.Starts(); field == "" {
		field, what = r.Code.Uses(a)
	}
	if field == "" && a.TaskQueue != "" { // what its workers may reach, this server does not know
		return "task_queue", "a task_queue"
	}
	return field, what
}

// Refuses returns why a client may not write a text as the definition in a file, or nil if it may. The present
// text of the file is always accepted, because its author was allowed to write it.
func (r *Runs) Refuses(file string, text []byte) *problem.Problem {
	p, def, err := Load(r.Folder.Parts(), file, text)
	if err != nil {
		return nil // the problems of the text say so
	}
	if err = r.Trusts(p, def, text); err == nil {
		return nil
	}
	if old, err := r.Folder.ReadFile(file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	return problem.Of(err)
}

// transport sends what agents send. Unless the config says otherwise, the addresses are checked
// when the connection is made, after the name was looked up: no name can be pointed elsewhere in
// between, and redirects are checked too. A proxy would connect in its own way, so there is none.
func transport(cfg *Config) http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if cfg.AllowPrivate || !ok {
		return nil
	}
	t = t.Clone()
	t.Proxy = nil
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error { // the internet's addresses only
			if at, err := netip.ParseAddrPort(address); err != nil || !public(at.Addr()) {
				return errPrivate
			}
			return nil
		}}
	t.DialContext = dialer.DialContext
	return t
}

// errPrivate refuses a connection.
var errPrivate = errors.New("the address is one of this machine or of a private network, which agents reach only " +
	"if the server is started with --allow-private")

// Outgoing sends requests as agents may: see [Config.AllowPrivate]. Nil is the default of package http.
func (r *Runs) Outgoing() http.RoundTripper { return r.outgoing }

// Forbidden is the error of a request of [Runs.Outgoing] to an address that agents may not reach.
func (r *Runs) Forbidden() error { return errPrivate }

// MayReach refuses a host that is written as an address that agents may not reach. Names are checked when they are looked up.
func (r *Runs) MayReach(host string) error {
	at, err := netip.ParseAddr(host)
	if r.AllowPrivate || host != "localhost" && (err != nil || public(at)) {
		return nil
	}
	return errPrivate
}

// reserved are ranges that are not the internet's, besides those that package netip knows: of
// carriers, for documentation and tests, and those in which an address of IPv4 is hidden.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

func public(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	return addr.IsGlobalUnicast() && !addr.IsPrivate() &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
}
