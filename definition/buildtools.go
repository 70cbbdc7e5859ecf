// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// function is a tool or a toolset of a Go program.
type function struct {
	tool tool.Tool
	set  tool.Toolset
}

// functions are the config's, by name.
func (cfg *BuildConfig) functions() (map[string]function, error) {
	all := make(map[string]function)
	add := func(name string, f function) error {
		_, twice := all[name]
		switch {
		case isExit(name):
			return fmt.Errorf("functions for a definition: %s is not one: every definition has it", name)
		case twice:
			return fmt.Errorf("functions for a definition: two are called %q", name)
		}
		all[name] = f
		return nil
	}
	if slices.Contains(cfg.Tools, nil) || slices.Contains(cfg.Toolsets, nil) {
		return nil, errors.New("functions for a definition: one is nil")
	}
	for _, t := range cfg.Tools {
		if err := add(t.Name(), function{tool: t}); err != nil {
			return nil, err
		}
	}
	for _, s := range cfg.Toolsets {
		if err := add(s.Name(), function{set: s}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// resolveTools reports the functions and the variables that an agent's tools
// need and that are not there.
func (b *builder) resolveTools(l *loader, a *Agent) {
	for _, t := range a.LLM.Tools {
		if _, ok := b.functions[t.Func]; t.Func != "" && !ok {
			names := slices.Sorted(maps.Keys(b.functions))
			hint := "the functions are " + strings.Join(names, ", ")
			if len(names) == 0 {
				hint = "a program in Go gives functions, in BuildConfig.Tools; refrain run has none, so write {command: […], name: …} or {mcp: {…}}"
			}
			l.report(a.at(t.field), CodeTool, "there is no function %q", t.Func).Hint = didYouMean(t.Func, names, "%q", hint)
		}
		if t.MCP == nil {
			continue
		}
		for _, name := range t.MCP.PassEnv {
			if b.getenv(name) == "" {
				l.report(a.at(t.field+".env"), CodeTool, "the MCP server needs %s, which is not set", name).Hint = "set " + name + " in the environment"
			}
		}
	}
}

func (b *builder) getenv(name string) string {
	if b.cfg.Getenv != nil {
		return b.cfg.Getenv(name)
	}
	return os.Getenv(name)
}

// tool adds a tool of an agent to its config.
func (b *builder) tool(a *Agent, t Tool, cfg *llmagent.Config) error {
	switch {
	case t.Exit != "":
		return exitTool(a, t.Exit, cfg)
	case t.Func != "":
		if f := b.functions[t.Func]; f.set != nil {
			cfg.Toolsets = append(cfg.Toolsets, f.set)
		} else {
			cfg.Tools = append(cfg.Tools, f.tool)
		}
		return nil
	case t.MCP != nil:
		return b.mcp(a, t.MCP, cfg)
	}
	inner, err := b.build(t.Agent)
	if err != nil {
		return err
	}
	made := agenttool.New(inner, nil)
	if t.Parameters != nil {
		if made, err = withParameters(t, made); err != nil {
			return err
		}
	}
	cfg.Tools = append(cfg.Tools, made)
	return nil
}

func exitTool(a *Agent, name string, cfg *llmagent.Config) error {
	t, err := exitlooptool.NewWith(exitlooptool.Config{Name: name, Criteria: criteria(a.loopAround().Loop)})
	if err != nil {
		return err
	}
	cfg.Tools = append(cfg.Tools, t)
	return nil
}

// withParameters is an agent that is a tool, asked in JSON of that shape: the
// text of the JSON is its request.
func withParameters(t Tool, asked tool.Tool) (tool.Tool, error) {
	f, ok := asked.(tool.Function)
	if !ok {
		return nil, fmt.Errorf("tool %q: a %T %w", asked.Name(), asked, tool.ErrUnusable)
	}
	return functiontool.New(functiontool.Config{Name: f.Name(), Description: f.Description(), InputSchema: t.Parameters, Effect: tool.EffectOf(asked), Reconcile: reconcileCommand(t, asked)},
		func(ctx tool.Context, in map[string]any) (any, error) {
			request, err := json.Marshal(in)
			if err != nil {
				return nil, err
			}
			answer, err := f.Run(ctx, map[string]any{"request": string(request)})
			if err != nil || !t.Agent.Command.JSON {
				return answer, err
			}
			text, _ := answer["result"].(string)
			return session.PlainJSON([]byte(text))
		})
}
