// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
)

// A2A is a remote agent, which is called over A2A. AgentCardSource is the field endpoint; [Definition.Build] sets the
// fields that a file cannot have.
type A2A = remoteagent.A2AConfig

var remoteRows = []row[A2A]{
	field("endpoint", "http or https address of the agent or its card; no placeholder in its host", aText, func(x *A2A) *string { return &x.AgentCardSource }).must(),
	field("payload", "message: text, or a map or list, sent as data; the user's message if left out", own(contentShape, (*reader).content), func(x *A2A) *any { return &x.Payload }),
	field("headers", "", named(aWords), func(x *A2A) *map[string]string { return &x.Headers }),
	field("size_limit", "", aSize, func(x *A2A) *int64 { return &x.SizeLimit }),
	field("new_context", "true starts a new conversation each time; otherwise the remote agent remembers this session", aBool,
		func(x *A2A) *bool { return &x.NewContext }),
}

var a2aKind = kind{is: TypeA2A, tells: []string{"endpoint"}, an: true, check: (*checker).remote,
	build:  func(b *builder, a *Agent, cb around) (agent.Agent, error) { return newRemote(a, b.cfg, cb) },
	most:   func(*worst, *Agent) AtMost { return AtMost{Seconds: unbounded} },
	expect: (*expecter).uncounted,
	texts: func(a *Agent, texts map[string]string) template.Dialect {
		for name, v := range a.A2A.Headers {
			texts["headers."+name] = v
		}
		texts["endpoint"] = a.A2A.AgentCardSource
		textsIn(texts, "payload", a.A2A.Payload)
		return template.Mustache
	},
	yields: "read its answer in the loop's stop_when, or in another agent's exit_when",
}

// remote checks the texts of a remote agent one by one, so that each problem has its position, and then the whole
// with remoteagent. It connects to nothing.
func (c *checker) remote(a *Agent) {
	before := len(c.problems)
	c.texts(a)
	if !c.complete(a, before) {
		return
	}
	if e := a.A2A.AgentCardSource; !strings.HasPrefix(e, "http://") && !strings.HasPrefix(e, "https://") {
		c.report(a.at("endpoint"), CodeTask, "endpoint: %q does not begin with http:// or https://", e)
		return
	}
	_, err := newRemote(a, BuildConfig{}, around{})
	c.whole(a, err)
}

// newRemote makes an agent that calls a remote agent.
func newRemote(a *Agent, cfg BuildConfig, cb around) (agent.Agent, error) {
	x := *a.A2A
	x.Name, x.Description, x.BeforeAgentCallbacks, x.AfterAgentCallbacks = a.Name, a.Description, cb.before, cb.after
	x.OutputKey, x.Client, x.Elsewhere = outputKey(a), cfg.client(), cfg.queue(a)
	return remoteagent.NewA2A(x)
}

const queueDoc = "task queue of the workers that do the step, on a Temporal cluster: with the files, environment, keys " +
	"and network of their machine, see refrain worker --steps; where the run is driven if left out"

var queueRows = []row[Agent]{field("task_queue", queueDoc,
	aLine(longestQueue, "leave it out for a step that is done where the run is driven"),
	func(a *Agent) *string { return &a.TaskQueue })}

// longestQueue is the most characters that the name of a task queue can have.
const longestQueue = 200

// queue returns the queue that runs a step. Stand-ins run in this process.
func (cfg *BuildConfig) queue(a *Agent) elsewhere.Queue {
	if a.TaskQueue == "" || cfg.StandIns.Agent != nil {
		return elsewhere.Queue{}
	}
	return elsewhere.Queue{Name: a.TaskQueue, Dispatcher: cfg.Elsewhere}
}

// resolveQueue reports a step that no worker would run.
func (b *builder) resolveQueue(l *loader, a *Agent) {
	if b.cfg.queue(a).Name == "" || b.cfg.Elsewhere != nil {
		return
	}
	l.report(a.at("task_queue"), CodeTask, "%q is to be done by the workers of the task queue %q, which this process "+
		"does not reach", a.Name, a.TaskQueue).Hint = "run it on a Temporal cluster, with --temporal ADDRESS, or " +
		"leave task_queue out to do the step here"
}

// askedModel returns the model of an agent: an open one, or one that workers open.
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
