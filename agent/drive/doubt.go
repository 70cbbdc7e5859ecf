// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"maps"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// MetadataCut is a key of the CustomMetadata of the event with a step's tool answers. Its value
// lists the IDs of the calls that have no answer, because the step's context ended first. The
// IDs are those of the calls in the log.
const MetadataCut = "refrain:cut"

// CutIn returns the IDs of the calls that an event lists under [MetadataCut], or nil.
func CutIn(ev *session.Event) []string {
	list, _ := ev.CustomMetadata[MetadataCut].([]any)
	var ids []string
	for _, id := range list {
		if s, ok := id.(string); ok {
			ids = append(ids, s)
		}
	}
	return ids
}

// doubts holds the calls under a step that have begun and must not be made twice.
type doubts struct {
	step *Step
	open map[session.Address][]agent.Doubt
	cut  []agent.Doubt
}

// watch looks at what happens under a step that runs several at once. The step's run
// is about to begin.
func (s *Step) watch() *doubts {
	if !watches(s.cfg.Agent) || s.inv.tree == nil {
		return nil
	}
	d := &doubts{step: s}
	yield := s.yield
	s.yield = func(ev *session.Event) bool {
		d.see(ev)
		return yield(ev)
	}
	return d
}

func (d *doubts) see(ev *session.Event) {
	inv, at := d.step.inv, ev.Address
	switch {
	case ev.Partial || at == inv.address:
	case ev.Mark == nil && d.open[at] != nil: // what it came to
		cut := CutIn(ev)
		left := slices.DeleteFunc(d.open[at], func(c agent.Doubt) bool { return !slices.Contains(cut, c.Call) })
		if d.open[at] = left; len(left) == 0 {
			delete(d.open, at)
		}
	case ev.Mark == nil:
	case ev.Mark.Kind == mark.KindStepStarted:
		if effectOf(inv.tree.Find(at.Agent())) == agent.AtMostOnce && ev.CustomMetadata[mark.MetadataNotRun] != true {
			d.begin(agent.Doubt{Address: at, ID: callID(inv.Session().ID(), inv.run.ID, string(at))})
		}
	case ev.Mark.Kind == mark.KindDispatched:
		var calls mark.Dispatched
		if ev.Mark.Decode(&calls) != nil || len(calls.Calls) == 0 {
			return
		}
		delete(d.open, at)
		for _, id := range calls.Calls {
			d.begin(agent.Doubt{Address: at, ID: callID(inv.Session().ID(), inv.run.ID, string(at), id), Call: id})
		}
	case ev.Mark.Kind == mark.KindStepFinished && d.open[at] != nil:
		var fin mark.StepFinished
		// One that another has cut off says how that one failed.
		if ev.Mark.Decode(&fin) == nil && fin.Error != "" && (fin.Canceled || !session.Address(fin.At).Under(at)) {
			d.cut = append(d.cut, d.open[at]...)
		}
		delete(d.open, at)
	case ev.Mark.Kind == mark.KindStepFinished && len(d.cut) > 0:
		if a := inv.tree.Find(at.Agent()); a != nil && watches(a) { // it has said so itself
			d.cut = slices.DeleteFunc(d.cut, func(c agent.Doubt) bool { return c.Address.Under(at) })
		}
	}
}

// watches reports whether an agent runs several others at once, or may do so.
func watches(a agent.Agent) bool { return !serial(a) && len(a.SubAgents()) > 0 }

func (d *doubts) begin(call agent.Doubt) {
	if d.open == nil {
		d.open = make(map[session.Address][]agent.Doubt)
	}
	d.open[call.Address] = append(d.open[call.Address], call)
}

// with returns the error of the step, with the calls that were cut off.
func (d *doubts) with(err error) error {
	if d == nil || err == nil || d.step.inv.Context.Err() != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(d.open)) { // of a resumed run, which has not come to them
		d.cut = append(d.cut, d.open[at]...)
	}
	if len(d.cut) == 0 {
		return err
	}
	return &agent.InDoubtError{Err: err, Calls: d.cut}
}
