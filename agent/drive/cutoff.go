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

// supersedeInterrupted removes from the log the events that the resumed run makes again. These are the events of
// steps that did not finish, and events that were yielded because the run was canceled. A step that runs other steps,
// or that continues after its last event, keeps its events. The result has the sequence numbers of the removed
// events.
func (x *replayLog) supersedeInterrupted(tree *Tree) mark.Spans {
	var seqs []int64
	x.root.supersedeInterrupted(tree, func(i int32) {
		e := x.events.at(i)
		seqs = append(seqs, e.seq)
		e.owner = nil
	})
	return mark.SpansOf(seqs...)
}

// supersedeInterrupted does this for the runs inside a run. drop removes the event at an index in the log.
func (r *stepRun) supersedeInterrupted(tree *Tree, drop func(int32)) {
	open := make(map[session.Address]bool) // addresses of runs that did not finish
	for _, w := range r.list {
		if w.run != nil && w.run.end != finished {
			open[w.run.address] = true
		}
	}
	for i := len(r.list) - 1; i >= 0 && len(open) > 0; i-- {
		if run := r.list[i].run; run != nil && open[run.address] && !r.supersedeLast(run, tree, drop) {
			delete(open, run.address)
		}
	}
}

// supersedeLast supersedes the last run at an address, if it did not finish and does not continue. If the run
// continues, only runs inside it can be superseded. It returns true if it has superseded the run, because an earlier
// run at the address may be unfinished too.
func (r *stepRun) supersedeLast(last *stepRun, tree *Tree, drop func(int32)) (again bool) {
	switch {
	case last.end == finished:
		return false
	case last.continuesAttempt(tree):
		if s, ok := tree.Find(last.address.Agent()).(UsageReader); ok && last.end == running {
			if last.interruptible {
				last.interruptions++
			}
			for range last.interruptions { // otherwise a run that is killed each time would never reach its limit of calls
				last.addUnaccounted(s.InterruptedUsage())
			}
		}
		last.discardCancellation(drop)
		last.supersedeInterrupted(tree, drop)
		return false
	}
	used := last.totalUsage()
	if s, ok := tree.Find(last.address.Agent()).(UsageReader); ok && last.end == running && last.started && used == (budget.Usage{}) {
		used = s.InterruptedUsage()
	}
	r.addUnaccounted(used)
	last.discard(drop)
	r.countSuperseded(last.address)
	r.consume(int(last.listIndex))
	return true
}

// continuesAttempt reports whether a step goes on in the same attempt.
func (r *stepRun) continuesAttempt(tree *Tree) bool {
	if !r.started || r.skipped {
		return false
	}
	if slices.ContainsFunc(r.list, func(w entry) bool { return w.run != nil && !w.consumed }) ||
		r.index != nil && len(r.index.superseded) > 0 {
		return true
	}
	a := tree.Find(r.address.Agent())
	if a == nil {
		return false
	}
	return TraitsOf(a, true).Continues || len(a.SubAgents()) > 0
}

// discard drops all events of a run.
func (r *stepRun) discard(drop func(int32)) {
	r.end = superseded
	for i := r.from; int(i) < r.log.events.n; i++ {
		o := r.log.events.at(i).owner
		if !o.isWithin(r) {
			continue
		}
		if o.end == finished && o.to == i {
			r.log.addSupersededRun(o.address)
		}
		drop(i)
	}
}

// discardCancellation drops the events that a step yielded about itself because it was canceled.
func (r *stepRun) discardCancellation(drop func(int32)) {
	if r.end == canceled {
		all := r.totalUsage()
		r.end = running
		r.addUnaccounted(usageMinus(all, r.totalUsage()))
		drop(r.to)
	}
	for i, w := range r.list {
		if w.onCancel && !w.otherAddress {
			drop(w.event)
			r.consume(i)
		}
	}
}

// isCancellationEvent reports whether a step yielded an event because it was canceled. The result holds only for a
// step that did not finish.
func isCancellationEvent(ev *session.Event) bool {
	return ev.CustomMetadata[metadataCanceled] == true || ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished
}

// checkTree returns an [*agent.DivergedError] for the log of another tree, as far as this can be known before any
// step runs: if an agent runs only its sub-agents, each step that ran below it must be a sub-agent.
func (x *replayLog) checkTree(tree *Tree) error {
	type pair struct{ above, name string }
	var good pair // the last one that fits
	for i, e := range x.events.all() {
		r := e.owner
		if r == nil || r.parent == nil || r.from != i {
			continue
		}
		at := pair{r.parent.address.Agent(), r.address.Agent()}
		if at == good {
			continue
		}
		if mismatch := treeMismatch(tree, r.parent.parent == nil, at.above, at.name); mismatch != "" {
			return &agent.DivergedError{Address: r.address, Want: describe(x.readEvent(e.seq)), Got: mismatch}
		}
		good = at
	}
	return nil
}

// treeMismatch returns a text that says why an agent cannot have run below another one; empty if it can. For the root
// the text depends on name only.
func treeMismatch(tree *Tree, root bool, above, name string) string {
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

// isSequential reports whether an agent does one thing after another. In a resumed run such an agent repeats all its
// logged events before it yields a new one.
func isSequential(a agent.Agent) bool {
	t := agent.TypeOf(a)
	return t == agent.TypeSequential || t == agent.TypeLoop || t == agent.TypeLLM
}
