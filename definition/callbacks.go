// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
)

// Callback is a webhook, a command or a Go function that receives an event when something happens
// in a run. One of Webhook, Command and Func is set.
type Callback struct {
	// Webhook is the address to which events are sent. SecretEnv is the environment variable with
	// the secret that signs them; empty sends them unsigned.
	Webhook   string
	SecretEnv string
	// Command is a program with its arguments, which reads the event on its standard input. It runs in the run's
	// root. Inherit names environment variables that the command gets although Refrain withholds them by default.
	Command []string
	Inherit []string
	// Func is the name of one of BuildConfig.Callbacks.
	Func string
	// Timeout limits one call; 0 is hook.DefaultTimeout.
	Timeout time.Duration
	// Veto lets the callback stop the agent, iteration or call that it precedes.
	Veto bool
	// OnError says how the agent continues when the callback fails; empty is the default of package hook.
	OnError hook.OnError

	field string // where it stands, such as callbacks.before_tool[0]
}

func callbacksShape() shape {
	var entries []schema.Entry
	for _, p := range hook.Points() {
		entries = append(entries, schema.Named(string(p), callbackDocs[p], schema.List(schema.By("callback"))))
	}
	return schema.Settings(entries)
}

// callbackDocs say when each callback is called.
var callbackDocs = map[hook.Point]string{
	hook.BeforeRun: "before the run starts; at the root", hook.AfterRun: "after the run ends; at the root",
	hook.BeforeAgent: "before the agent", hook.AfterAgent: "after the agent, unless it failed",
	hook.BeforeIteration: "before each iteration of the loop", hook.AfterIteration: "after each iteration, with its score",
	hook.BeforeModel: "before each model call of the agent or an agent inside it", hook.AfterModel: "after each of them",
	hook.BeforeTool: "before each tool call of the agent or an agent inside it", hook.AfterTool: "after each of them",
}

// callbackKinds lists the kinds of callbacks. A callback has exactly one.
var callbackKinds = []string{"webhook", "command", "func"}

var callbackParts = parts[Callback]{rows: []row[Callback]{
	field("webhook", "http or https address that each event is sent to", aText, func(cb *Callback) *string { return &cb.Webhook }),
	field("secret_env", "environment variable with the secret that signs each message, by Standard Webhooks", secretVariable, func(cb *Callback) *string { return &cb.SecretEnv }),
	field("command", "program with its arguments; it reads the event on its standard input", each(aWords, listing{empty: "leave it out, or name some"}), func(cb *Callback) *[]string { return &cb.Command }),
	field("inherit", "", variableNames, func(cb *Callback) *[]string { return &cb.Inherit }),
	field("func", "name of a Go function", aWord, func(cb *Callback) *string { return &cb.Func }),
	field("timeout", "time limit of a call", aSpan, func(cb *Callback) *time.Duration { return &cb.Timeout }).shown("10s"),
	field("veto", "true lets it stop what is about to happen", aBool, func(cb *Callback) *bool { return &cb.Veto }),
	field("on_error", "after a failure of the callback: fail (the default with veto) or continue", oneWord(hook.Fail, hook.Continue), func(cb *Callback) *hook.OnError { return &cb.OnError }),
}, what: "a callback", has: "it has webhook and secret_env, command and inherit, or func, and timeout, veto and on_error",
	also: func(s shape) {
		s.OneOf = []*jsonschema.Schema{schema.Without("webhook", "inherit"), schema.Without("command", "secret_env"),
			schema.Without("func", "secret_env", "inherit")}
	}}

// aVariable is the kind of the name of an environment variable, and secretVariable that of a variable with a secret.
var (
	aVariable = aText.shaped(variableShape).checked(func(name string) bool { return variable().MatchString(name) },
		notVariable, "a value belongs in env: {NAME: value}")

	secretVariable = aText.shaped(func() shape {
		s := variableShape()
		s.Not = &jsonschema.Schema{Pattern: "^" + secretPrefix}
		return s
	}).checked(func(name string) bool { return variable().MatchString(name) && !strings.HasPrefix(name, secretPrefix) },
		notVariable, "put the secret into a variable, such as HOOK_SECRET, and its name here")

	variableNames = each(aVariable, listing{empty: "leave it out, or name some", unique: true})
)

func variableShape() shape {
	return &jsonschema.Schema{Type: "string", Pattern: variable().String(), Title: "text"}
}

const (
	notVariable = "%[1]s must be the name of an environment variable"
	// secretPrefix begins a secret of Standard Webhooks, which a person may write in place of the name of a variable.
	secretPrefix = "whsec_"
)

// callbacks reads the callbacks of an agent.
func (r *reader) callbacks(a *Agent, n *source.Node) {
	ps, ok := r.pairs(n, "callbacks")
	if !ok {
		return
	}
	for _, p := range ps {
		point := hook.Point(p.key)
		field := "callbacks." + p.key
		a.nodes[field], a.nodes["key of "+field] = p.value, p.at
		if !slices.Contains(hook.Points(), point) {
			r.report(p.at, CodeField, "there is no callback %q", p.key).suggest(meant.Hint(p.key, wordsOf(hook.Points()),
				"the callbacks are "+strings.Join(wordsOf(hook.Points()), ", ")))
			continue
		}
		items, _ := r.items(p.value, field)
		for i, item := range items {
			if r.full() {
				return
			}
			cb, ok := r.callback(a, index(field, i), item)
			if !ok {
				continue
			}
			if a.Callbacks == nil {
				a.Callbacks = make(map[hook.Point][]Callback)
			}
			a.Callbacks[point] = append(a.Callbacks[point], cb)
		}
	}
}

// callback reads one callback; ok is false if it cannot be read.
func (r *reader) callback(a *Agent, field string, n *source.Node) (cb Callback, ok bool) {
	a.nodes[field] = n
	cb, ok = callbackParts.inPlace().read(place{r, a, field}, n)
	cb.field = field
	if n.Kind != source.Map {
		r.hint("write {webhook: https://…}, {command: […]} or {func: name}")
	}
	if !ok {
		return cb, false
	}
	kinds := 0
	for _, kind := range callbackKinds {
		if a.nodes[field+"."+kind] != nil {
			kinds++
		}
	}
	if kinds != 1 {
		r.report(n, CodeValue, "%s must have exactly one of webhook, command and func; it has %d", field, kinds)
	}
	return cb, kinds == 1
}

// callbacks checks the callbacks of an agent. It connects to nothing.
func (c *checker) callbacks(a *Agent) {
	for _, point := range hook.Points() {
		if _, given := a.nodes["callbacks."+string(point)]; !given {
			continue
		}
		c.callbackPlace(a, point)
		for _, cb := range a.Callbacks[point] {
			c.callback(a, point, &cb)
		}
	}
}

// callbackPlace reports a callback that would never be called at its agent.
func (c *checker) callbackPlace(a *Agent, point hook.Point) {
	field := "key of callbacks." + string(point)
	switch point {
	case hook.BeforeRun, hook.AfterRun:
		if a.parent != nil {
			c.report(a.at(field), CodeCallback, "%s is called for the whole run; move it to the root", point).
				Hint = strings.Replace(string(point), "run", "agent", 1) + " is about this agent"
		}
	case hook.BeforeIteration, hook.AfterIteration:
		if a.Type != TypeLoop && a.Type != "" {
			c.report(a.at(field), CodeCallback, "%s is called for the iterations of a loop; %q is %s agent", point,
				a.Name, article(a.Type))
		}
	case hook.BeforeModel, hook.AfterModel, hook.BeforeTool, hook.AfterTool:
		switch {
		case a.Type == TypeLLM || a.Type == "" || a.incomplete():
		case !a.Type.Workflow():
			c.report(a.at(field), CodeCallback, "%s is called for agents that ask a model; %q is %s agent", point,
				a.Name, article(a.Type))
		case !a.asksModel():
			c.warn(a.at(field), CodeCallback, "%s is never called: no agent in %q asks a model", point, a.Name)
		}
	}
}

func (c *checker) callback(a *Agent, point hook.Point, cb *Callback) {
	if cb.Veto && !point.Before() {
		c.report(a.at(cb.field+".veto"), CodeCallback, "veto works only in a callback that is called before something").
			Hint = strings.Replace(string(point), "after_", "before_", 1) +
			" can veto; on_error: fail makes the agent fail when this callback fails"
	}
	if cb.Func != "" && cb.Veto {
		c.warn(a.at(cb.field+".veto"), CodeCallback, "veto has no effect on a Go function, which vetoes by returning "+
			"an error").
			Hint = "leave it out"
	}
	if cb.Webhook == "" {
		if _, given := a.nodes[cb.field+".secret_env"]; given {
			c.report(a.at(cb.field+".secret_env"), CodeConflict, "secret_env belongs to a webhook")
		}
	} else if _, err := hook.CheckURL(cb.Webhook); err != nil {
		c.report(a.at(cb.field+".webhook"), CodeCallback, "%v", err)
	} else {
		c.asItStands(a, cb.field+".webhook", cb.Webhook, callbackText).Severity = SeverityError
	}
	if _, given := a.nodes[cb.field+".inherit"]; given && cb.Command == nil {
		c.report(a.at(cb.field+".inherit"), CodeConflict, "inherit belongs to a command")
	}
	for i, arg := range cb.Command {
		c.asItStands(a, index(cb.field+".command", i), arg, callbackText).Severity = SeverityError
	}
}

// verbatim is a place for texts without placeholders.
type verbatim struct {
	what, code string
	instead    string // where the values are
}

var (
	callbackText = verbatim{"a callback", CodeCallback, "the callback gets its values in the event, as JSON"}
	serverText   = verbatim{"an MCP server", CodeTool, "the server gets values in the calls of its tools"}
)

// asItStands warns of a placeholder in a text in which placeholders are not replaced.
func (c *checker) asItStands(a *Agent, field, text string, v verbatim) *Problem {
	t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
	if err != nil || len(t.Keys()) == 0 {
		return new(Problem)
	}
	ref := t.Keys()[0]
	p := c.warn(a.inField(field, ref.Line, ref.Column), v.code, "{{%s}} is not replaced: %s has no placeholders", ref.Name, v.what)
	p.Hint = v.instead
	return p
}

// hooks has the hooks of one agent.
type hooks map[hook.Point][]*hook.Hook

// call calls one hook after the other, until one returns an error.
func (hs hooks) call(ctx agent.InvocationContext, ev hook.Event) error {
	for _, h := range hs[ev.Type] {
		if err := h.Call(ctx, ev); err != nil {
			return err
		}
	}
	return nil
}

// resolveHooks makes the hooks of an agent, and reports each variable and function that a hook needs and the process
// lacks.
func (b *builder) resolveHooks(l *loader, a *Agent) {
	if b.cfg.StandIns.NoCallbacks {
		return
	}
	for _, point := range hook.Points() {
		for i := range a.Callbacks[point] {
			cb := &a.Callbacks[point][i]
			h, err := b.hook(cb)
			if err != nil {
				l.report(a.at(cb.field), CodeCallback, "%s", err).suggest(b.hookHint(cb))
				continue
			}
			if b.hooks[a] == nil {
				b.hooks[a] = make(hooks)
			}
			b.hooks[a][point] = append(b.hooks[a][point], h)
		}
	}
}

// hook makes a hook. The error says why it cannot, and hookHint what to do.
func (b *builder) hook(cb *Callback) (h *hook.Hook, err error) {
	cfg := hook.Config{Timeout: cb.Timeout, Veto: cb.Veto, OnError: cb.OnError, Failed: b.cfg.CallbackFailed}
	switch {
	case cb.Webhook != "":
		secret := ""
		if cb.SecretEnv != "" {
			if secret = b.cfg.Getenv(cb.SecretEnv); secret == "" {
				return nil, fmt.Errorf("the webhook is signed with %s, which is not set", cb.SecretEnv)
			}
			if err := hook.CheckSecret(secret); err != nil {
				return nil, fmt.Errorf("%s: %w", cb.SecretEnv, err)
			}
		}
		h, err = hook.NewWebhook(hook.WebhookConfig{Config: cfg, URL: cb.Webhook, Secret: secret,
			Client: b.cfg.client()})
	case cb.Command != nil:
		h, err = hook.NewCommand(hook.CommandConfig{Config: cfg, Args: cb.Command, Dir: b.cfg.Root, Inherit: cb.Inherit,
			Withhold: b.cfg.withhold})
	default:
		f := b.cfg.Callbacks[cb.Func]
		if f == nil {
			return nil, fmt.Errorf("there is no callback function %q", cb.Func)
		}
		h, err = hook.NewFunc(cb.Func, f, cfg)
	}
	return h, err
}

// hookHint returns what to do about a hook that cannot be made, with the name that it suggests.
func (b *builder) hookHint(cb *Callback) (hint, suggestion string) {
	switch {
	case cb.Func != "" && b.cfg.Callbacks[cb.Func] == nil:
		return notHere(cb.Func, b.cfg.Callbacks, "functions",
			"a program in Go gives functions, with command.Callback or in BuildConfig.Callbacks; this program has none")
	case cb.SecretEnv != "" && b.cfg.Getenv(cb.SecretEnv) == "":
		return "set " + cb.SecretEnv + " in the environment", ""
	}
	return "", ""
}

// notHere returns the hint for a name of Go code that a program does not have, with the name that it suggests; none is the hint
// for a program that has no code of the kind.
func notHere[T any](name string, has map[string]T, kind, none string) (hint, suggestion string) {
	if len(has) == 0 {
		return none, ""
	}
	names := slices.Sorted(maps.Keys(has))
	return meant.Hint(name, names, "the "+kind+" are "+strings.Join(names, ", "))
}

// inherited returns an agent's hooks with those of the enclosing agents, outermost first, for points that concern all
// agents inside.
func (b *builder) inherited(a *Agent) hooks {
	all := make(hooks)
	for ; a != nil; a = a.parent {
		for point, list := range b.hooks[a] {
			all[point] = append(slices.Clone(list), all[point]...)
		}
	}
	return all
}

// around has the callbacks that are called before and after an agent.
type around struct {
	before []agent.BeforeAgentCallback
	after  []agent.AfterAgentCallback
}

// around makes the callbacks of an agent. A resumed run does not call a callback again for a part of the run that has
// already been reported.
func (b *builder) around(a *Agent) (cb around) {
	hs := b.hooks[a]
	add := func(point hook.Point) {
		if hs[point] == nil {
			return
		}
		f := func(ctx agent.Context) (*genai.Content, error) {
			if drive.At(ctx).IsReplay() {
				return nil, nil
			}
			ev := eventOf(ctx, point, drive.At(ctx).CallID())
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
			if drive.At(ctx).IsReplay() {
				return nil
			}
			ev := eventOf(ctx, hook.BeforeIteration, drive.At(ctx).CallID(), n)
			ev.Data.Iteration, ev.Data.MaxIterations = n, int(cfg.Rules.MaxIterations)
			return hs.call(ctx, ev)
		})
	}
	if hs[hook.AfterIteration] != nil {
		cfg.AfterIteration = append(cfg.AfterIteration, func(ctx agent.Context, it loop.IterationRecord) error {
			if drive.At(ctx).IsReplay() {
				return nil
			}
			ev := eventOf(ctx, hook.AfterIteration, drive.At(ctx).CallID(), it.Number)
			d := &ev.Data
			d.Iteration, d.MaxIterations = it.Number, int(cfg.Rules.MaxIterations)
			d.Score, d.Improvement, d.Rejected, d.Failures = it.Score, it.Delta, it.Rejected, it.Failures
			return hs.call(ctx, ev)
		})
	}
	if hs[hook.AfterRun] != nil {
		cfg.OnStop = func(ctx agent.InvocationContext, rec *loop.StopRecord) {
			if rec.Reason != loop.ReasonError || drive.At(ctx).IsReplay() {
				return // nobody calls what is around an agent that failed
			}
			ev := eventOf(ctx, hook.AfterRun, drive.At(ctx).CallID())
			ev.Data.Stop, ev.Data.Error = string(rec.Reason), rec.String()
			if err := hs.call(ctx, ev); err != nil {
				b.cfg.CallbackFailed(err)
			}
		}
	}
}

// aroundCalls adds the callbacks of an agent that asks a model.
func (b *builder) aroundCalls(a *Agent, cfg *llmagent.Config) {
	hs := b.inherited(a)
	if hs[hook.BeforeModel] != nil {
		cfg.OnModelCalls = append(cfg.OnModelCalls, func(ctx agent.CallbackContext) error {
			return hs.call(ctx, modelEvent(ctx, hook.BeforeModel, cfg.Model.Name()))
		})
	}
	if hs[hook.AfterModel] != nil {
		cfg.AfterModelCallbacks = append(cfg.AfterModelCallbacks,
			func(ctx agent.CallbackContext, resp *model.LLMResponse, failed error) (*model.LLMResponse, error) {
				if resp != nil && resp.Partial {
					return nil, nil
				}
				ev := modelEvent(ctx, hook.AfterModel, cfg.Model.Name())
				setAnswer(&ev.Data, resp, failed)
				return nil, hs.call(ctx, ev)
			})
	}
	if hs[hook.BeforeTool] != nil {
		cfg.BeforeToolCallbacks = append(cfg.BeforeToolCallbacks,
			func(ctx agent.ToolContext, t tool.Tool, args map[string]any) (map[string]any, error) {
				return nil, hs.call(ctx, toolEvent(ctx, hook.BeforeTool, t, args))
			})
	}
	if hs[hook.AfterTool] != nil {
		cfg.AfterToolCallbacks = append(cfg.AfterToolCallbacks,
			func(ctx agent.ToolContext, t tool.Tool, args, _ map[string]any, failed error) (map[string]any, error) {
				ev := toolEvent(ctx, hook.AfterTool, t, args)
				if failed != nil {
					ev.Data.Error = failed.Error()
				}
				return nil, hs.call(ctx, ev)
			})
	}
}

// eventOf returns the event that reports a step. Its ID combines the ID of a call, the point, and numbers where a
// call reaches the point more than once.
func eventOf(ctx agent.InvocationContext, point hook.Point, call string, numbers ...int) hook.Event {
	ev := hook.Event{ID: call + "-" + string(point), Type: point}
	for _, n := range numbers {
		ev.ID += fmt.Sprintf("-%d", n)
	}
	s := ctx.Session()
	ev.Data = hook.Data{
		App: s.AppName(), Session: s.ID(), Run: ctx.InvocationID(), Agent: ctx.Agent().Name(),
		Address: string(drive.At(ctx).Address()),
	}
	if l := drive.At(ctx).Loop(); l != nil {
		ev.Data.Iteration, ev.Data.MaxIterations = l.Iteration, int(l.MaxIterations())
		ev.Data.Score, ev.Data.BestScore = l.Score, l.BestScore
	}
	return ev
}

func modelEvent(ctx agent.Context, point hook.Point, name string) hook.Event {
	n := turnOf(ctx)
	ev := eventOf(ctx, point, drive.At(ctx).CallID(), n)
	ev.Data.Model = &hook.Model{Name: name, Turn: n}
	return ev
}

// setAnswer puts the outcome of a call of a model into d.
func setAnswer(d *hook.Data, resp *model.LLMResponse, failed error) {
	if failed != nil {
		d.Error = failed.Error()
	}
	if resp == nil {
		return
	}
	if resp.ErrorCode != "" {
		d.Error = resp.ErrorCode + ": " + resp.ErrorMessage
	}
	d.Model.FinishReason = string(resp.FinishReason)
	in, _, out := model.Tokens(resp.UsageMetadata)
	d.Model.InputTokens, d.Model.OutputTokens = int(in), int(out)
}

// turnOf counts the model calls in one run of an agent from the events of the session, so that the number is the same
// when the run is resumed.
func turnOf(ctx agent.Context) int {
	n, here := 1, drive.At(ctx).Address()
	evs := ctx.Session().Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		begins := ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted && ev.Address == here
		if begins || ev.InvocationID != ctx.InvocationID() {
			break
		}
		if ev.Address == here && ev.Mark == nil && !ev.Partial && ev.Content != nil && ev.Content.Role == "model" {
			n++
		}
	}
	return n
}

func toolEvent(ctx agent.Context, point hook.Point, t tool.Tool, args map[string]any) hook.Event {
	ev := eventOf(ctx, point, drive.At(ctx).ToolCallID(ctx.FunctionCallID()))
	ev.Data.Tool = &hook.Tool{Name: t.Name(), CallID: ctx.FunctionCallID(), Args: args}
	return ev
}

// stopOf returns the reason why the loop of a step has stopped, if the log records it.
func stopOf(ctx agent.Context) string {
	here := drive.At(ctx).Address()
	evs := ctx.Session().Events()
	for i := evs.Len() - 1; i >= 0; i-- {
		ev := evs.At(i)
		if ev.InvocationID != ctx.InvocationID() || ev.Address != here {
			break
		}
		var rec loop.StopRecord
		if ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped && ev.Mark.Decode(&rec) == nil {
			return string(rec.Reason)
		}
	}
	return ""
}
