// SPDX-License-Identifier: Apache-2.0

// Package doctor checks that a machine has what a run needs.
package doctor

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/files/workspace"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/runs/notify/channel"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model/provider"
)

// The results of a check.
const (
	foundOK     = "ok"
	foundNote   = "note"   // informative; nothing depends on it on this machine
	foundBroken = "broken" // a run fails because of it
)

// check is the result of one check.
type check struct {
	Area   string `json:"area"`
	Name   string `json:"name"`
	Found  string `json:"found"`
	Detail string `json:"detail"`
	// Fix says what to do; empty if nothing needs to be done.
	Fix string `json:"fix,omitzero"`
}

// doctor collects the results of checks.
type doctor struct {
	*term.Env
	ask     bool
	timeout time.Duration     // 0 means the default of each check
	secrets map[string]string // secret values that are never shown, with the names of their variables
	checks  []check
	from    deffile.Origin // maps places in the definition to places in the given file
}

// New returns a doctor without results. A timeout of 0 means the default of each check.
func New(e *term.Env, ask bool, timeout time.Duration) *doctor {
	d := &doctor{Env: e, ask: ask, timeout: timeout, secrets: make(map[string]string)}
	for _, p := range provider.All() {
		for _, name := range append(p.Keys, p.Variables...) {
			switch {
			case strings.HasSuffix(name, "_KEY"):
				d.secret(name)
			case strings.HasSuffix(name, "_URL"):
				d.address(name)
			}
		}
	}
	return d
}

// Examine checks the machine, and what the definition in the first of files needs.
func (d *doctor) Examine(ctx context.Context, store string, files []string) {
	d.system()
	d.store(ctx, store)
	d.copies()
	d.providers()
	if len(files) > 0 {
		d.file(ctx, files[0])
	} else if name := d.Getenv("REFRAIN_MODEL"); name != "" {
		d.defaultModel(ctx, name)
	}
}

func (d *doctor) add(area, name, found, fix, format string, args ...any) {
	d.checks = append(d.checks, check{
		area, brief.Line(d.hush(name), 120), found, brief.Line(d.hush(fmt.Sprintf(format, args...)), 600),
		brief.Line(d.hush(fix), 300),
	})
}

// hush replaces secret values by the names of their variables, because the answer of a server may contain a key.
func (d *doctor) hush(s string) string {
	longest := func(a, b string) int { return len(b) - len(a) } // longest first, because one value may be a part of another
	for _, value := range slices.SortedFunc(maps.Keys(d.secrets), longest) {
		s = strings.ReplaceAll(s, value, "["+d.secrets[value]+"]")
	}
	return s
}

// secret hides the value of a variable. A very short value cannot be a key, and hiding it would garble other text.
func (d *doctor) secret(name string) {
	if v := d.Getenv(name); len(v) >= 6 {
		d.secrets[v] = name
	}
}

// address hides the name and the password in an address. It hides an address that cannot be parsed
// as a whole, as any part of it may be the password.
func (d *doctor) address(name string) {
	v := d.Getenv(name)
	u, err := url.Parse(v)
	switch {
	case err != nil:
		d.secret(name)
	case u.User != nil:
		if password, ok := u.User.Password(); ok && len(password) >= 4 {
			d.secrets[password] = "password in " + name
			d.secrets[url.QueryEscape(password)] = "password in " + name
		}
		d.secrets[u.User.String()+"@"] = "user in " + name
	}
}

// Broken returns the number of failed checks.
func (d *doctor) Broken() int {
	n := 0
	for _, c := range d.checks {
		if c.Found == foundBroken {
			n++
		}
	}
	return n
}

// Write writes the results, for people or as JSON.
func (d *doctor) Write(asJSON bool) error {
	return term.Report(d.Env, asJSON, map[string]any{"ok": d.Broken() == 0, "checks": d.checks}, d.print)
}

func (d *doctor) print(w io.Writer) error {
	var b strings.Builder
	area := ""
	for _, c := range d.checks {
		if c.Area != area {
			area = c.Area
			fmt.Fprintln(&b, area)
		}
		fmt.Fprintf(&b, "  %-6s  %s: %s\n", c.Found, c.Name, c.Detail)
		if c.Fix != "" {
			fmt.Fprintf(&b, "          %s\n", c.Fix)
		}
	}
	switch n := d.Broken(); n {
	case 0:
		b.WriteString("Nothing that is needed is broken.\n")
	case 1:
		b.WriteString("One thing is broken.\n")
	default:
		fmt.Fprintf(&b, "%d things are broken.\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// providers reports which providers have a key. A missing key is not a failure here, because the checks of the models report
// the keys that a definition needs.
func (d *doctor) providers() {
	for _, p := range provider.All() {
		var set []string
		for _, name := range append(p.Keys, p.Variables...) {
			if d.Getenv(name) != "" {
				set = append(set, name)
			}
		}
		is := "is set"
		if len(set) > 1 {
			is = "are set"
		}
		switch missing := p.Missing(d.Getenv); {
		case missing != nil:
			d.add("providers", p.Name, foundNote, "", "no key; its models need %s", strings.Join(missing, " or "))
		case len(set) > 0:
			d.add("providers", p.Name, foundOK, "", "%s %s", strings.Join(set, ", "), is)
		default:
			d.add("providers", p.Name, foundOK, "", "needs no key: %s", p.About)
		}
	}
}

// file checks the definition and what it needs.
func (d *doctor) file(ctx context.Context, name string) {
	def, from, err := deffile.LoadWithOrigin(d.Env, name)
	d.from = from
	if err != nil {
		d.add("definition", name, foundBroken, "refrain validate "+shellword.Of(name)+" lists the problems",
			"not valid: %s", firstLine(err))
		return
	}
	if n := len(def.Warnings()); n > 0 {
		d.add("definition", name, foundOK, "refrain check "+shellword.Of(name)+" lists them",
			"%s is valid, with %s", def.Name, brief.Count(n, "warning"))
	} else {
		d.add("definition", name, foundOK, "", "%s is valid", def.Name)
	}
	d.models(ctx, def)
	d.receivers(def)
	d.programs(ctx, def, ".")
	for a := range def.Root.All {
		if a.Type != definition.TypeLLM {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.MCP != nil {
				d.server(ctx, def, a, t.MCP)
			}
		}
	}
}

// receivers checks the addresses of notify, without sending anything.
func (d *doctor) receivers(def *definition.Definition) {
	for _, name := range slices.Sorted(maps.Keys(def.Notify)) {
		only := definition.Notify{name: def.Notify[name]}
		ch, err := channel.Parse(d.Getenv(name))
		switch {
		case d.Getenv(name) == "":
			d.add("notify", name, foundBroken, "export "+name+"=ADDRESS", "the variable with the address is not set")
		case err != nil:
			d.add("notify", name, foundBroken, "", "%v", err)
		default:
			d.add("notify", name, foundOK, "", "%s; notifies %s", ch, only)
		}
	}
}

// programs checks the programs that the steps of a definition run, and the files in root that they work on.
func (d *doctor) programs(ctx context.Context, def *definition.Definition, root string) {
	if w := def.Workspace; w != nil {
		from := filepath.Join(root, w.From)
		err := workspace.CheckGit(ctx)
		if err == nil && (w.Result.Branch != "" || w.Base == workspace.Head) {
			err = workspace.CheckRepository(ctx, from)
		}
		if err != nil {
			d.add("workspace", from, foundBroken, "", "%v", err)
		} else {
			d.add("workspace", from, foundOK, "", "git can copy the folder")
		}
	}
	for a := range def.Root.All {
		d.command(a)
		d.conversation(a)
		d.sandbox(a)
	}
}

// Lacks returns what a definition needs and the machine lacks, each with its fix; empty if all programs and files exist.
func (d *doctor) Lacks(ctx context.Context, file string) (lacks []string) {
	def, from, err := deffile.LoadWithOrigin(d.Env, file)
	if err != nil {
		return []string{firstLine(err)}
	}
	d.from = from
	d.programs(ctx, def, filepath.Dir(file))
	for _, c := range d.checks {
		if what := strings.TrimSuffix(c.Detail+"; "+c.Fix, "; "); c.Found == foundBroken && !slices.Contains(lacks, what) {
			lacks = append(lacks, what)
		}
	}
	return lacks
}

// firstLine returns the first line of an error.
func firstLine(err error) string {
	line, _, more := strings.Cut(err.Error(), "\n")
	if more {
		line += " …"
	}
	return line
}
