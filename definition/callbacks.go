// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/hook"
)

// Callback is somebody who is told what a run does: a webhook, a command or a Go
// function. One of Webhook, Command and Func is set.
type Callback struct {
	// Webhook is the address that an event is sent to, and SecretEnv the
	// environment variable with the secret that signs it; empty signs nothing.
	Webhook   string
	SecretEnv string
	// Command is a program with its arguments, which reads the event on its
	// standard input. It runs in the run's root.
	Command []string
	// Func is one of [BuildConfig]'s Callbacks.
	Func string
	// Timeout is how long it may take; 0 is hook.DefaultTimeout.
	Timeout time.Duration
	// Veto lets it stop what it is told of before it is done.
	Veto bool
	// OnError says what follows when it fails; empty is the default of hook.
	OnError hook.OnError

	field string // where it stands, such as callbacks.before_tool[0]
}

var onErrors = []string{string(hook.Fail), string(hook.Continue)}

func callbacksShape() shape {
	var entries []entry
	for _, p := range hook.Points() {
		entries = append(entries, entry{string(p), callbackDocs[p], list(by("callback"))})
	}
	return settings(entries)
}

// callbackDocs say when each callback is called.
var callbackDocs = map[hook.Point]string{
	hook.BeforeRun: "before the run starts; at the root", hook.AfterRun: "after the run ends; at the root",
	hook.BeforeAgent: "before the agent", hook.AfterAgent: "after the agent, unless it failed",
	hook.BeforeIteration: "before each iteration of the loop", hook.AfterIteration: "after each iteration, with its score",
	hook.BeforeModel: "before each model call of the agent or an agent inside it", hook.AfterModel: "after each",
	hook.BeforeTool: "before each tool call of the agent or an agent inside it", hook.AfterTool: "after each",
}

// callbackShape is one callback.
func callbackShape() shape {
	s := settings([]entry{
		{"webhook", "the address that is told, of http or https", text()},
		{"secret_env", "the environment variable with the secret that signs what is sent, as Standard Webhooks say", &jsonschema.Schema{
			Type: "string", Pattern: variable.String(), Not: &jsonschema.Schema{Pattern: "^" + secretPrefix}, Title: "text",
		}},
		{"command", "the program, with its arguments, that reads what is told", filled(anyText())},
		{"func", "the name of a Go function", &jsonschema.Schema{Type: "string", MinLength: new(1), Title: "text"}},
		{"timeout", "how long it may take", preset(duration(), "10s")},
		{"veto", "true lets it stop what is about to be done", yesNo()},
		{"on_error", "what follows when it cannot be told: fail (the default with veto) or continue", oneOf(onErrors...)},
	})
	s.OneOf = []*jsonschema.Schema{{Required: []string{"webhook"}}, without("command", "secret_env"), without("func", "secret_env")}
	return s
}

var callbackFields = callbackShape().PropertyOrder

// callbacks reads who is told what an agent does.
func (r *reader) callbacks(a *Agent, n *yaml.Node) {
	ps, ok := r.pairs(n, "callbacks")
	if !ok {
		return
	}
	for _, p := range ps {
		point := hook.Point(p.key)
		field := "callbacks." + p.key
		a.nodes[field], a.nodes["key of "+field] = p.value, p.at
		if !slices.Contains(hook.Points(), point) {
			r.report(r.src.Of(p.at), CodeField, "there is no callback %q", p.key).Hint = didYouMean(p.key, pointNames(), "%q", "they are "+strings.Join(pointNames(), ", "))
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

func pointNames() []string {
	var names []string
	for _, p := range hook.Points() {
		names = append(names, string(p))
	}
	return names
}

// callback reads one; ok is false if it cannot be read.
func (r *reader) callback(a *Agent, field string, n *yaml.Node) (cb Callback, ok bool) {
	a.nodes[field] = n
	ps, ok := r.pairs(n, field)
	if !ok {
		r.hint("write {webhook: https://…}, {command: […]} or {func: name}")
		return cb, false
	}
	cb.field = field
	before, kinds := len(r.problems), 0
	for _, p := range ps {
		f := field + "." + p.key
		a.nodes[f] = p.value
		switch p.key {
		case "webhook":
			cb.Webhook, _ = r.text(p.value, f)
			kinds++
		case "secret_env":
			cb.SecretEnv = r.variableName(p.value, f)
		case "command":
			cb.Command = r.several(a, p.value, f, r.words)
			kinds++
		case "func":
			if cb.Func, _ = r.text(p.value, f); cb.Func == "" && source.PlainText(p.value) {
				r.report(r.src.Of(p.value), CodeValue, "%s is empty", f)
			}
			kinds++
		case "timeout":
			cb.Timeout, _ = r.duration(p.value, f)
		case "veto":
			cb.Veto, _ = r.boolean(p.value, f)
		case "on_error":
			text, ok := r.text(p.value, f)
			if ok && !slices.Contains(onErrors, text) {
				r.report(r.src.Of(p.value), CodeValue, "%s must be fail or continue, got %q", f, text).Hint = didYouMean(text, onErrors, "%q", "")
			}
			cb.OnError = hook.OnError(text)
		default:
			r.report(r.src.Of(p.at), CodeField, "unknown field %q of a callback", p.key).
				Hint = didYouMean(p.key, callbackFields, "%q", "it has webhook and secret_env, command, or func, and timeout, veto and on_error")
		}
	}
	if kinds != 1 && len(r.problems) == before {
		r.report(r.src.Of(n), CodeValue, "%s must be one of webhook, command and func, and it is %d of them", field, kinds)
	}
	return cb, len(r.problems) == before
}

// secretPrefix is how a secret of Standard Webhooks may begin, which somebody may
// write where the name of a variable is wanted.
const secretPrefix = "whsec_"

// variableName reads the name of an environment variable.
func (r *reader) variableName(n *yaml.Node, what string) string {
	text, ok := r.text(n, what)
	if ok && (!variable.MatchString(text) || strings.HasPrefix(text, secretPrefix)) {
		r.report(r.src.Of(n), CodeValue, "%s must be the name of an environment variable", what).
			Hint = "put the secret into a variable, such as HOOK_SECRET, and its name here"
		return ""
	}
	return text
}
