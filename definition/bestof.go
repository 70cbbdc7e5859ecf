// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition/internal/rename"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// copies describes the branches of the parallel agent that stands for a step with best_of. Branch i runs copy i of
// the step and of the steps that score it.
type copies struct {
	step     string // the name of the step
	score    *loop.Score
	keys     []string // that the step writes
	scored   []string // that the step and those that score it write
	branches []string
}

// copied reports whether the agent has best_of, or is inside such a step of the same loop.
func (a *Agent) copied() bool { return a.Step != nil && a.Step.BestOf > 0 }

// copyName returns the name of an agent or a key in copy i.
func copyName(name string, i int) string { return name + "_" + strconv.Itoa(i+1) }

// copyBranch returns the name of the branch of copy i of a step.
func copyBranch(step string, i int) string { return copyName(step+"_copy", i) }

// bestOf checks a step with best_of.
func (c *checker) bestOf(a *Agent) {
	if !a.copied() || !a.isStep() && a.Type != TypeLoop {
		return
	}
	report := func(field, format string, args ...any) *Problem {
		return c.report(a.at(field), CodeConflict, format, args...)
	}
	if a.Type == TypeLoop {
		if c.racer(a, "best_of") {
			for i := range a.Step.BestOf {
				c.ownKeys(a, func(key string) string { return copyName(key, i) })
			}
		}
		return
	}
	const byHand = "write the copies as branches of a parallel agent with keep_best"
	for _, field := range []string{"can_exit_loop", "exit_when"} {
		if a.nodes[field] != nil && (field != "can_exit_loop" || a.CanExitLoop) {
			report(field, "%q has best_of, and a copy cannot end the loop", a.Name).Hint = "let a later step end the loop"
		}
	}
	if a.Step.Cache != nil {
		report("cache", "%q has best_of and cache, with which all copies would be the same", a.Name).Hint = "remove one of them"
	}
	if a.OutputKey == LoopOutput {
		report("best_of", "%q is the finalizer, which nothing scores, so it cannot have best_of", a.Name)
		return
	}
	steps, why := a.scoredBy()
	if why != "" {
		report("best_of", "%s", why).Hint = "a step with best_of needs a score of its loop, from its own output or a later step's"
		return
	}
	for i, s := range steps {
		switch {
		case s.Type.Workflow() || s.Type == TypeHuman || s.LLM != nil && slices.ContainsFunc(s.LLM.Tools, func(t Tool) bool { return t.Agent != nil }):
			report("best_of", "%q cannot have copies: %q has agents inside or asks a person", a.Name, s.Name).Hint = byHand
		case i > 0 && s.copied():
			report("best_of", "%q cannot have copies: %q, which runs before the score, has best_of too", a.Name, s.Name).
				Hint = "put a score behind the first of them, or " + byHand
		}
		for n := range a.Step.BestOf {
			for _, key := range s.writes() {
				if by := c.keys[copyName(key, n)]; by != "" {
					report("best_of", "a copy of %q writes the key %q, which exists (%s)", s.Name, copyName(key, n), by).Hint = "give that key another name"
				}
			}
		}
	}
}

// writes returns the keys that the agent itself writes.
func (a *Agent) writes() (keys []string) {
	for _, key := range []string{a.OutputKey, a.ResultKey} {
		if key != "" {
			keys = append(keys, key)
		}
	}
	if a.Expression != nil {
		keys = slices.AppendSeq(keys, maps.Keys(a.Expression.Set))
	}
	slices.Sort(keys)
	return keys
}

// writesOneOf reports whether the agent writes one of the state keys.
func (a *Agent) writesOneOf(keys []string) bool {
	return slices.ContainsFunc(a.writes(), func(key string) bool { return slices.Contains(keys, key) })
}

// scoreKeys returns the state keys that a score is read from.
func scoreKeys(s *loop.Score) (keys []string) {
	if s.Expr == "" {
		return []string{s.Key}
	}
	if p, err := expr.Compile(s.Expr, vocabulary.ConditionVariables...); err == nil {
		keys, _ = p.Reads("state")
	}
	return keys
}

// scoredBy returns a step with best_of and the following steps up to the one that writes the score; why is set if no
// step writes it.
func (a *Agent) scoredBy() (steps []*Agent, why string) {
	s := a.parent.Loop.Score
	if s == nil {
		return nil, fmt.Sprintf("%q has best_of, but the loop %q has no score", a.Name, a.parent.Name)
	}
	if s.Judge != nil && s.Judge.Compare != "" {
		return nil, fmt.Sprintf("%q has best_of, and the judge of the loop %q compares only with the best", a.Name, a.parent.Name)
	}
	keys := scoreKeys(s)
	all, end := inOrder(a.parent), -1
	from := slices.Index(all, a)
	for i := max(0, from); i < len(all); i++ {
		writes := all[i].contains(func(sub *Agent) bool { return sub.writesOneOf(keys) })
		switch {
		case s.Judge != nil && s.Judge.Step != all[i].Name, !writes:
		case end < 0 || s.Expr != "": // an expression may read several
			end = i
		}
	}
	if end < 0 {
		return nil, fmt.Sprintf("%q has best_of, but neither it nor a step behind it writes the score", a.Name)
	}
	return all[from : end+1], ""
}

// expand replaces each step with best_of by a parallel agent, and checks the copies. It reports mistakes of the
// copies at the step, and drops their notes, because the step has the same.
func (l *loader) expand(c *checker) {
	d, found := c.def, false
	if l.problems.count(SeverityError) > 0 {
		return
	}
	problems, notes := l.problems, l.notes
	for a := range d.Root.All {
		if l.copies > maxCopies {
			l.report(a.src.Of(a.node), CodeFile, "the definition has more than %d agents in loops that run side by side", maxCopies)
			break
		}
		if a.races() && a.unexpanded() {
			l.apart(a)
			found = true
		}
		subs := slices.Clone(a.SubAgents)
		for i, sub := range subs {
			switch {
			case sub.copied() && sub.Type == TypeLoop:
				subs[i], found = l.raceOf(sub), true
			case sub.copied() && a.Type == TypeLoop:
				subs[i], found = l.expanded(sub), true
			}
		}
		a.SubAgents = subs
	}
	if !found {
		return
	}
	d.declare()
	l.check(d)
	again := slices.Clone(l.problems[len(problems):])
	l.problems, l.notes = problems, notes
	for _, p := range again {
		same := func(q *Problem) bool {
			return q.Severity == p.Severity && q.Line == p.Line && q.Column == p.Column && q.File == p.File
		}
		if p.Severity == SeverityError && !slices.ContainsFunc(l.problems, same) {
			l.problems = append(l.problems, p)
		}
	}
}

// expanded returns the parallel agent that stands for a step with best_of.
func (l *loader) expanded(a *Agent) *Agent {
	steps, _ := a.scoredBy()
	all := &copies{step: a.Name, score: a.parent.Loop.Score, keys: a.writes()}
	place := *a.Step
	place.BestOf, place.Cache = 0, nil
	p := &Agent{Name: a.Name, Description: a.Description, DisplayName: a.DisplayName, Color: a.Color, Type: TypeParallel, OnError: a.OnError,
		Step: &place, Parallel: &Parallel{copies: all}, def: a.def, parent: a.parent, src: a.src, node: a.node, use: a.use, alias: a.alias,
		nodes: map[string]*source.Node{"can_exit_loop": a.node}} // false: no copy may end the loop
	for _, field := range slices.Concat([]string{"name", "best_of", "timeout", "on_error"}, rowNames(stepRows)) {
		if n := a.nodes[field]; n != nil {
			p.nodes[field] = n
		}
	}
	for _, s := range steps {
		all.scored = append(all.scored, s.writes()...)
	}
	for i := range a.Step.BestOf {
		branch := &Agent{Name: copyBranch(a.Name, i), Type: TypeSequential, OnError: loop.SkipStep, def: a.def, parent: p, src: a.src, node: a.node,
			nodes: map[string]*source.Node{"name": a.nodes["name"]}}
		p.SubAgents = append(p.SubAgents, branch)
		all.branches = append(all.branches, branch.Name)
		renamed := make(map[string]string)
		if a.def.Workspace != nil {
			renamed[a.workspaceKey()] = runfiles.KeyOf(branch.Name)
		}
		for _, s := range steps {
			ch := change{without: ofPlace, names: rename.Names{Reads: maps.Clone(renamed), Writes: make(map[string]string),
				Agents: map[string]string{s.Name: copyName(s.Name, i)}}}
			for _, key := range s.writes() {
				ch.names.Writes[key] = copyName(key, i)
			}
			if s.Command == nil && s.HTTP == nil {
				ch.without = append(slices.Clone(ofPlace), "timeout")
			}
			cp := l.copyOf(s, branch, ch)
			if cp.OnError = s.OnError; cp.OnError == "" {
				cp.OnError = a.parent.OnError
			}
			if cp.OnError != loop.SkipStep || a.parent.Loop.ContinueOnError || s == a {
				cp.OnError = ""
			}
			branch.SubAgents = append(branch.SubAgents, cp)
			for _, key := range s.writes() {
				renamed[key] = copyName(key, i)
			}
		}
	}
	return p
}

// ofPlace lists the fields that concern a step's place in its loop, and that copies therefore leave out.
var ofPlace = []string{"best_of", "on_error", "continue_on_error", "delay_before", "delay_after", "retry", "circuit",
	"adaptive_timeout", "cache", "can_exit_loop", "exit_when", "exit_reason"}

// aroundCopies adds callbacks to a step with best_of. Before the step they remove the scores of
// earlier copies; after the step they copy the keys and the answer of the best copy to the step's own.
func (b *builder) aroundCopies(a *Agent, cb around) around {
	c := a.Parallel.copies
	rehearsed := b.cfg.StandIns.Agent != nil // there, nothing scores
	cb.before = append([]agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		if drive.At(ctx).IsReplay() {
			return nil, nil
		}
		for i := range c.branches {
			for _, key := range c.scored { // a score belongs to the copy that it was given for
				if _, err := ctx.State().Get(copyName(key, i)); err != nil {
					continue
				}
				if err := ctx.State().Set(copyName(key, i), nil); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	}}, cb.before...)
	cb.after = append([]agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		if drive.At(ctx).IsReplay() {
			return nil, nil
		}
		i, err := c.best(ctx)
		if err != nil && !rehearsed {
			return nil, err
		}
		i = max(0, i)
		for _, key := range c.keys {
			v, err := ctx.State().Get(copyName(key, i))
			if err != nil {
				v = nil
			}
			if err := ctx.State().Set(key, v); err != nil {
				return nil, err
			}
		}
		at := drive.At(ctx).Address() + session.Address("/"+c.branches[i]+"/"+copyName(c.step, i))
		if text, ok := words(ctx, at, depth(ctx.Branch())+1); ok {
			return genai.NewContentFromText(text, genai.RoleModel), nil
		}
		return nil, nil
	}}, cb.after...)
	return cb
}

// best returns the index of the copy with the best score, the first of several equal ones; -1 with the error if no
// copy has a score.
func (c *copies) best(ctx agent.Context) (int, error) {
	state := maps.Collect(ctx.State().All())
	states := make([]map[string]any, len(c.branches))
	for i := range states {
		states[i] = maps.Clone(state)
		for _, key := range c.scored {
			delete(states[i], key)
			if v, ok := state[copyName(key, i)]; ok {
				states[i][key] = v
			}
		}
	}
	i, why := c.score.Best(states)
	if i < 0 {
		slices.SortStableFunc(why, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		why = slices.CompactFunc(why, func(a, b error) bool { return a.Error() == b.Error() })
		return i, &NoScoreError{Agent: c.step, Copies: errors.Join(why...)}
	}
	return i, nil
}
