// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition/internal/rename"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Race says how the loops in a parallel agent are compared.
type Race struct {
	// Iterations and Budget limit each loop until the best is known; 0 and nil set no limit.
	Iterations uint
	Budget     *loop.Budget
	// Rest lets the best loop go on after that with its own limits.
	Rest bool

	keys     []string            // that the loops write, as the file names them
	branches []map[string]string // of each loop, its names of these keys; nil until the loops have keys of their own
}

// slice limits each loop of a race.
type slice struct {
	loop.Budget
	iterations uint
}

var raceParts = parts[Race]{rows: []row[Race]{special("slices", "how long each loop runs: a number of iterations, such as 3 iterations, or "+
	"{iterations, calls, tokens, cost}; and then rest, if the best one goes on. Without slices each loop runs to its end",
	slicesShape, takesSlices)}, or: "true"}

var sliceParts = parts[slice]{rows: []row[slice]{
	field("iterations", "most iterations of each loop", wholeFrom[uint](1, ""), func(s *slice) *uint { return &s.iterations }),
	field("calls", "most requests to models of each loop", wholeFrom[int64](1, ""), func(s *slice) *int64 { return &s.Calls }),
	field("tokens", "most tokens of each loop", wholeFrom[int64](1, ""), func(s *slice) *int64 { return &s.Tokens }),
	field("cost", "most cost of each loop, by the prices at the root", maybe(anAbove), func(s *slice) **float64 { return &s.Cost }),
}, some: "give iterations, calls, tokens or cost"}

const restOf = "rest"

var iterationsOf = lazyregexp.New(`^([1-9][0-9]{0,8}) iterations?$`)

func slicesShape() shape {
	s := schema.List(schema.Either(&jsonschema.Schema{Type: "string", Title: "N iterations, or rest",
		Pattern: "^(rest|[1-9][0-9]{0,8} iterations?)$"}, sliceParts.shape()))
	s.MinItems, s.MaxItems = new(1), new(2)
	return s
}

// takesSlices reads one slice, or one and the rest.
func takesSlices(p place, n *source.Node, r *Race) bool {
	items, ok := p.items(n, p.field)
	const hint = "write [3 iterations, rest], or [{iterations: 3, cost: 0.5}, rest]"
	if ok && (len(items) == 0 || len(items) > 2) {
		p.report(n, CodeValue, "%s has %d elements, and must have one, or one and rest", p.field, len(items)).Hint = hint
		return false
	}
	for i, item := range items {
		f := index(p.field, i)
		p.a.nodes[f] = item
		m := iterationsOf().FindStringSubmatch(item.Value)
		switch {
		case item.Kind == source.Map && i == 0:
			s, read := sliceParts.read(p.at(f), item)
			if ok = ok && read; read {
				r.Iterations = s.iterations
				if s.Budget != (loop.Budget{}) {
					r.Budget = &s.Budget
				}
			}
		case item.Kind == source.Scalar && i == 0 && m != nil:
			many, _ := strconv.ParseUint(m[1], 10, 31)
			r.Iterations = uint(many)
		case item.Kind == source.Scalar && i == 1 && item.Value == restOf:
			r.Rest = true
		default:
			must := "a number of iterations, such as 3 iterations, or a map"
			if i == 1 {
				must = restOf
			}
			p.wrong(item, f, must)
			p.hint(hint)
			ok = false
		}
	}
	return ok
}

// races reports whether the agent compares the loops in it.
func (a *Agent) races() bool { return a.Parallel != nil && a.Parallel.Race != nil }

// winnerKey is the state key of the name of the loop that has won a race.
func (a *Agent) winnerKey() string { return a.Name + winnerSuffix }

const winnerSuffix = "_winner"

// race checks a race, and that its loops can be compared.
func (c *checker) race(a *Agent) {
	if !a.races() {
		return
	}
	if len(a.SubAgents) < 2 && !a.incomplete() {
		c.report(a.at("race"), CodeConflict, "%q needs at least two loops to compare", a.Name).
			Hint = "add a loop, or give the one that it has best_of, which makes copies of it"
	}
	if a.nodes["keep_best"] != nil {
		c.report(a.at("keep_best"), CodeConflict, "%q has race and keep_best, and race keeps the files of the best loop already", a.Name).
			Hint = "remove keep_best"
	}
	lower := func(sub *Agent) bool { return sub.Loop.Score.LowerIsBetter }
	var first *Agent
	for _, sub := range a.SubAgents {
		switch {
		case !c.racer(sub, "race"):
		case first == nil:
			first = sub
		case lower(sub) != lower(first):
			c.report(sub.at("score.lower_is_better"), CodeConflict, "lower scores are better in only one of %q and %q, so they cannot be compared",
				first.Name, sub.Name)
		}
	}
	key := a.winnerKey()
	_, given := c.def.State[key]
	if given || c.input(key) || slices.ContainsFunc(c.writers[key], func(w *Agent) bool { return w != a }) {
		c.keyExists(a, key)
	}
	for _, sub := range a.SubAgents {
		c.ownKeys(sub, func(key string) string { return key + "_" + sub.Name })
	}
}

// ownKeys reports names of keys that a loop of a race would have for itself and that exist.
func (c *checker) ownKeys(a *Agent, named func(string) string) {
	for sub := range a.All {
		for _, key := range sub.writesAll() {
			if own := named(key); c.keys[own] != "" && a.parent.unexpanded() {
				c.keyExists(a, own)
			}
		}
	}
}

// unexpanded reports whether the loops in the agent do not have keys of their own yet.
func (a *Agent) unexpanded() bool { return !a.races() || a.Parallel.Race.branches == nil }

func (c *checker) keyExists(a *Agent, key string) {
	c.report(a.at("name"), CodeKeyTaken, "the race needs the key %q, which exists (%s)", key, c.keys[key]).Hint = "give that key another name"
}

// racer checks that an agent can be compared with others by its score.
func (c *checker) racer(a *Agent, field string) bool {
	at := a.at(field)
	if field == "race" {
		at = a.at("name")
	}
	if a.Type != TypeLoop || a.Loop.Score == nil {
		c.report(at, CodeConflict, "%q is no loop with a score, so nothing says whether it is the best", a.Name).
			Hint = "make it a loop, and give it a score"
		return false
	}
	if j := a.Loop.Score.Judge; j != nil && j.Compare != "" {
		c.report(at, CodeConflict, "%q has a judge that compares its own versions, so its score says nothing about other loops", a.Name).
			Hint = "leave out score.judge.compare"
		return false
	}
	if a.parent == nil {
		c.report(at, CodeConflict, "%q is the root, which cannot have copies", a.Name).Hint = "put the loop into a sequence"
		return false
	}
	for sub := range a.All {
		for _, key := range sub.writesAll() {
			if statekey.Shared(key) {
				c.report(sub.at("name"), CodeConflict, "%q writes %q, which other sessions share, so it cannot lose a race", sub.Name, key).
					Hint = "write a key of the run, and let a step behind the race write " + key
			}
		}
	}
	return true
}

// writesAll returns the keys that the agent itself writes, or lets a person edit.
func (a *Agent) writesAll() []string {
	keys := a.writes()
	if a.Human != nil {
		keys = append(keys, a.Human.Keys...)
	}
	return slices.DeleteFunc(keys, func(key string) bool { return key == LoopOutput || statekey.OfIteration(key) })
}

// apart gives each loop of a race keys of its own: draft of the loop quick becomes draft_quick.
func (l *loader) apart(a *Agent) {
	subs := slices.Clone(a.SubAgents)
	for i, sub := range subs {
		names := a.Parallel.Race.add(sub, func(key string) string { return key + "_" + sub.Name })
		subs[i] = l.copyOf(sub, a, change{names: names})
	}
	a.SubAgents = subs
}

// raceOf returns the parallel agent that stands for a loop with best_of.
func (l *loader) raceOf(a *Agent) *Agent {
	place := *a.Step
	place.BestOf = 0
	race := &Race{}
	p := &Agent{Name: a.Name, Description: a.Description, DisplayName: a.DisplayName, Color: a.Color, Type: TypeParallel, OnError: a.OnError,
		Step: &place, Parallel: &Parallel{Race: race}, OutputKey: a.OutputKey, CanExitLoop: a.CanExitLoop, def: a.def, parent: a.parent, src: a.src,
		node: a.node, use: a.use, alias: a.alias, nodes: make(map[string]*source.Node)}
	for _, field := range slices.Concat([]string{"name", "best_of", "output_key", "on_error", "can_exit_loop"}, rowNames(stepRows)) {
		if n := a.nodes[field]; n != nil {
			p.nodes[field] = n
		}
	}
	for i := range a.Step.BestOf {
		names := race.add(a, func(key string) string { return copyName(key, i) })
		names.Agents = make(map[string]string)
		for sub := range a.All {
			names.Agents[sub.Name] = copyName(sub.Name, i)
			if sub.races() {
				names.Reads[sub.winnerKey()] = copyName(sub.Name, i) + winnerSuffix
			}
		}
		if a.def.Workspace != nil {
			names.Reads[a.workspaceKey()] = runfiles.KeyOf(copyName(a.Name, i))
		}
		p.SubAgents = append(p.SubAgents, l.copyOf(a, p, change{names: names, without: slices.Concat(ofPlace, []string{"output_key"})}))
	}
	return p
}

// add notes the keys that a loop of the race writes, and returns its own names of them.
func (r *Race) add(a *Agent, named func(string) string) rename.Names {
	own := make(map[string]string)
	for sub := range a.All {
		for _, key := range sub.writesAll() {
			own[key] = named(key)
		}
	}
	r.keys = slices.Sorted(maps.Keys(own))
	for _, b := range r.branches {
		r.keys = slices.AppendSeq(r.keys, maps.Keys(b))
	}
	slices.Sort(r.keys)
	r.keys = slices.Compact(r.keys)
	r.branches = append(r.branches, own)
	return rename.Names{Reads: maps.Clone(own), Writes: own, Earlier: true}
}

// aroundRace adds callbacks to a race. Before the race each loop gets the values that its keys have; after it they
// get those of the best loop, and its answer is that of the agent.
func (b *builder) aroundRace(a *Agent, cb around) around {
	r := a.Parallel.Race
	move := func(ctx agent.Context, from, to string) error {
		v, err := ctx.State().Get(from)
		if err != nil {
			v = nil
		}
		if had, err := ctx.State().Get(to); v == nil && (err != nil || had == nil) {
			return nil
		}
		return ctx.State().Set(to, v)
	}
	cb.before = append(slices.Clone(cb.before), func(ctx agent.Context) (*genai.Content, error) {
		if drive.At(ctx).IsReplay() {
			return nil, nil
		}
		for _, own := range r.branches {
			for _, key := range slices.Sorted(maps.Keys(own)) {
				if err := move(ctx, key, own[key]); err != nil {
					return nil, err
				}
			}
		}
		return nil, nil
	})
	result := outputKey(a)
	cb.after = append([]agent.AfterAgentCallback{func(ctx agent.Context) (*genai.Content, error) {
		if drive.At(ctx).IsReplay() {
			return nil, nil
		}
		won := a.winner(ctx)
		i := slices.IndexFunc(a.SubAgents, func(sub *Agent) bool { return sub.Name == won })
		if i < 0 {
			return nil, nil
		}
		for _, key := range r.keys {
			if own, ok := r.branches[i][key]; ok {
				if err := move(ctx, own, key); err != nil {
					return nil, err
				}
			}
		}
		at := drive.At(ctx).Address() + "/" + session.Address(won)
		text, ok := words(ctx, at, depth(ctx.Branch())+1)
		switch {
		case !ok:
			return nil, nil
		case result != "":
			if err := ctx.State().Set(result, text); err != nil {
				return nil, err
			}
		}
		return genai.NewContentFromText(text, genai.RoleModel), nil
	}}, cb.after...)
	return cb
}

// winner returns the name of the loop that has won the race; empty if none has.
func (a *Agent) winner(ctx agent.Context) string {
	v, err := ctx.State().Get(a.winnerKey())
	if err != nil {
		return ""
	}
	name, _ := v.(string)
	return name
}

// raceConfig returns the race in parallelagent's form; nil for an agent that is none.
func (a *Agent) raceConfig() *parallelagent.Race {
	if !a.races() {
		return nil
	}
	r := a.Parallel.Race
	cfg := &parallelagent.Race{Iterations: r.Iterations, Continue: r.Rest, WinnerKey: a.winnerKey(),
		LowerIsBetter: a.SubAgents[0].Loop.Score.LowerIsBetter}
	if b := r.Budget; b != nil {
		cfg.Budget = budget.Limits{Calls: b.Calls, Tokens: b.Tokens, Cost: b.Cost}
	}
	return cfg
}

// declare gives the keys of each loop the shapes that they have in the file, and the keys of the race those that the
// loops give them.
func (r *Race) declare(all map[string]taskagent.Shape) {
	for _, own := range r.branches {
		names := maps.Clone(own)
		for key, name := range own {
			names[name] = key
		}
		for of, s := range maps.Clone(all) {
			key, rest, dotted := strings.Cut(of, ".")
			to := names[key]
			if dotted {
				to += "." + rest
			}
			if _, known := all[to]; names[key] != "" && !known {
				all[to] = s
			}
		}
	}
}

// stops adds how the slice of a race ends each of its loops.
func (r *Race) stops(name string, add func(loop.StopReason, string, ...any)) {
	unless := ""
	if r.Rest {
		unless = fmt.Sprintf(", unless it is the best of the race %q", name)
	}
	if r.Iterations > 0 {
		add(loop.ReasonMaxIterations, "after %s%s", brief.Count(r.Iterations, "iteration"), unless)
	}
	if r.Budget != nil {
		add(loop.ReasonBudget, "when %s are used%s", budgetWords(r.Budget), unless)
	}
}
