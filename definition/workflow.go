// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
)

// Parallel holds the fields that only parallel agents have.
type Parallel struct {
	// MaxConcurrency is the most branches that run at once; 0 means all.
	MaxConcurrency uint
	// KeepBest has the state key of the score of each branch that works in the workspace. Only the files of the branch
	// with the highest score are kept; without it the changes of all branches are merged.
	KeepBest map[string]string

	// Race compares the branches, which are loops, and keeps the state and the files of the best one; nil runs them
	// without comparing them.
	Race *Race

	copies *copies // of a step with best_of, which the branches are
}

var parallelRows = []row[Parallel]{
	field("max_concurrency", "most sub-agents that run at once; all if left out", wholeFrom[uint](0, ""),
		func(p *Parallel) *uint { return &p.MaxConcurrency }),
	field("keep_best", "state key of each branch's score, to keep only the files of the best branch; the changes of all are merged if left out", named(aText),
		func(p *Parallel) *map[string]string { return &p.KeepBest }),
	field("race", "true compares the sub-agents, which are loops with a score, and keeps the state and the files of the best; {slices: [3 iterations, rest]} compares them after three iterations, and lets the best go on", raceParts.value(),
		func(p *Parallel) **Race { return &p.Race }),
}

var subRows = []row[Agent]{does("sub_agents", "the agents inside, in order; {ref: file.yaml} reads one from a file",
	func() shape { return schema.Filled(schema.By("step")) }, (*reader).subAgents)}

func (r *reader) subAgents(a *Agent, n *source.Node) {
	items, _ := r.items(n, "sub_agents")
	for i, item := range items {
		if r.full() {
			return
		}
		a.nodes[index("sub_agents", i)] = item
		if item.Kind == source.Scalar {
			r.wrong(item, "a sub-agent", "a map with a name, or with a ref")
			if source.PlainText(item) && vocabulary.AgentName(item.Value) == "" {
				r.hint("describe the agent here, or write {ref: " + item.Value + ".yaml}")
			}
			continue
		}
		if sub := r.agent(item, a); sub != nil {
			if written := source.Deref(n).Content[i]; written.Kind == source.Alias {
				sub.alias = written
			}
			a.SubAgents = append(a.SubAgents, sub)
		}
	}
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

var errorRows = []row[Agent]{
	field("on_error", "after a failed step: stop (default), skip_step or, in a loop, next_iteration; on a step for "+
		"itself, on a loop for all its steps too", oneWord(loop.StopOnError, loop.SkipStep, loop.NextIteration),
		func(a *Agent) *loop.ErrorPolicy { return &a.OnError }).
		helped("skip_step goes on with the next step, next_iteration with the next iteration").shown(loop.StopOnError),
}

var goOnRows = []row[Agent]{does("continue_on_error", "true lets a loop go on with its next iteration after a failed "+
	"step; on a step of a loop it means on_error: next_iteration, on another step on_error: skip_step", schema.YesNo,
	(*reader).continueOnError)}

func (r *reader) continueOnError(a *Agent, n *source.Node) {
	on, ok := r.boolean(n, "continue_on_error")
	switch {
	case !ok || !on:
	case a.Loop != nil:
		a.Loop.ContinueOnError = true
	case a.isStep():
		a.OnError = loop.NextIteration
	default:
		a.OnError = loop.SkipStep
	}
}

// errorPolicy checks the policies after a failure of the agent. A loop has one policy for its steps, and another one
// for itself as a step (C14).
func (c *checker) errorPolicy(a *Agent) {
	_, given := a.nodes["on_error"]
	_, goesOn := a.nodes["continue_on_error"]
	switch {
	case given && goesOn && !(a.Type == TypeLoop && a.isPart()):
		c.report(a.at("key of continue_on_error"), CodeConflict,
			"continue_on_error and on_error say the same; give one of them")
	case a.OnError == "" || a.Type == TypeLoop || a.isStep():
	case !a.isPart():
		field := "on_error"
		if !given {
			field = "continue_on_error"
		}
		c.report(a.at(field), CodeNoLoop, "%s is for loops, and for the steps of loops, sequences and parallel agents; "+
			"%q is none of them", field, a.Name)
	case a.OnError == loop.NextIteration:
		c.report(a.at("on_error"), CodeNoLoop, "%q is not a step of a loop, so no iteration follows when it fails", a.Name).
			Hint = "give it stop or skip_step"
	}
}

var sequentialKind = kind{is: TypeSequential,
	build: func(b *builder, a *Agent, cb around) (agent.Agent, error) {
		base, err := b.workflow(a, cb)
		if err != nil {
			return nil, err
		}
		if a.OutputKey != "" {
			base.AfterAgentCallbacks = append([]agent.AfterAgentCallback{keepWords(outputKey(a))}, cb.after...)
		}
		return sequentialagent.New(sequentialagent.Config{AgentConfig: base, Steps: b.policies(a)})
	},
	most: func(w *worst, a *Agent) (u AtMost) {
		for _, sub := range a.SubAgents {
			u = u.plus(w.once(sub))
		}
		return u
	},
	expect: func(e *expecter, a *Agent) {
		for _, sub := range a.SubAgents {
			e.run(sub)
		}
	},
}

var parallelKind = kind{is: TypeParallel,
	build: func(b *builder, a *Agent, cb around) (agent.Agent, error) {
		base, err := b.workflow(a, cb)
		if err != nil {
			return nil, err
		}
		if a.OutputKey != "" && !a.races() {
			base.AfterAgentCallbacks = append([]agent.AfterAgentCallback{keepWordsEach(outputKey(a), a)}, cb.after...)
		}
		cfg := parallelagent.Config{AgentConfig: base, MaxConcurrency: a.Parallel.MaxConcurrency, Steps: b.policies(a), Race: a.raceConfig()}
		if b.cfg.StandIns.AllBranches {
			cfg.MaxConcurrency = 0
		}
		return parallelagent.New(cfg)
	},
	most: (*worst).parallel, expect: (*expecter).parallel,
	notes: func(w *WorstCase, l *loader, u *AgentWorst) { w.besideNote(l, u.Agent) },
	data:  func(a *Agent) bool { return !a.races() },
}

// parallel returns the most that the branches use together. They run at the same time. If only some may run at once,
// in the worst case the last branch begins when the others have done all the work before it.
func (w *worst) parallel(a *Agent) AtMost {
	var u, rest AtMost
	var parts []AtMost
	if a.races() {
		parts, rest = w.race(a)
	}
	longest := Bound(0)
	for i, sub := range a.SubAgents {
		one := w.once(sub)
		if a.races() {
			one = parts[i]
		}
		longest = max(longest, one.Seconds)
		u = u.plus(one)
	}
	lanes := Bound(a.Parallel.MaxConcurrency)
	if lanes == 0 || int(lanes) >= len(a.SubAgents) {
		u.Seconds = longest
	} else if !longest.Unbounded() {
		u.Seconds = min(u.Seconds, u.Seconds/lanes+longest*(1-1/lanes))
	}
	return u.plus(rest)
}

// policies returns how a sequence or a parallel agent runs its steps.
func (b *builder) policies(a *Agent) drive.StepPolicies {
	by := make(drive.StepPolicies)
	for _, sub := range a.SubAgents {
		p := drive.StepPolicy{SkipOnError: sub.OnError == loop.SkipStep && !a.races()} // there, on_error is for the steps of the loop
		if s := sub.Step; s != nil && !b.cfg.StandIns.NoCallbacks {
			p.DelayBefore, p.DelayAfter = time.Duration(s.DelayBefore), time.Duration(s.DelayAfter)
		}
		if p != (drive.StepPolicy{}) {
			by[sub.Name] = p
		}
	}
	return by
}

// Step says how a loop runs one of its steps. Zero fields mean the defaults. Sequences and parallel agents use only
// the delays.
type Step struct {
	// Step has the rules of the step, without its name and what [Agent] has: OnError, and whether it is the finalizer. A loop in a
	// loop has the Timeout of its own rules instead: see [Loop].
	loop.Step
	// Cache keeps the step's result, and reuses it while the step reads the same values.
	Cache *Cache
	// BestOf is the number of copies of the step that run side by side, of which the best one counts; 0 means no
	// copies. In the definition that [Load] returns, a parallel agent stands for such a step.
	BestOf int
}

func stepOf(a *Agent) *Step {
	if a.Step == nil {
		a.Step = &Step{}
	}
	return a.Step
}

// isStep reports whether the agent is a direct step of a loop.
func (a *Agent) isStep() bool { return a.parent != nil && a.parent.Type == TypeLoop }

// isPart reports whether the agent is a step of a loop or a sequence, or a branch of a parallel agent.
func (a *Agent) isPart() bool { return a.parent != nil && a.parent.Type.Workflow() }

// stepTimeRows has the timeout of steps whose type has no timeout of its own.
var stepTimeRows = []row[Step]{field("timeout", "", aLoopSpan, func(s *Step) *loop.Duration { return &s.Timeout })}

var stepRows = []row[Step]{
	field("retry", "attempts in all when the step fails, or {attempts, backoff, max_backoff}; for steps of a loop", retryParts.value(), func(s *Step) **loop.Retry { return &s.Retry }),
	field("circuit", "skip the step after failures in a row until a cooldown ends: {failures, cooldown, endpoint}; for steps of a loop", circuitParts.value(), func(s *Step) **loop.Circuit { return &s.Circuit }),
	field("adaptive_timeout", "timeout computed from the step's earlier durations: {min, max, factor, after}; for steps of a loop", adaptiveParts.value(), func(s *Step) **loop.AdaptiveTimeout { return &s.AdaptiveTimeout }),
	field("delay_before", "pause before the agent; for the steps of workflow agents, and a loop at the root", aDelay, func(s *Step) *loop.Duration { return &s.DelayBefore }),
	field("delay_after", "pause after the agent, also if it fails; for the steps of workflow agents, and a loop at the root", aDelay, func(s *Step) *loop.Duration { return &s.DelayAfter }),
	field("cache", "reuse the result while the input is equal: true, or for a duration, or {ttl, key}; for steps of a loop", value[*Cache]{cacheShape, cacheOf}, func(s *Step) **Cache { return &s.Cache }),
	field("best_of", "copies of the step that run side by side; each is scored by the steps behind it, a loop by its own score, and the best is kept; for steps of a loop with a score, and loops", wholeIn(2, 16), func(s *Step) *int { return &s.BestOf }),
}

var retryParts = parts[loop.Retry]{rows: []row[loop.Retry]{
	field("attempts", "attempts in all", wholeFrom[uint](1, ""), func(t *loop.Retry) *uint { return &t.Attempts }).must(),
	field("backoff", "wait before the second attempt; doubles before each further one", aLoopSpan, func(t *loop.Retry) *loop.Duration { return &t.Backoff }),
	field("max_backoff", "longest wait; if a server asks for more by Retry-After, there is no further attempt", aLoopSpan, func(t *loop.Retry) *loop.Duration { return &t.MaxBackoff }).shown("1m"),
}, or: "attempts"}

var circuitParts = parts[loop.Circuit]{rows: []row[loop.Circuit]{
	field("failures", "failures in a row that open the circuit", wholeFrom[uint](1, ""), func(c *loop.Circuit) *uint { return &c.Failures }).must(),
	field("cooldown", "time that the circuit stays open", aLoopSpan, func(c *loop.Circuit) *loop.Duration { return &c.Cooldown }).must(),
	field("endpoint", "name of what the step depends on; steps of the loop with the same endpoint share a circuit", aText, func(c *loop.Circuit) *string { return &c.Endpoint }),
}}

var adaptiveParts = parts[loop.AdaptiveTimeout]{rows: []row[loop.AdaptiveTimeout]{
	field("min", "shortest timeout", aLoopSpan, func(t *loop.AdaptiveTimeout) *loop.Duration { return &t.Min }),
	field("max", "longest timeout; also the timeout until there are enough durations", aLoopSpan, func(t *loop.AdaptiveTimeout) *loop.Duration { return &t.Max }).must(),
	field("factor", "factor on the 95th percentile of the durations, at least 1", aFactor, func(t *loop.AdaptiveTimeout) *float64 { return &t.Factor }).shown(3),
	field("after", "durations to wait for, at most 32", wholeFrom[uint](1, ""), func(t *loop.AdaptiveTimeout) *uint { return &t.After }).shown(5),
}}

// stepPlace reports fields of steps on an agent that is not a step.
func (c *checker) stepPlace(a *Agent) {
	if a.isStep() || a.Type == "" {
		return
	}
	for _, field := range stepFields(a.Type) {
		n, given := a.nodes[field]
		if !given || source.IsNull(n) {
			continue
		}
		if strings.HasPrefix(field, "delay_") {
			if !a.isPart() && !(a.parent == nil && a.Type == TypeLoop) {
				c.report(a.at(field), CodeNoLoop, "%s is for the steps of loops, sequences and parallel agents, and for a "+
					"loop at the root; %q is none of them", field, a.Name)
			}
			continue
		}
		if field == "best_of" && (a.Type == TypeLoop || a.races()) {
			continue
		}
		p := c.report(a.at(field), CodeNoLoop, "%s is for steps of a loop; %q is not one", field, a.Name)
		if step := a.within(); step != nil {
			p.Hint = fmt.Sprintf("give it to %q", step.Name)
		}
	}
}

// within returns the step of a loop that contains the agent, or is the agent; nil outside loops.
func (a *Agent) within() *Agent {
	for a = a.parent; a != nil; a = a.parent {
		if a.isStep() && !a.tool {
			return a
		}
	}
	return nil
}

// waiting adds pauses before and after a loop, even if it fails. It is for the root, which no agent contains.
func waiting(cfg *loopagent.Config, before, after time.Duration) {
	around := &cfg.AgentConfig
	if before > 0 {
		wait := func(ctx agent.Context) (*genai.Content, error) { return nil, sleep.For(ctx, before) }
		around.BeforeAgentCallbacks = append([]agent.BeforeAgentCallback{wait}, around.BeforeAgentCallbacks...)
	}
	if after <= 0 {
		return
	}
	wait := func(ctx agent.Context) (*genai.Content, error) { return nil, sleep.For(ctx, after) }
	around.AfterAgentCallbacks = append(slices.Clone(around.AfterAgentCallbacks), wait)
	told := cfg.OnStop
	cfg.OnStop = func(ctx agent.InvocationContext, rec *loop.StopRecord) {
		if told != nil {
			told(ctx, rec)
		}
		if rec.Reason == loop.ReasonError && !drive.At(ctx).IsReplay() { // nobody calls what is around an agent that failed
			_ = sleep.For(ctx, after) // the loop ends anyway
		}
	}
}

// Cache keeps the result of a deterministic step for one run of its loop. While the step's input is
// equal, the step does not run again.
type Cache struct {
	// TTL is the time for which a result is valid; 0 means until the loop ends.
	TTL time.Duration
	// Key is a template with everything that the result depends on. Empty uses everything that the
	// step's texts and expressions name.
	Key string

	tree  string   // key of the files that it depends on; empty for none
	reads []string // by the names that texts give them, sorted, if Key is empty
}

var cacheParts = parts[Cache]{rows: []row[Cache]{
	field("ttl", "time that a result stays valid; until the loop ends if left out", aSpan, func(c *Cache) *time.Duration { return &c.TTL }),
	field("key", "text with placeholders for everything that the result depends on", aCacheKey, func(c *Cache) *string { return &c.Key }),
}}

func cacheShape() shape { return schema.Either(schema.YesNo(), schema.Duration(), cacheParts.shape()) }

var aCacheKey = aWords.shaped(func() shape {
	s := schema.AnyText()
	s.MinLength = new(1)
	return s
}).checked(notEmpty, "%[1]s is empty", "leave it out to use everything that the step names")

// cacheOf reads true, a duration, or a map; nil means no cache.
func cacheOf(p place, n *source.Node) (*Cache, bool) {
	_, timed := spanOf(n)
	switch {
	case n.Kind != source.Scalar:
		return cacheParts.read(p, n)
	case n.ShortTag() == "!!bool":
		if on, ok := p.boolean(n, p.field); !on {
			return nil, ok
		}
		return &Cache{}, true
	case timed:
		ttl, ok := p.duration(n, p.field)
		return &Cache{TTL: ttl}, ok
	}
	p.wrong(n, p.field, "true, a duration such as 10m, or a map with ttl and key")
	return nil, false
}

// policy returns the cache in loopagent's form.
func (c *Cache) policy() loopagent.Cache {
	out := loopagent.Cache{TTL: c.TTL}
	if c.Key == "" {
		out.Key = c.withTree(c.ofReads)
		return out
	}
	key, err := template.Parse(c.Key, template.Options{Dialect: template.Mustache})
	out.Key = c.withTree(func(lookup func(string) (any, bool)) (string, error) {
		if err != nil { // it was checked
			return "", err
		}
		return key.Execute(lookup)
	})
	return out
}

// withTree adds the files of the workspace to a key.
func (c *Cache) withTree(key func(func(string) (any, bool)) (string, error)) func(func(string) (any, bool)) (string, error) {
	if c.tree == "" {
		return key
	}
	return func(lookup func(string) (any, bool)) (string, error) {
		text, err := key(lookup)
		if err != nil || text == "" {
			return text, err
		}
		v, _ := lookup(c.tree)
		files, _ := runfiles.Value(v)
		return text + "\n" + string(files), nil
	}
}

// ofReads returns a hash of all values that the step reads.
func (c *Cache) ofReads(lookup func(string) (any, bool)) (string, error) {
	h := sha256.New()
	for _, name := range c.reads {
		v, ok := lookup(name)
		if err, bad := v.(error); bad {
			return "", err
		}
		text, err := json.Marshal(v)
		if err != nil {
			return "", fmt.Errorf("the value of %s: %w", name, err)
		}
		fmt.Fprintf(h, "%q %t %d\n%s\n", name, ok, len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// caches determines what the cached steps read.
func (c *checker) caches() {
	for a := range c.def.Root.All {
		if c.full() {
			return
		}
		if a.Step == nil || a.Step.Cache == nil {
			continue
		}
		if c.def.Workspace != nil && a.hasCommand() {
			a.Step.Cache.tree = a.workspaceKey()
		}
		if a.Step.Cache.Key != "" {
			continue
		}
		names, why := c.namesOf(a)
		if why != "" {
			c.report(a.at("cache"), CodeCache, "the input of %q is not known: %s", a.Name, why).
				Hint = `name it, as in cache: {key: "{{draft}}"}`
			continue
		}
		a.Step.Cache.reads = slices.Sorted(maps.Keys(names))
	}
}

// cacheKey checks the key that a file gives.
func (c *checker) cacheKey(a *Agent) {
	if a.Step != nil && a.Step.Cache != nil {
		c.template(a, "cache.key", a.Step.Cache.Key, template.Mustache)
	}
}

// namesOf lists the values from outside that an agent, and the agents inside it, read, by the names that texts use;
// why is set if they are unknown.
func (c *checker) namesOf(a *Agent) (names map[string]bool, why string) {
	names = make(map[string]bool)
	for sub := range a.All {
		if sub.Type == TypeLLM {
			return nil, fmt.Sprintf("%q asks a model, which sees more than its instructions name", sub.Name)
		}
		if sub.Type == TypeA2A && (sub.A2A.Payload == nil || !sub.A2A.NewContext) {
			return nil, fmt.Sprintf("%q may remember earlier requests; give it a payload and new_context: true",
				sub.Name)
		}
		if sub.loopAround() == a.parent {
			counters(sub, names)
		}
	}
	for i := range c.reads {
		rd := &c.reads[i]
		if !rd.agent.in(a) || rd.inner && !rd.known(c.keys) {
			continue
		}
		if rd.any {
			return nil, fmt.Sprintf("%s may read any key", rd.field)
		}
		kind, key := rd.split()
		switch {
		case (kind == "built in" || kind == "loop") && rd.loop() != a.parent && rd.name != "user_input":
		case kind == "loop":
			head, _, _ := strings.Cut(rd.name, ".")
			names[head+"."+key] = true
		case kind == "built in":
			names[rd.name] = true
		case kind == "outside" && !strings.HasPrefix(rd.name, "artifact."):
			head, _, _ := strings.Cut(rd.name, ".")
			names[head] = true
		case kind == "outside":
			names[rd.name] = true
		default:
			names[key] = true
		}
	}
	return names, ""
}

// in reports whether the agent is the other one, or inside it.
func (a *Agent) in(around *Agent) bool {
	for ; a != nil; a = a.parent {
		if a == around {
			return true
		}
	}
	return false
}

// counters adds the built-in values that a task's expressions read.
func counters(a *Agent, names map[string]bool) {
	var texts []string
	if a.ExitWhen != "" {
		texts = append(texts, a.ExitWhen)
	}
	if e := a.Expression; e != nil {
		texts = slices.AppendSeq(append(texts, e.Value), maps.Values(e.Set))
	}
	for _, text := range texts {
		p, err := expr.Compile(text, vocabulary.TaskVariables...)
		if err != nil {
			continue // reported
		}
		for _, v := range vocabulary.TaskVariables {
			keys, all := p.Reads(v.Name)
			switch {
			case v.Type == expr.Map || !all && len(keys) == 0: // of a map, single keys are noted
			case v.Name == "best_score":
				names["best.score"] = true
			default:
				names[v.Name] = true
			}
		}
	}
}
