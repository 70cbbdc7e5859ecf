// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/expr"
)

// checker checks a definition that was read.
type checker struct {
	*loader
	def   *Definition
	names map[string]*Agent
	keys  map[string]string // keys of the state, and who gives or writes each
	reads []read
	// misplaced lists placeholders whose values may be any text, in places that need a declared shape.
	misplaced []misplacement
	// spaced lists placeholders with spaces in their names, which read no key.
	spaced  []read
	scripts map[string]readScript // of models, by path

	writers map[string][]*Agent // the agents that write each

	programs int // expressions seen
	braces   int // in texts seen
}

// check reports the problems of a definition as a whole.
func (l *loader) check(d *Definition) *checker {
	c := &checker{loader: l, def: d, names: make(map[string]*Agent), keys: make(map[string]string),
		writers: make(map[string][]*Agent), scripts: make(map[string]readScript)}
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
			return c
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
	c.workspace()
	for a := range d.Root.All {
		c.written(a)
	}
	for a := range d.Root.All {
		c.edited(a)
	}
	c.shaped()
	c.readsKnown()
	c.shapeless()
	c.noSpaces()
	c.inputsRead()
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			c.untold(a)
			c.compares(a)
		}
	}
	c.keeps()
	c.noteSubjects()
	c.caches()
	for a := range d.Root.All {
		c.bestOf(a)
		c.race(a)
	}
	c.worthKnowing()
	return c
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

// worthKnowing adds notes about fields that are correct but may surprise.
func (c *checker) worthKnowing() {
	if c.problems.count(SeverityError) > 0 {
		return
	}
	c.afterExit()
	c.unread()
	c.needsRequest()
	c.unheard()
	c.unsafe()
	c.sharedKeys()
	for a := range c.def.Root.All {
		c.besides(a)
		if a.Type == TypeLoop {
			c.presetTimes(a)
			c.selfJudged(a)
			c.wordsAsNumbers(a)
		}
	}
}

// unsafe notes commands in which a value may be run as code, and patterns that let code through.
func (c *checker) unsafe() {
	note := func(a *Agent) {
		if a == nil || a.Type != TypeCommand {
			return
		}
		made, err := newTask(a, BuildConfig{Root: "."}, around{})
		if err != nil {
			return
		}
		cmd, ok := made.(*taskagent.CommandAgent)
		if !ok {
			return
		}
		for _, l := range cmd.LoosePatterns() {
			field := filePath(l.Field)
			c.note(a.at(field), CodeUnsafe, "%s: the pattern %s of {{%s}} lets through %s", field, l.Pattern, l.Name, strings.Join(l.Permits, ", ")).
				Hint = "write a narrower pattern, such as [A-Za-z0-9][A-Za-z0-9_.]*, or give the value to the command in a variable that begins with " +
				taskagent.FreePrefix
		}
		if !a.Command.Unsafe {
			return
		}
		if cmd.NeedsUnsafe() {
			c.note(a.at("unsafe"), CodeUnsafe, "%q is unsafe: it takes any value as an argument or a setting", a.Name).
				Hint = "anyone who writes these values can run programs; let only a person or the definition write them"
			return
		}
		c.note(a.at("unsafe"), CodeUnsafe, "%q does not need unsafe", a.Name).Hint = "remove unsafe, so that later " +
			"changes are checked"
	}
	for a := range c.def.Root.All {
		note(a)
		note(a.Reconcile)
	}
}

// unread notes results that no agent reads, except the root's, which is the run's.
func (c *checker) unread() {
	seen, all := c.keysRead()
	for a := range c.def.Root.All {
		if a.OutputKey != "" && a.OutputKey != LoopOutput && a.parent != nil && !a.tool && !seen[a.OutputKey] && !all {
			c.note(a.at("output_key"), CodeUnread, "no agent reads %q, which %q writes", a.OutputKey, a.Name)
		}
	}
}

// inside reports the errors of an expression at their positions in a field.
func (c *checker) inside(a *Agent, field string, errs expr.Errors) {
	for _, e := range errs {
		p := c.report(a.inField(field, e.Line, e.Column), CodeExpr, "%s: %s", field, e.Msg)
		p.err = e
		name := e.Unknown
		switch {
		case name == "":
			continue
		case e.Suggestion != "":
			p.suggest(meant.Name(e.Suggestion))
		case slices.Contains(lengths, name):
			p.Hint = "the length of a text or a list is size(x)"
		default:
			p.Hint = fmt.Sprintf("in an expression, a text needs quotes, as in '%s'; a state key is written state.%s", name, name)
		}
		p.hint = func() (hint, suggestion string) { // once all keys are known
			if c.keys[name] == "" {
				return p.Hint, p.Suggestion
			}
			return "a state key is written state." + name, ""
		}
	}
}

// lengths are the names of the function size in other languages.
var lengths = []string{"len", "length", "lenght", "count"}
