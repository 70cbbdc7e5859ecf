// SPDX-License-Identifier: Apache-2.0

// Package loggingplugin prints what a run does to the standard output: messages, agents, model calls,
// tools, events and errors. It is for use while a program is developed; package observe is for telemetry.
//
//	cfg.PluginConfig.Plugins = append(cfg.PluginConfig.Plugins, loggingplugin.MustNew(""))
package loggingplugin

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// New returns the plugin. Each line begins with its name; an empty name means "logging_plugin". The error is always
// nil.
func New(name string) (*plugin.Plugin, error) {
	if name == "" {
		name = "logging_plugin"
	}
	l := logger{name}
	return plugin.New(plugin.Config{
		Name:                  name,
		OnUserMessageCallback: l.userMessage,
		OnEventCallback:       l.event,
		BeforeRunCallback:     l.beforeRun,
		AfterRunCallback:      l.afterRun,
		BeforeAgentCallback:   l.beforeAgent,
		AfterAgentCallback:    l.afterAgent,
		BeforeModelCallback:   l.beforeModel,
		AfterModelCallback:    l.afterModel,
		OnModelErrorCallback:  l.modelError,
		BeforeToolCallback:    l.beforeTool,
		AfterToolCallback:     l.afterTool,
		OnToolErrorCallback:   l.toolError,
	})
}

// MustNew returns the plugin of [New] without an error.
func MustNew(name string) *plugin.Plugin {
	p, err := New(name)
	if err != nil {
		panic(err)
	}
	return p
}

type logger struct{ name string }

// most is the largest number of characters of a text that a line shows.
const most = 200

// print writes a line. Texts of models and tools cannot begin another one, nor command a terminal.
func (l logger) print(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "[%s] %s\n", l.name, brief.Clean(fmt.Sprintf(format, args...)))
}

// words are a content in few words.
func words(c *genai.Content) string {
	if c == nil {
		return "nothing"
	}
	var all []string
	for _, p := range c.Parts {
		switch {
		case p == nil:
		case p.Text != "":
			all = append(all, fmt.Sprintf("%q", brief.Line(p.Text, most)))
		case p.FunctionCall != nil:
			all = append(all, "call of "+p.FunctionCall.Name)
		case p.FunctionResponse != nil:
			all = append(all, "answer of "+p.FunctionResponse.Name)
		default:
			all = append(all, "data")
		}
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

func (l logger) userMessage(ctx agent.InvocationContext, c *genai.Content) (*genai.Content, error) {
	l.print("message of %s in session %s: %s", ctx.Session().UserID(), ctx.Session().ID(), words(c))
	return nil, nil
}

func (l logger) beforeRun(ctx agent.InvocationContext) (*genai.Content, error) {
	l.print("run %s begins with %s", ctx.InvocationID(), ctx.Agent().Name())
	return nil, nil
}

func (l logger) afterRun(ctx agent.InvocationContext) { l.print("run %s ends", ctx.InvocationID()) }

func (l logger) event(_ agent.InvocationContext, ev *session.Event) (*session.Event, error) {
	what := "event"
	if ev.Partial {
		what = "piece of an event"
	}
	l.print("%s of %s: %s", what, ev.Author, words(ev.Content))
	return nil, nil
}

func (l logger) beforeAgent(ctx agent.Context) (*genai.Content, error) {
	l.print("agent %s begins", ctx.AgentName())
	return nil, nil
}

func (l logger) afterAgent(ctx agent.Context) (*genai.Content, error) {
	l.print("agent %s ends", ctx.AgentName())
	return nil, nil
}

func (l logger) beforeModel(ctx agent.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	l.print("%s asks model %s: %d contents, tools: %s", ctx.AgentName(), req.Model, len(req.Contents),
		strings.Join(slices.Sorted(maps.Keys(req.Tools)), ", "))
	return nil, nil
}

func (l logger) afterModel(ctx agent.Context, resp *model.LLMResponse, err error) (*model.LLMResponse, error) {
	switch {
	case err != nil || resp == nil:
	case resp.ErrorCode != "":
		l.print("the model answers %s with error %s: %s", ctx.AgentName(), resp.ErrorCode, brief.Line(resp.ErrorMessage, most))
	case resp.UsageMetadata != nil:
		in, _, out := model.Tokens(resp.UsageMetadata)
		l.print("the model answers %s: %s (%d tokens in, %d out)", ctx.AgentName(), words(resp.Content), in, out)
	default:
		l.print("the model answers %s: %s", ctx.AgentName(), words(resp.Content))
	}
	return nil, nil
}

func (l logger) modelError(ctx agent.Context, _ *model.LLMRequest, err error) (*model.LLMResponse, error) {
	l.print("the model of %s fails: %v", ctx.AgentName(), err)
	return nil, nil
}

func (l logger) beforeTool(ctx agent.Context, t tool.Tool, args map[string]any) (map[string]any, error) {
	l.print("%s calls tool %s: %s", ctx.AgentName(), t.Name(), brief.Line(fmt.Sprint(args), most))
	return nil, nil
}

func (l logger) afterTool(_ agent.Context, t tool.Tool, _, result map[string]any, err error) (map[string]any, error) {
	if err == nil {
		l.print("tool %s answers: %s", t.Name(), brief.Line(fmt.Sprint(result), most))
	}
	return nil, nil
}

func (l logger) toolError(_ agent.Context, t tool.Tool, _ map[string]any, err error) (map[string]any, error) {
	l.print("tool %s fails: %v", t.Name(), err)
	return nil, nil
}
