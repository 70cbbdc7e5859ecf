// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// supersede takes out of the recording what was cut off and is made again from
// its beginning: steps that did not come to their end, unless they run others or
// take up what they have said themselves, and whatever was said because the run
// was canceled. It returns the sequence numbers of those events.
func (x *recording) supersede(tree *Tree) mark.Spans {
	var gone []int64
	x.root.supersede(tree, func(i int32) {
		gone = append(gone, x.seqs[i])
		x.owners[i] = nil
	})
	return mark.SpansOf(gone...)
}

func (r *record) supersede(tree *Tree, drop func(int32)) {
	open := make(map[session.Address]bool) // where a run did not come to its end
	for _, w := range r.order {
		if w.run != nil && w.run.end != finished {
			open[w.run.address] = true
		}
	}
	for i := len(r.order) - 1; i >= 0 && len(open) > 0; i-- {
		if run := r.order[i].run; run != nil && open[run.address] && !r.cutOff(run, tree, drop) {
			delete(open, run.address)
		}
	}
}

// cutOff calls supersede for the last run at an address. It returns true if that run is lost,
// and there may be another one before it: a step that was cut off, and then not come to.
func (r *record) cutOff(last *record, tree *Tree, drop func(int32)) (again bool) {
	switch {
	case last.end == finished:
		return false
	case last.resumes(tree):
		if s, ok := tree.Find(last.address.Agent()).(Spender); ok && last.end == endless {
			if last.works {
				last.cuts++
			}
			for range last.cuts { // else a run that is killed each time would never come to its budget of calls
				last.waste(s.CutOff())
			}
		}
		last.reopen(drop)
		last.supersede(tree, drop)
		return false
	}
	used := last.used()
	if s, ok := tree.Find(last.address.Agent()).(Spender); ok && last.end == endless && last.started && used == (budget.Usage{}) {
		used = s.CutOff()
	}
	r.waste(used)
	last.lose(drop)
	r.repeat(last.address)
	r.take(int(last.place))
	return true
}

// resumes reports whether a step goes on in the same attempt.
func (r *record) resumes(tree *Tree) bool {
	if !r.started || r.notRun {
		return false
	}
	if slices.ContainsFunc(r.order, func(w word) bool { return w.run != nil && !w.taken }) ||
		r.more != nil && len(r.more.again) > 0 {
		return true
	}
	a := tree.Find(r.address.Agent())
	if a == nil {
		return false
	}
	return continues(a) || len(a.SubAgents()) > 0
}

// continues reports whether an agent takes up what it has said: see [Place.Recorded].
func continues(a agent.Agent) bool {
	c, ok := a.(Continuer)
	return ok && c.Continues()
}

// lose drops all events of a run.
func (r *record) lose(drop func(int32)) {
	r.end = lost
	for i := r.from; int(i) < len(r.of.owners); i++ {
		o := r.of.owners[i]
		if !o.within(r) {
			continue
		}
		if o.end == finished && o.to == i {
			r.of.tried(o.address)
		}
		drop(i)
	}
}

// reopen drops what a step said of itself because it was canceled.
func (r *record) reopen(drop func(int32)) {
	if r.end == canceled {
		all := r.used()
		r.end = endless
		r.waste(beyond(all, r.used()))
		drop(r.to)
	}
	for i, w := range r.order {
		if w.late && !w.aside {
			drop(w.at)
			r.take(i)
		}
	}
}

// ofCancel reports whether an event was said because its step was canceled. It is
// asked about steps that did not come to their end.
func ofCancel(ev *session.Event) bool {
	return ev.CustomMetadata[metadataCanceled] == true || ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished
}

// fits refuses a recording of another tree, as far as that can be seen before
// anything runs: the steps of an agent that runs its sub-agents are those.
func (x *recording) fits(tree *Tree) error {
	type pair struct{ above, name string }
	var good pair // the last one that fits
	for i, r := range x.owners {
		if r == nil || r.parent == nil || int(r.from) != i {
			continue
		}
		at := pair{r.parent.address.Agent(), r.address.Agent()}
		if at == good {
			continue
		}
		if said := misfit(tree, r.parent.parent == nil, at.above, at.name); said != "" {
			return &agent.DivergedError{Address: r.address, Recorded: describe(x.whole(x.seqs[i])), Said: said}
		}
		good = at
	}
	return nil
}

// misfit says why an agent cannot have run below another one; empty if it can. Of the root there is
// nothing above.
func misfit(tree *Tree, root bool, above, name string) string {
	if root {
		if tree.Find(name) == nil {
			return fmt.Sprintf("it has no agent %q", name)
		}
		return ""
	}
	a := tree.Find(above)
	if a == nil || !runsOnlySubAgents(a) || slices.ContainsFunc(a.SubAgents(),
		func(a agent.Agent) bool { return a.Name() == name }) {
		return ""
	}
	return fmt.Sprintf("%q has no sub-agent %q", above, name)
}

func runsOnlySubAgents(a agent.Agent) bool {
	t := agent.TypeOf(a)
	return t == agent.TypeSequential || t == agent.TypeParallel || t == agent.TypeLoop
}

// serial reports whether an agent does one thing after another: then what it
// does again comes before anything new.
func serial(a agent.Agent) bool {
	t := agent.TypeOf(a)
	return t == agent.TypeSequential || t == agent.TypeLoop || t == agent.TypeLLM
}
