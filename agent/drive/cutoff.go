// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"fmt"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// supersede takes out of the recording what was cut off and is made again from
// its beginning: steps that did not come to their end, unless they run others or
// take up what they have said themselves, and whatever was said because the run
// was canceled. It returns the sequence numbers of those events.
func (x *recording) supersede(tree *Tree) mark.Spans {
	var gone []int64
	x.root.supersede(tree, func(i int) {
		gone = append(gone, x.events[i].Seq)
		x.owners[i] = nil
	})
	return mark.SpansOf(gone...)
}

func (r *record) supersede(tree *Tree, drop func(int)) {
	for at := range r.runs {
		for r.cutOff(at, tree, drop) {
		}
	}
}

// cutOff is supersede for the last run at an address. It returns true if that is lost,
// and another one is behind it: a step that was cut off, and then not come to.
func (r *record) cutOff(at session.Address, tree *Tree, drop func(int)) (again bool) {
	runs := r.runs[at]
	last := runs[len(runs)-1]
	switch {
	case last.finished != nil:
		return false
	case last.resumes(tree):
		last.reopen(drop)
		last.supersede(tree, drop)
		return false
	}
	r.wasted = r.wasted.Add(last.used())
	last.lose(drop)
	r.repeat(at)
	r.take(last.from)
	if r.runs[at] = runs[:len(runs)-1]; len(runs) == 1 {
		delete(r.runs, at)
		return false
	}
	return true
}

// resumes reports whether a step goes on in the same attempt.
func (r *record) resumes(tree *Tree) bool {
	if r.started == nil || r.started.CustomMetadata[mark.MetadataNotRun] == true {
		return false
	}
	if len(r.runs) > 0 || len(r.again) > 0 {
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
func (r *record) lose(drop func(int)) {
	r.lost = true
	for i := r.from; i < len(r.of.events); i++ {
		if r.of.owners[i].within(r) {
			drop(i)
		}
	}
}

// reopen drops what a step said of itself because it was canceled.
func (r *record) reopen(drop func(int)) {
	if all := r.used(); r.canceled != nil {
		r.canceled = nil
		r.wasted = r.wasted.Add(beyond(all, r.used()))
	}
	for i := r.from; i < len(r.of.events); i++ {
		ev := r.of.events[i]
		if r.of.owners[i] != r || ev.Address != r.address || !ofCancel(ev) {
			continue
		}
		drop(i)
		if slices.Contains(r.words, i) {
			r.take(i)
			r.words = slices.DeleteFunc(r.words, func(w int) bool { return w == i })
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
	for i, ev := range x.events {
		r := x.owners[i]
		if r == nil || ev.Mark == nil || ev.Mark.Kind != mark.KindStepStarted && r.started != nil || r.parent == nil {
			continue
		}
		name := r.address.Agent()
		if r.parent.parent == nil {
			if tree.Find(name) == nil {
				return &agent.DivergedError{Address: r.address, Recorded: describe(ev),
					Said: fmt.Sprintf("it has no agent %q", name)}
			}
			continue
		}
		above := tree.Find(r.parent.address.Agent())
		if above == nil || !runsOnlySubAgents(above) || slices.ContainsFunc(above.SubAgents(),
			func(a agent.Agent) bool { return a.Name() == name }) {
			continue
		}
		return &agent.DivergedError{Address: r.address, Recorded: describe(ev),
			Said: fmt.Sprintf("%q has no sub-agent %q", above.Name(), name)}
	}
	return nil
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
