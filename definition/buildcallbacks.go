// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// hooks are those of one agent.
type hooks map[hook.Point][]*hook.Hook

// call tells one after the other, until one has an error.
func (hs hooks) call(ctx agent.InvocationContext, ev hook.Event) error {
	for _, h := range hs[ev.Type] {
		if err := h.Call(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

// resolveHooks makes the hooks of an agent, and reports what they need and is not
// there.
func (b *builder) resolveHooks(l *loader, a *Agent) {
	if b.cfg.StandIns.NoCallbacks {
		return
	}
	for _, point := range hook.Points() {
		for i := range a.Callbacks[point] {
			cb := &a.Callbacks[point][i]
			cfg := hook.Config{Timeout: cb.Timeout, Veto: cb.Veto, OnError: cb.OnError, Failed: b.cfg.CallbackFailed}
			h, problem := b.hook(cb, cfg)
			if h == nil {
				p := l.report(a.at(cb.field), CodeCallback, "%s", problem.message)
				p.Hint = problem.hint
				continue
			}
			if b.hooks[a] == nil {
				b.hooks[a] = make(hooks)
			}
			b.hooks[a][point] = append(b.hooks[a][point], h)
		}
	}
}

// trouble says why there is no hook.
type trouble struct{ message, hint string }

func (b *builder) hook(cb *Callback, cfg hook.Config) (*hook.Hook, trouble) {
	var h *hook.Hook
	var err error
	switch {
	case cb.Webhook != "":
		secret := ""
		if cb.SecretEnv != "" {
			if secret = b.getenv(cb.SecretEnv); secret == "" {
				return nil, trouble{"the webhook is signed with " + cb.SecretEnv + ", which is not set", "set " + cb.SecretEnv + " in the environment"}
			}
			if err := hook.CheckSecret(secret); err != nil {
				return nil, trouble{cb.SecretEnv + ": " + err.Error(), ""}
			}
		}
		h, err = hook.NewWebhook(hook.WebhookConfig{Config: cfg, URL: cb.Webhook, Secret: secret})
	case cb.Command != nil:
		h, err = hook.NewCommand(hook.CommandConfig{Config: cfg, Args: cb.Command, Dir: b.cfg.Root})
	default:
		f := b.cfg.Callbacks[cb.Func]
		if f == nil {
			names := slices.Sorted(maps.Keys(b.cfg.Callbacks))
			hint := "the functions are " + strings.Join(names, ", ")
			if len(names) == 0 {
				hint = "a program in Go gives functions, in BuildConfig.Callbacks; refrain run has none"
			}
			return nil, trouble{"there is no callback function " + quoted(cb.Func), didYouMean(cb.Func, names, "%q", hint)}
		}
		h, err = hook.NewFunc(cb.Func, f, cfg)
	}
	if err != nil {
		return nil, trouble{err.Error(), ""}
	}
	return h, trouble{}
}

// inherited are an agent's hooks with those of the agents around it, from the
// outside to the inside: for points that are about all in an agent.
func (b *builder) inherited(a *Agent) hooks {
	all := make(hooks)
	for ; a != nil; a = a.parent {
		for point, list := range b.hooks[a] {
			all[point] = append(slices.Clone(list), all[point]...)
		}
	}
	return all
}

// around is what is called around an agent.
type around struct {
	before []agent.BeforeAgentCallback
	after  []agent.AfterAgentCallback
}

// around makes the callbacks around an agent. A part of a run that was told is not
// told again when the run is resumed.
func (b *builder) around(a *Agent) (cb around) {
	hs := b.hooks[a]
	add := func(point hook.Point) {
		if hs[point] == nil {
			return
		}
		f := func(ctx agent.Context) (*genai.Content, error) {
			if agent.Replays(ctx) {
				return nil, nil
			}
			ev := eventOf(ctx, point, agent.CallID(ctx))
			if !point.Before() {
				ev.Data.Stop = stopOf(ctx)
			}
			return nil, hs.call(ctx, ev)
		}
		if point.Before() {
			cb.before = append(cb.before, f)
		} else {
			cb.after = append(cb.after, f)
		}
	}
	add(hook.BeforeRun)
	add(hook.BeforeAgent)
	add(hook.AfterAgent)
	add(hook.AfterRun)
	return cb
}

// aroundIterations adds the callbacks of a loop.
func (b *builder) aroundIterations(a *Agent, cfg *loopagent.Config) {
	hs := b.hooks[a]
	if hs[hook.BeforeIteration] != nil {
		cfg.BeforeIteration = append(cfg.BeforeIteration, func(ctx agent.Context, n int) error {
			if agent.Replays(ctx) {
				return nil
			}
			ev := eventOf(ctx, hook.BeforeIteration, agent.CallID(ctx), n)
			ev.Data.Iteration, ev.Data.MaxIterations = n, int(cfg.Plan.MaxIterations)
			return hs.call(ctx, ev)
		})
	}
	if hs[hook.AfterIteration] != nil {
		cfg.AfterIteration = append(cfg.AfterIteration, func(ctx agent.Context, it loop.IterationRecord) error {
			if agent.Replays(ctx) {
				return nil
			}
			ev := eventOf(ctx, hook.AfterIteration, agent.CallID(ctx), it.Number)
			d := &ev.Data
			d.Iteration, d.MaxIterations = it.Number, int(cfg.Plan.MaxIterations)
			d.Score, d.Improvement, d.Rejected, d.Failures = it.Score, it.Delta, it.Rejected, it.Failures
			return hs.call(ctx, ev)
		})
	}
	if hs[hook.AfterRun] != nil {
		cfg.OnStop = func(ctx agent.InvocationContext, rec *loop.StopRecord) {
			if rec.Reason != loop.ReasonError || agent.Replays(ctx) {
				return // nobody calls what is around an agent that failed
			}
			ev := eventOf(ctx, hook.AfterRun, agent.CallID(ctx))
			ev.Data.Stop, ev.Data.Error = string(rec.Reason), rec.String()
			if err := hs.call(ctx, ev); err != nil {
				b.failed(err)
			}
		}
	}
}

// aroundCalls adds the callbacks of an agent that asks a model.
func (b *builder) aroundCalls(a *Agent, cfg *llmagent.Config) {
	hs := b.inherited(a)
	if hs[hook.BeforeModel] != nil {
		cfg.BeforeModelCallbacks = append(cfg.BeforeModelCallbacks, func(ctx agent.CallbackContext, _ *model.LLMRequest) (*model.LLMResponse, error) {
			return nil, hs.call(ctx, modelEvent(ctx, hook.BeforeModel, cfg.Model.Name()))
		})
	}
	if hs[hook.AfterModel] != nil {
		cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks, func(ctx agent.CallbackContext, resp *model.LLMResponse, failed error) (*model.LLMResponse, error) {
			if resp != nil && resp.Partial {
				return nil, nil
			}
			ev := modelEvent(ctx, hook.AfterModel, cfg.Model.Name())
			answered(&ev.Data, resp, failed)
			return nil, hs.call(ctx, ev)
		})
	}
	if hs[hook.BeforeTool] != nil {
		cfg.BeforeToolCallbacks = append(cfg.BeforeToolCallbacks, func(ctx agent.ToolContext, t tool.Tool, args map[string]any) (map[string]any, error) {
			return nil, hs.call(ctx, toolEvent(ctx, hook.BeforeTool, t, args))
		})
	}
	if hs[hook.AfterTool] != nil {
		cfg.AfterToolCallbacks = append(cfg.AfterToolCallbacks, func(ctx agent.ToolContext, t tool.Tool, args, _ map[string]any, failed error) (map[string]any, error) {
			ev := toolEvent(ctx, hook.AfterTool, t, args)
			if failed != nil {
				ev.Data.Error = failed.Error()
			}
			return nil, hs.call(ctx, ev)
		})
	}
}
