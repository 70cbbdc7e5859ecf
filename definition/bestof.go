// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition/internal/vocabulary"
	"github.com/refrain-dev/refrain/definition/runfiles"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/source"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/template"
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
	if !a.copied() || !a.isStep() {
		return
	}
	report := func(field, format string, args ...any) *Problem {
		return c.report(a.at(field), CodeConflict, format, args...)
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
	keys := scoreKeys(s)
	all, end := inOrder(a.parent), -1
	from := slices.Index(all, a)
	for i := max(0, from); i < len(all); i++ {
		writes := all[i].contains(func(sub *Agent) bool {
			return slices.ContainsFunc(sub.writes(), func(key string) bool { return slices.Contains(keys, key) })
		})
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
		if a.Type != TypeLoop {
			continue
		}
		subs := slices.Clone(a.SubAgents)
		for i, sub := range subs {
			if sub.copied() {
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
			cp := l.copyOf(s, branch, i, renamed)
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

// copyOf reads a step again as a part of copy i. renamed maps keys to their names in the copy.
func (l *loader) copyOf(s, branch *Agent, i int, renamed map[string]string) *Agent {
	change := func(r *reader, p pair) (pair, bool) {
		switch {
		case slices.Contains(ofPlace, p.key), p.key == "timeout" && s.Command == nil && s.HTTP == nil:
			return p, false
		case p.key == "name", p.key == "output_key", p.key == "result_key":
			p.value = scalar(p.value, copyName(p.value.Value, i))
		case p.key == "set":
			p.value = r.renamed(p, renamed)
			own := *p.value
			own.Content = slices.Clone(own.Content)
			for k := 0; k < len(own.Content); k += 2 {
				own.Content[k] = scalar(own.Content[k], copyName(source.Deref(own.Content[k]).Value, i))
			}
			p.value = &own
		case p.key != "type" && p.key != "model":
			p.value = r.renamed(p, renamed)
		}
		return p, true
	}
	r := &reader{loader: l, src: s.src, def: s.def}
	ps, _ := r.pairs(s.node, "an agent")
	var own []pair
	for _, p := range r.configured(ps) {
		if p, ok := change(r, p); ok {
			own = append(own, p)
		}
	}
	var use *use
	if s.use != nil {
		again := *s.use
		again.fields = nil
		for _, b := range s.use.fields {
			if p, ok := change(b.reader, b.pair); ok {
				again.fields = append(again.fields, beside{p, b.reader})
			}
		}
		use = &again
	}
	return r.described(s.node, own, branch, use)
}

// scalar returns a copy of a scalar node with another text, at the same position.
func scalar(n *source.Node, text string) *source.Node {
	own := *source.Deref(n)
	own.Value = text
	return &own
}

// renamed returns the value of a field with other names of keys in its texts and expressions.
func (r *reader) renamed(p pair, names map[string]string) *source.Node {
	rewrite := func(n *source.Node) string {
		d := template.Mustache
		if slices.Contains([]string{"instructions", "text", "question"}, p.key) {
			d = template.Canonical
		}
		found, err := vocabulary.TextKeys(n.Value, d)
		code := p.key == "set" || p.key == "value"
		if code {
			found, _ = vocabulary.CelKeys(n.Value)
		}
		if err != nil && !code {
			return n.Value
		}
		var b strings.Builder
		at := 0
		for _, m := range found {
			to, ok := names[m.Name]
			if !ok || m.Earlier {
				continue
			}
			b.WriteString(n.Value[at:m.From])
			if m.Dot && !vocabulary.CelName(to) { // state.key is state["key"]
				before := strings.TrimRight(b.String(), "?")
				optional := len(before) < b.Len()
				b.Reset()
				b.WriteString(strings.TrimSuffix(before, "."))
				to = map[bool]string{true: `[?`, false: `[`}[optional] + strconv.Quote(to) + "]"
			}
			b.WriteString(to)
			at = m.To
		}
		return b.String() + n.Value[at:]
	}
	var walk func(n *source.Node) *source.Node
	walk = func(n *source.Node) *source.Node {
		n = source.Deref(n)
		if n.Kind == source.Scalar {
			if text := rewrite(n); text != n.Value {
				return scalar(n, text)
			}
			return n
		}
		own := *n
		own.Content = slices.Clone(n.Content)
		for i, c := range own.Content {
			if n.Kind == source.List || i%2 == 1 {
				own.Content[i] = walk(c)
			}
		}
		return &own
	}
	return walk(p.value)
}

// aroundCopies adds callbacks to a step with best_of. Before the step they remove the scores of
// earlier copies; after the step they copy the keys and the answer of the best copy to the step's own.
func (b *builder) aroundCopies(a *Agent, cb around) around {
	c := a.Parallel.copies
	rehearsed := b.cfg.StandIns.Agent != nil // there, nothing scores
	cb.before = append([]agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		if drive.At(ctx).Replays() {
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
		if drive.At(ctx).Replays() {
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

// keepBest checks the keys of keep_best, each of which has the score of one branch.
func (c *checker) keepBest(a *Agent) {
	if a.Parallel == nil || len(a.Parallel.KeepBest) == 0 {
		return
	}
	subs, seen := a.branches(), make(map[string]bool)
	if c.def.Workspace == nil || len(subs) == 0 {
		c.report(a.at("keep_best"), CodeWorkspace, "keep_best of %q needs a workspace in which its branches work", a.Name)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(a.Parallel.KeepBest)) {
		field, key := "keep_best."+name, a.Parallel.KeepBest[name]
		if !slices.ContainsFunc(subs, func(sub *Agent) bool { return sub.Name == name }) {
			c.report(a.at("key of "+field), CodeWorkspace, "%q is no branch of %q that works in the workspace", name, a.Name)
		}
		if seen[key] {
			c.report(a.at(field), CodeWorkspace, "two branches of %q have the score %q", a.Name, key)
		}
		seen[key] = true
		c.keyRead(a, field, key)
	}
	for _, sub := range subs {
		if _, ok := a.Parallel.KeepBest[sub.Name]; !ok {
			c.report(a.at("keep_best"), CodeWorkspace, "keep_best names no score of the branch %q", sub.Name)
		}
	}
}

// NoScoreError reports that no branch of a parallel agent has a score, so none can be kept.
type NoScoreError struct {
	Agent  string
	Keys   []string // in which the scores would be
	Copies error    // why no copy of a step with best_of has one; nil for branches with keep_best
}

func (e *NoScoreError) Error() string {
	if e.Copies != nil {
		return fmt.Sprintf("no copy of %q has a score, so none can be kept: %s", e.Agent, strings.ReplaceAll(e.Copies.Error(), "\n", "; "))
	}
	return fmt.Sprintf("no branch of %q has a score, so none can be kept: there is no number in %s", e.Agent, strings.Join(e.Keys, ", "))
}

// best returns the branch with the highest score, the first of several equal ones.
func (a *Agent) best(ctx agent.Context) (name string, err error) {
	if c := a.Parallel.copies; c != nil {
		i, err := c.best(ctx)
		return c.branches[max(0, i)], err
	}
	var most float64
	for _, sub := range a.branches() {
		v, err := ctx.State().Get(a.Parallel.KeepBest[sub.Name])
		if err != nil {
			continue
		}
		score, ok := scoreOf(v)
		if ok && (name == "" || score > most) {
			name, most = sub.Name, score
		}
	}
	if name == "" {
		return "", &NoScoreError{Agent: a.Name, Keys: slices.Sorted(maps.Values(a.Parallel.KeepBest))}
	}
	return name, nil
}

// scoreOf reads a score: a number, or the first one in a text.
func scoreOf(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	case string:
		f, err := expr.Number(x)
		return f, err == nil
	}
	return 0, false
}
