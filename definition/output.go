// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

// output checks the output keys and the finalizers.
func (c *checker) output(a *Agent) {
	loops := a.parent != nil && a.parent.Type == TypeLoop
	if a.OutputKey == LoopOutput && !loops {
		c.report(a.at("output_key"), CodeNoLoop, "loop_output marks the finalizer of a loop, but this agent is not a "+
			"step of a loop")
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
			c.report(sub.at("output_key"), CodeFinalizer, "the loop %q has two finalizers: %q and %q", a.Name,
				first.Name, sub.Name).
				Hint = "give loop_output to one of its sub-agents"
		default:
			first = sub
		}
	}
	if first == nil {
		return
	}
	if steps == 0 && !a.incomplete() {
		c.report(first.at("output_key"), CodeFinalizer, "the loop %q has no steps besides its finalizer %q", a.Name,
			first.Name)
	}
	if first.Type == TypeExpression {
		c.report(first.at("output_key"), CodeFinalizer, "the finalizer %q returns no text: it is an expression agent",
			first.Name).
			Hint = `use text: "{{key}}"`
	}
}

// outputKey returns the key that an agent writes. loop_output of a finalizer is a key of the state only in an
// outermost loop, because a nested loop writes its result to its own output key.
func outputKey(a *Agent) string {
	if a.OutputKey == LoopOutput && a.parent != nil && a.parent.loopAround() != nil {
		return ""
	}
	return a.OutputKey
}

// noteSubjects notes the key of each loop that its finalizer reads, of those that its steps write, if it is one: this is the
// candidate where the finalizer does not run (LOOP 16).
func (c *checker) noteSubjects() {
	c.def.subjects = make(map[*Agent]string)
	for a := range c.def.Root.All {
		fin := a.finalizer()
		if fin == nil {
			continue
		}
		var keys []string
		for i := range c.reads {
			rd := &c.reads[i]
			kind, key := rd.split()
			made := slices.ContainsFunc(c.writers[key], func(w *Agent) bool { return w != a && w.in(a) && !w.in(fin) })
			if rd.agent.in(fin) && (kind == "key" || kind == "loop") && made && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
		if len(keys) == 1 {
			c.def.subjects[a] = keys[0]
		}
	}
}

// untold warns of a loop whose result is unclear, because the step that speaks last may be a judge or a maker. A run
// then takes the last text (LOOP 16).
func (c *checker) untold(a *Agent) {
	if c.problems.count(SeverityError) > 0 || a.finalizer() != nil || a.Loop.Result != "" || !a.handsOn() {
		return
	}
	speak := slices.DeleteFunc(a.answering(), func(s *Agent) bool { return s.Type == TypeParallel }) // see besides
	if len(speak) == 1 {
		c.verdict(a, speak[0])
	}
	if len(speak) < 2 {
		return
	}
	last, before := speak[len(speak)-1], speak[:len(speak)-1]
	why := ""
	switch {
	case last.parent != a && last.mayExit() && !last.anyone: // a run takes the words of a sequence as a whole
		why = "it may end the loop"
	case last.parent != a && c.isJudge(a, last, before):
		why = "the loop stops by what it says"
	case last.anyone || c.isJudge(a, last, before): // the first is warned of already, with better advice
		return
	case last.mayExit() && slices.ContainsFunc(before, (*Agent).mayExit):
		why = "it may end the loop, and so may others"
	case c.isReview(a, last, before):
		why = "the steps before it read what it says"
	default:
		return
	}
	c.warn(a.at("name"), CodeResult, "it is not clear what %q hands back: %q speaks last, but %s", a.Name, last.Name,
		why).
		Hint = "give the loop a result, the key that holds what it makes, or a finalizer"
}

// verdict warns of a loop whose only text is its score, if another step sets keys and says nothing: a run then hands back the
// score (LOOP 16).
func (c *checker) verdict(a, judge *Agent) {
	if a.Loop.Score == nil || judge.mayExit() || !c.isJudge(a, judge, nil) {
		return
	}
	decides, _ := a.Plan().Reads()
	var keys []string
	for sub := range a.All {
		if sub.Type != TypeExpression {
			continue
		}
		for key := range sub.Expression.Set {
			if !slices.Contains(decides, key) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	hint := "give the loop a result, the key that holds what it makes, or a finalizer"
	if len(keys) == 1 {
		hint = "give the loop result: " + keys[0] + ", or a finalizer"
	}
	c.warn(a.at("name"), CodeResult, "%q hands back its score: no step but %q says anything", a.Name, judge.Name).Hint = hint
}

// besides notes that a run hands back another text than the last one of a parallel agent's branches (LOOP 16).
func (c *checker) besides(a *Agent) {
	speak := a.answering()
	for len(speak) > 0 && a.Type == TypeLoop && c.isJudge(a, speak[len(speak)-1], speak[:len(speak)-1]) {
		speak = speak[:len(speak)-1]
	}
	if len(speak) == 0 || speak[len(speak)-1].Type != TypeParallel || speak[len(speak)-1].races() || !a.handsOn() ||
		a.Type != TypeLoop && a.parent != nil && (a.Type == TypeParallel || a.OutputKey == "") {
		return
	}
	panel := speak[len(speak)-1]
	for len(speak) > 0 && speak[len(speak)-1].Type == TypeParallel {
		speak = speak[:len(speak)-1]
	}
	from, hint := firstByName(panel), "put a step behind it that says what you want, such as text: \"{{key}}\""
	if len(speak) > 0 {
		from = speak[len(speak)-1]
	}
	switch a.Type {
	case TypeLoop:
		hint = "if you want something else, give the loop a result, the key that holds it, or a finalizer"
	case TypeParallel:
		hint = "put it into a sequence, with a step behind it that says what you want, such as text: \"{{key}}\""
	}
	c.note(panel.at("name"), CodeResult, "the branches of %q can end in any order, so %q hands back what %q says", panel.Name,
		a.Name, from.Name).Hint = hint
}

// firstByName returns the branch that answers for a parallel agent if no text precedes it; see session.Answer.
func firstByName(panel *Agent) *Agent {
	speak := slices.DeleteFunc(slices.Clone(panel.SubAgents), func(s *Agent) bool { return !s.speaks() })
	return slices.MinFunc(speak, func(a, b *Agent) int { return strings.Compare(a.Name, b.Name) })
}

// answering returns the agents that can answer for a workflow agent, in order; nil for a loop that names its result.
func (a *Agent) answering() (all []*Agent) {
	switch {
	case a.Type == TypeParallel || a.Type == TypeSequential:
		return a.speakers()
	case a.Type != TypeLoop || a.Loop.Result != "":
		return nil
	case a.finalizer() != nil:
		return a.finalizer().speakers()
	}
	for _, sub := range inOrder(a) {
		all = append(all, sub.speakers()...)
	}
	return all
}

// handsOn reports whether another agent or the run gets the agent's answer.
func (a *Agent) handsOn() bool {
	if a.parent == nil || a.OutputKey != "" {
		return true
	}
	subs := a.parent.SubAgents
	return a.parent.Type == TypeSequential && subs[len(subs)-1] == a && a.parent.handsOn()
}

// inOrder returns the steps of a loop in the order in which they run.
func inOrder(a *Agent) []*Agent {
	if len(a.Loop.Order) == 0 {
		return a.SubAgents
	}
	var all []*Agent
	for _, name := range a.Loop.Order {
		for _, sub := range a.SubAgents {
			if sub.Name == name {
				all = append(all, sub)
			}
		}
	}
	return all
}

// speaks reports whether an agent returns text, and does not only write keys.
func (a *Agent) speaks() bool {
	return !holds(a, a.Type.kind().silent) && !a.Type.Workflow() || slices.ContainsFunc(a.SubAgents, (*Agent).speaks)
}

// speakers returns the agents in a step that return text, in order: each agent of a sequence, and an agent of any
// other kind as a whole.
func (a *Agent) speakers() (all []*Agent) {
	if a.Type != TypeSequential {
		if a.speaks() {
			all = append(all, a)
		}
		return all
	}
	for _, sub := range a.SubAgents {
		all = append(all, sub.speakers()...)
	}
	return all
}

// isJudge reports whether a run treats every text of a step as a verdict: the step is the judge, or writes only keys
// that decide whether the loop stops, or alone may end the loop.
func (c *checker) isJudge(a, step *Agent, before []*Agent) bool {
	if s := a.Loop.Score; s != nil && s.Judge != nil && s.Judge.Step == step.Name {
		return true
	}
	keys, all := a.Plan().Reads()
	wrote, other := false, false
	for key, ws := range c.writers {
		for _, w := range ws {
			if w == step || w.in(step) {
				wrote = true
				other = other || !slices.Contains(keys, key)
			}
		}
	}
	alone := step.mayExit() && !slices.ContainsFunc(before, (*Agent).mayExit)
	return wrote && !other && !all || alone
}

// isReview reports whether a step reads what another step of the loop writes, and that step reads the answer in turn.
// Keys that exist before the loop begins are the work of the loop.
func (c *checker) isReview(a, step *Agent, before []*Agent) bool {
	key := step.OutputKey
	if key == "" || slices.ContainsFunc(c.writers[key], func(w *Agent) bool { return !w.in(a) }) {
		return false
	}
	if _, given := c.def.State[key]; given || c.input(key) {
		return false
	}
	reads := func(who *Agent, key string) bool {
		return slices.ContainsFunc(c.reads, func(rd read) bool {
			_, name := rd.split()
			return name == key && (rd.agent == who || rd.agent.in(who))
		})
	}
	return slices.ContainsFunc(before, func(other *Agent) bool {
		return other.OutputKey != "" && reads(other, key) && reads(step, other.OutputKey)
	})
}

// keepWords stores the answer of a sequence under a key.
func keepWords(key string) agent.AfterAgentCallback {
	return func(ctx agent.Context) (*genai.Content, error) {
		if text, ok := words(ctx, drive.At(ctx).Address(), depth(ctx.Branch())); ok {
			return nil, ctx.State().Set(key, text)
		}
		return nil, nil
	}
}

// keepWordsEach stores the answer of each sub-agent of a parallel agent under a key, by name.
func keepWordsEach(key string, a *Agent) agent.AfterAgentCallback {
	return func(ctx agent.Context) (*genai.Content, error) {
		said := make(map[string]any, len(a.SubAgents))
		for _, sub := range a.SubAgents {
			at := drive.At(ctx).Address() + "/" + session.Address(sub.Name)
			if text, ok := words(ctx, at, depth(ctx.Branch())+1); ok {
				said[sub.Name] = text
			}
		}
		return nil, ctx.State().Set(key, said)
	}
}

// depth returns the number of parallel agents that enclose a branch.
func depth(branch string) int {
	if branch == "" {
		return 0
	}
	return strings.Count(branch, ".")/2 + 1
}

// words returns the answer of the agent at an address in this invocation. inside is the number of parallel agents
// that enclose it.
func words(ctx agent.Context, at session.Address, inside int) (string, bool) {
	var answer *session.Event
	events := ctx.Session().Events()
	for i := events.Len() - 1; i >= 0; i-- {
		ev := events.At(i)
		if ev.InvocationID != ctx.InvocationID() {
			break
		}
		if !ev.Address.Under(at) || ev.Partial || ev.Content == nil || strings.TrimSpace(ev.Text()) == "" {
			continue
		}
		if answer = session.Answer(ev, answer); depth(ev.Branch) == inside { // nothing earlier replaces that
			break
		}
	}
	if answer == nil {
		return "", false
	}
	return answer.Text(), true
}
