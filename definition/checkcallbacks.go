// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"

	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/template"
)

// callbacks checks who is told what an agent does. It connects to nothing.
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

// callbackPlace reports a callback that would never be called there.
func (c *checker) callbackPlace(a *Agent, point hook.Point) {
	field := "key of callbacks." + string(point)
	switch point {
	case hook.BeforeRun, hook.AfterRun:
		if a.parent != nil {
			c.report(a.at(field), CodeCallback, "%s is about the run as a whole: it belongs to the root", point).
				Hint = strings.Replace(string(point), "run", "agent", 1) + " is about this agent"
		}
	case hook.BeforeIteration, hook.AfterIteration:
		if a.Type != TypeLoop && a.Type != "" {
			c.report(a.at(field), CodeCallback, "%s is about the iterations of a loop, and %q is %s agent", point, a.Name, article(a.Type))
		}
	case hook.BeforeModel, hook.AfterModel, hook.BeforeTool, hook.AfterTool:
		switch {
		case a.Type == TypeLLM || a.Type == "" || a.incomplete():
		case !a.Type.Workflow():
			c.report(a.at(field), CodeCallback, "%s is about agents that ask a model, and %q is %s agent", point, a.Name, article(a.Type))
		case !a.asksModel():
			c.warn(a.at(field), CodeCallback, "%s is never called: no agent in %q asks a model", point, a.Name)
		}
	}
}

func (c *checker) callback(a *Agent, point hook.Point, cb *Callback) {
	if cb.Veto && !point.Before() {
		c.report(a.at(cb.field+".veto"), CodeCallback, "what is over cannot be stopped: veto is for callbacks before something").
			Hint = strings.Replace(string(point), "after_", "before_", 1) + " can veto; on_error: fail makes a failure of this one count"
	}
	if cb.Func != "" && cb.Veto {
		c.warn(a.at(cb.field+".veto"), CodeCallback, "veto says nothing of a Go function: it stops what it is told of by an error").
			Hint = "leave it out"
	}
	if cb.Webhook == "" {
		if _, given := a.nodes[cb.field+".secret_env"]; given {
			c.report(a.at(cb.field+".secret_env"), CodeConflict, "secret_env belongs to a webhook")
		}
	} else if _, err := hook.CheckURL(cb.Webhook); err != nil {
		c.report(a.at(cb.field+".webhook"), CodeCallback, "%v", err)
	} else {
		c.asItStands(a, cb.field+".webhook", cb.Webhook)
	}
	for i, arg := range cb.Command {
		c.asItStands(a, index(cb.field+".command", i), arg)
	}
}

// asItStands reports placeholders where there are none.
func (c *checker) asItStands(a *Agent, field, text string) {
	t, err := template.Parse(text, template.Options{Dialect: template.Mustache})
	if err != nil {
		return
	}
	for _, ref := range t.Keys() {
		c.report(c.inField(a, field, ref.Line, ref.Column), CodeCallback, "{{%s}} stays as it is: a callback has no placeholders", ref.Name).
			Hint = "what there is to know is in the event, as JSON"
		return
	}
}
