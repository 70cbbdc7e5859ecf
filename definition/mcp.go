// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// MCP is a tool server: a command to start, or the URL of a running one.
type MCP struct {
	Command []string
	// Env are environment variables for the command, besides the few that programs need. PassEnv names variables
	// whose values are passed on from the environment of the run. The command gets no others.
	Env     map[string]string
	PassEnv []string
	URL     string
	Headers map[string]string
	// Inherit names environment variables of the run. In URL and Headers, ${NAME} stands for the value of one of them.
	Inherit []string
	// Only lists the tools that the model gets, by the server's names; nil means all.
	Only []string
	// Prefix is put before the tools' names for the model.
	Prefix string
	// Confirm lists the tools, by the server's names, that need a person's consent for each call. ConfirmAll means
	// all tools.
	Confirm    []string
	ConfirmAll bool
	// Effect is the effect of the calls on the outside world; empty means what the server declares, or else
	// agent.Idempotent.
	Effect agent.Effect
}

// mcpParts lists the keys of a tool server, which is either a command or a URL.
var mcpParts = parts[MCP]{rows: []row[MCP]{
	field("command", "program to start, with its arguments",
		each(aWords, listing{empty: "give the program and its arguments, or leave it out"}),
		func(m *MCP) *[]string { return &m.Command }),
	special("env", "environment variables: NAME passes one on, NAME=value sets one; or a map", mcpEnvShape,
		takesMCPEnv),
	field("url", "address of a server that is already running", aText, func(m *MCP) *string { return &m.URL }),
	field("headers", "request headers; ${NAME} is a variable that inherit names", named(aWords),
		func(m *MCP) *map[string]string { return &m.Headers }),
	field("inherit", "environment variables that url and headers name as ${NAME}", variableNames, func(m *MCP) *[]string { return &m.Inherit }),
	field("only", "tools that the model gets; all if left out", someTools, func(m *MCP) *[]string { return &m.Only }),
	field("prefix", "prefix of the tools' names for the model", aText, func(m *MCP) *string { return &m.Prefix }),
	special("confirm", "tools that need a person's consent, or true for all",
		func() shape { return schema.Either(schema.YesNo(), someTools.shape()) }, takesConfirm),
	field("effect", "side effect of the calls; the server's own word if left out", anEffect,
		func(m *MCP) *agent.Effect { return &m.Effect }).helped(effectsHint),
}, what: "an MCP server", has: "it has command and env, or url, headers and inherit, and only, prefix, confirm and effect",
	also: func(s shape) {
		s.OneOf = []*jsonschema.Schema{schema.Without("command", "headers", "inherit"), schema.Without("url", "env")}
	}}

// someTools reads a list of names of tools.
var someTools = each(aText, listing{empty: "leave it out, or name tools", unique: true})

// mcp reads how to reach a tool server; nil if it cannot be read.
func (r *reader) mcp(a *Agent, field string, n *source.Node) *MCP {
	a.nodes[field] = n
	m, ok := mcpParts.read(place{r, a, field}, n)
	if !ok {
		return nil
	}
	return m
}

// variable matches the name of an environment variable.
var variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func mcpEnvShape() shape {
	variables := schema.List(schema.Text())
	variables.Items.Pattern = `^[A-Za-z_][A-Za-z0-9_]*(=|$)`
	return schema.Either(variables, schema.MapOf(schema.AnyText()))
}

// takesMCPEnv reads a map of variables, or a list in which NAME passes a variable on and NAME=value sets one.
func takesMCPEnv(p place, n *source.Node, m *MCP) (ok bool) {
	if n.Kind != source.List {
		m.Env, ok = named(aWords).read(p, n)
		return ok
	}
	items, _ := p.items(n, p.field)
	for i, item := range items {
		f := index(p.field, i)
		p.a.nodes[f] = item
		text, ok := p.text(item, f)
		if !ok {
			continue
		}
		name, value, set := strings.Cut(text, "=")
		switch {
		case !variable().MatchString(name):
			p.report(item, CodeValue, "%q is not the name of an environment variable", name).Hint = "write NAME to pass it on, or NAME=value"
		case set:
			if m.Env == nil {
				m.Env = make(map[string]string)
			}
			m.Env[name] = value
		default:
			m.PassEnv = append(m.PassEnv, name)
		}
	}
	return true
}

// takesConfirm reads names of tools, or true for all.
func takesConfirm(p place, n *source.Node, m *MCP) (ok bool) {
	switch {
	case n.Kind == source.List:
		m.Confirm, ok = someTools.read(p, n)
	case n.ShortTag() == "!!bool":
		m.ConfirmAll, ok = p.boolean(n, p.field)
	default:
		p.wrong(n, p.field, "true, or a list of tools")
	}
	return ok
}

// mcp checks the configuration with mcptoolset, which does not connect yet.
func (c *checker) mcp(a *Agent, field string, m *MCP) {
	switch {
	case len(m.Command) > 0 && m.URL != "":
		c.report(a.at(field), CodeConflict, "an MCP server has a command or a url, not both")
	case len(m.Command) == 0 && m.URL == "":
		c.report(a.at(field), CodeMissing, "an MCP server needs a command or a url")
	case m.URL == "" && m.Headers != nil:
		c.report(a.at(field+".headers"), CodeConflict, "headers belong to a url")
	case m.URL == "" && m.Inherit != nil:
		c.report(a.at(field+".inherit"), CodeConflict, "inherit belongs to a url").Hint = "a command gets variables with env: [NAME]"
	case len(m.Command) == 0 && (m.Env != nil || m.PassEnv != nil):
		c.report(a.at(field+".env"), CodeConflict, "env belongs to a command")
	case m.Prefix != "" && !toolName().MatchString(m.Prefix):
		c.report(a.at(field+".prefix"), CodeTool, "the name of a tool cannot begin with %q: "+toolNameRule, m.Prefix)
	default:
		c.confirm(a, field, m)
		for i, arg := range m.Command {
			c.asItStands(a, index(field+".command", i), arg, serverText)
		}
		for _, name := range slices.Sorted(maps.Keys(m.Env)) {
			c.asItStands(a, field+".env."+name, m.Env[name], serverText)
		}
		set, err := mcptoolset.New(m.Config(".", func(string) string { return "x" }))
		if err != nil {
			msg := errors.Unwrap(err).Error()
			if wrong, ok := errors.AsType[*fielderror.Error](err); ok {
				msg = wrong.Message(strings.ToLower)
			}
			c.report(a.at(field), CodeTool, "%s", msg).err = err
			return
		}
		set.Close()
	}
}

// confirm checks that the tools that need consent are in only.
func (c *checker) confirm(a *Agent, field string, m *MCP) {
	for _, name := range m.Confirm {
		if m.Only != nil && !slices.Contains(m.Only, name) {
			c.report(a.at(field+".confirm"), CodeConflict, "confirm names %q, which is not in only", name).
				suggest(meant.Hint(name, m.Only, ""))
		}
	}
}

// noTools takes the place of a tool server.
type noTools string

func (n noTools) Name() string { return "stand-in of " + string(n) }

func (noTools) Tools(agent.ReadonlyContext) ([]tool.Tool, error) { return nil, nil }

// mcp adds the tools of an MCP server to an agent's config.
func (b *builder) mcp(a *Agent, m *MCP, cfg *llmagent.Config) error {
	if b.cfg.StandIns.NoToolServers {
		cfg.Toolsets = append(cfg.Toolsets, noTools(a.Name))
		return nil
	}
	own := m.Config(b.cfg.Root, b.cfg.Getenv)
	own.RoundTripper = b.cfg.Transport
	own.ConnectTimeout = b.cfg.InitTimeout + time.Second // who waits for it says it better
	set, err := mcptoolset.New(own)
	if err != nil {
		return err
	}
	if b.cfg.Cleanup != nil {
		b.cfg.Cleanup(set.Close)
	}
	inTime := &punctual{set, &InitError{Agent: a.Name, What: m.String(), After: b.cfg.InitTimeout}}
	if m.Only != nil {
		cfg.Toolsets = append(cfg.Toolsets, &chosen{Toolset: inTime, prefix: m.Prefix, names: m.Only})
	} else {
		cfg.Toolsets = append(cfg.Toolsets, inTime)
	}
	return nil
}

// String names the server, without parts of its URL that may be a key.
func (m *MCP) String() string {
	if m.URL == "" {
		return fmt.Sprintf("MCP server %q", strings.Join(m.Command, " "))
	}
	u, err := url.Parse(m.URL)
	if err != nil {
		return "MCP server"
	}
	u.RawQuery = ""
	return "MCP server " + strings.NewReplacer("$%7B", "${", "%7D", "}").Replace(u.Redacted())
}

// Variables returns the names of the environment variables whose values the server gets.
func (m *MCP) Variables() []string { return slices.Concat(m.PassEnv, m.Inherit) }

// ServersWithVariables returns the MCP servers to which the agent sends environment variables over HTTP.
func (a *Agent) ServersWithVariables() (servers []*MCP) {
	if a.LLM == nil {
		return nil
	}
	for _, t := range a.LLM.Tools {
		if t.MCP != nil && len(t.MCP.Inherit) > 0 {
			servers = append(servers, t.MCP)
		}
	}
	return servers
}

// Config returns the configuration of the server's toolset. dir is the working directory of its command; getenv returns the
// values of [MCP.Variables].
func (m *MCP) Config(dir string, getenv func(string) string) mcptoolset.Config {
	cfg := mcptoolset.Config{
		Command: slices.Clone(m.Command), Dir: dir, URL: m.URL, Prefix: m.Prefix, RequireConfirmation: m.ConfirmAll,
		Effect: m.Effect,
	}
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		cfg.Env = append(cfg.Env, name+"="+m.Env[name])
	}
	for _, name := range m.Variables() {
		cfg.Env = append(cfg.Env, name+"="+getenv(name))
	}
	if len(m.Headers) > 0 {
		cfg.Headers = make(http.Header)
		for name, v := range m.Headers {
			cfg.Headers.Set(name, v)
		}
	}
	if len(m.Confirm) > 0 {
		names := prefixAll(m.Prefix, m.Confirm)
		cfg.RequireConfirmationProvider = func(name string, _ any) bool { return slices.Contains(names, name) }
	}
	return cfg
}

func prefixAll(prefix string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = prefix + name
	}
	return all
}

// chosen is a toolset whose chosen tools must exist. Without this check an agent would run without a tool whose name
// is mistyped.
type chosen struct {
	tool.Toolset
	prefix string
	names  []string // as the server has them
}

func (c *chosen) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	all, err := c.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	byName, has := make(map[string]tool.Tool), []string{}
	for _, t := range all {
		name := strings.TrimPrefix(t.Name(), c.prefix)
		byName[name] = t
		has = append(has, name)
	}
	some := make([]tool.Tool, len(c.names))
	for i, name := range c.names {
		if some[i] = byName[name]; some[i] == nil {
			return nil, fmt.Errorf("only: the server has no tool %q%s", name, c.meant(name, has))
		}
	}
	return some, nil
}

// meant suggests a tool for a name that the server does not have.
func (c *chosen) meant(name string, has []string) string {
	if own, ok := strings.CutPrefix(name, c.prefix); ok && c.prefix != "" && slices.Contains(has, own) {
		return "; write names without the prefix: " + own
	}
	hint, _ := meant.Hint(name, has, "it has "+strings.Join(has, ", "))
	return " (" + hint + ")"
}
