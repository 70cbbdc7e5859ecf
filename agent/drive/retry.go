// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"errors"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// MetadataFailed is a key of the CustomMetadata of an event. The event with this key made the
// step fail. The value is the error's text.
const MetadataFailed = "refrain:failed"

// End returns how a run ended, or nil if it has not ended. events are the run's events that are
// not superseded.
func End(events []*session.Event) (*mark.StepFinished, error) {
	var end *mark.StepFinished
	for _, ev := range events {
		if ev.Mark == nil || ev.Address == "" || ev.Address.Parent() != "" {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindStepStarted:
			end = nil
		case mark.KindStepFinished:
			fin := new(mark.StepFinished)
			if err := ev.Mark.Decode(fin); err != nil {
				return nil, err
			}
			if end = fin; fin.Canceled {
				end = nil
			}
		}
	}
	return end, nil
}

// FailedSteps returns the sequence numbers to supersede so that a failed step can run again: the end
// of the step, the ends of the steps around it, and their events since. The rest is the log of
// a run that was cut off in that step. In a parallel agent several steps can have failed; all
// of them run again. events are the events of a failed run that are not superseded, in order.
func FailedSteps(events session.Events, tree *Tree) (mark.Spans, error) {
	f := failures{events: events, tree: tree, superseded: make(map[int64]bool)}
	for i := events.Len() - 1; i >= 0; i-- {
		if ev := events.At(i); ev.Address != "" && ev.Address.Parent() == "" && f.failureAt(i) != nil {
			f.supersedeFailure(i)
			break
		}
	}
	if len(f.superseded) == 0 {
		return nil, errors.New("the log does not say which step failed; start a new run, or fork this one")
	}
	seqs := make([]int64, 0, len(f.superseded))
	for seq := range f.superseded {
		seqs = append(seqs, seq)
	}
	return mark.SpansOf(seqs...), nil
}

// failures holds the failures in a log.
type failures struct {
	events     session.Events
	tree       *Tree
	superseded map[int64]bool
}

// failureAt returns the data of event i if it is the mark at the end of a failed step, and otherwise nil.
func (f *failures) failureAt(i int) *mark.StepFinished {
	ev := f.events.At(i)
	if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished {
		return nil
	}
	fin := new(mark.StepFinished)
	if ev.Mark.Decode(fin) != nil || fin.Canceled || fin.Error == "" {
		return nil
	}
	return fin
}

// supersedeFailure supersedes a failure. Event i is the end of a step that failed by it.
func (f *failures) supersedeFailure(i int) {
	top := f.events.At(i).Address
	j := f.failedStep(i)
	at := f.events.At(j).Address
	f.supersedeFailedOutput(j)
	if j == i { // another step cut it off, perhaps after a step inside it had failed
		f.supersedeWithin(at, i)
	}
	for k := f.endStart(j); k < f.events.Len(); k++ {
		if ev := f.events.At(k); ev.Address != "" && at.Under(ev.Address) && ev.Address.Under(top) {
			f.superseded[ev.Seq] = true
		}
	}
	for a := at.Parent(); a != "" && a.Under(top); a = a.Parent() {
		if p := f.tree.Find(a.Agent()); p != nil && agent.TypeOf(p) == agent.TypeParallel {
			f.supersedeWithin(a, f.events.Len())
		}
	}
}

// failedStep returns the index of the end of the step that has caused a failure. Event i is the end of a step that
// failed by it.
func (f *failures) failedStep(i int) int {
	top := f.events.At(i).Address
	for at := session.Address(f.failureAt(i).At); at != "" && at != top && at.Under(top); at = at.Parent() {
		for j := i; j >= 0; j-- {
			ev := f.events.At(j)
			if ev.Address != at || ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished {
				continue
			}
			if f.failureAt(j) != nil {
				return j
			}
			break
		}
	}
	return i
}

// endStart returns the index of the event with which a failed step began to end. For a loop this is its stop record,
// and otherwise event i, the end of the step.
func (f *failures) endStart(i int) int {
	at := f.events.At(i).Address
	for j := i - 1; j >= 0; j-- {
		ev := f.events.At(j)
		if ev.Address != at || ev.Mark == nil {
			continue
		}
		if ev.Mark.Kind == mark.KindLoopStopped {
			return j
		}
		break
	}
	return i
}

// supersedeFailedOutput supersedes the last output of a step, if the step would fail by it again. That is an answer
// of its model, an event with [MetadataFailed], or a question that was not answered in time. Event i is the end of
// the step. Its earlier output stays.
func (f *failures) supersedeFailedOutput(i int) {
	at := f.events.At(i).Address
	a := f.tree.Find(at.Agent())
	if !TraitsOf(a, true).Continues {
		return // it starts again
	}
	for j := i - 1; j >= 0; j-- {
		ev := f.events.At(j)
		if ev.Address != at {
			continue
		}
		answer := agent.TypeOf(a) == agent.TypeLLM && ev.Mark == nil &&
			(ev.Content == nil || ev.Content.Role == genai.RoleModel)
		asked := ev.Mark != nil && ev.Mark.Kind == mark.KindAsked
		if !answer && !asked && ev.CustomMetadata[MetadataFailed] == nil {
			return
		}
		f.superseded[ev.Seq] = true
		if !answer {
			return
		}
	}
}

// supersedeWithin supersedes the failures of the steps of a sequence or a parallel agent before event i, if they end
// that agent.
func (f *failures) supersedeWithin(at session.Address, i int) {
	a := f.tree.Find(at.Agent())
	if a == nil || agent.TypeOf(a) != agent.TypeSequential && agent.TypeOf(a) != agent.TypeParallel {
		return
	}
	skipper, _ := a.(Skipper)
	done := make(map[session.Address]bool)
	for i--; i >= 0; i-- {
		ev := f.events.At(i)
		if ev.Mark == nil {
			continue
		}
		if ev.Address == at && ev.Mark.Kind == mark.KindStepStarted {
			return
		}
		if ev.Mark.Kind != mark.KindStepFinished || ev.Address.Parent() != at || done[ev.Address] || f.superseded[ev.Seq] {
			continue
		}
		done[ev.Address] = true
		switch fin := f.failureAt(i); {
		case fin == nil:
			f.supersedeWithin(ev.Address, i) // does nothing if no step in it has failed
		case skipper == nil || !skipper.Skips(ev.Address.Agent(), ErrorOf(fin)) ||
			fin.At != "" && !session.Address(fin.At).Under(ev.Address): // another step cut it off
			f.supersedeFailure(i)
		}
	}
}
