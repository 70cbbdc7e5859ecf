// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// server starts a tool server or connects to it, and lists its tools. It calls none of them.
func (d *doctor) server(ctx context.Context, def *definition.Definition, a *definition.Agent, m *definition.MCP) {
	at, within := fmt.Sprintf("%s %s, %s", d.from.At(a.Position()), a.Name, m), initTimeout(def)
	for _, name := range m.PassEnv {
		if d.Getenv(name) == "" {
			return // building the agents has already reported the error
		}
		d.secret(name)
	}
	set, err := mcptoolset.New(d.serverConfig(m, within))
	if err != nil {
		d.add("tools", at, foundBroken, "", "%v", err)
		return
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tools, err := set.Tools(plainContext{ctx: bounded})
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		err = &definition.InitError{Agent: a.Name, What: m.String(), After: within}
	}
	closed := set.Close()
	switch {
	case err != nil:
		d.add("tools", at, foundBroken, "start the server by hand to see its output", "%v", err)
		return
	case closed != nil:
		d.add("tools", at, foundBroken, "", "%v", closed)
		return
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name())
	}
	for _, name := range m.Only {
		if !slices.Contains(names, name) {
			d.add("tools", at, foundBroken, "write the names as the server has them, without a prefix",
				"the server has no tool %q; its tools are %s", name, strings.Join(names, ", "))
			return
		}
	}
	d.add("tools", at, foundOK, "", "starts, with %d tools: %s", len(names), strings.Join(names, ", "))
}

// serverConfig returns the configuration with which a run connects to the server.
func (d *doctor) serverConfig(m *definition.MCP, within time.Duration) mcptoolset.Config {
	cfg := mcptoolset.Config{Command: m.Command, URL: m.URL,
		ConnectTimeout: within + time.Second} // longer than the context, which ends first
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		cfg.Env = append(cfg.Env, name+"="+m.Env[name])
	}
	for _, name := range m.PassEnv {
		cfg.Env = append(cfg.Env, name+"="+d.Getenv(name))
	}
	if len(m.Headers) > 0 {
		cfg.Headers = make(http.Header)
		for name, value := range m.Headers {
			cfg.Headers.Set(name, value)
		}
	}
	return cfg
}

// plainContext is a context outside of any turn, which is enough to list tools.
type plainContext struct {
	agent.ReadonlyContext
	ctx context.Context
}

func (c plainContext) Deadline() (time.Time, bool) { return c.ctx.Deadline() }
func (c plainContext) Done() <-chan struct{}       { return c.ctx.Done() }
func (c plainContext) Err() error                  { return c.ctx.Err() }
func (c plainContext) Value(key any) any           { return c.ctx.Value(key) }
