// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

const queueDoc = "task queue of the workers that do the step, on a Temporal cluster: with the files, environment, keys " +
	"and network of their machine, see refrain worker --steps; where the run is driven if left out"

var queueRows = []row[Agent]{field("task_queue", queueDoc, plain(queueShape, (*reader).queue),
	func(a *Agent) *string { return &a.TaskQueue })}

// longestQueue is how many characters the name of a task queue can have.
const longestQueue = 200

func queueShape() shape {
	return &jsonschema.Schema{Type: "string", MinLength: new(1), MaxLength: new(longestQueue), Title: "text"}
}

func (r *reader) queue(n *source.Node, what string) (string, bool) {
	text, ok := r.text(n, what)
	switch {
	case !ok:
	case text == "":
		r.report(r.src.Of(n), CodeValue, "%s is empty", what).Hint = "leave it out for a step that is done where the " +
			"run is driven"
	case utf8.RuneCountInString(text) > longestQueue:
		r.report(r.src.Of(n), CodeValue, "%s is longer than %d characters", what, longestQueue)
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }):
		r.report(r.src.Of(n), CodeName, "%s contains a line break or another character that cannot be displayed", what)
	}
	return text, ok
}

// queue is where a step is done. Stand-ins are here.
func (cfg *BuildConfig) queue(a *Agent) elsewhere.Queue {
	if a.TaskQueue == "" || cfg.StandIns.Agent != nil {
		return elsewhere.Queue{}
	}
	return elsewhere.Queue{Name: a.TaskQueue, Dispatcher: cfg.Elsewhere}
}

// resolveQueue reports a step that nobody would do.
func (b *builder) resolveQueue(l *loader, a *Agent) {
	if b.cfg.queue(a).Name == "" || b.cfg.Elsewhere != nil {
		return
	}
	l.report(a.at("task_queue"), CodeTask, "%q is to be done by the workers of the task queue %q, which this process "+
		"does not reach", a.Name, a.TaskQueue).Hint = "run it on a Temporal cluster, with --temporal ADDRESS, or " +
		"leave task_queue out to do the step here"
}

// askedModel is the model of an agent: one of those that are open, or one that workers open.
func (b *builder) askedModel(a *Agent, name string) model.LLM {
	q := b.cfg.queue(a)
	if q.Name == "" {
		return b.models[name]
	}
	called := name
	if _, rest, err := provider.Find(name); err == nil {
		called = rest
	}
	return elsewhere.NewModel(q, name, called)
}
