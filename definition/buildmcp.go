// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// mcp adds the tools of an MCP server to an agent's config.
func (b *builder) mcp(a *Agent, m *MCP, cfg *llmagent.Config) error {
	if standIn := b.cfg.StandIns.Toolset; standIn != nil {
		cfg.Toolsets = append(cfg.Toolsets, standIn(a, m))
		return nil
	}
	own := mcpConfig(m, b.cfg.Root)
	own.ConnectTimeout = b.cfg.InitTimeout + time.Second // who waits for it says it better
	for _, name := range m.PassEnv {
		own.Env = append(own.Env, name+"="+b.getenv(name))
	}
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

// String names the server, without what may be a key in its URL.
func (m *MCP) String() string {
	if m.URL == "" {
		return fmt.Sprintf("MCP server %q", strings.Join(m.Command, " "))
	}
	u, err := url.Parse(m.URL)
	if err != nil {
		return "MCP server"
	}
	u.RawQuery = ""
	return "MCP server " + u.Redacted()
}

func mcpConfig(m *MCP, dir string) mcptoolset.Config {
	cfg := mcptoolset.Config{
		Command: slices.Clone(m.Command), Dir: dir, URL: m.URL, Prefix: m.Prefix, RequireConfirmation: m.ConfirmAll, Effect: m.Effect,
	}
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		cfg.Env = append(cfg.Env, name+"="+m.Env[name])
	}
	if len(m.Headers) > 0 {
		cfg.Headers = make(http.Header)
		for name, v := range m.Headers {
			cfg.Headers.Set(name, v)
		}
	}
	if len(m.Confirm) > 0 {
		names := prefixed(m.Prefix, m.Confirm)
		cfg.RequireConfirmationProvider = func(name string, _ any) bool { return slices.Contains(names, name) }
	}
	return cfg
}

func prefixed(prefix string, names []string) []string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = prefix + name
	}
	return all
}

// chosen is a toolset of tools that have to be there: an agent that lacks one
// for a slip of the pen would do without it, and nobody would know.
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

// meant says what may be meant by a name that the server does not have.
func (c *chosen) meant(name string, has []string) string {
	if own, ok := strings.CutPrefix(name, c.prefix); ok && c.prefix != "" && slices.Contains(has, own) {
		return "; write names without the prefix: " + own
	}
	return " (" + didYouMean(name, has, "%q", "it has "+strings.Join(has, ", ")) + ")"
}
