// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// mcp adds the tools of an MCP server to an agent's config.
func (b *builder) mcp(m *MCP, cfg *llmagent.Config) error {
	own := mcpConfig(m, b.cfg.Root)
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
	if m.Only != nil {
		cfg.Toolsets = append(cfg.Toolsets, &chosen{Toolset: set, names: prefixed(m.Prefix, m.Only)})
	} else {
		cfg.Toolsets = append(cfg.Toolsets, set)
	}
	return nil
}

func mcpConfig(m *MCP, dir string) mcptoolset.Config {
	cfg := mcptoolset.Config{
		Command: slices.Clone(m.Command), Dir: dir, URL: m.URL, Prefix: m.Prefix, RequireConfirmation: m.ConfirmAll,
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
	names []string
}

func (c *chosen) Tools(ctx agent.ReadonlyContext) ([]tool.Tool, error) {
	all, err := c.Toolset.Tools(ctx)
	if err != nil {
		return nil, err
	}
	byName, has := make(map[string]tool.Tool), []string{}
	for _, t := range all {
		byName[t.Name()] = t
		has = append(has, t.Name())
	}
	some := make([]tool.Tool, len(c.names))
	for i, name := range c.names {
		if some[i] = byName[name]; some[i] == nil {
			return nil, fmt.Errorf("only: the server has no tool %q (%s)", name, didYouMean(name, has, "%q", "it has "+strings.Join(has, ", ")))
		}
	}
	return some, nil
}
