// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition/internal/source"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/expr"
)

// checker looks at a definition that was read.
type checker struct {
	*loader
	def   *Definition
	names map[string]*Agent
	keys  map[string]string // keys of the state, and who gives or writes each
	reads []read
	// spaced are placeholders with spaces in their names, which are no reads.
	spaced []read
	// scripts are what is wrong with scripts of models, by path; nil if nothing is.
	scripts map[string]error

	writers map[string][]*Agent // the agents that write each

	programs int // expressions seen
	braces   int // in texts seen
}

// check reports what is wrong with a definition as a whole.
func (l *loader) check(d *Definition) {
	c := &checker{loader: l, def: d, names: make(map[string]*Agent), keys: make(map[string]string), writers: make(map[string][]*Agent), scripts: make(map[string]error)}
	for a := range d.Root.All {
		if c.full() {
			break
		}
		c.name(a)
		c.subAgents(a)
		c.output(a)
		c.errorPolicy(a)
		c.exit(a)
		c.model(a)
		c.unpriced(a)
		c.stepPlace(a)
		c.cacheKey(a)
		if c.programs += programs(a); c.programs > maxPrograms {
			c.report(a.src.Of(a.node), CodeFile, "the definition has more than %d expressions", maxPrograms)
			return
		}
		if a.Type == TypeLoop {
			c.loop(a)
		}
		c.task(a)
		c.once(a)
		c.callbacks(a)
	}
	c.modelCalls(d.Root)
	c.declared()
	for a := range d.Root.All {
		c.written(a)
	}
	for a := range d.Root.All {
		c.edited(a)
	}
	c.readsKnown()
	c.noSpaces()
	c.inputsRead()
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			c.untold(a)
		}
	}
	c.keeps()
	c.caches()
	c.worthKnowing()
}

// programs counts the expressions of an agent.
func programs(a *Agent) int {
	n := 0
	if a.ExitWhen != "" {
		n++
	}
	if a.Expression != nil {
		n += len(a.Expression.Set) + 1
	}
	for field := range a.nodes {
		if a.Loop != nil && strings.HasPrefix(field, "stop_when") {
			n++
		}
	}
	return n
}

func (c *checker) name(a *Agent) {
	if _, given := a.nodes["name"]; !given {
		c.report(a.at("name"), CodeMissing, "%s agent needs a name", articleOr(a.Type))
		return
	}
	at := a.at("name")
	switch problem := vocabulary.AgentName(a.Name); {
	case source.IsNull(a.nodes["name"]) || !source.PlainText(a.nodes["name"]):
	case problem != "":
		c.report(at, CodeName, "%s", problem).Hint = nameHint(a.Name)
	case c.names[a.Name] != nil:
		first := positionOf(c.names[a.Name].at("name"))
		if alias := a.aliased(); alias != nil {
			c.report(a.src.Of(alias), CodeSameName, "two agents are called %q, the first in %s", a.Name, first).
				Hint = "an alias stands for the same agent again: write it out, with another name"
			return
		}
		c.report(at, CodeSameName, "two agents are called %q, the first in %s", a.Name, first)
	default:
		c.names[a.Name] = a
	}
}

// aliased is the alias that stands for the agent or for one around it; nil if it
// is written where it is.
func (a *Agent) aliased() *yaml.Node {
	for ; a != nil; a = a.parent {
		if a.alias != nil {
			return a.alias
		}
	}
	return nil
}

func articleOr(t Type) string {
	if t == "" {
		return "an"
	}
	return article(t)
}

// nameHint is a name like the one that cannot be.
func nameHint(name string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	clean = strings.TrimLeftFunc(clean, func(r rune) bool { return !unicode.IsLetter(r) })
	if clean = strings.TrimRight(clean, "_"); clean == "" || clean == name || vocabulary.AgentName(clean) != "" {
		return ""
	}
	return fmt.Sprintf("%q would do", clean)
}

func (c *checker) subAgents(a *Agent) {
	if !a.Type.Workflow() || len(a.SubAgents) > 0 {
		return
	}
	n, given := a.nodes["sub_agents"]
	switch {
	case !given:
		c.report(a.src.Of(a.node), CodeNoSteps, "%s agent needs sub_agents", article(a.Type))
	case len(source.Deref(n).Content) == 0 && !source.IsNull(n):
		c.report(a.at("sub_agents"), CodeNoSteps, "%s agent needs at least one sub-agent", article(a.Type))
	}
}

// output checks where a result goes.
func (c *checker) output(a *Agent) {
	loops := a.parent != nil && a.parent.Type == TypeLoop
	if a.OutputKey == LoopOutput && !loops {
		c.report(a.at("output_key"), CodeNoLoop, "loop_output marks the finalizer of a loop, and this is not a step of one")
	}
	if a.Type != TypeLoop {
		return
	}
	var first *Agent
	steps := 0
	for _, sub := range a.SubAgents {
		switch {
		case sub.OutputKey != LoopOutput:
			steps++
		case first != nil:
			c.report(sub.at("output_key"), CodeFinalizer, "the loop %q has two finalizers: %q and %q", a.Name, first.Name, sub.Name).
				Hint = "give loop_output to one of its sub-agents"
		default:
			first = sub
		}
	}
	if first == nil {
		return
	}
	if steps == 0 && !a.incomplete() {
		c.report(first.at("output_key"), CodeFinalizer, "the loop %q has no steps besides its finalizer %q", a.Name, first.Name)
	}
	if first.Type == TypeExpression {
		c.report(first.at("output_key"), CodeFinalizer, "the finalizer %q says nothing: expressions have no words", first.Name).
			Hint = `use text: "{{key}}"`
	}
}

func (c *checker) errorPolicy(a *Agent) {
	if a.OnError == "" || a.Type == TypeLoop || a.parent != nil && a.parent.Type == TypeLoop {
		return
	}
	field := "on_error"
	if _, given := a.nodes[field]; !given {
		field = "continue_on_error"
	}
	c.report(a.at(field), CodeNoLoop, "%s works on loops and on their steps; %q is neither", field, a.Name)
}

// hintedMessage splits "message (did you mean …)" in two.
func hintedMessage(msg string) (text, hint string) {
	if i := strings.LastIndex(msg, " (did you mean "); i >= 0 && strings.HasSuffix(msg, ")") {
		return msg[:i], strings.TrimSuffix(msg[i+2:], ")")
	}
	return msg, ""
}

// lengths are what other languages call size.
var lengths = []string{"len", "length", "lenght", "count"}

// inside reports the errors of an expression at their places in a field.
func (c *checker) inside(a *Agent, field string, errs expr.Errors) {
	n := a.nodes[field]
	for _, e := range errs {
		at := a.at(field)
		if n != nil {
			at = a.src.Within(n, e.Line, e.Column)
		}
		msg, hint := hintedMessage(e.Msg)
		p := c.report(at, CodeExpr, "%s: %s", field, msg)
		p.err, p.Hint = e, hint
		if name, ok := strings.CutPrefix(msg, "nothing is called "); ok && hint == "" && slices.Contains(lengths, strings.Trim(name, `"`)) {
			p.Hint = "how long a text or a list is, is size(x)"
		} else if ok && hint == "" {
			p.Hint = fmt.Sprintf("a text in an expression needs quotes of its own: '%s'; a key of the state is state.%s",
				strings.Trim(name, `"`), strings.Trim(name, `"`))
		}
	}
}
