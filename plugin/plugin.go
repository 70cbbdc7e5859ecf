// SPDX-License-Identifier: Apache-2.0

// Package plugin bundles callbacks that apply to a whole run: to its agents, model calls and tools.
//
//	p, err := plugin.New(plugin.Config{
//		Name:                "guard",
//		BeforeModelCallback: checkPrompt,
//		BeforeToolCallback:  checkArguments,
//	})
//	if err != nil {
//		return err
//	}
//	r, err := runner.New(runner.Config{
//		AppName: "app", Agent: root, SessionService: sessions,
//		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{p}},
//	})
//
// The plugins of a runner are called in their order, and before the callbacks that an agent has itself. The
// first callback that returns a value that is not nil ends the list: neither later plugins nor the agent's
// own callbacks of that kind are called. An error of a plugin's callback has the same effect as an error of
// the agent's own callback.
//
// Agents that run at the same time call a plugin at the same time. Callbacks therefore lock what they
// share. Only OnEventCallback is called for the events of a run one at a time.
//
// In a resumed run a step that has finished does not call anything. A step that runs again calls its
// callbacks again, but the changes that they made the first time count.
package plugin

import (
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// These callbacks are called once in a run, or once for an event. They must not change the session's state.
type (
	// OnUserMessageCallback is called before the user's message is stored. A content that it returns replaces
	// the message. An error ends the run, and the message is not stored. A resumed run does not call it.
	OnUserMessageCallback func(agent.InvocationContext, *genai.Content) (*genai.Content, error)

	// BeforeRunCallback is called after the user's message is stored and before the first agent runs. A
	// content that it returns is the answer of the run, as an event of that agent; then no agent runs. An
	// error fails the run. A resumed run calls it again.
	BeforeRunCallback func(agent.InvocationContext) (*genai.Content, error)

	// AfterRunCallback is called at the end of each run, even if the run has failed or has lost its
	// consumer. The runner calls it for all plugins.
	AfterRunCallback func(agent.InvocationContext)

	// OnEventCallback is called for each new event of an agent, before the event is stored. It is called for the
	// pieces of a streamed answer too, but not for marks, the user's message, and events that a resumed run has in
	// its log. The event has no ID and no timestamp yet. An event that the callback returns replaces it in the log
	// and for all agents around the one that yielded it. An error fails the agent.
	OnEventCallback func(agent.InvocationContext, *session.Event) (*session.Event, error)
)

// Config describes a plugin for [New]. All callbacks are optional.
type Config struct {
	// Name distinguishes the plugin from others of its runner.
	Name string

	OnUserMessageCallback OnUserMessageCallback
	OnEventCallback       OnEventCallback

	BeforeRunCallback BeforeRunCallback
	AfterRunCallback  AfterRunCallback

	// The agent callbacks are called for each step, whatever its kind of agent.
	BeforeAgentCallback agent.BeforeAgentCallback
	AfterAgentCallback  agent.AfterAgentCallback

	BeforeModelCallback  drive.BeforeModelCallback
	AfterModelCallback   drive.AfterModelCallback
	OnModelErrorCallback drive.OnModelErrorCallback

	BeforeToolCallback  drive.BeforeToolCallback
	AfterToolCallback   drive.AfterToolCallback
	OnToolErrorCallback drive.OnToolErrorCallback

	// CloseFunc releases the plugin's resources. See runner.Runner.Close.
	CloseFunc func() error
}

// Plugin holds the callbacks of one [Config]. Its methods return them; nil means that there is no such callback.
type Plugin struct{ cfg Config }

// New returns a plugin. Its error is always nil.
func New(cfg Config) (*Plugin, error) { return &Plugin{cfg}, nil }

// Name returns the plugin's name.
func (p *Plugin) Name() string { return p.cfg.Name }

// OnUserMessageCallback returns the callback of that name.
func (p *Plugin) OnUserMessageCallback() OnUserMessageCallback { return p.cfg.OnUserMessageCallback }

// OnEventCallback returns the callback of that name.
func (p *Plugin) OnEventCallback() OnEventCallback { return p.cfg.OnEventCallback }

// BeforeRunCallback returns the callback of that name.
func (p *Plugin) BeforeRunCallback() BeforeRunCallback { return p.cfg.BeforeRunCallback }

// AfterRunCallback returns the callback of that name.
func (p *Plugin) AfterRunCallback() AfterRunCallback { return p.cfg.AfterRunCallback }

// BeforeAgentCallback returns the callback of that name.
func (p *Plugin) BeforeAgentCallback() agent.BeforeAgentCallback { return p.cfg.BeforeAgentCallback }

// AfterAgentCallback returns the callback of that name.
func (p *Plugin) AfterAgentCallback() agent.AfterAgentCallback { return p.cfg.AfterAgentCallback }

// BeforeModelCallback returns the callback of that name.
func (p *Plugin) BeforeModelCallback() drive.BeforeModelCallback { return p.cfg.BeforeModelCallback }

// AfterModelCallback returns the callback of that name.
func (p *Plugin) AfterModelCallback() drive.AfterModelCallback { return p.cfg.AfterModelCallback }

// OnModelErrorCallback returns the callback of that name.
func (p *Plugin) OnModelErrorCallback() drive.OnModelErrorCallback { return p.cfg.OnModelErrorCallback }

// BeforeToolCallback returns the callback of that name.
func (p *Plugin) BeforeToolCallback() drive.BeforeToolCallback { return p.cfg.BeforeToolCallback }

// AfterToolCallback returns the callback of that name.
func (p *Plugin) AfterToolCallback() drive.AfterToolCallback { return p.cfg.AfterToolCallback }

// OnToolErrorCallback returns the callback of that name.
func (p *Plugin) OnToolErrorCallback() drive.OnToolErrorCallback { return p.cfg.OnToolErrorCallback }

// Close calls CloseFunc, if there is one, and returns its error.
func (p *Plugin) Close() error {
	if p.cfg.CloseFunc == nil {
		return nil
	}
	return p.cfg.CloseFunc()
}
