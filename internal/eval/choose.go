// SPDX-License-Identifier: Apache-2.0

package eval

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/cases"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/process/shellword"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/suggest"
	"github.com/refrain-dev/refrain/session/mark"
)

// Only keeps the cases of a set with one of the IDs, or with one of the tags, which are written tag:NAME. It fails for a word
// that fits no case.
func Only(set *cases.Set, words []string) error {
	chosen := make(map[string]bool)
	for _, word := range words {
		tag, isTag := strings.CutPrefix(word, "tag:")
		found := false
		var names []string
		for i := range set.Cases {
			c := &set.Cases[i]
			if isTag && slices.Contains(c.Tags, tag) || c.ID == word {
				chosen[c.ID], found = true, true
			}
			names = append(names, c.ID)
			for _, t := range c.Tags {
				names = append(names, "tag:"+t)
			}
		}
		if !found {
			hint := ""
			if near := suggest.Nearest(word, names); near != "" {
				hint = fmt.Sprintf(" (did you mean %s?)", near)
			}
			return fmt.Errorf("no case is called %q%s; for a tag write tag:NAME", word, hint)
		}
	}
	set.Cases = slices.DeleteFunc(slices.Clone(set.Cases), func(c check.Case) bool { return !chosen[c.ID] })
	return nil
}

// Failed keeps the cases of a plan that have failed in an eval, at least once, or that were errors. The plan records the eval,
// because its runs chose the cases: nothing can be compared with them over these cases.
func Failed(p *Plan, rec *Record) error {
	set := &p.Set
	failed := make(map[string]bool)
	for _, s := range rec.Scored {
		if s.Side == SideA && (s.Error != "" || s.Grade.Passed == nil || !*s.Grade.Passed) {
			failed[s.Case] = true
		}
	}
	for i := range rec.Pairs {
		if rec.Pairs[i].Error != "" {
			failed[rec.Pairs[i].Case] = true
		}
	}
	set.Cases = slices.DeleteFunc(slices.Clone(set.Cases), func(c check.Case) bool { return !failed[c.ID] })
	if len(set.Cases) == 0 {
		return fmt.Errorf("none of the cases has failed in eval %s", rec.ID)
	}
	p.Failed = slices.Concat(p.Failed, rec.sources(), rec.Failed)
	return nil
}

// sources returns the evals whose runs the results of version A are: the eval, and the one whose runs it has scored.
func (r *Record) sources() []string {
	if r.Scores == "" {
		return []string{r.ID}
	}
	return []string{r.ID, r.Versions[0].Eval}
}

// unbiased returns an error if the runs of an eval have chosen the cases of a plan. Of a version against itself, the runs that
// failed are then the worse ones by chance alone.
func unbiased(p *Plan, rec *Record) error {
	for _, id := range rec.sources() {
		if slices.Contains(p.Failed, id) {
			return fmt.Errorf("the cases were chosen because they failed in the runs of eval %s, so that chance alone makes other runs "+
				"look better than these; run the definition again instead: --failed %[1]s --against %s", id, shellword.Of(rec.Versions[0].Name))
		}
	}
	return nil
}

// Sample keeps n cases of a set, chosen by its seed, in their order.
func Sample(set *cases.Set, n int) {
	if n >= len(set.Cases) {
		return
	}
	chosen := rand.New(rand.NewPCG(set.Seed, 0x5a3b)).Perm(len(set.Cases))[:n]
	slices.Sort(chosen)
	var all []check.Case
	for _, i := range chosen {
		all = append(all, set.Cases[i])
	}
	set.Cases = all
}

// The parts of a set that [Part] tells apart.
const (
	PartTrain  = "train"
	PartHidden = "hidden"
)

// Part keeps one part of the cases of a set. The hidden part has the given share of the groups, at least one, by the seed of the set; the
// rest is for training, at least one group too. It fails for a set of a single group.
func Part(set *cases.Set, part string, hidden float64) error {
	group := func(c *check.Case) string {
		if c.Group != "" {
			return "group " + c.Group
		}
		return "case " + c.ID
	}
	var groups []string
	for i := range set.Cases {
		if g := group(&set.Cases[i]); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	n := len(groups)
	if n < 2 {
		return fmt.Errorf("there is %s, and each part needs one of its own; add cases", brief.Count(n, "group of cases"))
	}
	slices.Sort(groups) // so that the order in the file does not matter
	rand.New(rand.NewPCG(set.Seed, 0x41dd)).Shuffle(n, func(i, k int) { groups[i], groups[k] = groups[k], groups[i] })
	few := groups[:min(n-1, max(1, int(math.Round(hidden*float64(n)))))]
	set.Cases = slices.DeleteFunc(slices.Clone(set.Cases), func(c check.Case) bool {
		return slices.Contains(few, group(&c)) != (part == PartHidden)
	})
	return nil
}

// Worst is the most that the case-runs of an eval can use.
type Worst struct {
	Runs int
	// Each is the largest cost of one case-run, and Total that of all; infinite if no limit applies or a price is unknown. Asks
	// says that models may be asked at all.
	Each, Total definition.Bound
	Asks        bool
	// Votes is how many votes judges give; the cost of them is part of Total.
	Votes int
	// Unpriced is a model whose price is unknown; empty if there is none.
	Unpriced string
}

// WorstOf returns the most that the case-runs of a plan can use, and the programs of its judges. It fails as [Start] does for a plan that cannot run.
func WorstOf(cfg Config, p *Plan) (Worst, []*program.Program, error) {
	e := &Eval{Config: cfg, Record: &Record{Plan: *p}}
	if err := e.prepare(); err != nil {
		return Worst{}, nil, err
	}
	w, err := e.Worst()
	if err != nil {
		return w, nil, err
	}
	judges, err := e.Judges()
	return w, judges, err
}

// Worst returns the most that the case-runs that are not over can use.
func (e *Eval) Worst() (w Worst, err error) {
	worst := make(map[string]definition.Bound)
	for name, s := range e.sides {
		p, err := program.Decode(mark.RunStarted{Program: s.started.Program})
		if err != nil {
			return w, err
		}
		all := s.worst(p)
		worst[name], w.Asks = all.Total.Cost, w.Asks || all.Total.Calls > 0
		w.Unpriced = cmp.Or(w.Unpriced, strings.Join(unpricedOf(all), " and "))
	}
	for _, j := range e.left() {
		one := definition.Bound(len(j.of.Turns)) * worst[j.side]
		if worst[j.side] == 0 {
			one = 0
		}
		asks := e.grader.Asks(j.of, false)
		if e.comparesPairs(j.of) && (j.side == SideA || len(e.sides) == 1) {
			asks = append(asks, e.grader.Asks(j.of, true)...)
		}
		judges, err := w.addVotes(e, asks)
		if err != nil {
			return w, err
		}
		one += judges
		w.Runs, w.Each, w.Total = w.Runs+1, max(w.Each, one), w.Total+one
	}
	return w, nil
}

// addVotes counts the votes of judges, and returns the most that they cost.
func (w *Worst) addVotes(e *Eval, asks []*check.Question) (cost definition.Bound, err error) {
	for _, q := range asks {
		by, err := e.judge(q)
		if err != nil {
			return 0, err
		}
		of := by.def.Worst(definition.Assumed{InputTokens: check.MaxMessage + promptBytes, OutputTokens: judgeTokens})
		cost += of.Total.Cost
		w.Votes, w.Asks = w.Votes+len(q.Prompts)*q.Samples, true
		w.Unpriced = cmp.Or(w.Unpriced, strings.Join(unpricedOf(of), " and "))
	}
	return cost, nil
}

// worst returns the most that a run of the side can use.
func (s *side) worst(p *program.Program) *definition.WorstCase {
	return s.def.Worst(definition.Assumed{Model: p.DefaultModel, EveryModel: p.Model, Limits: p.Limits})
}

// unpricedOf returns the models whose price is unknown.
func unpricedOf(w *definition.WorstCase) (models []string) {
	for _, a := range w.Agents {
		if name := cmp.Or(a.UnpricedModel, a.Model); a.Unpriced && name != "" && !slices.Contains(models, name) {
			models = append(models, name)
		}
	}
	return models
}

// unpriced returns the models of a side whose price is unknown.
func (e *Eval) unpriced(name string) []string {
	s := e.sides[name]
	p, err := program.Decode(mark.RunStarted{Program: s.started.Program})
	if err != nil {
		return nil
	}
	return unpricedOf(s.worst(p))
}

// Known returns the results of an eval that another one takes over as those of the version that it is compared with. It fails
// if one of the cases was not run there, or was another one, and names it; and if the runs have chosen the cases: see [Failed].
func Known(p *Plan, old *Record) ([]Scored, error) {
	if err := unbiased(p, old); err != nil {
		return nil, err
	}
	var missing []string
	theirs := make(map[string]*check.Case, len(old.Set.Cases))
	for i := range old.Set.Cases {
		theirs[old.Set.Cases[i].ID] = &old.Set.Cases[i]
	}
	for i := range p.Set.Cases {
		c := &p.Set.Cases[i]
		if o := theirs[c.ID]; o == nil || hashOf(&p.Set, c) != hashOf(&old.Set, o) {
			missing = append(missing, c.ID)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the cases are not those of eval %s: %s; score its runs with these cases first: "+
			"refrain eval score %[1]s --cases %[3]s", old.ID, listNames(missing), shellword.Of(p.File))
	}
	var known []Scored
	for _, s := range old.Scored {
		if s.Side == SideA && slices.ContainsFunc(p.Set.Cases, func(c check.Case) bool { return c.ID == s.Case }) {
			s.Side = SideB
			known = append(known, s)
		}
	}
	if less := old.unrun(p); len(less) > 0 {
		return nil, old.unended(less)
	}
	return known, nil
}

// unrun returns the cases of a plan that an eval has run less often than it was to.
func (r *Record) unrun(p *Plan) (less []string) {
	n := make(map[string]int)
	for i := range r.Scored {
		if s := &r.Scored[i]; s.Side == SideA {
			n[s.Case]++
		}
	}
	for i := range r.Set.Cases {
		c := &r.Set.Cases[i]
		most := r.repeats(c)
		if r.Scores != "" {
			most = 1 // how often its runs were to run is in the other eval
		}
		if n[c.ID] < most && slices.ContainsFunc(p.Set.Cases, func(o check.Case) bool { return o.ID == c.ID }) {
			less = append(less, c.ID)
		}
	}
	return less
}

// unended returns the error about an eval that has not run some cases.
func (r *Record) unended(less []string) error {
	if r.isOver() {
		return fmt.Errorf("eval %s ended early, and has not run all runs of these cases: %s; choose others with --only, or run the "+
			"definition again: --against %s", r.ID, listNames(less), shellword.Of(r.Versions[0].Name))
	}
	return fmt.Errorf("eval %s has run only %d of %s; continue it first: refrain eval resume %[1]s", r.ID, r.own(), brief.Count(r.Runs(), "run"))
}

// hashOf returns the hash of a case with what decides about its result.
func hashOf(set *cases.Set, c *check.Case) string {
	one := *set
	one.Cases = []check.Case{*c}
	one.Cases[0].Repeat, one.Cases[0].Group, one.Cases[0].Tags, one.Cases[0].Weight = 0, "", nil, 0
	return one.Hash()
}

// listNames joins names with commas; of more than eight it has the first eight.
func listNames(names []string) string {
	if len(names) > 8 {
		return strings.Join(names[:8], ", ") + fmt.Sprintf(" and %d more", len(names)-8)
	}
	return strings.Join(names, ", ")
}
