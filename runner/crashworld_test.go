// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// world is what the agents of one process do: how often leaves ran, by address,
// and how often the model was asked.
type world struct {
	mu     sync.Mutex
	ran    map[session.Address]int
	asked  int
	broken session.Address // a leaf that fails there, behind its first words
	ledger                 // of what must not be paid twice
}

func (w *world) run(at session.Address) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran == nil {
		w.ran = make(map[session.Address]int)
	}
	w.ran[at]++
}

// forest grows a tree of agents by the dice. Whatever an agent does depends on
// its address, on the state, and on how often it has failed: run again under the
// same circumstances, it does the same.
type forest struct {
	testing.TB
	*world
	dice *rand.Rand
	n    int
	wild bool // there are branches: in which order a model reads what they say is a matter of chance
}

// place is where an agent grows.
type place struct {
	depth, loops int
	keys         string // what its state keys begin with: branches have their own
	quiet        bool   // it may not fail, nor leave a loop
	skipped      bool   // what is around it goes on when it fails
	retried      bool   // what is around it may fail, and be made again
}

func grow(t testing.TB, seed uint64) (agent.Agent, *world) {
	f := &forest{TB: t, world: new(world), dice: rand.New(rand.NewPCG(seed, 5))}
	return f.agent(place{quiet: true}), f.world
}

func (f *forest) name(kind string) string {
	f.n++
	return fmt.Sprintf("%s%d", kind, f.n)
}

func (f *forest) agent(p place) agent.Agent {
	kind := f.dice.IntN(10)
	if p.depth == 0 {
		kind = 4 + f.dice.IntN(6)
	}
	if p.depth >= 6 || f.n > 9 {
		kind = f.dice.IntN(4)
	}
	p.depth++
	switch {
	case kind < 3 && !p.retried && f.dice.IntN(3) == 0:
		return f.pays(p)
	case kind < 3:
		return f.leaf(p)
	case kind == 3:
		return f.asks(p)
	case kind == 4:
		return f.custom(p)
	case kind == 5:
		return f.sequence(p)
	case kind == 6:
		return f.parallel(p)
	case p.loops == 3:
		return f.leaf(p)
	}
	return f.loop(p)
}

func (f *forest) some(p place, least, most int) []agent.Agent {
	var subs []agent.Agent
	for range least + f.dice.IntN(most-least+1) {
		subs = append(subs, f.agent(p))
	}
	return subs
}

func (f *forest) must(a agent.Agent, err error) agent.Agent {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
	return a
}

func (f *forest) sequence(p place) agent.Agent {
	cfg := agent.Config{Name: f.name("seq")}
	by := make(map[string]drive.StepPolicy)
	for range 1 + f.dice.IntN(3) {
		cfg.SubAgents = append(cfg.SubAgents, f.step(p, by))
	}
	f.callbacks(p, &cfg)
	return f.must(sequentialagent.New(sequentialagent.Config{AgentConfig: cfg, Steps: by}))
}

// step is a step of a sequence, or a branch, with some of what can be said of one.
func (f *forest) step(p place, by map[string]drive.StepPolicy) agent.Agent {
	maybe := func(one int) bool { return f.dice.IntN(one) == 0 }
	var own drive.StepPolicy
	if own.SkipOnError = maybe(3); own.SkipOnError {
		p.skipped = true
	}
	if maybe(4) {
		own.DelayBefore = time.Duration(f.dice.IntN(1000))
	}
	if maybe(4) {
		own.DelayAfter = time.Duration(f.dice.IntN(1000))
	}
	a := f.agent(p)
	by[a.Name()] = own
	return a
}

func (f *forest) parallel(p place) agent.Agent {
	f.wild = true
	cfg, by := agent.Config{Name: f.name("par")}, make(map[string]drive.StepPolicy)
	for range 2 + f.dice.IntN(2) {
		inside := place{depth: p.depth, loops: p.loops, keys: p.keys + f.name("b") + "_", quiet: true, retried: p.retried}
		cfg.SubAgents = append(cfg.SubAgents, f.step(inside, by))
	}
	f.callbacks(p, &cfg)
	return f.must(parallelagent.New(parallelagent.Config{AgentConfig: cfg, Steps: by}))
}

// callbacks changes the state around an agent.
func (f *forest) callbacks(p place, cfg *agent.Config) {
	key := p.keys + "around_" + cfg.Name
	set := func(ctx agent.Context) error {
		defer sway() // what is set here is in no event yet
		return ctx.State().Set(key, mix(ctx, p, "callback"))
	}
	if f.dice.IntN(4) == 0 {
		cfg.BeforeAgentCallbacks = []agent.BeforeAgentCallback{func(ctx agent.Context) (*genai.Content, error) { return nil, set(ctx) }}
	}
	if f.dice.IntN(4) == 0 {
		cfg.AfterAgentCallbacks = []agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
			return genai.NewContentFromText("after "+cfg.Name, genai.RoleModel), set(ctx)
		}}
	}
}

// mix is a number made of where a step is, of what it sees, and of the texts.
func mix(ctx agent.InvocationContext, p place, texts ...any) string {
	lock()
	h := fnv.New64a()
	fmt.Fprint(h, drive.At(ctx).Address(), texts)
	for _, key := range []string{"k0", "k1", "score", "text"} {
		v, _ := drive.At(ctx).State().Get(p.keys + key)
		fmt.Fprint(h, key, v)
	}
	if v, err := drive.At(ctx).State().Get("iteration:" + p.keys + "i"); err == nil {
		fmt.Fprint(h, v)
	}
	return fmt.Sprintf("%05d", h.Sum64()%100000)
}

func digit(s string, i int) int { return int(s[i] - '0') }

// failures is how often the step has failed where it is.
func failures(ctx agent.InvocationContext) int {
	n := 0
	for ev := range ctx.Session().Events().All() {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished || ev.Address != drive.At(ctx).Address() || ev.InvocationID != ctx.InvocationID() {
			continue
		}
		var fin mark.StepFinished
		if ev.Mark.Decode(&fin) == nil && fin.Error != "" {
			n++
		}
	}
	return n
}

var (
	errLeaf   = errors.New("out of order")
	errBroken = errors.New("broken for now")
)

// leaf says a few things, changes the state, scores, fails, and leaves loops.
func (f *forest) leaf(p place) agent.Agent {
	cfg := agent.Config{Name: f.name("leaf")}
	if f.n%4 == 3 { // one that only computes
		return f.must(taskagent.NewExpression(taskagent.ExpressionConfig{
			Config: taskagent.Config{Name: cfg.Name}, Set: map[string]string{p.keys + "k0": "iteration * 7"},
		}))
	}
	breaks, leaves := (!p.quiet || p.skipped) && f.dice.IntN(3) == 0, !p.quiet && p.loops > 0 && f.dice.IntN(3) == 0
	cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			f.run(drive.At(ctx).Address())
			failed := failures(ctx)
			for i := range 3 {
				m := mix(ctx, p, i, failed)
				ev := says(fmt.Sprint(cfg.Name, " ", i, " ", m))
				ev.Actions.StateDelta = map[string]any{fmt.Sprint(p.keys, "k", digit(m, 0)%2): goValue(m)}
				if i == 0 {
					ev.Actions.StateDelta["iteration:"+p.keys+"i"] = goValue(m)
					for _, scope := range scopes {
						ev.Actions.StateDelta[scope+p.keys+"score"] = digit(m, 1)
					}
				}
				if i == 1 && leaves && digit(m, 2) < 3 {
					ev.Actions.Escalate, ev.Actions.Exit = true, &session.Exit{Reason: m}
				}
				if !yield(ev, nil) {
					return
				}
				if f.broken != "" && f.broken == drive.At(ctx).Address() {
					yield(nil, errBroken)
					return
				}
				if breaks && digit(m, 3) == 3 {
					yield(sets(p.keys+"k0", math.NaN()), nil)
					return
				}
				if breaks && digit(m, 3) < 3 {
					yield(nil, fmt.Errorf("%w: %s", errLeaf, m))
					return
				}
				if digit(m, 4) < 4 {
					return
				}
			}
		}
	}
	if f.dice.IntN(4) == 0 {
		f.callbacks(p, &cfg)
	}
	return f.must(agent.New(cfg))
}

// custom says something before, between and after its sub-agents, by what it
// sees of the state, and may swallow their errors.
func (f *forest) custom(p place) agent.Agent {
	cfg := agent.Config{Name: f.name("own"), SubAgents: f.some(p, 1, 2)}
	swallows, wraps := f.dice.IntN(2) == 0, f.dice.IntN(2) == 0
	cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		if wraps {
			ctx = wrapped{ctx}
		}
		return func(yield func(*session.Event, error) bool) {
			for i := range 1 + f.n%2 {
				for _, sub := range cfg.SubAgents {
					m := mix(ctx, p, i)
					ev := says(cfg.Name + " " + m)
					ev.Actions.StateDelta = map[string]any{p.keys + "text": m}
					if !yield(ev, nil) {
						return
					}
					if digit(m, 0) < 2 {
						continue
					}
					me := here()
					for ev, err := range drive.Run(ctx, sub) {
						me.hears(f)
						if err != nil && swallows && ctx.Err() == nil {
							break
						}
						if !yield(ev, err) || err != nil {
							return
						}
					}
				}
			}
		}
	}
	return f.must(agent.New(cfg))
}

func (f *forest) loop(p place) agent.Agent {
	p.loops++
	cfg := loopagent.Config{MaxIterations: uint(1 + f.dice.IntN(4-p.loops))}
	if p.quiet = p.keys != "" && p.quiet; f.dice.IntN(2) == 0 {
		cfg.Rules.OnError = []loop.ErrorPolicy{loop.SkipStep, loop.NextIteration}[f.dice.IntN(2)]
	} else {
		p.quiet = p.quiet || f.dice.IntN(3) > 0
	}
	p.retried = p.retried || !p.quiet
	cfg.AgentConfig = agent.Config{Name: f.name("loop"), SubAgents: f.some(p, 1, 3)}
	f.callbacks(p, &cfg.AgentConfig)
	f.rules(p, &cfg)
	return f.must(loopagent.New(cfg))
}

// rules gives a loop some of what it may have.
func (f *forest) rules(p place, cfg *loopagent.Config) {
	maybe := func(one int) bool { return f.dice.IntN(one) == 0 }
	subs := cfg.AgentConfig.SubAgents
	scored := scopes[f.dice.IntN(len(scopes))] + p.keys + "score"
	if maybe(2) {
		cfg.Rules.Score = &loop.Score{Key: scored}
		if maybe(4) {
			cfg.Rules.Score = &loop.Score{Expr: `double(state["` + scored + `"])`}
		}
		if maybe(2) {
			cfg.Rules.Score.Target = new(9.0)
		}
		if maybe(3) {
			cfg.Rules.OnRegression = loop.RollbackOnWorse
		}
		if maybe(4) {
			cfg.Rules.QualityGate = new(4.0)
		}
		if maybe(4) {
			cfg.Rules.Score.Judge = &loop.Judge{Step: subs[len(subs)-1].Name(), Samples: 2}
			if cfg.Rules.Score.Target != nil && maybe(2) {
				cfg.Rules.Score.Judge.Max = 5
			}
		}
	}
	if maybe(4) {
		cfg.Rules.StopWhen = &loop.Condition{Expr: `iteration >= 2 && state["` + scored + `"] > 3`}
		if maybe(2) {
			cfg.Rules.StopCheck = loop.EachStep
		}
	}
	if maybe(4) {
		cfg.Rules.NoProgress = &loop.NoProgress{Repeats: 2}
	}
	if maybe(4) {
		cfg.OutputKey = p.keys + "out_" + cfg.AgentConfig.Name
	}
	if maybe(5) && len(subs) > 1 && cfg.Rules.Score == nil {
		cfg.Rules.Steps = []loop.Step{{Name: subs[len(subs)-1].Name(), Finalizer: true}}
		cfg.Rules.FinalizeEach = maybe(3)
	}
	cfg.KeepStates = maybe(4)
	if maybe(2) {
		first := loop.Step{Name: subs[0].Name(), Retry: &loop.Retry{Attempts: 2 + uint(f.dice.IntN(2))}}
		if maybe(2) && len(subs) > 2 && cfg.Rules.OnError != loop.NextIteration { // with none left to run, the loop would wait for it
			first.Circuit = &loop.Circuit{Failures: 2, Cooldown: loop.Duration(1e15)}
		}
		if maybe(3) {
			cfg.Caches = map[string]loopagent.Cache{subs[0].Name(): {Key: func(lookup func(string) (any, bool)) (string, error) {
				v, _ := lookup(p.keys + "k0")
				return fmt.Sprint("of ", v)[:4], nil
			}}}
		}
		cfg.Rules.Steps = slices.Insert(cfg.Rules.Steps, 0, first)
	}
	key := p.keys + "turn_" + cfg.AgentConfig.Name
	if maybe(4) {
		cfg.BeforeIteration = append(cfg.BeforeIteration, func(ctx agent.Context, n int) error { return ctx.State().Set(key, mix(ctx, p, n)) })
	}
	if shared := "user:" + p.keys + "count_" + cfg.AgentConfig.Name; maybe(4) {
		cfg.BeforeIteration = append(cfg.BeforeIteration, func(ctx agent.Context, _ int) error { return counts(ctx, shared) })
		cfg.AfterIteration = append(cfg.AfterIteration, func(ctx agent.Context, _ loop.IterationRecord) error { return counts(ctx, shared) })
	}
	if maybe(4) {
		cfg.AfterIteration = append(cfg.AfterIteration, func(ctx agent.Context, it loop.IterationRecord) error {
			return ctx.State().Set(key, mix(ctx, p, it.Number, it.Best))
		})
	}
}

// asks is an agent that asks a model, which calls a tool a few times first.
func (f *forest) asks(p place) agent.Agent {
	note := func(ctx tool.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return "noted", ctx.State().Set(p.keys+"text", in.Text)
	}
	t, err := functiontool.New(functiontool.Config{Name: "note", Description: "Notes something."}, note)
	if err != nil {
		f.Fatal(err)
	}
	m := &chatty{forest: f, calls: f.dice.IntN(3), tools: []tool.Tool{t}}
	if f.dice.IntN(2) == 0 {
		m.tools = append(m.tools, f.helper(p))
	}
	cfg := llmagent.Config{
		Name: f.name("llm"), Model: m, Tools: m.tools,
		Instruction: "Text: {{" + p.keys + "text}}", Context: llmagent.ContextConfig{Policy: llmagent.ContextNone},
	}
	if f.dice.IntN(2) == 0 {
		cfg.OutputKey = p.keys + "k1"
	}
	around := agent.Config{Name: cfg.Name}
	f.callbacks(p, &around)
	cfg.BeforeAgentCallbacks, cfg.AfterAgentCallbacks = around.BeforeAgentCallbacks, around.AfterAgentCallbacks
	return f.must(llmagent.New(cfg))
}
