// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// anEffect is an effect of a task on the outside world, and anInnerEffect that of a task that only computes.
var (
	anEffect      = oneWord(agent.Pure, agent.Idempotent, agent.AtMostOnce, agent.Transactional)
	anInnerEffect = oneWord(agent.Pure, agent.Transactional)
)

const effectsHint = "pure changes nothing, idempotent may run twice, at_most_once must not run twice, transactional " +
	"changes only the state"

// taskEffect reads the effect of a task of the agent's type.
func (r *reader) taskEffect(a *Agent, n *source.Node) {
	of := anEffect
	if a.Type.kind().inner {
		of = anInnerEffect
	} else if source.Deref(n).Kind == source.Map {
		r.effectMap(a, n)
		return
	}
	e, ok := of.read(place{r, a, "effect"}, n)
	if !ok && slices.Contains(anEffect.shape().Enum, any(n.Value)) {
		r.hint("this agent has no effect outside of the run")
	} else if !ok {
		r.hint(effectsHint)
	}
	a.Effect = e
}

// once refuses retries of a step that must not run twice.
func (c *checker) once(a *Agent) {
	if a.Effect == agent.AtMostOnce {
		c.retried(a, a, "effect")
	}
	if a.Reconcile != nil {
		c.reconciles(a)
	}
	if a.LLM == nil {
		return
	}
	for _, t := range a.LLM.Tools {
		if t.MCP != nil && t.MCP.Effect == agent.AtMostOnce {
			c.retried(a, a, t.field+".effect")
		}
	}
}

// retried reports a retry, of the agent itself or of an enclosing agent, that would run the agent again.
func (c *checker) retried(a, by *Agent, field string) {
	for ; by != nil; by = by.parent {
		if by.Step == nil || by.Step.Retry == nil || by.Step.Retry.Attempts < 2 {
			continue
		}
		if by == a {
			c.report(a.at("retry"), CodeConflict, "retry would run the step again, but %s forbids that: a failed "+
				"attempt may have had its effect", effectWords(field)).
				Hint = "remove retry; or give effect: idempotent if the step may run twice, or recognizes the ID " +
				"of a call"
			return
		}
		c.report(a.at(field), CodeConflict, "%q must not run twice, but retry of %q, which contains it, may run "+
			"it again", a.Name, by.Name).
			Hint = "give retry to each of the other steps in it instead"
		return
	}
}

func effectWords(field string) string {
	if field == "effect" {
		return "effect: at_most_once"
	}
	return "effect: at_most_once of a tool"
}

const effectDoc = "side effect, which decides what follows when the step is cut off: idempotent (default of commands " +
	"and requests), pure, at_most_once or transactional; or {at_most_once: true, reconcile: {command} or {url}}, " +
	"which finds out whether the step took place"

var effectRows = []row[Agent]{does("effect", effectDoc, func() shape {
	return schema.Either(anEffect.shape(), effectParts.shape())
}, (*reader).taskEffect).shown(agent.Idempotent)}

var innerEffectRows = []row[Agent]{does("effect", "", anInnerEffect.shape,
	(*reader).taskEffect).alone()}

// checkedEffect is an effect with the task that finds out whether the step took place.
type checkedEffect struct {
	once bool
	find *Agent
}

const reconcileDoc = "after a crash, finds out whether the step took place: a command (exit code 0: it did, and its " +
	"output is the result; 1: it did not) or a request (2xx: it did; 404, 410: it did not); after any other outcome " +
	"a person is asked. {{call_id}} is the call's ID"

var effectParts = parts[checkedEffect]{rows: []row[checkedEffect]{
	field("at_most_once", "true: the step must not run twice", onlyTrue, func(e *checkedEffect) *bool { return &e.once }),
	field("reconcile", reconcileDoc, own(reconcileShape, (*reader).reconcile), func(e *checkedEffect) **Agent { return &e.find }),
}, has: "it has at_most_once and reconcile", also: func(s shape) { s.Required = []string{"at_most_once", "reconcile"} }}

var onlyTrue = aBool.shaped(func() shape {
	var yes any = true
	return &jsonschema.Schema{Const: &yes, Title: "true"}
}).checked(func(v bool) bool { return v }, "%[1]s must be true", "write effect: idempotent for a step that may run twice")

// reconcileShape returns the shape of a command or a request that finds out whether a step took place. Its fields are
// those of command and http agents.
func reconcileShape() shape {
	s := schema.Settings(nil)
	for _, t := range []Type{TypeCommand, TypeHTTP} {
		for _, name := range reconcileFields(t) {
			_, w, _ := rowFor(t, name)
			schema.Set(s, name, schema.Described(w.shape(), w.Doc))
		}
	}
	s.Properties["command"].MinItems = new(1)
	schema.Set(s, "timeout", schema.Described(schema.Duration(), "how long it may take; 30s for a request if left out"))
	s.OneOf = []*jsonschema.Schema{{Required: []string{"command"}}, {Required: []string{"url"}}}
	return s
}

// reconcileFields returns the fields of such a command or request besides timeout: all but those that say how to read
// its outcome, which is fixed here.
func reconcileFields(t Type) []string {
	names := rowNames(commandRows)
	if t == TypeHTTP {
		names = rowNames(httpRows)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return name == "ok_exit_codes" || name == "ok_status" || name == "json"
	})
}

const reconcileHint = "write reconcile: {command: [program, \"{{call_id}}\"]} or {url: https://…/{{call_id}}}"

// effectMap reads an effect that is a map with reconcile.
func (r *reader) effectMap(a *Agent, n *source.Node) {
	e, _ := effectParts.inPlace().read(place{r, a, "effect"}, n)
	given := a.nodes["effect.at_most_once"] != nil && a.nodes["effect.reconcile"] != nil
	if source.Deref(n).Kind == source.Map && !given {
		r.report(n, CodeMissing, "effect as a map needs at_most_once: true and reconcile").Hint = reconcileHint + "; or a word: " + effectsHint
	}
	a.Effect, a.Reconcile = agent.AtMostOnce, e.find
}

// reconcile reads the task that finds out whether another task took place; nil if it cannot be read. Its templates
// can read the same names as those of the other task.
func (r *reader) reconcile(a *Agent, n *source.Node, what string) (*Agent, bool) {
	ps, ok := r.pairs(n, what)
	if !ok {
		r.hint(reconcileHint)
		return nil, false
	}
	find := &Agent{Name: a.Name, def: a.def, parent: a.parent, tool: a.tool, src: r.src, node: source.Deref(n),
		nodes: map[string]*source.Node{"name": a.nodes["name"]}}
	has := func(field string) bool { return slices.ContainsFunc(ps, func(p pair) bool { return p.key == field }) }
	before := len(r.problems)
	switch find.Type = TypeCommand; {
	case has("command") == has("url"):
		r.report(n, CodeValue, "%s must be one of command and url", what).Hint = reconcileHint
		return nil, false
	case has("url"):
		find.Type = TypeHTTP
	}
	known := reconcileFields(find.Type)
	begin(find)
	for _, p := range ps {
		find.nodes[p.key] = p.value
		switch {
		case p.key == "timeout" && find.Type == TypeHTTP:
			find.HTTP.Timeout, _ = r.duration(p.value, what+".timeout")
		case p.key == "timeout":
			find.Command.Timeout, _ = r.duration(p.value, what+".timeout")
		case !slices.Contains(known, p.key):
			r.report(p.at, CodeField, "unknown field %q of %s with %s", p.key, what, known[0]).
				suggest(meant.Hint(p.key, append(slices.Clone(known), "timeout"), ""))
		case source.IsNull(p.value):
			r.report(p.value, CodeValue, "%s.%s has no value", what, p.key).Hint = "leave the field out, or give it one"
		default:
			r.field(find, p)
		}
	}
	if find.broken = len(r.problems) > before; find.broken {
		return nil, false
	}
	return find, true
}

// reconciles checks the task that finds out whether the agent's task took place.
func (c *checker) reconciles(a *Agent) {
	c.task(a.Reconcile)
	c.reads = slices.DeleteFunc(c.reads, func(rd read) bool {
		return rd.agent == a.Reconcile && rd.name == taskagent.KeyCallID
	})
	c.misplaced = slices.DeleteFunc(c.misplaced, func(m misplacement) bool { // it has a shape there
		return m.agent == a.Reconcile && m.name == taskagent.KeyCallID && m.field != "command[0]"
	})
}

// reconcileOf makes the function that finds out whether a task took place. Its parts were checked before.
func reconcileOf(a *Agent, cfg BuildConfig) agent.Reconcile {
	find := a.Reconcile
	if find == nil {
		return nil
	}
	base := taskagent.Config{Name: a.Name}
	var made agent.Reconcile
	var err error
	if find.Type == TypeCommand {
		made, err = taskagent.NewCommandReconcile(commandConfig(find, base, cfg))
	} else {
		made, err = taskagent.NewHTTPReconcile(httpConfig(find, base, cfg))
	}
	if err != nil {
		return func(agent.InvocationContext, agent.Doubt) (agent.Reconciliation, error) {
			return agent.Reconciliation{}, err
		}
	}
	return made
}

// reconcileCommand makes that function for a command that is a tool and gets its arguments as JSON.
func reconcileCommand(t Tool, asked tool.Tool) agent.Reconcile {
	find := tool.ReconcileOf(asked)
	if find == nil {
		return nil
	}
	return func(ctx agent.InvocationContext, call agent.Doubt) (agent.Reconciliation, error) {
		request, err := json.Marshal(call.Args)
		if err != nil {
			return agent.Reconciliation{}, err
		}
		call.Args = map[string]any{"request": string(request)}
		found, err := find(ctx, call)
		result, happened := found.Happened()
		if err != nil || !happened || !t.Agent.Command.JSON {
			return found, err
		}
		answer, _ := result.(map[string]any)
		text, _ := answer["result"].(string)
		v, err := session.PlainJSON([]byte(text))
		if err != nil {
			return agent.Reconciliation{}, err
		}
		return agent.Happened(v), nil
	}
}
