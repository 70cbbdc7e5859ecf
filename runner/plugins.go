// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/plugin"
	"github.com/refrain-dev/refrain/session"
)

// PluginConfig has the plugins of a runner, in the order in which they are called.
type PluginConfig struct {
	Plugins []*plugin.Plugin
	// CloseTimeout is how long [PluginConfig.Close] waits for the plugins; 0 means five seconds.
	CloseTimeout time.Duration
}

// closeTimeout is the default of PluginConfig.CloseTimeout.
const closeTimeout = 5 * time.Second

func (c PluginConfig) check() error {
	for i, p := range c.Plugins {
		if p == nil {
			return fmt.Errorf("plugin %d is nil; remove it", i+1)
		}
		if slices.ContainsFunc(c.Plugins[:i], func(o *plugin.Plugin) bool { return o.Name() == p.Name() }) {
			return fmt.Errorf("two plugins have the name %q; give each one a name of its own", p.Name())
		}
	}
	return nil
}

// callbacks returns the callbacks of the plugins; nil without plugins.
func (c PluginConfig) callbacks() *drive.Callbacks {
	if len(c.Plugins) == 0 {
		return nil
	}
	all := new(drive.Callbacks)
	for _, p := range c.Plugins {
		add[func(agent.InvocationContext) (*genai.Content, error)](&all.BeforeRun, p.BeforeRunCallback())
		add(&all.BeforeAgent, p.BeforeAgentCallback())
		add(&all.AfterAgent, p.AfterAgentCallback())
		add(&all.BeforeModel, p.BeforeModelCallback())
		add(&all.AfterModel, p.AfterModelCallback())
		add(&all.OnModelError, p.OnModelErrorCallback())
		add(&all.BeforeTool, p.BeforeToolCallback())
		add(&all.AfterTool, p.AfterToolCallback())
		add(&all.OnToolError, p.OnToolErrorCallback())
		add[func(agent.InvocationContext, *session.Event) (*session.Event, error)](&all.OnEvent, p.OnEventCallback())
	}
	return all
}

// add adds a callback that is not nil.
func add[F any](list *[]F, f F) {
	if !reflect.ValueOf(f).IsNil() {
		*list = append(*list, f)
	}
}

// receive passes the user's message to the plugins. It returns the message that they make of it, and the agent that
// the message is for.
func (r *Runner) receive(ctx context.Context, run *run) (a agent.Agent, msg *genai.Content, err error) {
	a, err = r.targetAgent(run.view.Events(), run.msg)
	if err != nil || run.msg == nil {
		return a, run.msg, err
	}
	if msg, err = r.runMessageCallbacks(ctx, a, run.id, run.view, run.msg); err == nil && msg != run.msg {
		a, err = r.targetAgent(run.view.Events(), msg)
	}
	return a, msg, err
}

// Receive passes the user's message in ev to the plugins, as the beginning of [Runner.Run] does, and sets in ev the
// message that the plugins make of it. It is for a run of the session s that another process drives, or that starts
// later by [Runner.Resume]. It stores no event; with SaveInputBlobsAsArtifacts it stores the files of the message. It
// fails with the error of a plugin that refuses the message, and with that of the artifact service.
func (r *Runner) Receive(ctx context.Context, s session.Session, ev *session.Event, cfg agent.RunConfig) (err error) {
	if ev.Content == nil {
		return nil
	}
	view := session.ViewOf(s)
	if ev.Content, err = r.runMessageCallbacks(ctx, r.cfg.Agent, ev.InvocationID, view, ev.Content); err != nil {
		return err
	}
	return r.saveFiles(ctx, view, ev, cfg)
}

// runMessageCallbacks gives a message for an agent to the plugins. The first one that returns a message ends the list.
func (r *Runner) runMessageCallbacks(ctx context.Context, a agent.Agent, id string, view *session.View, msg *genai.Content) (_ *genai.Content, err error) {
	if r.callbacks == nil {
		return msg, nil
	}
	ictx := drive.WithoutStep(drive.NewInvocation(ctx, drive.Invocation{
		ID: id, Session: view, UserContent: msg, Artifacts: r.artifacts(view), Memory: r.memory(view),
	}), a)
	for _, p := range r.cfg.PluginConfig.Plugins {
		f := p.OnUserMessageCallback()
		if f == nil {
			continue
		}
		var other *genai.Content
		err := callPlugin("on user message callback of plugin", p.Name(), func() (err error) {
			other, err = f(ictx, msg)
			return err
		})
		if err != nil {
			return nil, err
		}
		if other != nil {
			return other, nil
		}
	}
	return msg, nil
}

// callPlugin calls code of a plugin or an observer. The error, which may be a panic, names the callback and its owner.
func callPlugin(what, whose string, f func() error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s %q: %w", what, whose, err)
		}
	}()
	defer agent.Recover(&err)
	return f()
}

// afterRun tells the plugins that a run has ended. It returns their panics as an error.
func (r *Runner) afterRun(ctx agent.InvocationContext, a agent.Agent) (err error) {
	for _, p := range r.cfg.PluginConfig.Plugins {
		if f := p.AfterRunCallback(); f != nil {
			err = errors.Join(err, callPlugin("after run callback of plugin", p.Name(), func() error {
				f(drive.WithoutStep(ctx, a))
				return nil
			}))
		}
	}
	return err
}

// Close closes the runner's plugins: see [PluginConfig.Close].
func (r *Runner) Close() error { return r.cfg.PluginConfig.Close() }

// Close closes the plugins, the last one first. Call it when no run is under way and none will follow, once for
// runners that share plugins. It returns the errors of the plugins, and an error if they have not closed after
// CloseTimeout. It does not wait longer than that.
func (c PluginConfig) Close() error {
	if len(c.Plugins) == 0 {
		return nil
	}
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, p := range slices.Backward(c.Plugins) {
			errs = append(errs, callPlugin("close plugin", p.Name(), p.Close))
		}
		done <- errors.Join(errs...)
	}()
	limit := cmp.Or(c.CloseTimeout, closeTimeout)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("the plugins have not closed after %s", limit)
	}
}
